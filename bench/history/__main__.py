"""Compares the change points that brimful finds in simulated series with those of Apache Otava, and times a history of
10,000 Records.

Otava takes part if this Python can import it (pip install apache-otava).
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..command import TARGET, positive
from . import examples

try:
    from otava.analysis import compute_change_points
except ImportError:
    compute_change_points = None

#: Standard deviation of the values of a series.
NOISE = 2.0
#: Minimum number of values between two steps.
MIN_SEGMENT = 8
#: A detected change is correct if its distance from a true change, in runs, is at most this.
TOLERANCES = (0, 1, 2, 3)

Series = list[float]
Finder = Callable[[list[Series]], list[list[int]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.history", description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    parser.add_argument("--build", type=Path, default=TARGET / "release", help="directory of the built programs")
    parser.add_argument("--seed", type=int, action="append", help="seed of the series (repeatable) [default: 1, 2 and 3]")
    parser.add_argument("--series", type=positive, default=200, help="series with steps [default: %(default)s]")
    parser.add_argument("--flat", type=positive, default=300, help="series without steps [default: %(default)s]")
    parser.add_argument("--records", type=int, default=10_000, help="Records of the long history [default: %(default)s]")
    parser.add_argument("--otava-source", type=Path, help="Otava's source directory, for the series of its tests")
    args = parser.parse_args()
    finders: dict[str, Finder] = {"brimful": lambda series: brimful(args.build, series)}
    if compute_change_points:
        finders["Otava (p < 0.001)"] = lambda series: otava(series, 0.001)
        finders["Otava (p < 0.01)"] = lambda series: otava(series, 0.01)
    print("| seed | program | " + " | ".join(f"F1, ±{runs} runs" for runs in TOLERANCES) + " | false alarms |")
    print("|---|---|" + "---|" * (len(TOLERANCES) + 1))
    for seed in args.seed or [1, 2, 3]:
        compare(finders, seed, args)
    if args.otava_source:
        compare_examples(finders, args.otava_source)
    if args.records:
        print(f"\n{args.records:,} Records: {time_history(args.build, args.records):.2f} s")


def compare(finders: dict[str, Finder], seed: int, args: argparse.Namespace) -> None:
    rng = random.Random(seed)
    stepped = [simulate(rng, rng.randint(0, 4)) for _ in range(args.series)]
    flat = [[rng.gauss(100, NOISE) for _ in range(100)] for _ in range(args.flat)]
    for name, find in finders.items():
        found = find([values for values, _ in stepped])
        scores = [f1(found, [steps for _, steps in stepped], tolerance) for tolerance in TOLERANCES]
        alarms = sum(bool(points) for points in find(flat)) / len(flat)
        cells = " | ".join(f"{score:.3f}" for score in scores)
        print(f"| {seed} | {name} | {cells} | {100 * alarms:.1f} % |")


def compare_examples(finders: dict[str, Finder], source: Path) -> None:
    """Prints the changes that each program finds in Otava's own examples, and F1 over all of them."""
    series = examples.read(source)
    print("\n| series | values | changes | " + " | ".join(finders) + " |")
    print("|---|---|---|" + "---|" * len(finders))
    found = [find([values for values, _ in series.values()]) for find in finders.values()]
    for index, (name, (values, changes)) in enumerate(series.items()):
        cells = " | ".join(listed(points[index]) for points in found)
        print(f"| {name} | {len(values)} | {listed(changes)} | {cells} |")
    scores = [f1(points, [changes for _, changes in series.values()], 0) for points in found]
    print("| F1, ±0 runs | | | " + " | ".join(f"{score:.3f}" for score in scores) + " |")


def listed(points: list[int]) -> str:
    return ", ".join(map(str, points)) or "none"


def simulate(rng: random.Random, count: int) -> tuple[Series, list[int]]:
    """A series of 40 to 160 values with steps of 1 to 5 standard deviations, and the places of the steps."""
    while True:
        length = rng.randint(40, 160)
        steps = sorted(rng.sample(range(MIN_SEGMENT, length - MIN_SEGMENT), count))
        bounds = [0, *steps, length]
        if all(end - begin >= MIN_SEGMENT for begin, end in zip(bounds, bounds[1:], strict=False)):
            break
    level, values = 100.0, []
    for index in range(length):
        if index in steps:
            level += rng.choice([-1, 1]) * rng.uniform(1, 5) * NOISE
        values.append(rng.gauss(level, NOISE))
    return values, steps


def brimful(build: Path, series: list[Series]) -> list[list[int]]:
    text = "".join(" ".join(f"{value:.5f}" for value in values) + "\n" for values in series)
    done = subprocess.run([build / "examples/change_points"], input=text, capture_output=True, text=True, check=True)
    return [[int(point) for point in line.split()] for line in done.stdout.split("\n")[: len(series)]]


def otava(series: list[Series], max_pvalue: float) -> list[list[int]]:
    return [[point.index for point in compute_change_points(values, max_pvalue=max_pvalue)[0]] for values in series]


def f1(found: list[list[int]], true: list[list[int]], tolerance: int) -> float:
    """F1 over all series. Each change that was found counts for one true change at most."""
    hits = sum(count_hits(points, steps, tolerance) for points, steps in zip(found, true, strict=True))
    return 2 * hits / (sum(map(len, found)) + sum(map(len, true)))


def count_hits(points: list[int], steps: list[int], tolerance: int) -> int:
    left = set(points)
    hits = 0
    for step in steps:
        near = [point for point in left if abs(point - step) <= tolerance]
        if near:
            left.remove(min(near, key=lambda point: abs(point - step)))
            hits += 1
    return hits


def time_history(build: Path, count: int) -> float:
    """Seconds that `brimful history` takes for this many Records with a step every 500 runs."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as directory:
        record = real_record(build / "brimful", Path(directory) / "one.jsonl")
        path = Path(directory) / "history.jsonl"
        with path.open("w") as file:
            for number in range(count):
                factor = rng.gauss(1.0 + 0.05 * (number // 500 % 2), 0.01)
                file.write(json.dumps(later(record, number, factor)) + "\n")
        print(f"{path.stat().st_size / count / 1000:.1f} kB per Record")
        begun = time.monotonic()
        done = subprocess.run([build / "brimful", "history", path], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr)
        return time.monotonic() - begun


def real_record(program: Path, path: Path) -> dict:
    """The Record of a short load of the reference server, as `--record-to` keeps it."""
    target = subprocess.Popen([program, "target", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        url = target.stdout.readline().removeprefix("listening on ").strip()
        load = [program, "load", url, "--rate", "200", "-d", "3s", "--watch", "--quiet", "--record-to", path]
        subprocess.run(load, stdout=subprocess.DEVNULL, check=False)
    finally:
        target.kill()
        target.wait()
    record = json.loads(path.read_text())
    record["verdict"] |= {"valid": True, "reasons": []}
    return record


def later(record: dict, number: int, factor: float) -> dict:
    """The same Record of a later run, with times that are longer by this factor."""
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_500_000_000 + 3600 * number))
    times = {key: value * factor if key != "count" else value for key, value in record["response_time_us"].items()}
    labels = {"commit": f"{number:07x}"}
    changed = {"started_at": started, "started_monotonic_ns": number, "labels": labels, "response_time_us": times}
    return record | changed


if __name__ == "__main__":
    main()
