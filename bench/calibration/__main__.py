"""Calibrates models of real servers well below saturation, and compares their predictions with measurements.

python3 -m bench.calibration --help
"""

import argparse
import json
import os
import random
import shutil
import tempfile
from pathlib import Path

from .. import command
from ..side_by_side.tools import Failed, find_program, version
from . import report
from .measure import Bench, repetition
from .subjects import SUBJECTS, Subject


def main() -> int:
    options = parse()
    if options.report:
        print(report.text(json.loads(options.report.read_text())))
        return 0
    brimful = shutil.which("brimful", path=options.build.resolve())
    if brimful is None:
        return command.missing("calibration", "brimful", options.build, "make build")
    subjects = [subject for subject in SUBJECTS if not options.server or subject.name in options.server]
    programs = {subject.name: path(subject, brimful) for subject in subjects}
    document = command.head("brimful.bench-calibration/1") | {
        "versions": {
            name: found and version(found, ["--version" if subject.program == "brimful" else "-v"])
            for subject in subjects
            for name, found in [(subject.program, programs[subject.name])]
        },
        "settings": {"seconds": options.seconds, "repetitions": options.repetitions},
        "repetitions": [],
    }
    order = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        bench = Bench(
            brimful, Path(directory), options.server_cpu, options.generator_cpu, options.seconds, options.records
        )
        for number in range(options.repetitions):
            order.shuffle(subjects)
            for subject in subjects:
                found = measure(bench, subject, programs[subject.name], number, order)
                document["repetitions"].append({"server": subject.name, "repetition": number} | found)
                print(report.line(document["repetitions"][-1]), flush=True)
                if options.out:
                    command.write(options.out, document)
    print("\n" + report.text(document))
    return 0


def measure(bench: Bench, subject: Subject, program: str | None, number: int, order: random.Random) -> dict:
    if program is None:
        return {"error": f"{subject.program} is absent"}
    place = bench.directory / subject.name
    place.mkdir(exist_ok=True)
    os.chmod(bench.directory, 0o755)
    try:
        with subject.running(program, place, bench.server_cpu) as port:
            return repetition(bench, subject, port, number, order)
    except Failed as failure:
        return {"error": str(failure)}


def path(subject: Subject, brimful: str) -> str | None:
    return brimful if subject.program == "brimful" else find_program((subject.program,))


def parse() -> argparse.Namespace:
    parser = command.parser("calibration", __doc__, "brimful", "none is written")
    command.add_choice(parser, "--server", [subject.name for subject in SUBJECTS])
    command.add_cpus(parser)
    parser.add_argument("--repetitions", type=command.positive, default=5, help="[default: %(default)s]")
    parser.add_argument("--seconds", type=float, default=5, help="length of every run [default: %(default)s]")
    parser.add_argument("--records", type=Path, metavar="DIRECTORY", help="keep the Records used for the models")
    return parser.parse_args()


if __name__ == "__main__":
    command.run(main)
