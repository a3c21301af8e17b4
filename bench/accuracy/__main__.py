"""Surveys third-party servers, interleaved, then prints and stores the errors of the predictions.

python3 -m bench.accuracy --help
"""

import argparse
import contextlib
import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .. import command
from . import report
from .measure import Bench, Visit
from .programs import PROGRAMS
from .subjects import SUBJECTS, Subject


def main() -> int:
    options = parse()
    if options.report:
        print(report.text(json.loads(options.report.read_text())))
        return 0
    brimful = shutil.which("brimful", path=options.build.resolve())
    if brimful is None:
        return command.missing("accuracy", "brimful", options.build, "make build")
    command.raise_descriptor_limit()
    now = datetime.now(UTC)
    kept = options.keep or command.TARGET / "accuracy" / f"{now:%Y-%m-%dT%H%M%SZ}"
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        bench = Bench(
            brimful, Path(directory), kept, options.server_cpu, options.generator_cpu, options.level, options.seed,
            options.thorough_every,
        )  # fmt: skip
        if why := differs(bench):
            say(why)
            return 2
        document = measure(bench, options, now)
    print("\n" + report.text(document))
    out = options.out or command.RESULTS / f"accuracy-{now:%Y-%m-%dT%H%M%SZ}.json"
    command.write(out, document)
    say(f"summary: {out}; surveys: {kept}")
    return 0


def measure(bench: Bench, options: argparse.Namespace, now: datetime) -> dict:
    """Surveys every server once per round, in an order drawn from the seed."""
    chosen = [subject for subject in SUBJECTS if not options.server or subject.name in options.server]
    absent = {subject.name: why for subject in chosen if (why := subject.missing())}
    for name, why in absent.items():
        say(f"{name} is skipped: {why}")
    installed = [subject for subject in chosen if subject.name not in absent]
    document = command.head("brimful.bench-accuracy/1", now) | {
        "versions": {name: PROGRAMS[name].version() for subject in installed for name in subject.programs},
        "settings": {"repetitions": options.repetitions},
        "surveys_with": bench.key(),
        "servers": {subject.name: subject.title for subject in chosen},
        "absent": absent,
        "surveys": [],
    }
    with contextlib.closing(rows(bench, visits(installed, options.repetitions, options.seed))) as found:
        for row in found:
            document["surveys"].append(row)
            print(report.line(row), flush=True)
            command.write(bench.kept / "summary.json", document)
    return document


def rows(bench: Bench, order: list[tuple[int, Subject]]) -> Iterator[dict]:
    """The result of each survey. A server's levels are repeated after the survey of the next server: minutes after
    they were measured, and before the server ends."""
    with contextlib.ExitStack() as servers:
        previous = None
        for repetition, subject in order:
            visit = Visit(bench, subject, repetition)
            servers.callback(visit.close)
            visit.survey()
            if previous:
                yield finished(previous)
            previous = visit
        if previous:
            yield finished(previous)


def finished(visit: Visit) -> dict:
    visit.finish()
    return visit.row()


def visits(subjects: list[Subject], repetitions: int, seed: int) -> list[tuple[int, Subject]]:
    """The order of the surveys: a repetition and a server for each."""
    order = random.Random(seed)
    return [(i, subject) for i in range(repetitions) for subject in order.sample(subjects, len(subjects))]


def differs(bench: Bench) -> str | None:
    """The reason why new surveys cannot be compared with the kept ones, or None. Stores the settings of the new
    ones."""
    note = bench.kept / "made-with.json"
    made_with = bench.key()
    if note.exists() and (before := json.loads(note.read_text())) != made_with:
        return f"the surveys in {bench.kept} were made with {before}, not {made_with}: --keep another directory"
    command.write(note, made_with)
    return None


def say(line: str) -> None:
    command.say(f"accuracy: {line}")


def parse() -> argparse.Namespace:
    parser = command.parser("accuracy", __doc__, "brimful", "bench/results/accuracy-DATE.json")
    command.add_choice(parser, "--server", [subject.name for subject in SUBJECTS])
    command.add_cpus(parser)
    parser.add_argument("--repetitions", type=command.positive, default=3, help="[default: %(default)s]")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the order and of the surveys [default: %(default)s]"
    )
    parser.add_argument("--level", metavar="TIME", help="`--level` of the surveys [default: that of `brimful survey`]")
    parser.add_argument(
        "--thorough-every",
        type=int,
        metavar="N",
        default=3,
        help="one survey in N of each server is thorough, which also has levels at 30, 80 and 90 %%; 0: none "
        "[default: %(default)s]",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIRECTORY",
        help="directory of the surveys; those already in it are not repeated [default: target/accuracy/DATE]",
    )
    return parser.parse_args()


if __name__ == "__main__":
    command.run(main)
