"""Finds and runs the program `brimful` of this package.

The program measures and computes in its own process. So it never holds the interpreter's lock, never changes the
limits and signal handlers of the Python process, and cannot crash it.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: An environment variable with the path of the program to run, for tests and development. Without it, the program in
#: the package is run.
BINARY_VARIABLE = "BRIMFUL_BINARY"


class BrimfulError(Exception):
    """An error of brimful: what failed, and what to do next."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        #: The exit code of the command that failed.
        self.exit_code = exit_code

    def __reduce__(self) -> "tuple[type[BrimfulError], tuple[str, int]]":
        """Lets the exception be pickled: Ray transfers exceptions of other hosts that way."""
        return type(self), (str(self), self.exit_code)


class UsageError(BrimfulError, ValueError):
    """A bad argument or a bad document (exit code 2)."""


class HostError(BrimfulError, OSError):
    """This host lacks or forbids something, or the server does not answer (exit code 3)."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed. The results until then are in `result`."""

    #: The document of the interrupted run, if the program wrote one.
    result: object | None = None


@dataclass(frozen=True)
class Finished:
    """The exit code and the output of the program."""

    code: int
    stdout: str
    stderr: str
    #: Whether this process received Ctrl-C and interrupted the program.
    interrupted: bool


@functools.cache
def find_program() -> str:
    """Returns the path of the program: the path in BRIMFUL_BINARY, else the program installed with this package, else
    the program in PATH."""
    if named := os.environ.get(BINARY_VARIABLE):
        return named
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    directories = [*schemes, str(Path(sys.executable).parent), str(Path(__file__).resolve().parents[3] / "bin")]
    for directory in filter(None, directories):
        program = Path(directory) / "brimful"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    if found := shutil.which("brimful"):
        return found
    raise HostError(
        f"the program `brimful` is missing: install this package again, or set {BINARY_VARIABLE} to its path", 3
    )


@functools.cache
def version() -> str:
    """Returns the version line, such as `brimful 0.1.0`."""
    return subprocess.run([find_program(), "--version"], capture_output=True, text=True, check=True).stdout.strip()


def run(arguments: Sequence[str], on_line: Callable[[str], None] | None = None) -> Finished:
    """Runs the program to its end. A thread calls `on_line` with each line of its stderr.

    The first Ctrl-C asks the program to stop and to report its results so far. The second kills it.
    """
    command = [find_program(), *arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    lines: list[str] = []
    listener = threading.Thread(target=_read_stderr, args=(process, lines, on_line), daemon=True)
    listener.start()
    interrupted = False
    assert process.stdout is not None
    parts: list[str] = []
    while True:
        try:
            parts.append(process.stdout.read())
            process.wait()
            break
        except KeyboardInterrupt:
            if interrupted:
                process.kill()
                process.wait()
                raise
            interrupted = True
            # On a terminal, the program has received the same Ctrl-C itself. It ignores this second signal.
            process.send_signal(signal.SIGINT)
        except BaseException:
            process.kill()
            process.wait()
            raise
    listener.join(timeout=5)
    process.stdout.close()
    return Finished(process.returncode, "".join(parts), "".join(lines), interrupted)


def exception_of(finished: Finished) -> BrimfulError:
    """Returns the exception for a failed command."""
    lines = [line for line in finished.stderr.splitlines() if line.strip()]
    first = next((index for index, line in enumerate(lines) if line.startswith("error:")), 0)
    message = "\n".join(lines[first:]).removeprefix("error:").strip()
    if finished.code < 0:
        message = message or f"it was ended by {signal.Signals(-finished.code).name}: run it again"
    kinds: dict[int, type[BrimfulError]] = {2: UsageError, 3: HostError}
    return kinds.get(finished.code, BrimfulError)(message or f"it failed with exit code {finished.code}", finished.code)


def _read_stderr(process: subprocess.Popen[str], lines: list[str], on_line: Callable[[str], None] | None) -> None:
    assert process.stderr is not None
    with process.stderr:
        for line in process.stderr:
            lines.append(line)
            if on_line is not None:
                on_line(line.rstrip("\n"))
