"""Shards as processes of this machine: the default, for which this package is enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .driver import PlaceLost
from .place import Place


@dataclass(frozen=True)
class ImmediateAnswer:
    """An answer that is available at once: a value or a problem."""

    value: Any = None
    problem: str | None = None

    def get(self, timeout_s: float) -> Any:
        if self.problem is not None:
            raise PlaceLost(self.problem)
        return self.value


@dataclass
class LocalPlace:
    """A handle of a place in this process."""

    place: Place = field(default_factory=Place)

    def ask(self, method: str, *arguments: Any) -> ImmediateAnswer:
        try:
            return ImmediateAnswer(getattr(self.place, method)(*arguments))
        except OSError as error:
            return ImmediateAnswer(problem=str(error))

    def release(self) -> None:
        self.place.close()
