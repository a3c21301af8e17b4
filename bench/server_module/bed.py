"""Shared by all cases: the programs, the CPUs, a network namespace, and the load."""

import ctypes
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..monitor.bed import Workplace
from ..side_by_side.tools import Failed, find_program, version
from .servers import Server

CLONE_NEWNET = 0x40000000
KNOWN = {
    "brimful": (["brimful"], ["--version"], "make build"),
    "nginx": (["nginx"], ["-v"], "Debian package nginx"),
    "apache": (["apache2", "httpd"], ["-v"], "Debian package apache2-bin"),
}


@dataclass(frozen=True, eq=False)
class Bed(Workplace):
    """The programs, the scratch directory, the CPUs and the length of the measurement. There is one instance."""

    build: Path
    directory: Path
    server_cpu: int
    generator_cpu: int
    quick: bool
    seconds: int
    # Directory with the sources of nginx-module-vts, another module for nginx; None without it.
    vts: Path | None = None

    def program(self, name: str) -> str:
        if path := find(name, self.build):
            return path
        raise Failed(f"{name} is absent ({KNOWN[name][2]})")

    def server(self, kind: str, files: dict[str, int] | None = None, **more: object) -> Server:
        return Server(self, kind, files or {}, **more)

    def load(self, url: str, *flags: object) -> "Load":
        return Load([self.program("brimful"), "load", url, *map(str, flags), "--json"], self.generator_cpu)


class Load:
    """`brimful load` on the generator's CPU. The end of the `with` block kills it."""

    def __init__(self, command: list[str], cpu: int) -> None:
        self._output, self._errors = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            ["taskset", "-c", str(cpu), *command], stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._errors
        )

    def check(self) -> None:
        """Raises Failed if the load has ended."""
        if self._process.poll() is not None:
            raise Failed(f"the load ended too early: {self._text(self._errors)}")

    def pause(self) -> None:
        """Stops the load until `resume`. Its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continues the load."""
        self._process.send_signal(signal.SIGCONT)

    def ended(self) -> bool:
        return self._process.poll() is not None

    def record(self, within_s: float = 900) -> dict:
        """Waits for the load to end, and returns its Record."""
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"the load is still running after {within_s:.0f} s") from None
        # Exit code 1 means that calls failed, because workers were killed; 4 means that the load generator was the
        # limit. Both are reported in the Record.
        if code not in (0, 1, 4):
            raise Failed(f"brimful load: exit {code}: {self._text(self._errors)}")
        return json.loads(self._text(self._output))

    @staticmethod
    def _text(file: object) -> str:
        file.seek(0)
        return file.read()

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self._output.close()
        self._errors.close()


@dataclass(frozen=True)
class Traffic:
    """Bytes and connections over the loopback device of this network namespace so far."""

    bytes: int
    connections: int

    @staticmethod
    def now() -> "Traffic":
        devices = Path("/proc/self/net/dev").read_text().splitlines()
        device = next(line for line in devices if line.strip().startswith("lo:"))
        names, values = (
            line.split() for line in Path("/proc/self/net/snmp").read_text().splitlines() if line.startswith("Tcp:")
        )
        return Traffic(int(device.split(":")[1].split()[0]), int(values[names.index("PassiveOpens")]))

    def __sub__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.bytes - other.bytes, self.connections - other.connections)


def own_network() -> bool:
    """Moves this process into a new network namespace; returns whether that was permitted."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        return False
    return subprocess.run(["ip", "link", "set", "lo", "up"], check=False).returncode == 0


def find(name: str, build: Path) -> str | None:
    return find_program(KNOWN[name][0], build)


def versions(build: Path) -> dict[str, str | None]:
    found = {name: find(name, build) for name in KNOWN}
    return {name: version(path, KNOWN[name][1]) if path else None for name, path in found.items()}
