"""Shared by the scripts: arguments, a server to load, and searches for leftovers of a command."""

import argparse
import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: An environment variable that a command passes on to all processes that it starts. Each trial has a different value,
#: so that these processes can be found.
MARK = "BRIMFUL_RELIABILITY"

#: Prefix of the names of control groups that tests create.
TESTS = "brimful-test-"

#: Names of the counts of calls that ended before their request was sent.
BEFORE_SENDING = [
    "client_limited",
    "abandoned",
    "refused",
    "reset_before_sending",
    "tls_failed_before_sending",
    "unsent_at_end",
]


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser with the argument that all scripts have; `doc` is the script's docstring."""
    parser = argparse.ArgumentParser(description=" ".join((doc or "").split("\n\n")[0].split()))
    parser.add_argument("--build", type=Path, default=ROOT / "target" / "release", help="directory of the program")
    return parser


def processes(mark: str) -> list[str]:
    """Descriptions of the processes with this mark in their environment. Zombies are not found: they have none."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(f"process {entry.name} ({line.strip():.80})")
    return found


def groups_and_namespaces() -> set[Path]:
    """Control groups of brimful, except those of its test suite (which may run meanwhile), and all named namespaces."""
    groups = {path for path in Path("/sys/fs/cgroup").rglob("*brimful*") if path.is_dir() and TESTS not in str(path)}
    return groups | set(Path("/run/netns").glob("*"))


@contextlib.contextmanager
def target(program: Path) -> Iterator[tuple[str, int]]:
    """Runs the reference server; yields its URL and its process ID."""
    command = [str(program), "target", "--listen", "127.0.0.1:0", "--with-parent", "--service", "page=50us"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1] + "/"
            yield url, process.pid
        finally:
            process.terminate()


def calls_ended(counts: dict[str, int]) -> int:
    """The number of a Record's calls that ended, sent or not. It must equal the number of scheduled calls."""
    return counts["sent"] + sum(counts.get(key, 0) for key in BEFORE_SENDING)
