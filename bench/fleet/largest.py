"""The largest load that N shards make: predicted from what one of them can, and searched for.

One shard's limit is what `brimful load --calibrate` finds of one thread on one CPU. N shards on as many CPUs make N
times as much, on fewer CPUs no more than those can. It is held against the largest load, in steps, that N shards made
without any of them being the limit. The server is the reference server, which spends next to nothing on a call, on the
first CPU; with two CPUs, all shards share the second.
"""

import os
from collections.abc import Callable

import brimful
from brimful import fleet

#: Loads to try, as shares of the prediction.
SHARES, QUICK_SHARES = (0.1, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2), (0.2,)
DURATION, QUICK_DURATION = "3s", "500ms"
#: A load that was valid once in this many tries is possible: the host disturbed the other tries.
TRIES = 3
#: The search ends after this many invalid loads in a row.
MISSES = 2


def largest(shards: list[int], quick: bool, target: Callable) -> list[dict]:
    cpus = sorted(os.sched_getaffinity(0))
    own = cpus[1:] or cpus
    with target(cpus[0]) as url:
        one = brimful.load(url, calibrate=True, cpus=str(own[0])).generator.max_rate
    if one is None:
        return [{"shards": 1, "calibrated": None}]
    rows = []
    for number in shards:
        predicted = min(number, len(own)) * one
        made, why = search(number, predicted, own, quick, target, cpus[0])
        row = {"shards": number, "cpus": min(number, len(own)), "calibrated": one, "predicted": predicted}
        rows.append(row | {"largest": made, "ratio": made / predicted if made else None, "then": why})
    return rows


def search(
    shards: int, predicted: float, cpus: list[int], quick: bool, target: Callable, server_cpu: int
) -> tuple[float | None, str | None]:
    """The largest load that could be made, and what was said of the first that could not."""
    made, why, misses = None, None, 0
    for share in QUICK_SHARES if quick else SHARES:
        rate = round(share * predicted)
        tries = (attempt(shards, rate, cpus, quick, target, server_cpu) for _ in range(TRIES))
        said = None
        for completed, said in tries:
            if said is None:
                made, misses, why = completed, 0, None
                break
        if said is None:
            continue
        misses, why = misses + 1, why or f"{rate:,}/s: {said}"
        if misses == MISSES:
            break
    return made, why


def attempt(
    shards: int, rate: int, cpus: list[int], quick: bool, target: Callable, server_cpu: int
) -> tuple[float, str | None]:
    """What was completed per second, and what speaks against that."""
    with target(server_cpu) as url:
        outcome = fleet.run(
            url, shards=shards, cpus=cpus, rate=rate, arrivals="poisson", seed=1,
            duration=QUICK_DURATION if quick else DURATION,
        )  # fmt: skip
    verdict = outcome.record.verdict
    codes = [reason.code for reason in verdict.reasons] or (["errors"] if verdict.error_share else [])
    return outcome.record.rates.completed, ", ".join(codes) or None
