"""`brimful fleet crew`: a fleet that makes one load after another, for a survey that measures a server by them.

It is asked by a line of JSON on stdin and answers by one on stdout (crates/run/src/crew.rs is the other side): first,
when it is ready, and then for each load with its Record, or with what the shards can offer. A line `stop` ends the load
under way; the end of stdin all.
"""

from __future__ import annotations

import dataclasses
import json
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from .. import _binary
from .client_limit import ClientLimit
from .driver import Driver, Load, Room

#: Loads are short: their ends are looked for so often.
EVERY_S = 0.2


class Crew:
    """Shards that are there for one load after another."""

    def __init__(
        self,
        rooms: Sequence[Room],
        words: Sequence[str],
        *,
        source_ips: Sequence[str] = (),
        cpus: Sequence[int] = (),
        lead_s: float | None = None,
    ) -> None:
        self.rooms, self.words, self.source_ips, self.cpus, self.lead_s = rooms, words, source_ips, cpus, lead_s
        self.orders: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.stop = threading.Event()
        self.limits: dict[str, ClientLimit] = {}

    def serve(self, orders: TextIO, answers: TextIO) -> None:
        """Until there are no more orders."""
        threading.Thread(target=self.listen, args=(orders,), daemon=True).start()
        tell(answers, {})
        while (order := self.orders.get()) is not None:
            tell(answers, answer(lambda order=order: self.obey(json.loads(order))))

    def listen(self, orders: TextIO) -> None:
        """Puts orders in a row. A stop is for what is under way, and so is the end."""
        for line in orders:
            if line.strip() == "stop":
                self.stop.set()
            else:
                self.stop.clear()
                self.orders.put(line)
        self.stop.set()
        self.orders.put(None)

    def obey(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """One load; or what the shards can offer, for loads like that."""
        load = Load(
            words=["--workload={workload.toml}", *order["flags"], *self.words],
            seed=order["seed"],
            files={"workload.toml": order["workload"]},
            source_ips=self.source_ips,
            cpus=self.cpus,
        )
        driver = Driver(
            self.rooms,
            load,
            lead_s=self.lead_s,
            stop=self.stop,
            every_s=EVERY_S,
            leaves_rooms=True,
            limits=self.limits,
        )
        if order.get("calibrate"):
            limit = driver.client_limit()
            # Of a lower bound nobody knows what is beyond: there each shard is judged by its own lateness.
            self.limits = {boot: known for boot, known in driver.limits.items() if not known.lower_bound}
            return {"calibration": dataclasses.asdict(limit) | {"curve": []}}
        return {"record": driver.run().record.source}


def answer(obey: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What became of it, as the other side reads it."""
    try:
        return obey()
    except _binary.BrimfulError as error:
        return {"error": str(error), "usage": error.exit_code == 2}


def tell(answers: TextIO, what: Mapping[str, Any]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def own_stdout() -> TextIO:
    """For answers alone: what else is printed, as by Ray, goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    return answers
