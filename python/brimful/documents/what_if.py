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
    """The effect of a change: ratios of the figures after it to those before it."""
    #: Ratio of the response times R, for each class of the model before. Draws that keep up neither before nor after
    #: are excluded.
    response_time: list[Interval90]
    #: Ratio of the saturation rates.
    saturation_rate: Interval90


@dataclass(kw_only=True)
class Headroom(Part):
    """An objective, and the load up to which it is met."""
    #: Whether the objective is met at the present load.
    met: bool
    #: The objective's measure at the present load; `None` if a station cannot keep up.
    now: float | None = None
    #: The objective.
    slo: Slo
    #: The greatest load at which the objective is met.
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
    #: The greatest load at which each objective is met.
    headroom: list[Headroom]
    #: 90 % confidence intervals of these figures; `None` if the demands have no intervals.
    intervals: Intervals | None = None
    #: The model that was solved.
    model: Model
    #: The solution; `None` if a station cannot keep up.
    solution: Solution | None = None
    #: The stations, in the order in which they saturate.
    stations: list[StationLimit]
    #: The reason why there is no solution.
    unsolved: str | None = None


@dataclass(kw_only=True)
class Solution(Part):
    """A solved network."""
    #: The station that saturates first; empty if no station ever does.
    bottleneck: str
    #: Mean response time R over all requests, at their present mix.
    mean_response_time: float
    #: The method that was used; never `auto`.
    method: Method
    #: N: number of requests; stations × classes.
    queue_length: list[list[float]]
    #: Time spent at the station, waiting and in service; stations × classes.
    residence: list[list[float]]
    #: R: response time of each class, without think time.
    response_time: list[float]
    #: The rate of all classes together, at their present mix, at which the bottleneck saturates; infinite (JSON:
    #: null) if it never does.
    saturation_rate: float | None = None
    #: X: throughput of each class.
    throughput: list[float]
    #: U = X·D/m: utilization of the nominal capacity by the model's classes alone; stations × classes. For a delay
    #: station it is the number of requests present; for a station with rate multipliers it is X·D.
    utilization: list[list[float]]
    #: The reason for this method.
    why: str


@dataclass(kw_only=True)
class WhatIf(Document):
    """A model before and after changes."""
    #: The model with all changes; `None` if one of them is a range.
    after: Outlook | None = None
    #: The model without the changes.
    before: Outlook
    #: Caveats about the figures.
    caveats: list[str]
    #: The changes, in the user's notation.
    changes: list[str]
    #: The model along the ranges of changes; `None` without ranges.
    curve: Curve | None = None
    #: The ratios of the figures after the changes to those before; `None` if the demands have no intervals.
    effect: Effect | None = None
    #: A sentence about the change of the bottleneck.
    headline: str
    #: Curves of both models as their load grows to saturation; absent if their loads have no common measure.
    load_curves: LoadCurves | None = None
    #: Identifier of the document's schema: always `SCHEMA`.
    schema: str


#: A service level objective: a measure that must stay below a limit.
Slo: TypeAlias = str


#: The greatest load at which an objective is met.
Until: TypeAlias = Literal["never"] | dict[str, Any] | Literal["always"]
