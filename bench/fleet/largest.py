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
SHARES, QUICK_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2), (0.2,)
DURATION, QUICK_DURATION = "3s", "500ms"
#: So many tries in a row that are invalid end the search: one may be the host's.
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
    """The largest load that was valid, and what was said of the first that was not."""
    made, why, misses = None, None, 0
    for share in QUICK_SHARES if quick else SHARES:
        with target(server_cpu) as url:
            outcome = fleet.run(
                url, shards=shards, cpus=cpus, rate=round(share * predicted), arrivals="poisson", seed=1,
                duration=QUICK_DURATION if quick else DURATION,
            )  # fmt: skip
        record = outcome.record
        if record.verdict.valid and not record.verdict.error_share:
            made, misses, why = record.rates.completed, 0, None
            continue
        codes = [reason.code for reason in record.verdict.reasons] or ["errors"]
        misses, why = misses + 1, why or f"{round(share * predicted):,}/s: {', '.join(codes)}"
        if misses == MISSES:
            break
    return made, why
