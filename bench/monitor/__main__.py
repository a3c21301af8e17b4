"""Measures what watching costs and whether it tells the truth, beside other monitors; prints tables and stores the
results.

python3 -m bench.monitor --help
"""

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from ..side_by_side import host
from ..side_by_side.__main__ import rounded
from ..side_by_side.tools import Failed, output
from . import lookup, minute, overflow, overhead, report, sample, states, upkeep
from .bed import Bed
from .case import Case
from .tools import Programs

BENCH = Path(__file__).resolve().parent.parent
CASES = [
    sample.CASE,
    states.CASE,
    lookup.CASE,
    upkeep.CASE,
    overflow.CASE,
    minute.MEMORY,
    minute.AGREEMENT,
    overhead.CASE,
]
OVERHEAD_S, QUICK_OVERHEAD_S = 600, 80


def main() -> int:
    options = parse()
    if options.report:
        print(report.text(CASES, json.loads(options.report.read_text())))
        return 0
    programs = Programs.find(options.build.resolve())
    for name, remedy in (("brimful", "make build"), ("probe", "make bench-monitor")):
        if programs.path(name) is None:
            print(
                f"monitor: {name} is not in {options.build}: {remedy}, or name the directory with --build",
                file=sys.stderr,
            )
            return 3
    if os.geteuid() != 0:
        print("monitor: namespaces, eBPF and other users' processes take root: run it as root", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    overhead_s = options.overhead_seconds or (QUICK_OVERHEAD_S if options.quick else OVERHEAD_S)
    document: dict = {
        "schema": "brimful.bench-monitor/1",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": output(["git", "-C", str(BENCH), "describe", "--always", "--dirty"]).strip(),
        "host": host.describe(),
        "versions": programs.versions(),
        "settings": {
            "quick": options.quick,
            "overhead_seconds": overhead_s,
            "server_cpu": options.server_cpu,
            "generator_cpu": options.generator_cpu,
        },
        "cases": [],
    }
    print(report.header(document), end="\n\n", flush=True)
    out = options.out or (None if options.quick else BENCH / "results" / "monitor.json")
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        bed = Bed(programs, Path(directory), options.server_cpu, options.generator_cpu, options.quick, overhead_s)
        for case in CASES:
            if options.case and case.name not in options.case:
                continue
            document["cases"].append(run(case, bed))
            print(report.case_text(case, document["cases"][-1]), end="\n\n", flush=True)
            if out:
                # After every case, so that little is lost when it is interrupted.
                out.parent.mkdir(parents=True, exist_ok=True)
                out.write_text(json.dumps(rounded(document), indent=1) + "\n")
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
    parser = argparse.ArgumentParser(prog="monitor", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--case",
        action="append",
        choices=names,
        metavar="NAME",
        help="only this case (repeatable): " + ", ".join(names),
    )
    parser.add_argument(
        "--quick", action="store_true", help="everything much shorter, to see that it works; stores nothing"
    )
    parser.add_argument(
        "--overhead-seconds",
        type=int,
        help=f"length of the case overhead [default: {OVERHEAD_S}, quick {QUICK_OVERHEAD_S}]",
    )
    parser.add_argument("--server-cpu", type=int, default=0, help="[default: %(default)s]")
    parser.add_argument("--generator-cpu", type=int, default=1, help="[default: %(default)s]")
    parser.add_argument("--build", type=Path, default=build, help="where brimful and brimful-bench-monitor are")
    parser.add_argument("--out", type=Path, help="file for the raw results [default: bench/results/monitor.json]")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="print the tables of stored results, and run nothing"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
