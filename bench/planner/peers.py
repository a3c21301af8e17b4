"""Other solvers, each in its own interpreter.

An interpreter takes seconds to start, so it keeps running. It reads a request per line and writes an answer per line,
timed by its own CPU clock. An interpreter that exceeds the time limit is ended, and started again for the next request.
"""

import json
import selectors
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from ..side_by_side.tools import Failed

HERE = Path(__file__).resolve().parent
START_S = 300

# Solvers that are not available from a package registry, with the registries that were searched.
UNOBTAINABLE = {
    "PDQ": "PDQ is not available: Debian has no package of it, and `pdq` on PyPI is another program",
    "JMT": (
        "JMT is not available: it is not in Debian, PyPI, npm or Maven Central; "
        "its authors distribute it on their web site"
    ),
}


@dataclass
class Peer:
    """One solver, and the process that it runs in."""

    name: str
    command: list[str]
    version: str = ""
    _process: subprocess.Popen | None = field(default=None, repr=False)

    def ask(self, request: dict, limit_s: float) -> dict:
        """The solver's answer. Raises Failed if it exceeds the time limit or reports an error."""
        self.start()
        # Octave returns a line only after it has read the beginning of the next line, so write an empty line after the
        # request.
        self._process.stdin.write(json.dumps(request) + "\n\n")
        self._process.stdin.flush()
        answer = self._answer(limit_s)
        if error := answer.get("error"):
            raise Failed(f"{self.name}: {error}")
        return answer

    def start(self) -> None:
        """Starts the interpreter if it is not running, and waits for its version."""
        if self._process and self._process.poll() is None:
            return
        self._process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.version = self._answer(START_S)["version"]

    def end(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            self._process = None

    def _answer(self, limit_s: float) -> dict:
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(limit_s):
                self.end()
                raise Failed(f"{self.name}: not done in {limit_s:g} s")
        line = self._process.stdout.readline()
        if not line:
            self.end()
            raise Failed(f"{self.name}: the interpreter ended")
        return json.loads(line)


def find(line_python: Path) -> tuple[list[Peer], dict[str, str]]:
    """The solvers that can run, and for each other solver the reason why it cannot."""
    known = {
        "LINE": (
            [str(line_python), str(HERE / "line_peer.py")],
            f"bench/planner/peers.sh installs it in {line_python}",
        ),
        "Octave queueing": (
            [shutil.which("octave") or "octave", "--no-gui", "--quiet", str(HERE / "octave_peer.m")],
            "Debian package octave-queueing",
        ),
    }
    running, absent = [], dict(UNOBTAINABLE)
    for name, (command, remedy) in known.items():
        peer = Peer(name, command)
        try:
            peer.start()
            running.append(peer)
        except (OSError, Failed) as failure:
            absent[name] = f"{name} does not run ({remedy}): {failure}"
    return running, absent
