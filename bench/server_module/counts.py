"""Compares the module's count of requests with the access log, while the server is reloaded and workers are killed.

A worker may be killed between writing a log line and counting the request. The counts may therefore differ by one for
each killed worker.
"""

import os
import random
import signal
import time

from ..command import say
from ..monitor.case import Case, Figure, Outcome
from ..monitor.stats import Estimate
from .bed import Bed
from .servers import Server

REQUESTS, QUICK_REQUESTS = 1_000_000, 50_000
CLIENTS = 32
WORKERS = 2
# Interval between two reloads or kills, in seconds.
EVENT_S = 1.0


def case(kind: str) -> Case:
    return Case(
        f"counts-{kind}",
        f"Requests by the module and by the access log, {kind}",
        (Figure("difference", "difference beyond one per killed worker", "requests", required=0),),
        lambda bed: measure(bed, kind),
    )


def measure(bed: Bed, kind: str) -> Outcome:
    wanted = QUICK_REQUESTS if bed.quick else REQUESTS
    outcome = Outcome()
    events = {"reload": 0, "kill": 0}
    with bed.server(kind, workers=WORKERS, logs=True) as server:
        made = 0
        while made < wanted:
            # Calls on connections of a killed worker fail, so the load is repeated until enough calls have responses.
            with bed.load(server.url, "--clients", CLIENTS, "--requests", wanted - made) as load:
                while not load.ended():
                    time.sleep(EVENT_S / 5 if bed.quick else EVENT_S)
                    disturb(server, events)
                record = load.record()
            counts = record["counts"]
            made += sum(counts["status"].values())
            say(f"counts-{kind}: {made:,} of {wanted:,} requests")
        by_module, by_log = server.settled()
        lost = server.memory.counted().lost
    difference = by_module - by_log
    outcome.measured["difference"] = Estimate.exact(max(abs(difference) - events["kill"], 0))
    outcome.table(
        f"{kind} with {WORKERS} workers",
        ["by the module", "by the log", "difference", "reloads", "killed workers", "without a slot"],
        [
            [f"{by_module:,}", f"{by_log:,}", f"{difference:+d}"]
            + [str(events["reload"]), str(events["kill"]), str(lost)]
        ],
    )
    return outcome


def disturb(server: Server, events: dict[str, int]) -> None:
    """Reloads the server gracefully, or kills a worker in a fifth of the calls."""
    if random.random() < 0.8:
        server.reload()
        events["reload"] += 1
    elif workers := server.workers:
        try:
            os.kill(random.choice(workers), signal.SIGKILL)
        except ProcessLookupError:
            return
        events["kill"] += 1


NGINX = case("nginx")
APACHE = case("apache")
