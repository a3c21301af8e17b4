"""Times how fast access logs are read, interleaved with runs of GoAccess; prints tables and stores the results.

python3 -m bench.accesslog --help
"""

import argparse
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from .. import command
from ..monitor import suite
from . import programs
from .cases import CASES, Bed

ROUNDS, QUICK_ROUNDS = 3, 2


def main() -> int:
    options = parse()
    if options.report:
        return suite.show(options.report, CASES)
    build = options.build.resolve()
    brimful, writer = (shutil.which(name, path=build) for name in ("brimful", programs.WRITER))
    if not (brimful and writer):
        return command.missing("accesslog", f"brimful or {programs.WRITER}", options.build, "make bench-accesslog")
    readers, absent = programs.readers(brimful)
    with tempfile.TemporaryDirectory(prefix="brimful-bench-", dir=options.directory) as directory:
        return measure(options, programs.Writer(writer, Path(directory)), readers, absent)


def measure(
    options: argparse.Namespace, writer: programs.Writer, readers: list[programs.Reader], absent: dict[str, str]
) -> int:
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    now = datetime.now(UTC)
    document = command.head("brimful.bench-accesslog/1", now) | {
        "versions": {reader.name: reader.version for reader in readers},
        "absent": absent,
        "settings": {"quick": options.quick, "rounds": rounds},
        "cases": [],
    }
    stored = command.RESULTS / f"accesslog-{now:%Y-%m-%dT%H%M%SZ}.json"
    out = options.out or (None if options.quick or options.case else stored)
    bed = Bed(writer, readers, rounds, options.quick)
    return suite.measure(document, CASES, bed, options.case, out)


def parse() -> argparse.Namespace:
    built = f"brimful and {programs.WRITER}"
    parser = command.parser("accesslog", __doc__, built, "bench/results/accesslog-DATE.json")
    command.add_choice(parser, "--case", [case.name for case in CASES], more="; stores nothing")
    parser.add_argument(
        "--quick", action="store_true", help="use small logs, only to check that the benchmark works; stores nothing"
    )
    parser.add_argument("--rounds", type=command.positive, help=f"[default: {ROUNDS}, quick {QUICK_ROUNDS}]")
    parser.add_argument("--directory", type=Path, help="directory for the logs, at most 2 GB [default: TMPDIR]")
    return parser.parse_args()


if __name__ == "__main__":
    command.run(main)
