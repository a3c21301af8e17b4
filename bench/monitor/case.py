"""A case: its figures with their requirements, and the outcome of measuring it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from .stats import Estimate

if TYPE_CHECKING:
    from .bed import Bed


@dataclass(frozen=True)
class Figure:
    """One line of the table of requirements."""

    key: str
    text: str
    unit: str
    required: float | None = None
    aim: float | None = None
    # Whether the bound is a lower bound; otherwise it is an upper bound.
    at_least: bool = False

    def meets(self, value: float, bound: float | None) -> bool:
        return bound is not None and (value >= bound if self.at_least else value <= bound)


@dataclass
class Outcome:
    """The measured figures, the tables as they are printed, and in `raw` the data that they were computed from."""

    measured: dict[str, Estimate] = field(default_factory=dict)
    tables: list[dict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: dict = field(default_factory=dict)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.tables.append({"title": title, "head": list(head), "rows": [list(row) for row in rows]})

    def document(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """A group of figures that are measured together."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    measure: Callable[["Bed"], Outcome]
