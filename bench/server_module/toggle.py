"""Switches the module off and on within one saturated run, and measures the server's throughput in each slice.

Slices come in quartets off, on, on, off (A B B A; ../monitor/stats.py), or at random the reverse, because this
program's own work between quartets may affect the first slice most. The switch is a word of the shared memory that the
server reads for every request. Throughput is the number of bytes over the loopback device of a private network
namespace. Requests and responses are all alike, so bytes give the number of requests. To ask the server would disturb
it. If each request has its own connection, connections are counted instead.

The control switches an unused word of the same page and shows the error of the method.
"""

import contextlib
import itertools
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from ..command import say
from ..monitor.clock import cpu_s
from ..monitor.stats import Estimate, change_percent, change_percent_of_runs
from ..side_by_side.tools import Failed
from .bed import Load, Traffic
from .servers import Server

PATTERNS = ((False, True, True, False), (True, False, False, True))
MODULE, CONTROL = "module", "control"
# What is switched in successive quartets of slices: the module, or, in a quarter of the quartets (control), an unused
# word of its memory.
TURNS = (MODULE, MODULE, CONTROL, MODULE)
# Pause after a switch, in seconds, so that requests in progress end before the measurement. Apache needs 5 ms for 64
# concurrent requests.
SETTLE_S = 0.006
# A server is saturated if it uses at least this share of its CPU.
SATURATED = 0.95


@dataclass(frozen=True)
class Slice:
    """The measurements of one slice. CPU time is read slightly later than the rest, and has its own duration."""

    on: bool
    seconds: float
    bytes: int
    connections: int
    cpu_s: float
    cpu_seconds: float

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.seconds

    @property
    def connections_per_s(self) -> float:
        return self.connections / self.seconds

    @property
    def cpu_s_per_byte(self) -> float:
        return self.cpu_s / self.cpu_seconds / self.bytes_per_s


def measure(server: Server, load: Load, seconds: float, slice_s: float, name: str) -> dict[str, list[list[Slice]]]:
    """Measures quartets of the module and of the control for this time."""

    def switch_unused(on: bool) -> None:
        # In a quartet of the control, the module stays on.
        server.memory.switch(True)
        server.memory.switch_unused(on)

    switches = {MODULE: server.memory.switch, CONTROL: switch_unused}
    return quartets(server.pids, switches, seconds, slice_s, name, load.check)


def quartets(
    pids: list[int],
    switches: dict[str, Callable[[bool], None]],
    seconds: float,
    slice_s: float,
    name: str,
    check: Callable[[], None],
) -> dict[str, list[list[Slice]]]:
    """Measures quartets of each subject, which its function switches on and off. `check` raises Failed if the load has
    ended."""
    turns = [turn for turn in TURNS if turn in switches]
    number = max(round(seconds / (len(PATTERNS[0]) * (slice_s + SETTLE_S))), 4 * len(turns))
    found: dict[str, list[list[Slice]]] = {turn: [] for turn in switches}
    with punctual():
        for done, turn in enumerate(itertools.islice(itertools.cycle(turns), number)):
            if done % 500 == 0:
                say(f"{name}: quartet {done + 1} of {number}")
            found[turn].append([slice_of(pids, switches[turn], on, slice_s) for on in random.choice(PATTERNS)])
            check()
    return found


@contextlib.contextmanager
def punctual() -> Iterator[None]:
    """Gives this program real-time priority over the load on the same CPU. Otherwise it could be preempted for some
    milliseconds between reading the clock and the counters. Child processes keep their normal priority."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameter)


def slice_of(pids: list[int], switch: Callable[[bool], None], on: bool, slice_s: float) -> Slice:
    switch(on)
    time.sleep(SETTLE_S)
    begun, before, cpu_begun, cpu = time.monotonic(), Traffic.now(), time.monotonic(), cpu_s(pids)
    time.sleep(slice_s)
    ended, after, cpu_ended, cpu_after = time.monotonic(), Traffic.now(), time.monotonic(), cpu_s(pids)
    done = after - before
    return Slice(on, ended - begun, done.bytes, done.connections, cpu_after - cpu, cpu_ended - cpu_begun)


def change(quartets: Iterable[list[Slice]], metric: str) -> Estimate:
    """The change of a metric by switching on, in percent. Quartets with an idle slice are left out."""
    return change_percent(of_metric(quartets, metric))


def of_metric(quartets: Iterable[list[Slice]], metric: str) -> list[list[float]]:
    """The metric's values in each quartet, in the order off, on, on, off."""
    active = (slices for slices in quartets if all(part.bytes and part.cpu_s for part in slices))
    values = [[getattr(part, metric) for part in off_on_on_off(slices)] for slices in active]
    if len(values) < 2:
        raise Failed("the server was idle in nearly every quartet: other programs use its CPU")
    return values


def off_on_on_off(slices: list[Slice]) -> list[Slice]:
    """The slices of a quartet in the order off, on, on, off."""
    first, second, third, fourth = slices
    return [second, first, fourth, third] if first.on else slices


def loss(quartets: Iterable[list[Slice]], metric: str) -> Estimate:
    """The decrease of a metric by switching on, in percent."""
    return change(quartets, metric).negated()


def loss_of_runs(runs: Iterable[Iterable[list[Slice]]], metric: str) -> Estimate:
    """The decrease of a metric by switching on, in percent, over several starts of the server."""
    return change_percent_of_runs([of_metric(quartets, metric) for quartets in runs]).negated()


def busy(found: dict[str, list[list[Slice]]]) -> float:
    """The share of its CPU that the server used."""
    slices = [part for quartets in found.values() for quartet in quartets for part in quartet]
    return sum(part.cpu_s for part in slices) / sum(part.cpu_seconds for part in slices)


def raw(found: dict[str, list[list[Slice]]]) -> dict:
    return {turn: [[asdict(part) for part in slices] for slices in quartets] for turn, quartets in found.items()}
