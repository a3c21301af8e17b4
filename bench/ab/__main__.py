"""Compares real servers: pairs of equal servers, and pairs that differ.

python3 -m bench.ab --help
"""

import argparse
import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .. import command
from ..accuracy.measure import warm_up
from ..accuracy.subjects import Subject
from ..side_by_side.tools import Failed
from . import cases, report

# A closed loop of so few clients loads a server without saturating the client.
CLIENTS = 2


def main() -> int:
    options = parse()
    if options.report:
        print(report.text(json.loads(options.report.read_text())))
        return 0
    brimful = options.build.resolve() / "brimful"
    if not brimful.exists():
        return command.missing("ab", "brimful", options.build, "make build")
    command.raise_descriptor_limit()
    now = datetime.now(UTC)
    document = command.head("brimful.bench-ab/1", now) | {"pairs": [], "differences": []}
    out = options.out or command.RESULTS / f"ab-{now:%Y-%m-%dT%H%M%SZ}.json"
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        bench = Bench(str(brimful), Path(directory), options)
        for key, entries in [("differences", bench.differences()), ("pairs", bench.pairs())]:
            for entry in entries:
                document[key].append(entry)
                command.write(out, document)
    print("\n" + report.text(document))
    command.say(f"results: {out}")
    return 0


def parse() -> argparse.Namespace:
    parser = command.parser("ab", __doc__, "brimful", "bench/results/ab-DATE.json")
    command.add_cpus(parser)
    command.add_choice(parser, "--case", [case.name for case in cases.differences("brimful")], " of the differences")
    parser.add_argument("--pairs", type=int, default=40, help="pairs of equal servers [default: %(default)s]")
    parser.add_argument("--powers", type=int, default=10, help="pairs that differ by 5 %% [default: %(default)s]")
    parser.add_argument("--runs", type=command.positive, default=3, help="runs of each server [default: %(default)s]")
    parser.add_argument(
        "--run", type=command.positive, default=5, metavar="SECONDS", help="length of a run [default: %(default)s]"
    )
    parser.add_argument(
        "--minutes", type=float, default=5, help="longest measurement of `brimful ab`; 0: none [default: %(default)s]"
    )
    return parser.parse_args()


class Bench:
    """Measures the pairs and the differences."""

    def __init__(self, brimful: str, directory: Path, options: argparse.Namespace) -> None:
        self._brimful, self._directory, self._options = brimful, directory, options
        self._scratch = 0

    def pairs(self) -> Iterator[dict]:
        """Compares servers that are equal, then servers that differ by 5 % in the CPU time per request."""
        equal = [case for case in cases.equal() if not case.a.missing()]
        for number in range(self._options.pairs):
            yield self._pair(equal[number % len(equal)])
        for _ in range(self._options.powers):
            yield self._pair(cases.five_percent(self._brimful))

    def differences(self) -> Iterator[dict]:
        """Lets `brimful ab` compare servers that differ a little."""
        for case in cases.differences(self._brimful) if self._options.minutes else []:
            if case.a.missing() is None and (not self._options.case or case.name in self._options.case):
                yield self._difference(case)

    def _pair(self, case: cases.Pair) -> dict:
        """Measures in the order A B B A A B …, and compares the runs."""
        options = self._options
        with self._running(case.a) as a, self._running(case.b) as b:
            records = self._next_directory()
            order = [a, b, b, a] * options.runs
            for number, (load, pid) in enumerate(order[: 2 * options.runs]):
                out = records / ("a" if (load, pid) == a else "b") / f"{number}.json"
                out.parent.mkdir(parents=True, exist_ok=True)
                flags = ["--clients", str(CLIENTS), "--duration", f"{options.run}s", "--process", str(pid)]
                self._run([*load, *flags, "--out", str(out)], (0, 1, 3, 4))
            done = self._run([self._brimful, "compare", str(records / "a"), str(records / "b"), "--json"], (0, 3))
        figures = json.loads(done)["figures"]
        differs = [figure["name"] for figure in figures if figure["differs"]]
        command.say(f"ab: {case.name}: {', '.join(differs) or 'nothing'} differs")
        cpu = next((figure for figure in figures if figure["name"] == "cpu"), None)
        return {"name": case.name, "expected": case.expected, "differs": differs, "cpu": cpu}

    def _difference(self, case: cases.Pair) -> dict:
        seconds = round(60 * self._options.minutes)
        with self._running(case.a) as (load, _), self._running(case.b) as (other, _):
            flags = [*load[3:], "--until", "1%", "--duration", f"{seconds}s", "--json"]
            done = self._run([self._brimful, "ab", load[2], other[2], *flags], (0, 3, 4))
        result = json.loads(done)
        command.say(f"ab: {case.name}: {result['headline']}")
        cpu = next((figure for figure in result["figures"] if figure["name"] == "cpu"), None)
        kept = {key: result[key] for key in ("headline", "control", "design", "stopping", "verdict")}
        return {"name": case.name, "expected": case.expected, "cpu": cpu} | kept

    @contextlib.contextmanager
    def _running(self, subject: Subject) -> Iterator[tuple[list[str], int]]:
        """Starts and warms up a server. Yields the first arguments of a load, and the server's process ID."""
        with subject.running(self._next_directory(), self._options.server_cpu) as (url, pids):
            headers = [argument for header in subject.headers for argument in ("--header", header)]
            cpus = ["--cpus", str(self._options.generator_cpu)]
            load = [self._brimful, "load", url, *headers, *cpus, "--quiet"]
            warm_up(load, subject.warm_up)
            yield load, pids[-1]

    def _next_directory(self) -> Path:
        self._scratch += 1
        return self._directory / str(self._scratch)

    def _run(self, arguments: list[str], codes: tuple[int, ...]) -> str:
        done = subprocess.run(arguments, text=True, capture_output=True, check=False)
        if done.returncode not in codes:
            raise Failed(f"{' '.join(arguments[:2])} ended with exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout


if __name__ == "__main__":
    command.run(main)
