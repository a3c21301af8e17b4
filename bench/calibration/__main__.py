"""Calibrates models of real servers at loads they bear easily, and compares what they predict with what the servers do.

python3 -m bench.calibration --help
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from ..side_by_side import host
from ..side_by_side.__main__ import rounded
from ..side_by_side.tools import PLACES, Failed, output, version
from . import report
from .measure import Bench, repetition
from .subjects import SUBJECTS, Subject

BENCH = Path(__file__).resolve().parent.parent


def main() -> int:
    options = parse()
    if options.report:
        print(report.text(json.loads(options.report.read_text())))
        return 0
    brimful = shutil.which("brimful", path=options.build.resolve())
    if brimful is None:
        print(
            f"calibration: brimful is not in {options.build}: make build, or name the directory with --build",
            file=sys.stderr,
        )
        return 3
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    subjects = [subject for subject in SUBJECTS if not options.server or subject.name in options.server]
    programs = {subject.name: path(subject, brimful) for subject in subjects}
    document: dict = {
        "schema": "brimful.bench-calibration/1",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": output(["git", "-C", str(BENCH), "describe", "--always", "--dirty"]).strip(),
        "host": host.describe(),
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
                    options.out.write_text(json.dumps(rounded(document), indent=1) + "\n")
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
    places = os.pathsep.join([os.environ.get("PATH", ""), *(os.path.expanduser(place) for place in PLACES)])
    return brimful if subject.program == "brimful" else shutil.which(subject.program, path=places)


def parse() -> argparse.Namespace:
    names = [subject.name for subject in SUBJECTS]
    build = Path(os.environ.get("CARGO_TARGET_DIR", BENCH.parent / "target")) / "release"
    parser = argparse.ArgumentParser(prog="calibration", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--server",
        action="append",
        choices=names,
        metavar="NAME",
        help="only this one (repeatable): " + ", ".join(names),
    )
    parser.add_argument("--repetitions", type=int, default=5, help="[default: %(default)s]")
    parser.add_argument("--seconds", type=float, default=5, help="length of every run [default: %(default)s]")
    parser.add_argument("--server-cpu", type=int, default=0, help="[default: %(default)s]")
    parser.add_argument("--generator-cpu", type=int, default=1, help="[default: %(default)s]")
    parser.add_argument("--build", type=Path, default=build, help="where brimful is")
    parser.add_argument("--out", type=Path, help="file for the raw results")
    parser.add_argument("--records", type=Path, metavar="DIRECTORY", help="keep the Records that models were made of")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="print the table of stored results, and run nothing"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
