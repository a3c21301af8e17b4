"""Measures how far the clock of another host is ahead of the clock of this host.

The other host is asked for its time several times. It reads its clock between the request and the answer, so the error
of the offset is at most half of the round trip. The shortest round trip gives the smallest error (Mills, RFC 5905, §8).
Times are nanoseconds since 1970.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

#: Number of readings of a host's clock from which its offset is estimated.
PROBES = 16
#: Largest permitted offset of a host's clock from the driver's clock. With a larger offset, the load does not start:
#: the user must set the clock first.
MAX_OFFSET_NS = 60 * 1_000_000_000


@dataclass(frozen=True)
class Probe:
    """One reading of the other clock, between two readings of this one."""

    #: The time on this host when the request was sent.
    asked_ns: int
    #: The time on the other host, from its answer.
    shown_ns: int
    #: The time on this host when the answer arrived.
    answered_ns: int


@dataclass(frozen=True)
class Offset:
    """How far the other clock is ahead, and the largest error of this offset."""

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
        """Whether the other clock must be set before a load can run."""
        return abs(self.ahead_ns) > MAX_OFFSET_NS


def estimate(probes: Iterable[Probe]) -> Offset:
    """Estimates the offset from probes. The true offset is within the error if neither clock was set meanwhile.

    >>> estimate([Probe(0, 1_000_900, 1_000), Probe(5_000, 1_005_100, 5_200)])
    Offset(ahead_ns=1000000, error_ns=100)
    """
    shortest = min(probes, key=lambda probe: probe.answered_ns - probe.asked_ns)
    middle = (shortest.asked_ns + shortest.answered_ns) // 2
    # The maximum error is half of the round trip, rounded up.
    half_trip = -(-(shortest.answered_ns - shortest.asked_ns) // 2)
    return Offset(shortest.shown_ns - middle, half_trip)


def measure(ask: Callable[[], int], now: Callable[[], int] = time.time_ns) -> Offset:
    """Measures the offset of the clock that `ask` reads. `now` reads this host's clock."""
    return estimate([Probe(now(), ask(), now()) for _ in range(PROBES)])
