"""Shared by all cases: the programs, the CPUs, the server under load, and processes that end with this program."""

import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..side_by_side.servers import Counted, Nginx, status
from ..side_by_side.tools import Failed
from .clock import family
from .tools import Programs, missing

HERE = Path(__file__).parent


class Workplace:
    """Methods of a test bed with a scratch `directory` and a `generator_cpu`."""

    directory: Path
    generator_cpu: int

    def scratch(self, name: str) -> Path:
        """An empty directory."""
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Keeps this program, and processes that it starts without a CPU, off the server's CPU."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.generator_cpu})
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


@dataclass(frozen=True, eq=False)
class Bed(Workplace):
    """The programs, the scratch directory, the CPUs and the length of the measurement. There is one instance."""

    programs: Programs
    directory: Path
    server_cpu: int
    generator_cpu: int
    quick: bool
    overhead_seconds: int

    def program(self, name: str) -> str:
        if path := self.programs.path(name):
            return path
        raise Failed(missing(name))

    @contextlib.contextmanager
    def server(self) -> Iterator["Server"]:
        """nginx with one worker on the server's CPU."""
        server = Server(self.program("nginx"), self.directory, self.server_cpu)
        try:
            yield server
        finally:
            server.stop()

    def saturate(self, server: "Server", seconds: float, *flags: str) -> "Running":
        """Starts wrk on the generator's CPU, with 64 connections and without think time."""
        wrk = [self.program("wrk"), "-t1", "-c64", f"-d{seconds:.0f}s", *flags, f"http://127.0.0.1:{server.port}/"]
        return Running(wrk, self.generator_cpu)


class Server(Nginx):
    """nginx, and its counts of connections and requests."""

    def __init__(self, path: str, directory: Path, cpu: int) -> None:
        super().__init__(path, directory, cpu)
        # Keep this connection open, because a saturated server may take long to accept another one.
        self._status_connection = http.client.HTTPConnection("127.0.0.1", self._status, timeout=30)

    @property
    def pids(self) -> list[int]:
        return family(self._process.pid)

    def done(self) -> tuple[float, Counted]:
        """The time of the status page, and the counts on it. Requests for that page are counted too."""
        asked = time.monotonic()
        self._status_connection.request("GET", "/")
        page = self._status_connection.getresponse().read().decode()
        return (asked + time.monotonic()) / 2, status(page)

    def stop(self) -> None:
        self._status_connection.close()
        super().stop()


class Running:
    """A started command. The end of the `with` block kills it and all processes that it has started."""

    def __init__(self, command: Sequence[str], cpu: int | None = None) -> None:
        pinned = [] if cpu is None else ["taskset", "-c", str(cpu)]
        self.command = list(command)
        self._output, self._errors = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        # The command runs in a session of its own. So a signal to its process group reaches all its processes, and
        # Ctrl-C at the terminal reaches none of them.
        self._process = subprocess.Popen(
            [*pinned, *command],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._errors,
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=True,
        )

    @property
    def pids(self) -> list[int]:
        # taskset executes the command in its own process, so the process ID is that of the command.
        return family(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> bool:
        return self._process.poll() is not None

    def finish(self, within_s: float) -> str:
        """Waits for the command to end, and returns its output."""
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} is still running after {within_s:.0f} s") from None
        if code:
            raise Failed(f"{self.name}: exit {code}: {self.complaint()}")
        return text(self._output)

    def interrupt(self, within_s: float = 10) -> str:
        """Interrupts the command, as Ctrl-C would, and returns its output."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} is still running {within_s:.0f} s after SIGINT") from None
        return text(self._output)

    def pause(self) -> None:
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def check(self) -> None:
        """Raises Failed if the command has ended."""
        if self.ended():
            raise Failed(f"{self.name} ended too early: {self.complaint()}")

    @property
    def name(self) -> str:
        return Path(self.command[0]).name

    def complaint(self) -> str:
        """The line of the command's standard error that most likely says what went wrong."""
        lines = [line.strip() for line in text(self._errors).splitlines() if line.strip()]
        errors = (line for line in lines if "error" in line.lower())
        return next(errors, lines[-1] if lines else "it printed nothing")

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        # Send the signal to the whole group: other processes may still be running after the first one has ended.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()
        self._errors.close()


def helper(script: str, *arguments: object) -> list[str]:
    """The command line of one of this directory's own scripts."""
    return [sys.executable, str(HERE / script), *map(str, arguments)]


def text(file: TextIO) -> str:
    file.seek(0)
    return file.read()


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
