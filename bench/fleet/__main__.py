"""Measures the cost of a fleet and how precisely its shards start together; prints tables and stores the results.

python3 -m bench.fleet --help
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from .. import command

PROGRAM = "brimful"
REPETITIONS, QUICK_REPETITIONS = 5, 1
MERGED, QUICK_MERGED = [100, 1_000], [20]
SHARDS, QUICK_SHARDS = [2, 4, 8], [2]


def main() -> int:
    options = parse()
    if options.report:
        for case in json.loads(options.report.read_text())["cases"]:
            print(table(case["name"], "", case["rows"]), end="\n\n")
        return 0
    path = options.build.resolve() / PROGRAM
    if not path.exists():
        return command.missing("fleet", PROGRAM, options.build, "make build")
    # The package reads this variable when it is imported below.
    os.environ["BRIMFUL_BINARY"] = str(path)
    sys.path.insert(0, str(command.BENCH.parent / "python"))
    from . import cases

    now = datetime.now(UTC)
    document = command.head("brimful.bench-fleet/1", now) | {"settings": settings(options), "cases": []}
    out = options.out or (
        None if options.quick or options.case else command.RESULTS / f"fleet-{now:%Y-%m-%dT%H%M%SZ}.json"
    )
    with tempfile.TemporaryDirectory(prefix="brimful-bench-fleet-", dir=options.directory) as directory:
        for name, case in cases.CASES.items():
            if options.case and name not in options.case:
                continue
            rows = case(options, Path(directory))
            document["cases"].append({"name": name, "rows": rows})
            print(table(name, case.__doc__ or "", rows), end="\n\n", flush=True)
            if out:
                command.write(out, document)
    return 0


def settings(options: argparse.Namespace) -> dict:
    return {key: getattr(options, key) for key in ("quick", "repetitions", "merge", "shards")}


def table(name: str, what: str, rows: list[dict]) -> str:
    """A text table. Cells with several values show the median with the least and the greatest."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [[cell(row.get(key)) for key in columns] for row in rows]
    widths = [max(len(line[i]) for line in [columns, *lines]) for i in range(len(columns))]
    text = ["  ".join(word.rjust(width) for word, width in zip(line, widths)) for line in [columns, *lines]]
    return "\n".join([f"{name}: {' '.join(what.split())}", *text])


def cell(value: object) -> str:
    if isinstance(value, list):
        return f"{statistics.median(value):.4g} ({min(value):.4g} to {max(value):.4g})" if value else "–"
    return "–" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)


def parse() -> argparse.Namespace:
    parser = command.parser("fleet", __doc__, PROGRAM, "bench/results/fleet-DATE.json")
    command.add_choice(parser, "--case", ["merge", "start", "overhead", "offsets", "largest"], more="; stores nothing")
    parser.add_argument(
        "--quick", action="store_true", help="use short runs, only to check that the benchmark works; stores nothing"
    )
    parser.add_argument(
        "--repetitions", type=command.positive, help=f"[default: {REPETITIONS}, quick {QUICK_REPETITIONS}]"
    )
    parser.add_argument(
        "--merge",
        type=command.positive,
        action="append",
        help=f"number of Records (repeatable) [default: {MERGED}; try 10000]",
    )
    parser.add_argument(
        "--shards", type=command.positive, action="append", help=f"number of shards (repeatable) [default: {SHARDS}]"
    )
    parser.add_argument("--address", help="also merge by a tree of tasks on the Ray cluster at this address, e.g. auto")
    parser.add_argument("--directory", type=Path, help="directory for the Records, 0.6 MB each [default: TMPDIR]")
    options = parser.parse_args()
    options.repetitions = options.repetitions or (QUICK_REPETITIONS if options.quick else REPETITIONS)
    options.merge = options.merge or (QUICK_MERGED if options.quick else MERGED)
    options.shards = options.shards or (QUICK_SHARDS if options.quick else SHARDS)
    return options


if __name__ == "__main__":
    command.run(main)
