"""Answers requests with LINE, one JSON object per line. Runs in the interpreter with `line-solver`, without our
modules.

A request is {"task": …, "model": …}. The answer has CPU seconds, throughputs by class and, if the task needs them,
queue lengths (stations × classes).
"""

import contextlib
import json
import os
import sys
import time
import warnings
from importlib.metadata import version

warnings.filterwarnings("ignore")

# The library prints messages to standard output. Redirect these to standard error, so that they are not read as
# answers.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import numpy as np  # noqa: E402
from line_solver.api.pfqn.linearizer import pfqn_linearizer  # noqa: E402
from line_solver.api.pfqn.mva import pfqn_mva  # noqa: E402
from line_solver.api.pfqn.mvald import pfqn_mvams  # noqa: E402
from line_solver.api.pfqn.mvaldmx import pfqn_mvaldmx  # noqa: E402

PS = 5


class Network:
    """A model as arguments of LINE's functions: the queues, and the sum of all delays of each class."""

    def __init__(self, model: dict) -> None:
        classes, stations = model["classes"], model["stations"]
        pairs = list(zip(stations, model["demands"], strict=True))
        self.queues = [i for i, station in enumerate(stations) if station["type"] == "queue"]
        self.demands = np.array(
            [[d / (1 - stations[i].get("background", 0)) for d in model["demands"][i]] for i in self.queues], float
        )
        delays = [demands for station, demands in pairs if station["type"] == "delay"]
        self.delay = np.array([c.get("think") or 0 for c in classes], float) + np.sum(delays, axis=0, initial=0)
        self.population = np.array([c["population"] if c["type"] == "closed" else np.inf for c in classes], float)
        self.rates = np.array([c["rate"] if c["type"] == "open" else 0 for c in classes], float)
        self.servers = np.array([stations[i].get("servers", 1) for i in self.queues], float)
        self.multipliers = [stations[i].get("rate_multipliers") for i in self.queues]

    def rate(self, levels: int) -> np.ndarray:
        """Service rates with 1 to `levels` customers present."""

        def rate_with(queue: int, customers: int) -> float:
            if table := self.multipliers[queue]:
                return table[min(customers, len(table)) - 1]
            return min(customers, self.servers[queue])

        queues = range(len(self.queues))
        return np.array([[rate_with(queue, n) for n in range(1, levels + 1)] for queue in queues], float)


def exact(request: dict) -> dict:
    network = Network(request["model"])
    return timed(lambda: pfqn_mva(network.demands, network.population, network.delay)[0])


def linearizer(request: dict) -> dict:
    network = Network(request["model"])
    sharing = [PS] * len(network.queues)
    return timed(lambda: pfqn_linearizer(network.demands, network.population, network.delay, sharing)[5])


def curve(request: dict) -> dict:
    """Solves an open network at several multiples of its rates. Returns the response times at the last multiple."""
    network = Network(request["model"])
    ones = np.ones(len(network.queues))

    def response_times() -> np.ndarray:
        for factor in request["factors"]:
            present = pfqn_mvams(
                network.rates * factor, network.demands, network.population, network.delay, ones, network.servers
            )[1]
        return np.sum(present, axis=0) / (network.rates * request["factors"][-1])

    return timed(response_times, "response_time")


def network(request: dict) -> dict:
    """Any network in product form: several servers, rates that depend on the load, open and closed classes."""
    network = Network(request["model"])
    closed = network.population[np.isfinite(network.population)]
    if len(closed) == 0 and any(network.multipliers):
        return {"error": "load-dependent rates without closed classes"}
    arguments = (network.rates, network.demands, network.population, network.delay)
    start = time.process_time()
    if len(closed) == 0:
        throughput, present = pfqn_mvams(*arguments, np.ones(len(network.queues)), network.servers)[:2]
    else:
        # A station's rate is constant beyond the end of its table of multipliers. The library LINE needs a rate for one
        # customer more than the closed classes have.
        levels = int(closed.sum()) + 1 + max([4, *(len(table) for table in network.multipliers if table)])
        throughput, present = pfqn_mvaldmx(*arguments, network.rate(levels), np.full(len(network.queues), levels))[:2]
    return {
        "cpu_s": time.process_time() - start,
        "throughput": np.ravel(throughput).tolist(),
        "queues": network.queues,
        "queue_length": np.asarray(present).tolist(),
    }


def timed(solve, what: str = "throughput") -> dict:
    start = time.process_time()
    found = solve()
    return {"cpu_s": time.process_time() - start, what: np.ravel(found).tolist()}


TASKS = {"exact": exact, "linearizer": linearizer, "curve": curve, "network": network}


def main() -> None:
    say({"version": version("line-solver")})
    for line in filter(str.strip, sys.stdin):
        request = json.loads(line)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                answer = TASKS[request["task"]](request)
        except Exception as error:  # noqa: BLE001 - any error of the library becomes the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        say(answer)


def say(answer: dict) -> None:
    print(json.dumps(answer), file=ANSWERS, flush=True)


if __name__ == "__main__":
    main()
