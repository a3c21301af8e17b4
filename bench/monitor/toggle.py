"""Switches something on and off in slices of one saturated run, and measures the server in each slice.

Slices come in quartets: off, on, on, off (A B B A; see stats.py). After every switch there is a time that is not
measured, in which the system settles. nginx counts requests and connections; CPU time is by each process's CPU clock.
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
    """The measurements of one slice."""

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
        """CPU time of the server per request, in microseconds."""
        return 1e6 * self.server_cpu_s / self.requests

    @property
    def cpu_us_per_connection(self) -> float:
        """CPU time of server and generator per connection, in µs. On loopback, each does receive work of the other."""
        return 1e6 * (self.server_cpu_s + self.load_cpu_s) / self.connections


def quartet(
    server: Server, load: Running, switch: Callable[[bool], None], seconds: float, settle_s: float
) -> list[Slice]:
    """Measures four slices, and leaves the switch off."""
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
    """The change of a metric by switching on, in percent."""
    return change_percent([[getattr(part, metric) for part in slices] for slices in quartets])


def mean(quartets: Iterable[list[Slice]], metric: str, on: bool = False) -> float:
    """The mean of a metric over all slices that are on, or off."""
    values = [getattr(part, metric) for slices in quartets for part in slices if part.on == on]
    return sum(values) / len(values)


def raw(quartets: Iterable[list[Slice]]) -> list[list[dict]]:
    return [[asdict(part) for part in slices] for slices in quartets]
