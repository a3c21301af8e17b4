"""Temporary directories for the files of one call or one shard. They are removed even if this process is killed.

The process that made a directory holds a lock on it, which the kernel releases at the latest when the process ends.
So a directory that can be locked is a leftover, and the next process that makes one removes it. A process id in the
name would not be enough: ids are reused, and processes in other containers, which may share the temporary directory,
are invisible.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "brimful-scratch-"


class Scratch:
    """A new, empty directory, which `close` removes."""

    def __init__(self) -> None:
        _remove_leftovers()
        self.path, self._lock = _locked_directory()

    def close(self) -> None:
        """Removes the directory with its contents. Does nothing if it is already removed."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def _locked_directory() -> tuple[Path, int]:
    """Returns a new directory and the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        # Before the directory is locked, another process may remove it as a leftover. Then make another directory.
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        # Some file systems do not support locks. There, leftovers are not removed, and only `close` removes the directory.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink > 0:
            return path, lock
        os.close(lock)


@functools.cache
def _remove_leftovers() -> None:
    """Removes the directories of this user's processes that have ended."""
    parent = Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            if name.startswith(PREFIX):
                _remove_if_left_over(parent / name)


def _remove_if_left_over(path: Path) -> None:
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # A link, an inaccessible directory, or a directory that is already removed.
        return
    try:
        if os.fstat(directory).st_uid != os.getuid():
            return
        # Locking fails if the process that made the directory is still running, or if the file system does not support
        # locks.
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return
    finally:
        os.close(directory)
