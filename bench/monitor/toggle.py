"""Something switched on and off in slices of one saturated run, and what the server did in each slice.

Slices come in quartets, off, on, on, off (A B B A; see stats.py). After every switch some time passes unmeasured, in
which what was switched settles. Requests and connections are counted by nginx, CPU time by each process's own clock.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from .bed import Running, Server
from .clock import cpu_s
from .stats import Estimate, change_percent

PATTERN = (False, True, True, False)


@dataclass(frozen=True)
class Slice:
    """What happened in one slice."""

    on: bool
    seconds: float
    requests: int
    connections: int
    server_cpu_s: float
    load_cpu_s: float

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_us_per_request(self) -> float:
        """The server's."""
        return 1e6 * self.server_cpu_s / self.requests

    @property
    def cpu_us_per_connection(self) -> float:
        """The server's and the generator's: on loopback either does the other's receiving."""
        return 1e6 * (self.server_cpu_s + self.load_cpu_s) / self.connections


def quartet(
    server: Server, load: Running, switch: Callable[[bool], None], seconds: float, settle_s: float
) -> list[Slice]:
    """Four slices; at its end the switch is off."""
    slices = []
    for on in PATTERN:
        switch(on)
        time.sleep(settle_s)
        slices.append(slice_of(server, load, on, seconds))
        load.check()
    switch(False)
    return slices


def slice_of(server: Server, load: Running, on: bool, seconds: float) -> Slice:
    server_pids, load_pids = server.pids, load.pids
    begun, before = server.done()
    server_cpu, load_cpu = cpu_s(server_pids), cpu_s(load_pids)
    time.sleep(seconds)
    ended, after = server.done()
    return Slice(
        on,
        ended - begun,
        after.requests - before.requests,
        after.connections - before.connections,
        cpu_s(server_pids) - server_cpu,
        cpu_s(load_pids) - load_cpu,
    )


def change(quartets: Iterable[list[Slice]], metric: str) -> Estimate:
    """By how many percent being on changes something."""
    return change_percent([[getattr(one, metric) for one in slices] for slices in quartets])


def mean(quartets: Iterable[list[Slice]], metric: str, on: bool = False) -> float:
    found = [getattr(one, metric) for slices in quartets for one in slices if one.on == on]
    return sum(found) / len(found)


def raw(quartets: Iterable[list[Slice]]) -> list[list[dict]]:
    return [[asdict(one) for one in slices] for slices in quartets]
