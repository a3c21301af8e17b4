"""The cases: the log that is read, and the required figures.

In a round every program reads the log once, in turn: a host that is slow for a minute slows all of them. Ratios are
computed within a round. Logs are in the page cache, so the disk is not measured. MB means 10^6 bytes.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from ..monitor.case import Case, Figure, Outcome
from ..monitor.stats import Estimate
from ..side_by_side.tools import Failed
from .programs import GOACCESS, OURS, Log, Reader, Run, Writer

GIB = 1 << 30
QUICK_BYTES = 16 << 20
# Number of lines of the simulated log of one month, without and with `--quick`.
MONTH_LINES, QUICK_LINES = 13_200_000, 132_000
MONTH_S = 31 * 86_400


@dataclass
class Bed:
    """Shared by all cases: the programs and the size of the measurement."""

    writer: Writer
    readers: list[Reader]
    rounds: int
    quick: bool


def gibibyte(bed: Bed) -> dict:
    size = QUICK_BYTES if bed.quick else GIB
    return {"bytes": size, "format": "combined", "urls": 100_000, "clients": 200_000, "sessions": True, "rate": 200}


def month(bed: Bed) -> dict:
    lines = QUICK_LINES if bed.quick else MONTH_LINES
    shape = {"lines": lines, "format": "common", "urls": 30_000, "clients": 300_000, "sessions": True, "on_off": True}
    return shape | {"rate": lines / MONTH_S}


def reading(shape: Callable[[Bed], dict], sessions: bool, cpus: int) -> Callable[[Bed], Outcome]:
    def measure(bed: Bed) -> Outcome:
        log = bed.writer.write(shape(bed))
        try:
            runs, failures = rounds(bed, log, sessions, last_cpus(cpus))
        finally:
            log.path.unlink(missing_ok=True)
        return outcome(log, runs, failures)

    return measure


def rounds(bed: Bed, log: Log, sessions: bool, cpus: set[int]) -> tuple[dict[str, list[Run]], dict[str, str]]:
    """The runs of each program, and the error of each program that failed. The order is reversed every round."""
    warm(log)
    runs: dict[str, list[Run]] = {reader.name: [] for reader in bed.readers}
    failures: dict[str, str] = {}
    for i in range(bed.rounds):
        for reader in bed.readers if i % 2 == 0 else reversed(bed.readers):
            if reader.name in failures:
                continue
            try:
                runs[reader.name].append(reader.read(log, sessions, cpus))
            except Failed as failure:
                if reader.name == OURS:
                    raise
                failures[reader.name] = str(failure)
                runs[reader.name].clear()
    return {name: completed for name, completed in runs.items() if completed}, failures


def last_cpus(count: int) -> set[int]:
    """The last CPUs of this process: the first one handles most interrupts."""
    return set(sorted(os.sched_getaffinity(0))[-count:])


def warm(log: Log) -> None:
    """Reads the log into the page cache."""
    with log.path.open("rb") as file:
        while file.read(1 << 20):
            pass


HEAD = ["", "MB/s", "million lines/s", "CPU s", "peak MiB", "times ours"]


def outcome(log: Log, runs: dict[str, list[Run]], failures: dict[str, str]) -> Outcome:
    found = Outcome()
    ours = runs[OURS]
    rows = []
    for name, completed in runs.items():
        # Ratio of the other program's wall time to brimful's wall time, in each round.
        ratio = Estimate.spread([run.wall_s / our.wall_s for run, our in zip(completed, ours, strict=True)])
        figures = [
            rate(log.bytes, completed),
            rate(log.lines, completed),
            spread(completed, "cpu_s"),
            spread(completed, "peak_mib"),
        ]
        rows.append([name, *map(str, figures), "1" if name == OURS else str(ratio)])
        if name == GOACCESS:
            found.measured["ratio"] = ratio
    rows += [[name, error, "-", "-", "-", "-"] for name, error in failures.items()]
    found.table(f"{log.lines:,} lines, {log.bytes / 1e6:,.0f} MB", HEAD, rows)
    found.measured["rate"] = rate(log.lines, ours)
    found.measured["speed"] = rate(log.bytes, ours)
    found.measured["memory"] = spread(ours, "peak_mib")
    found.measured["seconds"] = spread(ours, "wall_s")
    found.raw = {name: [vars(run) for run in completed] for name, completed in runs.items()} | {"failures": failures}
    return found


def rate(count: int, runs: list[Run]) -> Estimate:
    """Millions per second."""
    return Estimate.spread([count / run.wall_s / 1e6 for run in runs])


def spread(runs: list[Run], key: str) -> Estimate:
    return Estimate.spread([getattr(run, key) for run in runs])


def figures(
    rate: float, aim: float, ratio: float | None = None, seconds: tuple[float, float] | None = None
) -> tuple[Figure, ...]:
    """The figures of a case. `rate` and `aim` are the required and the aimed speed in MB/s, `ratio` is the required
    speed relative to GoAccess's, and `seconds` are the required and the aimed time."""
    required_ratio = {} if ratio is None else {"required": ratio}
    duration = (Figure("seconds", "time", "s", required=seconds[0], aim=seconds[1]),) if seconds else ()
    return (
        Figure("speed", "bytes read", "MB/s", required=rate, aim=aim, at_least=True),
        Figure("rate", "lines read", "million/s", at_least=True),
        Figure("ratio", "times GoAccess's speed", "", at_least=True, **required_ratio),
        Figure("memory", "peak memory", "MiB", required=256, aim=64),
        *duration,
    )


CASES = [
    Case(
        "plain",
        "Combined, 1 GiB, without sessions, on one CPU",
        figures(500, 1000, 10),
        reading(gibibyte, sessions=False, cpus=1),
    ),
    Case("sessions", "The same, with sessions", figures(200, 400), reading(gibibyte, sessions=True, cpus=1)),
    Case(
        "month",
        "A month of 13.2 million lines, with sessions, on two CPUs",
        figures(200, 400, seconds=(8, 3)),
        reading(month, sessions=True, cpus=2),
    ),
]
