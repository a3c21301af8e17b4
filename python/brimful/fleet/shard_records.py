"""The directory of `fleet run --keep`: each shard's Record so far. Each file is replaced as a whole.

Records of an earlier run are replaced. No other file is removed or overwritten: the user may name any directory, even
one like /tmp that all users share.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

from .. import _binary

#: The pattern by which users merge the Records: `brimful merge DIR/shard-*.json`.
RECORDS = "shard-*.json"
#: A Record that is being written. An earlier run that was killed may have left it.
UNFINISHED = ".brimful-shard-*.part"
SCHEMA = "brimful.record/"


def prepare(directory: Path) -> None:
    """Makes the directory, and removes what an earlier run left there. If another file has the name of a Record, it
    removes nothing and raises: that file would be lost, or merged."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        records = sorted(directory.glob(RECORDS))
        others = [path for path in records if not _is_shards_record(path)]
        if others:
            raise _binary.UsageError(
                f"{others[0]} is not the Record of a shard, and this run would replace the files {RECORDS} there: move "
                "it away, or choose another directory for the shards' Records",
                2,
            )
        for path in [*records, *directory.glob(UNFINISHED)]:
            path.unlink()
    except OSError as error:
        message = f"cannot write in {directory}: {error.strerror}: choose another directory for the shards' Records"
        raise _binary.HostError(message, 3) from error


def path(directory: Path, index: int) -> Path:
    """The path of a shard's Record."""
    return directory / RECORDS.replace("*", str(index))


def write(directory: Path, index: int, record: bytes) -> None:
    """Replaces the Record of a shard."""
    unfinished = directory / UNFINISHED.replace("*", str(index))
    # Do not write through a link that another user may have put there.
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as file:
        file.write(record)
    unfinished.rename(path(directory, index))


def _is_shards_record(path: Path) -> bool:
    """Whether the file is the Record of the shard that its name says, so that an earlier run wrote it."""
    index = re.fullmatch(r"shard-([0-9]+)\.json", path.name)
    if index is None or not stat.S_ISREG(path.lstat().st_mode):
        return False
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            record = json.load(file)
        of_shards = [shard["index"] for shard in record["shards"]]
        return bool(record["schema"].startswith(SCHEMA)) and of_shards == [int(index[1])]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
