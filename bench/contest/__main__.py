"""Measures web frameworks by the cases of two public contests, and ranks those whose servers reached their limit.

python3 -m bench.contest --help
"""

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from .. import command
from ..accuracy.programs import PROGRAMS
from . import measure, ranking, report
from .cases import CASES, Case, write_bodies
from .frameworks import FRAMEWORKS, Framework
from .measure import Bench

SCHEMA = "brimful.bench-contest/1"
# Time that a run needs besides its load: its share of the start and the warm-up of the server, in seconds.
START_S = 3


def main() -> int:
    options = parse()
    if options.report:
        print(report.text(json.loads(options.report.read_text())))
        return 0
    brimful = shutil.which("brimful", path=options.build.resolve())
    if brimful is None:
        return command.missing("contest", "brimful", options.build, "make build")
    command.raise_descriptor_limit()
    now = datetime.now(UTC)
    out = options.out or command.RESULTS / f"contest-{now:%Y-%m-%dT%H%M%SZ}.json"
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        records = options.records or Path(directory) / "records"
        bench = Bench(
            brimful, Path(directory), records.resolve(), options.server_cpu, options.generator_cpu, options.seconds
        )
        document = measured(bench, options, now, out)
    print("\n" + report.text(document))
    say(f"results: {out}")
    return 0


def measured(bench: Bench, options: argparse.Namespace, now: datetime, out: Path) -> dict:
    """Measures every framework once per repetition and case, then compares the frameworks of each case."""
    frameworks = chosen(FRAMEWORKS, options.framework)
    cases = chosen(CASES, options.case)
    absent = {framework.name: why for framework in frameworks if (why := framework.missing())}
    for name, why in absent.items():
        say(f"{name} is skipped: {why}")
    installed = [framework for framework in frameworks if framework.name not in absent]
    if any(case.workload == "upload" for case in cases):
        write_bodies(bench.directory)
    document = command.head(SCHEMA, now) | {
        "versions": versions(installed),
        "settings": {"seconds": options.seconds, "repetitions": options.repetitions, "seed": options.seed},
        "cases": {case.name: case.contest for case in cases},
        "frameworks": {framework.name: framework.title for framework in frameworks},
        "absent": absent,
        "runs": [],
        "comparisons": [],
    }
    plan = list(order(installed, cases, options.repetitions, options.seed))
    count = sum(len(options.connections or case.connections) for _, case, _ in plan)
    say(f"{count} runs, about {count * (options.seconds + measure.RAMP_S + START_S) / 60:.0f} minutes")
    for repetition, case, framework in plan:
        for row in measure.runs(bench, framework, case, options.connections or case.connections, repetition):
            document["runs"].append(row)
            say(report.line(row))
            command.write(out, document)
    for (case, connections), rows in report.groups(document["runs"]):
        pairs = measure.comparisons(bench, countable(rows))
        document["comparisons"] += [{"case": case, "connections": connections} | pair for pair in pairs]
    command.write(out, document)
    return document


def countable(rows: Sequence[dict]) -> list[dict]:
    """The runs of one group that count for the ranks."""
    names = dict.fromkeys(row["framework"] for row in rows)
    return [row for name in names for row in ranking.counted([row for row in rows if row["framework"] == name])]


def order(
    frameworks: Sequence[Framework], cases: Sequence[Case], repetitions: int, seed: int
) -> Iterator[tuple[int, Case, Framework]]:
    """Every repetition has all cases. The frameworks of a case follow each other in an order drawn from the seed, so
    that a slower host affects all of them."""
    draw = random.Random(seed)
    for repetition in range(repetitions):
        for case in cases:
            able = [framework for framework in frameworks if framework.takes_part_in(case.workload)]
            yield from ((repetition, case, framework) for framework in draw.sample(able, len(able)))


def versions(frameworks: Sequence[Framework]) -> dict[str, str]:
    programs = {name: PROGRAMS[name].version() for framework in frameworks for name in framework.programs}
    packages = [framework.versions() for framework in frameworks]
    return programs | {name: version for found in packages for name, version in found.items()}


def chosen(everything: Sequence, names: Sequence[str] | None) -> list:
    return [one for one in everything if not names or one.name in names]


def say(line: str) -> None:
    command.say(f"contest: {line}")


def parse() -> argparse.Namespace:
    parser = command.parser("contest", __doc__, "brimful", "bench/results/contest-DATE.json")
    command.add_choice(parser, "--framework", [framework.name for framework in FRAMEWORKS])
    command.add_choice(parser, "--case", [case.name for case in CASES])
    command.add_cpus(parser)
    parser.add_argument(
        "--seconds", type=command.positive, default=15, help="length of a run [default: %(default)s]"
    )
    parser.add_argument(
        "--connections", type=command.positive, nargs="+", metavar="N",
        help="numbers of connections [default: those of the contest]",
    )  # fmt: skip
    parser.add_argument(
        "--repetitions", type=command.positive, default=3,
        help="runs of each framework, case and number of connections [default: %(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the order of the frameworks [default: %(default)s]"
    )
    parser.add_argument(
        "--records", type=Path, metavar="DIRECTORY", help="keep the Record of each run in this directory"
    )
    return parser.parse_args()


if __name__ == "__main__":
    command.run(main)
