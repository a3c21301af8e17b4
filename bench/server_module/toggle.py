"""The module switched off and on within one saturated run, and what the server got done in each slice.

Slices come in quartets, off, on, on, off (A B B A; ../monitor/stats.py), or by chance the other way round, since what
this program does between quartets may be felt by the first slice more than by the others. What is switched is one word of the shared
memory, which the server reads with every request. What was done is what went over the loopback device of a network that
nobody else is in: with requests and answers that are alike, bytes are requests, and no server has to be asked, which
would make it do something and answer late. Where each request has its own connection, these are counted instead.

The control is the same with another word of the same page: what it shows is the error of the method.
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
# Three quarters of the time what is asked for, a quarter of it nothing.
TURNS = (MODULE, MODULE, CONTROL, MODULE)
# What was under way when it was switched: 64 requests at a time take 5 ms of Apache.
SETTLE_S = 0.006
# A server is saturated if it has so much of its CPU.
SATURATED = 0.95


@dataclass(frozen=True)
class Slice:
    """What happened in one slice. Its CPU time was read a little later than the rest, at both ends."""

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
    """Quartets of the module and of the control, for this time."""
    number = max(round(seconds / (len(PATTERNS[0]) * (slice_s + SETTLE_S))), 4 * len(TURNS))
    switches: dict[str, Callable[[bool], None]] = {
        MODULE: server.memory.switch,
        CONTROL: server.memory.switch_nothing,
    }
    found: dict[str, list[list[Slice]]] = {turn: [] for turn in switches}
    pids = server.pids
    with punctual():
        for done, turn in enumerate(itertools.islice(itertools.cycle(TURNS), number)):
            if done % 500 == 0:
                say(f"{name}: quartet {done + 1} of {number}")
            # The control is switched with the module on, as it is in use.
            server.memory.switch(turn == CONTROL)
            found[turn].append([slice_of(pids, switches[turn], on, slice_s) for on in random.choice(PATTERNS)])
            load.check()
    return found


@contextlib.contextmanager
def punctual() -> Iterator[None]:
    """Has this program go before the load, which has the same CPU: or it would be interrupted for some milliseconds now
    and then between its looks at the clock and at the counters. What it starts is not meant."""
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
    """By how many percent being on changes something. Where a server did nothing for a slice, others had its CPU."""
    return change_percent(of_metric(quartets, metric))


def of_metric(quartets: Iterable[list[Slice]], metric: str) -> list[list[float]]:
    """One of what the slices say, off, on, on, off."""
    worked = (slices for slices in quartets if all(one.bytes and one.cpu_s for one in slices))
    found = [[getattr(one, metric) for one in off_on_on_off(slices)] for slices in worked]
    if len(found) < 2:
        raise Failed("the server stood still in nearly every quartet: other work has its CPU")
    return found


def off_on_on_off(slices: list[Slice]) -> list[Slice]:
    """A quartet in this order, whichever it had."""
    first, second, third, fourth = slices
    return [second, first, fourth, third] if first.on else slices


def loss(quartets: Iterable[list[Slice]], metric: str) -> Estimate:
    """By how many percent being on makes something less."""
    return less(change(quartets, metric))


def loss_of_runs(runs: Iterable[Iterable[list[Slice]]], metric: str) -> Estimate:
    """The same, of several servers, started one after the other."""
    return less(change_percent_of_runs([of_metric(quartets, metric) for quartets in runs]))


def less(found: Estimate) -> Estimate:
    return Estimate(-found.value, -found.high, -found.low, found.of, interval=True)


def mean(quartets: Iterable[list[Slice]], metric: str, on: bool = False) -> float:
    found = [getattr(one, metric) for slices in quartets for one in slices if one.on == on]
    return sum(found) / len(found)


def busy(found: dict[str, list[list[Slice]]]) -> float:
    """The share of its CPU that the server had."""
    slices = [one for quartets in found.values() for quartet in quartets for one in quartet]
    return sum(one.cpu_s for one in slices) / sum(one.cpu_seconds for one in slices)


def raw(found: dict[str, list[list[Slice]]]) -> dict:
    return {turn: [[asdict(one) for one in slices] for slices in quartets] for turn, quartets in found.items()}
