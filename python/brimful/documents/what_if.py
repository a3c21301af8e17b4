"""Written by document_types.py from schema/what-if.schema.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .._documents import Document, Part
from .common import (
    Curve, Interval90, Intervals, Method, Model, StationLimit,
)


@dataclass(kw_only=True)
class Effect(Part):
    """Effect of a change: ratio of after to before."""
    #: On R, by class of the model before; without the draws that keep up neither before nor after.
    response_time: list[Interval90]
    #: On the saturation rate.
    saturation_rate: Interval90


@dataclass(kw_only=True)
class Headroom(Part):
    """An objective, and the headroom until it is missed."""
    #: Whether it is met at the present load.
    met: bool
    #: Its measure at the present load; `None` if some station cannot keep up.
    now: float | None = None
    #: The objective.
    slo: Slo
    #: The greatest load at which it is met.
    until: Until


@dataclass(kw_only=True)
class LoadCurves(Part):
    """Curves over the load, before and after the changes."""
    #: The curve of the changed model.
    after: Curve
    #: The curve of the original model.
    before: Curve


@dataclass(kw_only=True)
class Outlook(Part):
    """A solved model."""
    #: How far the load can grow, by objective.
    headroom: list[Headroom]
    #: 90 % intervals, where the demands have any.
    intervals: Intervals | None = None
    #: The model.
    model: Model
    #: Its solution; `None` if some station cannot keep up.
    solution: Solution | None = None
    #: The stations, in the order in which they saturate.
    stations: list[StationLimit]
    #: Why there is none.
    unsolved: str | None = None


@dataclass(kw_only=True)
class Solution(Part):
    """A solved network."""
    #: The station that saturates first; empty if none ever does.
    bottleneck: str
    #: R over all requests, at their present mix.
    mean_response_time: float
    #: How it was solved; never `auto`.
    method: Method
    #: N; stations × classes.
    queue_length: list[list[float]]
    #: Time spent at the station, queued or served; stations × classes.
    residence: list[list[float]]
    #: R, by class; without think time.
    response_time: list[float]
    #: The rate of all classes together, at their present mix, at which it saturates; infinite (JSON: null) if never.
    saturation_rate: float | None = None
    #: X, by class.
    throughput: list[float]
    #: U = X·D/m, of the nominal capacity and by our classes alone; stations × classes. Of a delay station, the
    #: number present; of one with rate multipliers, X·D.
    utilization: list[list[float]]
    #: Why this way.
    why: str


@dataclass(kw_only=True)
class WhatIf(Document):
    """A model before and after changes."""
    #: The model with all changes; `None` if one of them is a range.
    after: Outlook | None = None
    #: The model as it is.
    before: Outlook
    #: Caveats about the figures.
    caveats: list[str]
    #: The changes, as they are written.
    changes: list[str]
    #: The model along the ranges, if there are any.
    curve: Curve | None = None
    #: After over before, where the demands have intervals.
    effect: Effect | None = None
    #: One sentence about the change of the bottleneck.
    headline: str
    #: Both models as their load grows to saturation; absent if their loads have no common measure.
    load_curves: LoadCurves | None = None
    #: `SCHEMA`.
    schema: str


#: An objective: a measure that must stay below a limit.
Slo: TypeAlias = str


#: The greatest load at which an objective is met.
Until: TypeAlias = Literal["never"] | dict[str, Any] | Literal["always"]
