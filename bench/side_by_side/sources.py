"""Builds the generators that no registry has from their sources, in a directory of the build, for this run alone.

The sources are copied first, so nothing is written to their directory.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .tools import Failed, output

# Directories of the sources that a build does not need: history, and the results of earlier builds.
UNNEEDED = shutil.ignore_patterns(".git", "build", ".zig-cache", "zig-out")


@dataclass(frozen=True)
class Recipe:
    """How a generator is built in a directory with its sources."""

    command: Callable[[], list[str]]
    # Path of the program that the command writes.
    program: str


@dataclass(frozen=True)
class Built:
    """A generator that was built from its sources."""

    path: Path
    # Commit of the sources. It ends in `-dirty` if they were edited. None outside a git checkout.
    commit: str | None


def zig_build() -> list[str]:
    """Zig's build command, by `zig` in PATH, else by the Python package ziglang."""
    if shutil.which("zig"):
        zig = ["zig"]
    elif importlib.util.find_spec("ziglang"):
        zig = [sys.executable, "-m", "ziglang"]
    else:
        raise Failed("zig is not in PATH: install it, or the Python package ziglang (zrk 1.4.2 needs ziglang==0.16.0)")
    return [*zig, "build", "-Doptimize=ReleaseFast"]


RECIPES = {
    "gcannon": Recipe(lambda: ["make"], "gcannon"),
    "zrk": Recipe(zig_build, "zig-out/bin/zrk"),
}


def build(name: str, sources: Path, target: Path, recipe: Recipe | None = None) -> Built:
    """Copies the sources to a directory in `target` and builds the generator there."""
    recipe = recipe or RECIPES[name]
    place = target / name
    # Zig's cache is beside the copy, so that an unchanged generator is not compiled again.
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(sources, place, symlinks=True, ignore=UNNEEDED)
    log = target / f"{name}.log"
    environment = os.environ | {"ZIG_LOCAL_CACHE_DIR": str(target / f"{name}-cache")}
    try:
        command = recipe.command()
        with log.open("w") as file:
            subprocess.run(command, cwd=place, env=environment, stdout=file, stderr=file, check=True)
    except Failed as failure:
        raise Failed(f"cannot build {name}: {failure}") from failure
    except OSError as failure:
        raise Failed(f"cannot build {name} from {sources}: {failure}") from failure
    except subprocess.CalledProcessError as failure:
        words = " ".join(command)
        raise Failed(
            f"cannot build {name} from {sources}: `{words}` ended with {failure.returncode}; its output is in {log}"
        ) from failure
    path = place / recipe.program
    if not os.access(path, os.X_OK):
        raise Failed(f"cannot build {name} from {sources}: `{' '.join(command)}` did not write {recipe.program}")
    return Built(path, commit(sources))


def commit(sources: Path) -> str | None:
    # --git-dir keeps git from reporting the commit of a repository that merely contains the sources.
    git = ["git", f"--git-dir={sources / '.git'}", f"--work-tree={sources}"]
    printed = output([*git, "describe", "--always", "--dirty", "--abbrev=9", "--exclude=*"]).strip()
    return None if not printed or printed.startswith("fatal") else printed


def argument(text: str) -> tuple[str, Path]:
    """Parses NAME=DIR."""
    name, _, directory = text.partition("=")
    if name not in RECIPES:
        raise argparse.ArgumentTypeError(f"{text}: write NAME=DIR, with one of these names: {', '.join(RECIPES)}")
    path = Path(directory).expanduser().resolve()
    if not directory or not path.is_dir():
        raise argparse.ArgumentTypeError(f"{directory or text} is not a directory")
    return name, path
