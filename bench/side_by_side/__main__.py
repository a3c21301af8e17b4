"""Runs every case with every generator, interleaved, then prints the tables and stores the raw results.

python3 -m bench.side_by_side --help
"""

import argparse
import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from .. import command
from . import report, sources
from .case import Case
from .cases import CASES
from .entry import Entry, Setting, earlier
from .measure import Bench
from .tools import Failed, Programs


def main() -> int:
    options = parse()
    if options.report:
        print(report.text(json.loads(options.report.read_text())))
        return 0
    programs = Programs.find(options.build.resolve())
    for name in ("brimful", "brimful-bench-server"):
        if programs.path(name) is None:
            return command.missing("side_by_side", name, options.build, "make bench")
    try:
        for name, directory in options.sources:
            command.say(f"building {name} from {directory}")
            built = sources.build(name, directory, command.TARGET.resolve() / "bench-peers")
            programs.add(name, built.path, built.commit)
    except Failed as failure:
        command.say(f"side_by_side: {failure}")
        return 3
    command.raise_descriptor_limit()
    # This program runs on the server's CPU, so that it does not disturb the load generator.
    os.sched_setaffinity(0, {options.server_cpu})
    now = datetime.now(UTC)
    document = command.head("brimful.bench/1", now) | {
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
    out = options.out or command.RESULTS / f"{now:%Y-%m-%dT%H%M%SZ}.json"
    chosen = [case for case in CASES if not options.case or case.name in options.case]
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        bench = Bench(programs, Path(directory), options.server_cpu, options.generator_cpu)
        for case in chosen:
            document["cases"].append(run_case(case, bench, options))
            command.write(out, document)
            print(report.case_text(document, document["cases"][-1]), end="\n\n", flush=True)
    print(report.requirements_text(document))
    command.say(f"\nraw results: {out}")
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
        # Each repetition begins with a different load generator.
        turn = repetition % max(len(entries), 1)
        for entry in entries[turn:] + entries[:turn]:
            command.say(f"{case.name}: {entry.tool}, repetition {repetition + 1} of {repetitions}")
            runs.append({"tool": entry.tool, "repetition": repetition} | one_run(bench, case, entry, seconds))
    return {"name": case.name, "seconds": seconds, "absent": absent, "auto": auto_engine(bench, case), "runs": runs}


def one_run(bench: Bench, case: Case, entry: Entry, seconds: int) -> dict:
    try:
        return case.measure(bench, case, entry, seconds)
    except Failed as failure:
        command.say(f"  {failure}")
        return {"error": str(failure)}


def auto_engine(bench: Bench, case: Case) -> str | None:
    """The engine that brimful chooses in this case. The requirements are judged by it."""
    try:
        server = bench.start(case.server, room=2 * case.rate)
        try:
            finished = bench.run(case.probe, Setting(server.port, 1, connections=1, authority=server.authority))
        finally:
            server.stop()
        return json.loads(finished.output)["generator"]["engine"]
    except (Failed, ValueError, KeyError) as failure:
        command.say(f"  {case.name}: cannot determine which engine brimful chooses: {failure}")
        return None


def parse() -> argparse.Namespace:
    tools = sorted({entry.tool for case in CASES for entry in case.entries})
    parser = command.parser("side_by_side", __doc__, "brimful and brimful-bench-server", "bench/results/DATE.json")
    command.add_choice(parser, "--case", [case.name for case in CASES])
    command.add_choice(parser, "--tool", tools)
    command.add_cpus(parser)
    parser.add_argument(
        "--before", type=program, metavar="FILE", help="an earlier brimful binary, to compare with in every case"
    )
    parser.add_argument(
        "--sources",
        type=sources.argument,
        action="append",
        default=[],
        metavar="NAME=DIR",
        help=f"build this generator from its sources in DIR (repeatable): {', '.join(sources.RECIPES)}",
    )
    parser.add_argument("--seconds", type=command.positive, default=5, help="length of a run [default: %(default)s]")
    parser.add_argument(
        "--repetitions", type=command.positive, default=5, help="runs of each generator [default: %(default)s]"
    )
    parser.add_argument(
        "--growth-seconds",
        type=command.positive,
        default=60,
        help="length of the run that measures memory growth; the requirement says 600 [default: %(default)s]",
    )
    return parser.parse_args()


def program(text: str) -> Path:
    path = Path(text).resolve()
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"{path} cannot be run")
    return path


if __name__ == "__main__":
    command.run(main)
