"""How far another host's clock is ahead of this one's, by asking it the time.

It is asked a few times. Each answer was made at some instant between question and answer, so it bounds the difference
to within half the time that this took; the shortest such time bounds it best, whatever part of it was which way (Mills,
RFC 5905, §8). Times are nanoseconds since 1970.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

#: How often it is asked.
PROBES = 16
#: Hosts whose clocks differ by more have no common time for anything else either, such as their logs.
MOST_APART_NS = 60 * 1_000_000_000


@dataclass(frozen=True)
class Probe:
    """When it was asked, what the other clock showed, and when the answer came."""

    asked_ns: int
    shown_ns: int
    answered_ns: int


@dataclass(frozen=True)
class Offset:
    """How far a clock is ahead, and how far off that may be."""

    ahead_ns: int = 0
    error_ns: int = 0

    def flag(self) -> str:
        """As `brimful load --clock-ahead` has it.

        >>> Offset(-1500, 300).flag()
        '-1500ns/300ns'
        """
        return f"{self.ahead_ns}ns/{self.error_ns}ns"

    @property
    def is_hopeless(self) -> bool:
        """Whether it is so large that the clock has to be set first."""
        return abs(self.ahead_ns) > MOST_APART_NS


def estimate(probes: Iterable[Probe]) -> Offset:
    """What the probes say; the truth is within the error of it, if neither clock was set meanwhile.

    >>> estimate([Probe(0, 1_000_900, 1_000), Probe(5_000, 1_005_100, 5_200)])
    Offset(ahead_ns=1000000, error_ns=100)
    """
    best = min(probes, key=lambda probe: probe.answered_ns - probe.asked_ns)
    middle = (best.asked_ns + best.answered_ns) // 2
    return Offset(best.shown_ns - middle, -(-(best.answered_ns - best.asked_ns) // 2))


def measure(ask: Callable[[], int], now: Callable[[], int] = time.time_ns) -> Offset:
    """Asks a clock the time."""
    return estimate([Probe(now(), ask(), now()) for _ in range(PROBES)])
