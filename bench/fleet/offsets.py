"""The effect of clock errors on the arrival process that the shards of a load make together.

This is a simulation: shard I of N has every N-th call of a schedule, as in brimful, and is shifted by its host's clock
error. The same seed gives the same figures on every machine.
"""

import random
from collections.abc import Iterator, Sequence

RATE = 10_000.0
LENGTH_S = 20.0
#: Number of times that the errors of the clocks are drawn.
DRAWS = 5
SHARDS = (8, 64)
#: Maximum errors of the clocks, in seconds: for hosts in one rack, in one region, and in a wide-area network.
ERRORS_S = (0.0001, 0.001, 0.01)
#: Lengths of the time windows in which arrivals are counted, in seconds.
WINDOWS_S = (0.001, 0.01, 0.1)
#: A process with bursts: in the first tenth of each period of 0.1 s, the rate is five times the mean.
PERIOD_S, ON, HIGH = 0.1, 0.1, 5.0


def offsets(length_s: float = LENGTH_S, draws: int = DRAWS, seed: int = 1) -> list[dict]:
    """A row for each process, number of shards and error, with the figures of each draw; the unsharded process
    first."""
    rows = []
    for name, process in PROCESSES.items():
        schedule = list(process(random.Random(seed), length_s))
        rows.append({"process": name, "shards": 1, "error_ms": 0.0} | together([figures(schedule, length_s)]))
        for shards in SHARDS:
            for error_s in ERRORS_S:
                draw = random.Random(seed + 1)
                seen = [figures(shifted(schedule, shards, error_s, draw), length_s) for _ in range(draws)]
                rows.append({"process": name, "shards": shards, "error_ms": error_s * 1e3} | together(seen))
    return rows


def together(seen: Sequence[dict]) -> dict:
    """One dict with a list of values for each key."""
    return {name: [row[name] for row in seen] for name in seen[0]}


def constant(draw: random.Random, length_s: float) -> Iterator[float]:
    yield from (number / RATE for number in range(int(length_s * RATE)))


def poisson(draw: random.Random, length_s: float) -> Iterator[float]:
    at = draw.expovariate(RATE)
    while at < length_s:
        yield at
        at += draw.expovariate(RATE)


def bursts(draw: random.Random, length_s: float) -> Iterator[float]:
    """Poisson arrivals, at one rate for a tenth of each period and at another rate for the rest."""
    low = (1 - ON * HIGH) / (1 - ON)
    for at in poisson(draw, length_s * HIGH):
        # Arrivals are generated at the high rate all the time. Outside of the bursts, most are dropped at random, so
        # that the rest have the low rate.
        at /= HIGH
        if (at % PERIOD_S) < ON * PERIOD_S or draw.random() < low / HIGH:
            yield at


PROCESSES = {"constant": constant, "poisson": poisson, "bursts": bursts}


def shifted(schedule: Sequence[float], shards: int, error_s: float, draw: random.Random) -> list[float]:
    late = [draw.uniform(-error_s, error_s) for _ in range(shards)]
    return sorted(at + late[number % shards] for number, at in enumerate(schedule))


def figures(schedule: Sequence[float], length_s: float) -> dict:
    """Index of dispersion (variance over mean of the counts, 1 for Poisson) and the greatest count over the mean, in
    windows of each length."""
    row: dict = {}
    for window_s in WINDOWS_S:
        counts = [0] * round(length_s / window_s)
        for at in schedule:
            # Do not count calls that the clock errors have moved out of the run.
            if 0 <= at < length_s:
                counts[min(int(at / window_s), len(counts) - 1)] += 1
        # Leave out the first and the last window: there, some shards have not begun yet, or have already ended.
        counts = counts[1:-1]
        mean = sum(counts) / len(counts)
        variance = sum((count - mean) ** 2 for count in counts) / (len(counts) - 1)
        name = f"{window_s * 1e3:g}ms"
        row |= {f"dispersion_{name}": variance / mean, f"peak_{name}": max(counts) / mean}
    return row
