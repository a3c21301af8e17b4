"""The largest load that shards can generate before they are the limit (`--calibrate`; Banga & Druschel 1997, §4.3).

Before the load, one shard of each host measures it while no other runs: other shards would use the CPUs of the server
that answers it. All shards of a host are assumed equal. Shards on one CPU share its limit, and the limit of the load is
the sum.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass

#: The flag of `brimful load` that measures its limit, and the one that makes it end after that.
CALIBRATE, ONLY = "--calibrate", "--client-limit-only"


@dataclass(frozen=True)
class ClientLimit:
    """The limit of one shard or of several, as in a Record (`calibration`)."""

    #: Calls per second; None if a shard was its own limit at every load tried.
    max_rate: float | None
    #: Whether the limit may be higher: the server that answered was full before the shard was.
    lower_bound: bool = False
    #: Whether the second generator had no CPU of its own.
    second_shares_cpus: bool = False

    @staticmethod
    def from_record(record: bytes | None) -> "ClientLimit":
        """Reads it from a Record of `brimful load --calibrate`. Without a Record it is unknown."""
        calibration = (json.loads(record).get("calibration") if record else None) or {}
        return ClientLimit(
            calibration.get("max_rate"),
            calibration.get("lower_bound", False),
            calibration.get("second_shares_cpus", False),
        )

    def of_each(self, shards: int, cpus: int) -> "ClientLimit":
        """Returns the limit of each of `shards` that share `cpus`. `self` is the limit of a shard that runs alone.

        >>> ClientLimit(30_000.0).of_each(shards=3, cpus=2).max_rate
        20000.0
        """
        share = min(1.0, cpus / shards)
        return self if self.max_rate is None else dataclasses.replace(self, max_rate=share * self.max_rate)

    def flags(self) -> list[str]:
        """Returns the flags that give a shard its limit."""
        return [] if self.max_rate is None else [f"--client-max={self.max_rate:.3f}"]

    def __str__(self) -> str:
        more = " and more" if self.lower_bound else ""
        return "nothing that could be trusted" if self.max_rate is None else f"{self.max_rate:,.0f}/s{more}"


def together(limits: Iterable[ClientLimit]) -> ClientLimit:
    """Returns the limit of all shards of one load.

    >>> print(together([ClientLimit(30_000.0), ClientLimit(12_000.0, lower_bound=True)]))
    42,000/s and more
    >>> together([ClientLimit(30_000.0), ClientLimit(None)]).max_rate is None
    True
    """
    limits = list(limits)
    rates = [limit.max_rate for limit in limits if limit.max_rate is not None]
    return ClientLimit(
        max_rate=sum(rates) if len(rates) == len(limits) else None,
        lower_bound=any(limit.lower_bound for limit in limits),
        second_shares_cpus=any(limit.second_shares_cpus for limit in limits),
    )
