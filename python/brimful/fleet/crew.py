"""`brimful fleet crew`: a fleet that runs one load after another for a survey.

It reads orders from stdin and answers on stdout, a line of JSON each (crates/run/src/crew.rs is the other side). The
first answer says that it is ready. Then each order is answered with the load's Record, or with the limit of the shards.
The line `stop` ends the current load, and the end of stdin ends the fleet.
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

#: How often the driver looks at the shards. The loads are short.
LOOK_INTERVAL_S = 0.2


class Crew:
    """Shards that run one load after another."""

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
        """Obeys orders until stdin ends."""
        threading.Thread(target=self.listen, args=(orders,), daemon=True).start()
        send(answers, {})
        while (order := self.orders.get()) is not None:
            send(answers, answer(lambda order=order: self.obey(json.loads(order))))

    def listen(self, orders: TextIO) -> None:
        """Queues orders. `stop` and the end of stdin stop the current load."""
        for line in orders:
            if line.strip() == "stop":
                self.stop.set()
            else:
                self.stop.clear()
                self.orders.put(line)
        self.stop.set()
        self.orders.put(None)

    def obey(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Runs one load, or measures the limit of the shards for such loads."""
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
            every_s=LOOK_INTERVAL_S,
            leaves_rooms=True,
            limits=self.limits,
        )
        if order.get("calibrate"):
            limit = driver.client_limit()
            # A lower bound says nothing about higher loads. There each shard judges itself by its lateness.
            self.limits = {boot: known for boot, known in driver.limits.items() if not known.lower_bound}
            return {"calibration": dataclasses.asdict(limit) | {"curve": []}}
        return {"record": driver.run().record.source}


def answer(obey: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Returns the answer to an order: its result, or the error."""
    try:
        return obey()
    except _binary.BrimfulError as error:
        return {"error": str(error), "usage": error.exit_code == 2}


def send(answers: TextIO, what: Mapping[str, Any]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def own_stdout() -> TextIO:
    """Returns stdout for the answers, and redirects all other output, such as Ray's, to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    return answers
