"""The program that writes logs and the programs that read them. Every run is a new process."""

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
# Interval between readings of a program's memory. The peak may be missed if it is reached within this time before the
# program's end.
PERIOD_S = 0.01


@dataclass(frozen=True)
class Log:
    """A log that was written."""

    path: Path
    bytes: int
    lines: int
    # Name of the log's format in GoAccess.
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
        summary = json.loads(ended.stdout)
        return Log(path, summary["bytes"], summary["lines"], shape.get("format", "combined").upper())


@dataclass(frozen=True)
class Run:
    """One reading of a log."""

    wall_s: float
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Reader:
    """A program that reads logs: its command line, and a function that finds the line count in its report."""

    name: str
    version: str
    command: Callable[[Log, bool, Path], list[str]]
    lines: Callable[[dict], int]

    def read(self, log: Log, sessions: bool, cpus: set[int]) -> Run:
        """Reads the log on these CPUs. Raises Failed unless the report counts every line."""
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
    """The installed readers, and for each missing one how to install it."""
    version = tools.version(brimful, ["--version"])
    ours = Reader(OURS, version, our_command(brimful), lambda report: report["lines"]["read"])
    if path := shutil.which("goaccess"):
        version = tools.version(path, ["--version"])
        theirs = Reader(GOACCESS, version, their_command(path), lambda report: report["general"]["total_requests"])
        return [ours, theirs], {}
    return [ours], {GOACCESS: "GoAccess is absent: Debian package goaccess"}


def our_command(path: str) -> Callable[[Log, bool, Path], list[str]]:
    """brimful's command line. It prints its report to standard output."""

    def command(log: Log, sessions: bool, _: Path) -> list[str]:
        return [path, "characterize", str(log.path), "--json", "--quiet", *([] if sessions else ["--no-sessions"])]

    return command


def their_command(path: str) -> Callable[[Log, bool, Path], list[str]]:
    """GoAccess's command line. It has no sessions; it always counts visitors by day."""

    def command(log: Log, _: bool, report: Path) -> list[str]:
        settings = [f"--log-format={log.format}", "--no-global-config", "--no-progress"]
        return [path, str(log.path), *settings, "--output", str(report)]

    return command


def timed(command: list[str], report: Path, cpus: set[int]) -> Run:
    """Runs a program to its end. If the program writes no report file, its standard output becomes the report."""
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
            errors = stderr.read().decode(errors="replace").strip()
            raise Failed(f"{command[0]}: exit {process.returncode}: {errors[-500:]}")
    if not report.exists():
        printed.rename(report)
    return Run(wall_s, usage.ru_utime + usage.ru_stime, peak_kib / 1024)
