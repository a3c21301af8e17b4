"""Finds and runs the program `brimful` of this package.

Everything that is measured or computed happens in a process of its own. So the interpreter's lock is never held
meanwhile, the host process's limits and signal handlers are left alone, and what goes wrong there takes nothing down
here.
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

#: Names another binary than the package's, for tests and for development.
VARIABLE = "BRIMFUL_BINARY"


class BrimfulError(Exception):
    """An error of brimful: what failed, and what to do next."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        #: The exit code of the command.
        self.exit_code = exit_code

    def __reduce__(self) -> "tuple[type[BrimfulError], tuple[str, int]]":
        """Lets the exception be pickled: Ray transfers exceptions of other hosts that way."""
        return type(self), (str(self), self.exit_code)


class UsageError(BrimfulError, ValueError):
    """A bad argument or a bad document (exit code 2)."""


class HostError(BrimfulError, OSError):
    """This host lacks or forbids something, or the server does not answer (exit code 3)."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. What was measured until then is kept."""

    #: The document of the run that was interrupted, if there is one.
    result: object | None = None


@dataclass(frozen=True)
class Ended:
    """The exit code and the output of the program."""

    code: int
    stdout: str
    stderr: str
    #: Whether Ctrl-C in this process ended it.
    interrupted: bool


@functools.cache
def find() -> str:
    """The program: what BRIMFUL_BINARY names, else the one that was installed with this package, else the one in
    PATH."""
    if named := os.environ.get(VARIABLE):
        return named
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    beside = [*schemes, str(Path(sys.executable).parent), str(Path(__file__).resolve().parents[3] / "bin")]
    for directory in filter(None, beside):
        program = Path(directory) / "brimful"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    if found := shutil.which("brimful"):
        return found
    raise HostError(f"the program `brimful` is not beside this package: install it again, or name it in {VARIABLE}", 3)


@functools.cache
def version() -> str:
    """Returns the version line, such as `brimful 0.1.0`."""
    return subprocess.run([find(), "--version"], capture_output=True, text=True, check=True).stdout.strip()


def run(words: Sequence[str], on_line: Callable[[str], None] | None = None) -> Ended:
    """Runs the program to its end. A thread calls `on_line` with each line of its stderr.

    After Ctrl-C the program is asked to stop and to tell what it has; after another it is killed.
    """
    command = [find(), *words]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    said: list[str] = []
    listener = threading.Thread(target=_listen, args=(process, said, on_line), daemon=True)
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
            # On a terminal the program has received Ctrl-C already. It ignores the second.
            process.send_signal(signal.SIGINT)
        except BaseException:
            process.kill()
            process.wait()
            raise
    listener.join(timeout=5)
    process.stdout.close()
    return Ended(process.returncode, "".join(parts), "".join(said), interrupted)


def error(ended: Ended) -> BrimfulError:
    """Returns the exception for a failed command."""
    lines = [line for line in ended.stderr.splitlines() if line.strip()]
    first = next((index for index, line in enumerate(lines) if line.startswith("error:")), 0)
    message = "\n".join(lines[first:]).removeprefix("error:").strip()
    if ended.code < 0:
        message = message or f"it was ended by {signal.Signals(-ended.code).name}: run it again"
    kinds: dict[int, type[BrimfulError]] = {2: UsageError, 3: HostError}
    return kinds.get(ended.code, BrimfulError)(message or f"it failed with exit code {ended.code}", ended.code)


def _listen(process: subprocess.Popen[str], said: list[str], on_line: Callable[[str], None] | None) -> None:
    assert process.stderr is not None
    with process.stderr:
        for line in process.stderr:
            said.append(line)
            if on_line is not None:
                on_line(line.rstrip("\n"))
