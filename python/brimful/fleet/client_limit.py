"""The largest load that the shards can generate before they are the bottleneck (`--calibrate`; Banga & Druschel 1997,
§4.3).

Before the load, one shard on each host measures its own limit against a server on the same host. No other shard runs
there meanwhile, as it would take CPU time from that server. All shards of a host are assumed to have the same limit;
shards on the same CPU share it. The limit of the whole load is the sum over all shards.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass

#: The flag with which `brimful load` measures its limit (the highest load that it can generate) before the load.
CALIBRATE = "--calibrate"
#: The flag with which `brimful load` measures its limit, and ends without generating the load.
LIMIT_ONLY = "--client-limit-only"


@dataclass(frozen=True)
class ClientLimit:
    """The limit of one shard or of several, with the field names of `calibration` in a Record."""

    #: The limit in calls per second; None if the shard itself was the bottleneck at every load that was tried.
    max_rate: float | None
    #: Whether the true limit may be higher, because the server was saturated before the shard.
    lower_bound: bool = False
    #: Whether the second load generator of the measurement shared CPUs with other threads, so that its result is too
    #: low.
    second_shares_cpus: bool = False

    @staticmethod
    def from_record(record: bytes | None) -> "ClientLimit":
        """Reads the limit from a Record of `brimful load --calibrate`. Without a Record, the limit is unknown."""
        calibration = (json.loads(record).get("calibration") if record else None) or {}
        return ClientLimit(
            calibration.get("max_rate"),
            calibration.get("lower_bound", False),
            calibration.get("second_shares_cpus", False),
        )

    def per_shard(self, shards: int, cpus: int) -> "ClientLimit":
        """Returns the limit of each of `shards` shards that share `cpus` CPUs. `self` is the limit of a shard alone.

        >>> ClientLimit(30_000.0).per_shard(shards=3, cpus=2).max_rate
        20000.0
        """
        share = min(1.0, cpus / shards)
        return self if self.max_rate is None else dataclasses.replace(self, max_rate=share * self.max_rate)

    def flags(self) -> list[str]:
        """Returns the flags by which a shard learns its limit."""
        return [] if self.max_rate is None else [f"--client-max={self.max_rate:.3f}"]

    def __str__(self) -> str:
        more = " or more" if self.lower_bound else ""
        return "no limit could be measured" if self.max_rate is None else f"{self.max_rate:,.0f}/s{more}"


def combined(limits: Iterable[ClientLimit]) -> ClientLimit:
    """Returns the limit of all shards of one load.

    >>> print(combined([ClientLimit(30_000.0), ClientLimit(12_000.0, lower_bound=True)]))
    42,000/s or more
    >>> combined([ClientLimit(30_000.0), ClientLimit(None)]).max_rate is None
    True
    """
    limits = list(limits)
    rates = [limit.max_rate for limit in limits if limit.max_rate is not None]
    return ClientLimit(
        max_rate=sum(rates) if len(rates) == len(limits) else None,
        lower_bound=any(limit.lower_bound for limit in limits),
        second_shares_cpus=any(limit.second_shares_cpus for limit in limits),
    )
