"""What the shards of a load can offer before they are the limit (`--calibrate`; Banga & Druschel 1997, §4.3).

One shard of each host finds it beforehand, alone there: others would take the CPUs that the server which answers it
runs on. All shards of a host are taken to be like that one; those that share a CPU share what it can offer, and the
whole can offer what they can together.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass

#: The flag of `brimful load`, and what makes it end then.
CALIBRATE, ONLY = "--calibrate", "--client-limit-only"


@dataclass(frozen=True)
class ClientLimit:
    """As a Record has it (`calibration`)."""

    #: Calls per second; None if a shard was its own limit at every load tried.
    max_rate: float | None
    #: Whether it may be higher: what answered fell short before the shard did.
    lower_bound: bool = False
    #: Whether the second generator had no CPU of its own.
    second_shares_cpus: bool = False

    @staticmethod
    def of(record: bytes | None) -> "ClientLimit":
        """What the Record of `brimful load --calibrate` says; nothing where there is none."""
        found = (json.loads(record).get("calibration") if record else None) or {}
        return ClientLimit(
            found.get("max_rate"), found.get("lower_bound", False), found.get("second_shares_cpus", False)
        )

    def of_each(self, shards: int, cpus: int) -> "ClientLimit":
        """For each of so many shards on so many CPUs, of one of which this is the limit of a shard.

        >>> ClientLimit(30_000.0).of_each(shards=3, cpus=2).max_rate
        20000.0
        """
        share = min(1.0, cpus / shards)
        return self if self.max_rate is None else dataclasses.replace(self, max_rate=share * self.max_rate)

    def flags(self) -> list[str]:
        """Of a shard for which it holds."""
        return [] if self.max_rate is None else [f"--client-max={self.max_rate:.3f}"]

    def __str__(self) -> str:
        more = " and more" if self.lower_bound else ""
        return "nothing that could be trusted" if self.max_rate is None else f"{self.max_rate:,.0f}/s{more}"


def together(limits: Iterable[ClientLimit]) -> ClientLimit:
    """Of shards that make one load.

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
