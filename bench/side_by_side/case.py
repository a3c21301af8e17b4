"""A case: a server, the generators that load it, the metrics, and the requirements on brimful."""

from collections.abc import Callable
from dataclasses import dataclass, field

from .entry import Entry, brimful_with


@dataclass(frozen=True)
class Requirement:
    """A bound on a metric of brimful, or on its ratio to the same metric of another generator."""

    text: str
    metric: str
    required: float | None
    aim: float | None = None
    against: str | None = None
    at_least: bool = False

    def meets(self, value: float, bound: float) -> bool:
        return value >= bound if self.at_least else value <= bound


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    server: str
    entries: tuple[Entry, ...]
    # `columns` are the metrics in the case's table. For the metrics in `compared`, a second table has the ratios of
    # brimful's values to the other generators' values.
    columns: tuple[str, ...]
    compared: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    # Runs one generator once, given the bench, this case, the entry and the seconds; returns its values.
    measure: Callable[..., dict] = field(kw_only=True)
    rate: int = 0
    # Whether the case is a single run of --growth-seconds.
    long: bool = False

    @property
    def probe(self) -> Entry:
        """brimful in this case with `--engine auto`."""
        flags = next(entry.flags for entry in self.entries if entry.tool.startswith("brimful"))
        return brimful_with("auto", *flags)
