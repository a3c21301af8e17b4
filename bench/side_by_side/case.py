"""What a case is: a server, those that load it, what is measured, and what brimful is required to reach."""

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
    # What its table shows, and of which of these it shows brimful's ratio to the others.
    columns: tuple[str, ...]
    compared: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    # What one run of one generator gives: a function of the bench, this case, the entry and the seconds.
    measure: Callable[..., dict] = field(kw_only=True)
    rate: int = 0
    # One run, as long as --growth-seconds says.
    long: bool = False

    @property
    def probe(self) -> Entry:
        """brimful in this case with the engine of its own choice."""
        flags = next(entry.flags for entry in self.entries if entry.tool.startswith("brimful"))
        return brimful_with("auto", *flags)
