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
    # `columns` are the metrics in the table of the case. For the metrics in `compared`, a second table contains the
    # ratios of brimful's values to those of the other load generators.
    columns: tuple[str, ...]
    compared: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    # A function that runs one load generator once and returns its values. Its arguments are the bench, this case, the
    # entry and the number of seconds.
    measure: Callable[..., dict] = field(kw_only=True)
    rate: int = 0
    # Whether the case is a single long run of --growth-seconds.
    long: bool = False

    @property
    def probe(self) -> Entry:
        """brimful in this case with `--engine auto`."""
        flags = next(entry.flags for entry in self.entries if entry.tool.startswith("brimful"))
        return brimful_with("auto", *flags)
