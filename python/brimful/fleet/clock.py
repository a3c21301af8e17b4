"""Measures how far another host's clock is ahead of this one's.

The host is asked for its time a few times. The time it answers was read between the request and the answer, so the
offset is known to half of the round trip. The shortest round trip gives the smallest error (Mills, RFC 5905, §8). Times
are nanoseconds since 1970.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

#: How often a clock is asked.
PROBES = 16
#: Clocks that differ by more must be set first: the hosts' logs would not fit together either.
MAX_OFFSET_NS = 60 * 1_000_000_000


@dataclass(frozen=True)
class Probe:
    """One request: when it was sent, the other clock's time, and when the answer came."""

    asked_ns: int
    shown_ns: int
    answered_ns: int


@dataclass(frozen=True)
class Offset:
    """How far a clock is ahead, and the error of that."""

    ahead_ns: int = 0
    error_ns: int = 0

    def flag(self) -> str:
        """Returns the value of `brimful load --clock-ahead`.

        >>> Offset(-1500, 300).flag()
        '-1500ns/300ns'
        """
        return f"{self.ahead_ns}ns/{self.error_ns}ns"

    @property
    def is_too_large(self) -> bool:
        """Whether the clock must be set first."""
        return abs(self.ahead_ns) > MAX_OFFSET_NS


def estimate(probes: Iterable[Probe]) -> Offset:
    """Estimates the offset from probes. The true offset is within the error if neither clock was set meanwhile.

    >>> estimate([Probe(0, 1_000_900, 1_000), Probe(5_000, 1_005_100, 5_200)])
    Offset(ahead_ns=1000000, error_ns=100)
    """
    best = min(probes, key=lambda probe: probe.answered_ns - probe.asked_ns)
    middle = (best.asked_ns + best.answered_ns) // 2
    return Offset(best.shown_ns - middle, -(-(best.answered_ns - best.asked_ns) // 2))


def measure(ask: Callable[[], int], now: Callable[[], int] = time.time_ns) -> Offset:
    """Measures the offset of the clock that `ask` reads."""
    return estimate([Probe(now(), ask(), now()) for _ in range(PROBES)])
