"""The programs: path, version, and how to install a missing one."""

from dataclasses import dataclass
from pathlib import Path

from ..side_by_side.tools import find_program, version

# For each program: its possible file names, the arguments with which it prints its version, and how to install it.
KNOWN = {
    "brimful": (["brimful"], ["--version"], "make build"),
    "probe": (["brimful-bench-monitor"], ["--version"], "make bench-monitor"),
    "nginx": (["nginx"], ["-v"], "Debian package nginx"),
    "wrk": (["wrk"], ["--version"], "Debian package wrk"),
    "sar": (["sar"], ["-V"], "Debian package sysstat"),
    "pidstat": (["pidstat"], ["-V"], "Debian package sysstat"),
    "vmstat": (["vmstat"], ["--version"], "Debian package procps"),
    "node_exporter": (
        ["prometheus-node-exporter", "node_exporter"],
        ["--version"],
        "Debian package prometheus-node-exporter",
    ),
    "ss": (["ss"], ["-V"], "Debian package iproute2"),
}


@dataclass(frozen=True)
class Programs:
    """The path of every known program, or None if it is not installed."""

    paths: dict[str, str | None]

    @staticmethod
    def find(build: Path) -> "Programs":
        return Programs({name: find_program(names, build) for name, (names, _, _) in KNOWN.items()})

    def path(self, name: str) -> str | None:
        return self.paths[name]

    def installed(self, names: list[str]) -> list[str]:
        """Those of the named programs that are installed."""
        return [name for name in names if self.paths[name]]

    def versions(self) -> dict[str, str | None]:
        return {name: version(path, KNOWN[name][1]) if path else None for name, path in self.paths.items()}


def missing(name: str) -> str:
    return f"{name} is absent ({KNOWN[name][2]})"
