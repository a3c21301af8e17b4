"""Other people's solvers: where they are, and how they are asked.

Each runs in an interpreter of its own, which stays, since to start one takes seconds: it reads a request per line and
writes an answer per line, timed by its own CPU clock. One that takes too long is ended and started again.
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

# Those that no registry has, and what was looked for.
UNOBTAINABLE = {
    "PDQ": (
        "PDQ cannot be had: Debian has no package of it, and `pdq` on PyPI is something else (a query tool for Parquet files)"
    ),
    "JMT": (
        "JMT cannot be had: neither Debian, PyPI nor npm has it, and Maven Central has nothing under `jmt`; "
        "its authors distribute it by a web site"
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
        """Its answer. Failed if it takes longer than that, or cannot."""
        self.start()
        # Octave gives a line to its reader when it has seen the beginning of the next one: an empty line comes after each.
        self._process.stdin.write(json.dumps(request) + "\n\n")
        self._process.stdin.flush()
        answer = self._answer(limit_s)
        if error := answer.get("error"):
            raise Failed(f"{self.name}: {error}")
        return answer

    def start(self) -> None:
        """The interpreter, if it does not run; it says its version when it is ready."""
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
            raise Failed(f"{self.name}: it ended")
        return json.loads(line)


def find(line_python: Path) -> tuple[list[Peer], dict[str, str]]:
    """Those that run, and by name why another does not."""
    known = {
        "LINE": ([str(line_python), str(HERE / "line_peer.py")], f"bench/planner/peers.sh installs it in {line_python}"),
        "Octave queueing": (
            [shutil.which("octave") or "octave", "--no-gui", "--quiet", str(HERE / "octave_peer.m")],
            "Debian package octave-queueing",
        ),
    }
    there, absent = [], dict(UNOBTAINABLE)
    for name, (command, remedy) in known.items():
        peer = Peer(name, command)
        try:
            peer.start()
            there.append(peer)
        except (OSError, Failed) as failure:
            absent[name] = f"{name} does not run ({remedy}): {failure}"
    return there, absent
