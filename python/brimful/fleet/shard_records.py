"""The directory of `fleet run --keep`: each shard's Record so far, whole at any time.

An earlier run's Records in it are replaced. Nothing else is removed or written over, whoever put it there: the user may
name any directory, and one like /tmp is everybody's.
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
    """Makes the directory, and removes what an earlier run left there. It removes nothing where another file has the
    name of a Record: that file would be lost, or merged."""
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
    """Where the Record of a shard is."""
    return directory / RECORDS.replace("*", str(index))


def write(directory: Path, index: int, record: bytes) -> None:
    """Replaces the Record of a shard."""
    unfinished = directory / UNFINISHED.replace("*", str(index))
    # A link that somebody put there is no place to write to.
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as file:
        file.write(record)
    unfinished.rename(path(directory, index))


def _is_shards_record(path: Path) -> bool:
    """Whether a run like this wrote it: the Record of the very shard that its name says."""
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
