"""Where one shard runs: this process, or an actor on another host. It starts `brimful load` and observes it.

The shard is a process of its own, which ends when its stdin is closed, so at the latest with this process. It writes
its Record so far to a file, which is replaced as a whole each time; this process passes it on to the driver.
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

#: How many bytes of a shard's stderr are reported, counted from the end.
MOST_SAID = 4_000


@dataclass(frozen=True)
class Description:
    """Describes a place and its host."""

    host: str
    #: The boot id: the same for all places of one host, and different on all others.
    boot: str
    pid: int
    version: str
    cpus: int


@dataclass(frozen=True)
class Look:
    """The state of a shard at one instant."""

    #: Its exit code; None while it runs.
    code: int | None
    #: Its Record so far, if it has changed since the last look.
    kept: bytes | None = None
    #: The end of its stderr.
    said: str = ""
    #: Figures of that Record, for the progress line.
    figures: "Figures | None" = None


@dataclass(frozen=True)
class Figures:
    """The results so far of one shard or of several."""

    t_s: float = 0.0
    scheduled: int = 0
    completed: int = 0
    failed: int = 0
    #: Calls completed per second in the last whole interval.
    completed_per_s: float = 0.0
    #: 99th percentile in the last whole interval; of several shards the largest.
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
    def of(record: Mapping[str, Any]) -> "Figures":
        """Reads the figures of a Record."""
        counts, whole = record["counts"], record["intervals"][:-1] or record["intervals"]
        last = whole[-1] if whole else {}
        length_s = last.get("length_s") or 1.0
        open_ones = counts["in_flight_at_end"] + counts["unsent_at_end"]
        return Figures(
            t_s=record["duration_s"],
            scheduled=counts["scheduled"],
            completed=counts["completed"],
            failed=counts["scheduled"] - counts["completed"] - open_ones,
            completed_per_s=last.get("completed", 0) / length_s,
            p99_us=last.get("p99_us"),
        )


@dataclass
class Place:
    """A place runs one shard."""

    scratch: Scratch | None = None
    process: "subprocess.Popen[bytes] | None" = None
    #: Identifies the kept file that was handed on last.
    seen: tuple[int, int] = (0, 0)

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
        """Returns the host's clock, in nanoseconds since 1970."""
        return time.time_ns()

    def start(self, words: Sequence[str], files: Mapping[str, str]) -> int:
        """Starts `brimful` with these arguments, in which `{NAME}` becomes the path of that file. Returns its pid."""
        self.scratch = Scratch()
        names = {"kept": str(self._kept())}
        for name, content in files.items():
            path = self.scratch.path / name
            path.write_text(content)
            names[name] = str(path)
        command = [_binary.find(), *(_filled(word, names) for word in words)]
        with open(self._said(), "wb") as said:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                # Ctrl-C goes to the driver, which then asks each shard to stop.
                start_new_session=True,
            )
        return self.process.pid

    def look(self) -> Look:
        """Returns the state of the shard."""
        if self.process is None:
            return Look(code=None)
        # In this order, the last Record that it kept is not missed.
        code = self.process.poll()
        kept = self._changed()
        figures = None
        if kept is not None:
            try:
                figures = Figures.of(json.loads(kept))
            except (ValueError, KeyError, TypeError):
                # The merge reports what is wrong with it.
                figures = None
        return Look(code=code, kept=kept, said=self._tail(), figures=figures)

    def stop(self) -> None:
        """Asks the shard to stop; it then writes its last Record."""
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

    def _kept(self) -> Path:
        return self._file("kept.json")

    def _said(self) -> Path:
        return self._file("stderr")

    def _file(self, name: str) -> Path:
        assert self.scratch is not None
        return self.scratch.path / name

    def _changed(self) -> bytes | None:
        try:
            with open(self._kept(), "rb") as file:
                status = os.fstat(file.fileno())
                now = (status.st_ino, status.st_mtime_ns)
                if now == self.seen:
                    return None
                self.seen = now
                return file.read()
        except FileNotFoundError:
            return None

    def _tail(self) -> str:
        with open(self._said(), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_SAID))
            return file.read().decode(errors="replace")


def _filled(word: str, names: Mapping[str, str]) -> str:
    for name, path in names.items():
        word = word.replace("{" + name + "}", path)
    return word
