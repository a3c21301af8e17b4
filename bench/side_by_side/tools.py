"""The programs: path, version, and how to install a missing one."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


class Failed(Exception):
    """A program failed or is missing. The benchmark reports it and goes on."""


# For each program: the arguments with which it prints its version, and how to install it.
KNOWN = {
    "brimful": (["--version"], "make build"),
    "brimful-bench-server": (["--version"], "make bench"),
    "nginx": (["-v"], "Debian package nginx"),
    "wrk": (["--version"], "Debian package wrk"),
    "wrk2": (["--version"], "no registry has it: build it from its sources as `wrk2`"),
    "httperf": (["--version"], "Debian package httperf"),
    "h2load": (["--version"], "Debian package nghttp2-client"),
    "ab": (["-V"], "Debian package apache2-utils"),
    "hey": ([], "Debian package hey"),
    "oha": (["--version"], "cargo install oha"),
    "k6": (["version"], "go install go.k6.io/k6@latest"),
    "vegeta": (["-version"], "go install github.com/tsenart/vegeta/v12@latest"),
    "zrk": (["--version"], "no registry has it: --sources zrk=DIR builds it"),
    "gcannon": ([], "no registry has it: --sources gcannon=DIR builds it"),
}

# Directories in which Debian, cargo and go install programs. They are searched even if they are not in PATH.
PLACES = ("/usr/sbin", "~/.cargo/bin", "~/go/bin")


@dataclass(frozen=True)
class Programs:
    """The path of every known program, or None if it is not installed."""

    paths: dict[str, str | None]
    # Commits of the programs that were built from sources.
    commits: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def find(build: Path) -> "Programs":
        return Programs({name: find_program((name,), build) for name in KNOWN})

    def add(self, name: str, path: Path, commit: str | None) -> None:
        """Adds a program that was built from sources, in place of an installed one."""
        self.paths[name] = str(path)
        if commit:
            self.commits[name] = commit

    def path(self, name: str) -> str | None:
        return name if os.path.isabs(name) else self.paths[name]

    def versions(self) -> dict[str, str | None]:
        return {name: self.version(name) if path else None for name, path in self.paths.items()}

    def version(self, name: str) -> str:
        """The version of an installed program. gcannon does not print its version: only its commit is known."""
        number, commit = version(self.paths[name], KNOWN[name][0]), self.commits.get(name)
        if commit is None:
            return number
        return f"commit {commit}" if number == "unknown" else f"{number} (commit {commit})"


def find_program(names: Sequence[str], build: Path | None = None) -> str | None:
    """The path of the first of these names that is installed, or None. Our own programs are searched in `build`."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(os.path.expanduser, PLACES)])
    if build and names[0].startswith("brimful"):
        path = str(build)
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


def version(path: str, arguments: list[str]) -> str:
    """The version that the program prints, else the version of its Debian package or Go module, else "unknown"."""
    printed = output([path, *arguments]) if arguments else ""
    return version_in(printed) or debian_version(path) or go_version(path) or "unknown"


def version_in(printed: str) -> str | None:
    """The first version number in a text that is not a version of Go."""
    found = re.search(r"(?<!go)(?<![\d.])\d+\.\d+(?:[.\w+~-]*\w)?", printed)
    return found[0] if found else None


def debian_version(path: str) -> str | None:
    package = output(["dpkg-query", "--search", path]).partition(":")[0]
    return version_in(output(["dpkg-query", "--show", "--showformat=${Version}", package]))


def go_version(path: str) -> str | None:
    """The module version that Go wrote into the program."""
    found = re.search(r"^\s*mod\s+\S+\s+v(\S+)", output(["go", "version", "-m", path]), re.MULTILINE)
    return found[1] if found else None


def output(command: list[str]) -> str:
    """The output of a command, errors included; empty if there is no such command."""
    try:
        return subprocess.run(
            command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        ).stdout
    except FileNotFoundError:
        return ""
