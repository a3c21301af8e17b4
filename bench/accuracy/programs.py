"""The programs that the servers need: path, version, and what to install if one is missing."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass

from ..side_by_side.tools import PLACES, output, version

# Directories in which Linux distributions install programs, and the directory of Go's archive from go.dev.
ALL_PLACES = (*PLACES, "/usr/local/go/bin")


@dataclass(frozen=True)
class Program:
    """A program, by its possible names in order of preference, or a module of this Python."""

    names: tuple[str, ...]
    source: str
    version_argument: str = "--version"
    module: bool = False
    # An argument, and a word that the program's output with this argument must contain.
    lists: tuple[str, str] | None = None

    def path(self) -> str | None:
        if self.module:
            return sys.executable if importlib.util.find_spec(self.names[0]) else None
        places = os.pathsep.join([os.environ.get("PATH", ""), *(os.path.expanduser(place) for place in ALL_PLACES)])
        found = (path for name in self.names if (path := shutil.which(name, path=places)))
        return next((path for path in found if self._suits(path)), None)

    def _suits(self, path: str) -> bool:
        return self.lists is None or self.lists[1] in output([path, self.lists[0]]).split()

    def version(self) -> str | None:
        if self.path() is None:
            return None
        if self.module:
            return importlib.metadata.version(self.names[0])
        printed = output([self.path(), self.version_argument])
        # Go itself needs this expression: `version` ignores versions of Go, because programs that are built with Go
        # print it beside their own.
        compiler = re.match(r"go version go([\d.]+)", printed)
        return compiler[1] if compiler else version(self.path(), [self.version_argument])


PROGRAMS = {
    "nginx": Program(("nginx",), "Debian package nginx", "-v"),
    "apache": Program(("apache2",), "Debian package apache2", "-v"),
    "lighttpd": Program(("lighttpd",), "Debian package lighttpd", "-v"),
    "caddy": Program(("caddy",), "Debian package caddy", "version"),
    "haproxy": Program(("haproxy",), "Debian package haproxy", "-v"),
    "node": Program(("node",), "Debian package nodejs"),
    "go": Program(("go",), "Debian package golang-go", "version"),
    "java": Program(("java",), "Debian package openjdk-17-jdk-headless", "-version"),
    "javac": Program(("javac",), "Debian package openjdk-17-jdk-headless", "-version"),
    "php-fpm": Program(
        ("php-fpm8.4", "php-fpm8.3", "php-fpm8.2", "php-fpm"), "Debian packages php-fpm and php-sqlite3", "-v",
        lists=("-m", "sqlite3"),
    ),
    "uvicorn": Program(("uvicorn",), "pip install uvicorn", module=True),
    "httptools": Program(("httptools",), "pip install httptools", module=True),
    "uvloop": Program(("uvloop",), "pip install uvloop", module=True),
    "starlette": Program(("starlette",), "pip install starlette", module=True),
}  # fmt: skip


def missing(names: tuple[str, ...]) -> str | None:
    """The programs that are not installed, each with what to install; None if all are installed."""
    absent = [f"{name} is missing: {PROGRAMS[name].source}" for name in names if PROGRAMS[name].path() is None]
    return "; ".join(absent) or None
