"""Shards as processes of this machine: the default, which needs nothing but this package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .driver import Lost
from .place import Place


@dataclass(frozen=True)
class Here:
    """An answer that has already come."""

    value: Any = None
    problem: str | None = None

    def get(self, timeout_s: float) -> Any:
        if self.problem is not None:
            raise Lost(self.problem)
        return self.value


@dataclass
class LocalRoom:
    """A place in this process."""

    place: Place = field(default_factory=Place)

    def ask(self, method: str, *arguments: Any) -> Here:
        try:
            return Here(getattr(self.place, method)(*arguments))
        except OSError as error:
            return Here(problem=str(error))

    def give_up(self) -> None:
        self.place.close()
