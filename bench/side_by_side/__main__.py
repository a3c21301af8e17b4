"""Runs every case with every generator, interleaved, then prints the tables and stores the raw results.

python3 -m bench.side_by_side --help
"""

import argparse
import json
import os
import resource
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from . import host, report
from .case import Case
from .cases import CASES
from .entry import Entry, Setting, earlier
from .measure import Bench
from .tools import Failed, Programs, output

BENCH = Path(__file__).resolve().parent.parent


def main() -> int:
    options = parse()
    if options.report:
        print(report.text(json.loads(options.report.read_text())))
        return 0
    programs = Programs.find(options.build.resolve())
    for name in ("brimful", "brimful-bench-server"):
        if programs.path(name) is None:
            print(
                f"side_by_side: there is no {name} in {options.build}: run `make bench`, or name the directory "
                "with --build",
                file=sys.stderr,
            )
            return 3
    raise_descriptor_limit()
    # So that watching a generator does not disturb it.
    os.sched_setaffinity(0, {options.server_cpu})
    document: dict = {
        "schema": "brimful.bench/1",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": output(["git", "-C", str(BENCH), "describe", "--always", "--dirty"]).strip(),
        "host": host.describe(),
        "versions": programs.versions(),
        "settings": {
            "seconds": options.seconds,
            "repetitions": options.repetitions,
            "growth_seconds": options.growth_seconds,
            "server_cpu": options.server_cpu,
            "generator_cpu": options.generator_cpu,
        },
        "cases": [],
    }
    print(report.header(document), end="\n\n", flush=True)
    out = options.out or BENCH / "results" / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    chosen = [case for case in CASES if not options.case or case.name in options.case]
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        bench = Bench(programs, Path(directory), options.server_cpu, options.generator_cpu)
        for case in chosen:
            document["cases"].append(run_case(case, bench, options))
            # After every case, so that little is lost when a long comparison is interrupted.
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(rounded(document), indent=1) + "\n")
            print(report.case_text(document, document["cases"][-1]), end="\n\n", flush=True)
    print(report.requirements_text(document))
    print(f"\nraw results: {out}", file=sys.stderr)
    return 0


def run_case(case: Case, bench: Bench, options: argparse.Namespace) -> dict:
    entries = [entry for entry in case.entries if not options.tool or entry.tool in options.tool]
    if options.before:
        entries += [earlier(entry, options.before) for entry in entries if entry.tool.startswith("brimful")]
    absent = sorted({entry.tool for entry in entries if bench.programs.path(entry.program) is None})
    entries = [entry for entry in entries if entry.tool not in absent]
    seconds = options.growth_seconds if case.long else options.seconds
    repetitions = 1 if case.long else options.repetitions
    runs = []
    for repetition in range(repetitions):
        # Nobody is always first.
        turn = repetition % max(len(entries), 1)
        for entry in entries[turn:] + entries[:turn]:
            note(f"{case.name}: {entry.tool}, repetition {repetition + 1} of {repetitions}")
            runs.append({"tool": entry.tool, "repetition": repetition} | one_run(bench, case, entry, seconds))
    return {"name": case.name, "seconds": seconds, "absent": absent, "auto": auto_engine(bench, case), "runs": runs}


def one_run(bench: Bench, case: Case, entry: Entry, seconds: int) -> dict:
    try:
        return case.measure(bench, case, entry, seconds)
    except Failed as failure:
        note(f"  {failure}")
        return {"error": str(failure)}


def auto_engine(bench: Bench, case: Case) -> str | None:
    """Which engine brimful takes in this case when left to itself: the one the requirements are judged by."""
    try:
        server = bench.start(case.server, room=2 * case.rate)
        try:
            finished = bench.run(case.probe, Setting(server.port, 1, connections=1))
        finally:
            server.stop()
        return json.loads(finished.output)["generator"]["engine"]
    except (Failed, ValueError, KeyError) as failure:
        note(f"  {case.name}: brimful does not say which engine it would take: {failure}")
        return None


def rounded(value: object) -> object:
    """The same with six digits in every number: more are noise, and the file is kept."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def raise_descriptor_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    names = [case.name for case in CASES]
    tools = sorted({entry.tool for case in CASES for entry in case.entries})
    build = Path(os.environ.get("CARGO_TARGET_DIR", BENCH.parent / "target")) / "release"
    parser = argparse.ArgumentParser(prog="side_by_side", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--case",
        action="append",
        choices=names,
        metavar="NAME",
        help="only this case (repeatable): " + ", ".join(names),
    )
    parser.add_argument(
        "--tool",
        action="append",
        choices=tools,
        metavar="NAME",
        help="only this generator (repeatable): " + ", ".join(tools),
    )
    parser.add_argument(
        "--before", type=program, metavar="FILE", help="an earlier brimful binary, to run beside today's in every case"
    )
    parser.add_argument("--seconds", type=positive, default=5, help="length of a run [default: %(default)s]")
    parser.add_argument("--repetitions", type=positive, default=5, help="runs of each generator [default: %(default)s]")
    parser.add_argument(
        "--growth-seconds",
        type=positive,
        default=60,
        help="length of the runs whose memory is watched; the requirement says 600 [default: %(default)s]",
    )
    parser.add_argument("--server-cpu", type=int, default=0, help="[default: %(default)s]")
    parser.add_argument("--generator-cpu", type=int, default=1, help="[default: %(default)s]")
    parser.add_argument("--build", type=Path, default=build, help="where brimful and brimful-bench-server are")
    parser.add_argument("--out", type=Path, help="file for the raw results [default: results/DATE.json]")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="print the tables of stored results, and run nothing"
    )
    return parser.parse_args()


def program(text: str) -> Path:
    path = Path(text).resolve()
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"{path} cannot be run")
    return path


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
