"""The directory of `fleet run --keep`, with the latest Record of each shard.

Records of an earlier run are replaced. No other file is removed or overwritten: the user may name any directory, even
one that all users share, like /tmp.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

from .. import _binary

#: File names of the shards' Records. Users can merge them with `brimful merge DIR/shard-*.json`.
RECORDS_PATTERN = "shard-*.json"
#: File names of Records that are being written. If an earlier run was killed, such a file may still exist.
UNFINISHED_PATTERN = ".brimful-shard-*.part"
SCHEMA = "brimful.record/"


def prepare(directory: Path) -> None:
    """Makes the directory if it is missing, and removes the Records of an earlier run. If another file has the name of
    a Record, raises and removes nothing: that file would be overwritten or merged."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        records = sorted(directory.glob(RECORDS_PATTERN))
        foreign = [path for path in records if not _is_shards_record(path)]
        if foreign:
            raise _binary.UsageError(
                f"{foreign[0]} is not the Record of a shard, and this run replaces the files {RECORDS_PATTERN} there: "
                "move it away, or choose another directory for the shards' Records",
                2,
            )
        for path in [*records, *directory.glob(UNFINISHED_PATTERN)]:
            path.unlink()
    except OSError as error:
        message = f"cannot write in {directory}: {error.strerror}: choose another directory for the shards' Records"
        raise _binary.HostError(message, 3) from error


def record_path(directory: Path, index: int) -> Path:
    """Returns the path of a shard's Record."""
    return directory / RECORDS_PATTERN.replace("*", str(index))


def write(directory: Path, index: int, record: bytes) -> None:
    """Replaces the Record of a shard, as a whole."""
    unfinished = directory / UNFINISHED_PATTERN.replace("*", str(index))
    # A link of another user may exist at this path. Remove it instead of writing to its target.
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as file:
        file.write(record)
    unfinished.rename(record_path(directory, index))


def _is_shards_record(path: Path) -> bool:
    """Whether the file is the Record of the shard in its name, and so was written by an earlier run."""
    index = re.fullmatch(r"shard-([0-9]+)\.json", path.name)
    if index is None or not stat.S_ISREG(path.lstat().st_mode):
        return False
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            record = json.load(file)
        indices = [shard["index"] for shard in record["shards"]]
        return bool(record["schema"].startswith(SCHEMA)) and indices == [int(index[1])]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
