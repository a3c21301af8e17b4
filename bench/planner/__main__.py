"""Measures the planner's solvers, their speed and their agreement with others; prints tables and stores the results.

python3 -m bench.planner --help
"""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from .. import command
from ..monitor import suite
from . import peers, program
from .cases import CASES, Bed

REPETITIONS, QUICK_REPETITIONS = 5, 2
LIMIT_S, QUICK_LIMIT_S = 120, 5


def main() -> int:
    options = parse()
    if options.report:
        return suite.show(options.report, CASES)
    path = options.build.resolve() / program.NAME
    if not path.exists():
        return command.missing("planner", program.NAME, options.build, "make bench-planner")
    solvers, absent = peers.find(options.line)
    try:
        return measure(options, path, solvers, absent)
    finally:
        for peer in solvers:
            peer.end()


def measure(options: argparse.Namespace, path: Path, solvers: list[peers.Peer], absent: dict[str, str]) -> int:
    repetitions = options.repetitions or (QUICK_REPETITIONS if options.quick else REPETITIONS)
    limit_s = options.limit_seconds or (QUICK_LIMIT_S if options.quick else LIMIT_S)
    now = datetime.now(UTC)
    document = command.head("brimful.bench-planner/1", now) | {
        "versions": {peer.name: peer.version for peer in solvers},
        "absent": absent,
        "settings": {"quick": options.quick, "repetitions": repetitions, "limit_seconds": limit_s},
        "cases": [],
    }
    stored = command.RESULTS / f"planner-{now:%Y-%m-%dT%H%M%SZ}.json"
    out = options.out or (None if options.quick or options.case else stored)
    bed = Bed(program.Program(path), solvers, repetitions, limit_s, options.quick)
    return suite.measure(document, CASES, bed, options.case, out)


def parse() -> argparse.Namespace:
    line = Path.home() / ".cache/brimful-bench/planner/bin/python"
    parser = command.parser("planner", __doc__, program.NAME, "bench/results/planner-DATE.json")
    command.add_choice(parser, "--case", [case.name for case in CASES], more="; stores nothing")
    parser.add_argument(
        "--quick", action="store_true", help="use short runs, only to check that the benchmark works; stores nothing"
    )
    parser.add_argument("--repetitions", type=int, help=f"[default: {REPETITIONS}, quick {QUICK_REPETITIONS}]")
    parser.add_argument(
        "--limit-seconds",
        type=float,
        help=f"time limit of another solver for one answer [default: {LIMIT_S}, quick {QUICK_LIMIT_S}]",
    )
    parser.add_argument("--line", type=Path, default=line, help="the Python with line-solver [default: %(default)s]")
    return parser.parse_args()


if __name__ == "__main__":
    command.run(main)
