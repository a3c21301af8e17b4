"""Shared by all benchmark commands: arguments, the head of a results document, and writing it to a file."""

import argparse
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from .side_by_side import host
from .side_by_side.tools import output

BENCH = Path(__file__).resolve().parent
RESULTS = BENCH / "results"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", BENCH.parent / "target"))


def parser(name: str, doc: str, built: str, out: str) -> argparse.ArgumentParser:
    """A parser with the arguments that all benchmarks have.

    `built` names the programs that must have been built; `out` is the default results file.
    """
    parser = argparse.ArgumentParser(prog=name, description=" ".join(doc.split("\n\n")[0].split()))
    parser.add_argument("--build", type=Path, default=TARGET / "release", help=f"directory of {built}")
    parser.add_argument("--out", type=Path, help=f"file for the results [default: {out}]")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="print the tables of stored results, and run nothing"
    )
    return parser


def add_choice(parser: argparse.ArgumentParser, flag: str, names: Iterable[str], more: str = "") -> None:
    names = list(names)
    text = f"only this {flag.removeprefix('--')} (repeatable): " + ", ".join(names) + more
    parser.add_argument(flag, action="append", choices=names, metavar="NAME", help=text)


def add_cpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server-cpu", type=int, default=0, help="[default: %(default)s]")
    parser.add_argument("--generator-cpu", type=int, default=1, help="[default: %(default)s]")


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def head(schema: str, now: datetime | None = None) -> dict:
    """The first keys of a results document: schema, date, commit and host."""
    return {
        "schema": schema,
        "date": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "commit": output(["git", "-C", str(BENCH), "describe", "--always", "--dirty"]).strip(),
        "host": host.describe(),
    }


def write(path: Path, document: dict) -> None:
    """Writes a results document. Called after every case, so that an interrupted measurement loses little."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rounded(document), indent=1, ensure_ascii=False) + "\n")


def rounded(value: object) -> object:
    """The same value with every number rounded to six significant digits, to keep the stored files small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def say(line: str) -> None:
    """Prints progress to standard error; standard output is for the tables."""
    print(line, file=sys.stderr, flush=True)


def missing(benchmark: str, program: str, build: Path, remedy: str) -> int:
    """Reports a missing program. Returns the exit code for that."""
    say(f"{benchmark}: {program} is not in {build}: {remedy}, or name the directory with --build")
    return 3


def raise_descriptor_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(main: Callable[[], int]) -> NoReturn:
    """Runs a benchmark and exits with its code. SIGTERM acts like Ctrl-C, so that started programs are ended."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
