"""`brimful fleet serve-survey`: a fleet that runs one load after another for a survey.

It reads orders from stdin and writes answers to stdout, each a line of JSON. `brimful survey` sends the orders
(crates/run/src/survey_fleet.rs). The first answer, `{}`, means that the fleet is ready. The answer to an order is the
Record of the load or the limit of the shards. The line `stop` ends the current load, and the end of stdin ends the
fleet.
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
from .driver import Driver, Load, PlaceHandle

#: Time between two readings of the shards' states. It is shorter than the driver's default, because the loads of a
#: survey are short.
STATE_INTERVAL_S = 0.2


class SurveyFleet:
    """Shards that run one load after another."""

    def __init__(
        self,
        places: Sequence[PlaceHandle],
        arguments: Sequence[str],
        *,
        source_ips: Sequence[str] = (),
        cpus: Sequence[int] = (),
        lead_s: float | None = None,
    ) -> None:
        self.places = places
        self.arguments = arguments
        self.source_ips = source_ips
        self.cpus = cpus
        self.lead_s = lead_s
        self.orders: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.stop = threading.Event()
        self.limits: dict[str, ClientLimit] = {}

    def serve(self, orders: TextIO, answers: TextIO) -> None:
        """Carries out orders until `orders` ends."""
        threading.Thread(target=self.listen, args=(orders,), daemon=True).start()
        send(answers, {})
        while (order := self.orders.get()) is not None:
            send(answers, answer(lambda order=order: self.carry_out(json.loads(order))))

    def listen(self, orders: TextIO) -> None:
        """Queues orders. The line `stop` and the end of `orders` stop the current load."""
        for line in orders:
            if line.strip() == "stop":
                self.stop.set()
            else:
                self.stop.clear()
                self.orders.put(line)
        self.stop.set()
        self.orders.put(None)

    def carry_out(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Runs one load, or measures the limit of the shards for such loads."""
        load = Load(
            arguments=["--workload={workload.toml}", *order["flags"], *self.arguments],
            seed=order["seed"],
            files={"workload.toml": order["workload"]},
            source_ips=self.source_ips,
            cpus=self.cpus,
        )
        driver = Driver(
            self.places,
            load,
            lead_s=self.lead_s,
            stop=self.stop,
            interval_s=STATE_INTERVAL_S,
            keeps_places=True,
            limits=self.limits,
        )
        if order.get("calibrate"):
            total = driver.client_limit()
            # Omit limits that are only lower bounds: the shards may be able to generate more than that. Without a
            # limit, each shard checks its own lateness instead.
            self.limits = {boot: limit for boot, limit in driver.limits.items() if not limit.lower_bound}
            return {"calibration": dataclasses.asdict(total) | {"curve": []}}
        return {"record": driver.run().record.source}


def answer(carry_out: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Returns the answer to an order: its result or its error."""
    try:
        return carry_out()
    except _binary.BrimfulError as error:
        return {"error": str(error), "usage": error.exit_code == 2}


def send(answers: TextIO, content: Mapping[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


def own_stdout() -> TextIO:
    """Returns stdout for the answers, and redirects all other output, such as Ray's, to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    return answers
