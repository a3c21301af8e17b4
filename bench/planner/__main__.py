"""Measures how fast the planner's solvers are, and whether they agree with others; prints tables and stores the results.

python3 -m bench.planner --help
"""

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from ..monitor import report
from ..monitor.case import Case
from ..side_by_side import host
from ..side_by_side.__main__ import rounded
from ..side_by_side.tools import Failed, output
from . import peers, program
from .cases import CASES, Bed

BENCH = Path(__file__).resolve().parent.parent
REPETITIONS, QUICK_REPETITIONS = 5, 2
LIMIT_S, QUICK_LIMIT_S = 120, 5


def main() -> int:
    options = parse()
    if options.report:
        document = json.loads(options.report.read_text())
        print(report.text(CASES, document), *document["absent"].values(), sep="\n\n")
        return 0
    path = options.build.resolve() / program.NAME
    if not path.exists():
        print(
            f"planner: {program.NAME} is not in {options.build}: make bench-planner, or name the directory with --build",
            file=sys.stderr,
        )
        return 3
    there, absent = peers.find(options.line)
    try:
        return measure(options, path, there, absent)
    finally:
        for peer in there:
            peer.end()


def measure(options: argparse.Namespace, path: Path, there: list[peers.Peer], absent: dict[str, str]) -> int:
    repetitions = options.repetitions or (QUICK_REPETITIONS if options.quick else REPETITIONS)
    limit_s = options.limit_seconds or (QUICK_LIMIT_S if options.quick else LIMIT_S)
    now = datetime.now(UTC)
    document: dict = {
        "schema": "brimful.bench-planner/1",
        "date": now.isoformat(timespec="seconds"),
        "commit": output(["git", "-C", str(BENCH), "describe", "--always", "--dirty"]).strip(),
        "host": host.describe(),
        "versions": {peer.name: peer.version for peer in there},
        "absent": absent,
        "settings": {"quick": options.quick, "repetitions": repetitions, "limit_seconds": limit_s},
        "cases": [],
    }
    print(report.header(document), *absent.values(), sep="\n", end="\n\n", flush=True)
    stored = BENCH / "results" / f"planner-{now:%Y-%m-%dT%H%M%SZ}.json"
    out = options.out or (None if options.quick or options.case else stored)
    bed = Bed(program.Program(path), there, repetitions, limit_s, options.quick)
    for case in CASES:
        if options.case and case.name not in options.case:
            continue
        document["cases"].append(run(case, bed))
        print(report.case_text(case, document["cases"][-1]), end="\n\n", flush=True)
        if out:
            # After every case, so that little is lost when it is interrupted.
            out.write_text(json.dumps(rounded(document), indent=1, ensure_ascii=False) + "\n")
    print(report.requirements_text(CASES, document))
    if out:
        print(f"\nraw results: {out}", file=sys.stderr)
    return 0


def run(case: Case, bed: Bed) -> dict:
    try:
        return {"name": case.name} | case.measure(bed).document()
    except Failed as failure:
        return {"name": case.name, "error": str(failure)}


def parse() -> argparse.Namespace:
    names = [case.name for case in CASES]
    build = Path(os.environ.get("CARGO_TARGET_DIR", BENCH.parent / "target")) / "release"
    line = Path.home() / ".cache/brimful-bench/planner/bin/python"
    parser = argparse.ArgumentParser(prog="planner", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--case",
        action="append",
        choices=names,
        metavar="NAME",
        help="only this case (repeatable): " + ", ".join(names) + "; stores nothing",
    )
    parser.add_argument(
        "--quick", action="store_true", help="everything much shorter, to see that it works; stores nothing"
    )
    parser.add_argument("--repetitions", type=int, help=f"[default: {REPETITIONS}, quick {QUICK_REPETITIONS}]")
    parser.add_argument(
        "--limit-seconds",
        type=float,
        help=f"how long another solver may take for one answer [default: {LIMIT_S}, quick {QUICK_LIMIT_S}]",
    )
    parser.add_argument("--line", type=Path, default=line, help="the Python that has line-solver [default: %(default)s]")
    parser.add_argument("--build", type=Path, default=build, help=f"where {program.NAME} is")
    parser.add_argument("--out", type=Path, help="file for the raw results [default: bench/results/planner-DATE.json]")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="print the tables of stored results, and run nothing"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
