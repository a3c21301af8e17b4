"""The largest load that N shards can make: predicted from the limit of one shard, and measured.

The limit of one shard is the rate that `brimful load --calibrate` measures for one thread on one CPU. N shards on N
CPUs should make N times that rate; on fewer CPUs, the rate of those CPUs. The prediction is compared with the largest
load, raised in steps, that N shards made without being the limit. The server is the reference server with a service
demand of zero, on the first CPU. With two CPUs, all shards share the second.
"""

import os
from collections.abc import Callable

import brimful
from brimful import fleet

#: Loads that are tried, as shares of the predicted maximum load, without and with `--quick`.
SHARES, QUICK_SHARES = (0.1, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2), (0.2,)
DURATION, QUICK_DURATION = "3s", "500ms"
#: Maximum number of tries of each load. One valid try suffices: other programs on the host may have disturbed the
#: others.
TRIES = 3
#: The search ends after this number of successive loads without a valid try.
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
    """The largest load that could be made, and why the first larger one could not."""
    made, why, misses = None, None, 0
    for share in QUICK_SHARES if quick else SHARES:
        rate = round(share * predicted)
        tries = (attempt(shards, rate, cpus, quick, target, server_cpu) for _ in range(TRIES))
        reason = None
        for completed, reason in tries:
            if reason is None:
                made, misses, why = completed, 0, None
                break
        if reason is None:
            continue
        misses, why = misses + 1, why or f"{rate:,}/s: {reason}"
        if misses == MISSES:
            break
    return made, why


def attempt(
    shards: int, rate: int, cpus: list[int], quick: bool, target: Callable, server_cpu: int
) -> tuple[float, str | None]:
    """Calls completed per second, and the reasons why the load is invalid, or None."""
    with target(server_cpu) as url:
        outcome = fleet.run(
            url, shards=shards, cpus=cpus, rate=rate, arrivals="poisson", seed=1,
            duration=QUICK_DURATION if quick else DURATION,
        )  # fmt: skip
    verdict = outcome.record.verdict
    codes = [reason.code for reason in verdict.reasons] or (["errors"] if verdict.error_share else [])
    return outcome.record.rates.completed, ", ".join(codes) or None
