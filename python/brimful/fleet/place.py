"""A place for one shard: an object in this process or an actor on another host.

The place starts `brimful load` as a child process, the shard, and observes it. The shard ends when its stdin is closed,
so at the latest with the process of its place. The shard repeatedly writes its Record so far to a file, each time
replacing the whole file. The place returns the Record to the driver.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _binary
from .._scratch import Scratch

#: Maximum number of bytes of a shard's stderr that are reported, from its end.
MAX_STDERR_BYTES = 4_000


@dataclass(frozen=True)
class Description:
    """A place and its host."""

    host: str
    #: The boot id of the host's kernel. It identifies the host.
    boot: str
    pid: int
    version: str
    cpus: int


@dataclass(frozen=True)
class ShardState:
    """The state of a shard at one instant."""

    #: The exit code of the shard's process; None while it is running.
    code: int | None
    #: The shard's Record so far; None if it has not changed since the last call.
    record: bytes | None = None
    #: The end of the shard's stderr.
    stderr: str = ""
    #: The results so far from the Record, for the progress line.
    figures: "Figures | None" = None


@dataclass(frozen=True)
class Figures:
    """The results so far of one shard or of several."""

    t_s: float = 0.0
    scheduled: int = 0
    completed: int = 0
    failed: int = 0
    #: Calls completed per second in the last complete interval of the Record.
    completed_per_s: float = 0.0
    #: 99th percentile of the response time in the last complete interval. For several shards, it is the largest of
    #: their percentiles.
    p99_us: float | None = None

    def __add__(self, other: "Figures") -> "Figures":
        slowest = [p99 for p99 in (self.p99_us, other.p99_us) if p99 is not None]
        return Figures(
            t_s=max(self.t_s, other.t_s),
            scheduled=self.scheduled + other.scheduled,
            completed=self.completed + other.completed,
            failed=self.failed + other.failed,
            completed_per_s=self.completed_per_s + other.completed_per_s,
            p99_us=max(slowest, default=None),
        )

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "Figures":
        """Reads the figures from a Record."""
        counts = record["counts"]
        # The last interval may be incomplete.
        whole = record["intervals"][:-1] or record["intervals"]
        last = whole[-1] if whole else {}
        length_s = last.get("length_s") or 1.0
        unfinished = counts["in_flight_at_end"] + counts["unsent_at_end"]
        return Figures(
            t_s=record["duration_s"],
            scheduled=counts["scheduled"],
            completed=counts["completed"],
            failed=counts["scheduled"] - counts["completed"] - unfinished,
            completed_per_s=last.get("completed", 0) / length_s,
            p99_us=last.get("p99_us"),
        )


@dataclass
class Place:
    """Runs one shard."""

    scratch: Scratch | None = None
    process: "subprocess.Popen[bytes] | None" = None
    #: Inode and modification time of the Record's file when it was last read; they show whether it has changed.
    read_version: tuple[int, int] = (0, 0)

    def describe(self) -> Description:
        """Describes this place."""
        boot = Path("/proc/sys/kernel/random/boot_id")
        return Description(
            host=socket.gethostname(),
            boot=boot.read_text().strip() if boot.exists() else socket.gethostname(),
            pid=os.getpid(),
            version=_binary.version(),
            cpus=len(os.sched_getaffinity(0)),
        )

    def clock(self) -> int:
        """Reads the host's clock, in nanoseconds since 1970."""
        return time.time_ns()

    def start(self, arguments: Sequence[str], files: Mapping[str, str]) -> int:
        """Starts `brimful` with these arguments. `{NAME}` in them is replaced by the path of a file with the content
        `files[NAME]`, and `{record}` by the path for the Record. Returns the process id."""
        self.scratch = Scratch()
        names = {"record": str(self._record_path())}
        for name, content in files.items():
            path = self.scratch.path / name
            path.write_text(content)
            names[name] = str(path)
        command = [_binary.find_program(), *(_with_paths(word, names) for word in arguments)]
        with open(self._stderr_path(), "wb") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                # A separate session: Ctrl-C reaches only the driver, which then asks each shard to stop.
                start_new_session=True,
            )
        return self.process.pid

    def state(self) -> ShardState:
        """Returns the state of the shard."""
        if self.process is None:
            return ShardState(code=None)
        # Check first whether the process has ended, and then read the Record. In the opposite order, a last Record that
        # was written between the two steps would be missed.
        code = self.process.poll()
        record = self._changed_record()
        figures = None
        if record is not None:
            try:
                figures = Figures.from_record(json.loads(record))
            except (ValueError, KeyError, TypeError):
                # Ignore the error here: merging the Records will report it.
                figures = None
        return ShardState(code=code, record=record, stderr=self._stderr_tail(), figures=figures)

    def stop(self) -> None:
        """Asks the shard to stop. Before it ends, it writes its last Record."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Kills the shard if it still runs, and removes its files."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdin is not None:
                self.process.stdin.close()
        if self.scratch is not None:
            self.scratch.close()

    def _record_path(self) -> Path:
        return self._path("record.json")

    def _stderr_path(self) -> Path:
        return self._path("stderr")

    def _path(self, name: str) -> Path:
        assert self.scratch is not None
        return self.scratch.path / name

    def _changed_record(self) -> bytes | None:
        try:
            with open(self._record_path(), "rb") as file:
                status = os.fstat(file.fileno())
                version = (status.st_ino, status.st_mtime_ns)
                if version == self.read_version:
                    return None
                self.read_version = version
                return file.read()
        except FileNotFoundError:
            return None

    def _stderr_tail(self) -> str:
        with open(self._stderr_path(), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_STDERR_BYTES))
            return file.read().decode(errors="replace")


def _with_paths(word: str, names: Mapping[str, str]) -> str:
    for name, path in names.items():
        word = word.replace("{" + name + "}", path)
    return word
