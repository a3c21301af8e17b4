"""Who writes the logs, and who reads them: one fresh process for each."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..side_by_side import host, tools
from ..side_by_side.tools import Failed

WRITER = "brimful-bench-accesslog"
OURS = "brimful"
GOACCESS = "GoAccess"
LIMIT_S = 1800
# The peak is as old as this when a program ends, at most.
PERIOD_S = 0.01


@dataclass(frozen=True)
class Log:
    """What was written."""

    path: Path
    bytes: int
    lines: int
    # As GoAccess calls it.
    format: str


@dataclass(frozen=True)
class Writer:
    program: str
    directory: Path

    def write(self, shape: dict) -> Log:
        path = self.directory / "access.log"
        request = json.dumps(shape | {"path": str(path)})
        ended = subprocess.run([self.program], input=request, capture_output=True, text=True)
        if ended.returncode != 0:
            raise Failed(f"{WRITER}: {ended.stderr.strip()}")
        said = json.loads(ended.stdout)
        return Log(path, said["bytes"], said["lines"], shape.get("format", "combined").upper())


@dataclass(frozen=True)
class Run:
    """One reading of a log."""

    wall_s: float
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Reader:
    """A program that reads logs: its command, and how many lines its report says that it read."""

    name: str
    version: str
    command: Callable[[Log, bool, Path], list[str]]
    lines: Callable[[dict], int]

    def read(self, log: Log, sessions: bool, cpus: set[int]) -> Run:
        """On these CPUs. Failed if it does not say that it has read every line."""
        with tempfile.TemporaryDirectory(dir=log.path.parent) as directory:
            report = Path(directory, "report.json")
            run = timed(self.command(log, sessions, report), report, cpus)
            try:
                lines = self.lines(json.loads(report.read_text()))
            except (OSError, ValueError, KeyError) as error:
                raise Failed(f"{self.name}: its report cannot be read: {error!r}") from error
        if lines != log.lines:
            raise Failed(f"{self.name} read {lines:,} lines of {log.lines:,}")
        return run


def readers(brimful: str) -> tuple[list[Reader], dict[str, str]]:
    """Those that are there, and why others are not."""
    version = tools.version(brimful, ["--version"])
    there = [Reader(OURS, version, our_command(brimful), lambda said: said["lines"]["read"])]
    if path := shutil.which("goaccess"):
        version = tools.version(path, ["--version"])
        return [*there, Reader(GOACCESS, version, their_command(path), lambda said: said["general"]["total_requests"])], {}
    return there, {GOACCESS: "GoAccess is absent: Debian package goaccess"}


def our_command(path: str) -> Callable[[Log, bool, Path], list[str]]:
    """Its report is on standard output."""

    def command(log: Log, sessions: bool, _: Path) -> list[str]:
        return [path, "characterize", str(log.path), "--json", "--quiet", *([] if sessions else ["--no-sessions"])]

    return command


def their_command(path: str) -> Callable[[Log, bool, Path], list[str]]:
    """It has no sessions, but visitors by day, always."""

    def command(log: Log, _: bool, report: Path) -> list[str]:
        settings = [f"--log-format={log.format}", "--no-global-config", "--no-progress"]
        return [path, str(log.path), *settings, "--output", str(report)]

    return command


def timed(command: list[str], report: Path, cpus: set[int]) -> Run:
    """Runs a program to its end; what it prints becomes the report, if it does not write that itself."""
    printed = report.with_suffix(".printed")
    with printed.open("wb") as stdout, tempfile.TemporaryFile() as stderr:
        begun = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        peak_kib = 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - begun > LIMIT_S:
                process.kill()
                process.wait()
                raise Failed(f"{command[0]}: still running after {LIMIT_S} s")
            peak_kib = max(peak_kib, host.memory_kib(process.pid)[1])
            time.sleep(PERIOD_S)
        wall_s = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            stderr.seek(0)
            said = stderr.read().decode(errors="replace").strip()
            raise Failed(f"{command[0]}: exit {process.returncode}: {said[-500:]}")
    if not report.exists():
        printed.rename(report)
    return Run(wall_s, usage.ru_utime + usage.ru_stime, peak_kib / 1024)
