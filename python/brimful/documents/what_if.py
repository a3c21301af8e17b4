"""Written by document_types.py from schema/what-if.schema.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .._documents import Document, Part


@dataclass(kw_only=True)
class Axis(Part):
    """A range."""
    #: What is different from point to point, like `cpu.speed`.
    subject: str
    #: In what: `x` (a factor), `%` (more or less), `1/s`, `s`, `bit/s`, `B`, or nothing.
    unit: str


@dataclass(kw_only=True)
class Class(Part):
    """One class of request."""
    #: Its name.
    name: str
    #: Customers of a closed class.
    population: int | None = None
    #: Urgency at stations that serve by priority: the smaller, the sooner.
    priority: int | None = None
    #: Arrivals per second of an open class.
    rate: float | None = None
    #: Think time of a closed class, in seconds.
    think: float | None = None
    #: Whether its requests come from outside.
    type: ClassKind


@dataclass(kw_only=True)
class Curve(Part):
    """What becomes of a model along one range, or over the grid of two."""
    #: The ranges.
    axes: list[Axis]
    #: The classes, in the order of the points' figures.
    classes: list[str]
    #: The points; with two ranges the second runs quicker.
    points: list[CurvePoint]
    #: The stations, likewise.
    stations: list[str]


@dataclass(kw_only=True)
class CurvePoint(Part):
    """One point."""
    #: Which one that is; empty if none.
    bottleneck: str
    #: The rate of all classes together, at their mix here, at which the first station saturates.
    saturation_rate: float | None = None
    #: What is reached there; `None` if there is no solution.
    steady: Steady | None = None
    #: Why there is none: a station that cannot keep up, or what a solver could not do.
    unsolved: str | None = None
    #: Share in use of what each station can give to our classes, 1 or more where it cannot keep up; of a delay, the
    #: number present. Without closed classes where there is no solution.
    utilization: list[float]
    #: Where it is, by axis.
    x: list[float]


@dataclass(kw_only=True)
class Effect(Part):
    """What a change does: after over before."""
    #: On R, by class of the model before; without the draws that keep up neither before nor after.
    response_time: list[Interval90]
    #: On the saturation rate.
    saturation_rate: Interval90


@dataclass(kw_only=True)
class Headroom(Part):
    """How an objective stands."""
    #: Whether it is met at the present load.
    met: bool
    #: Its measure at the present load; `None` if some station cannot keep up.
    now: float | None = None
    #: The objective.
    slo: Slo
    #: Up to which load it is met.
    until: Until


@dataclass(kw_only=True)
class IdleCost(Part):
    """How the demands of a queue depend on its load: on average a request of each class that visits needs
    `seconds`·I^`power` more than its demand, with I the share (0 to 1) of the station's capacity that nobody
    uses, neither requests nor other work. Above 0 it is paid by those who find servers idle: at one server and
    power 1, all of it by each of them, and nothing by who waits (Welch 1964). Below 0 all requests pay alike."""
    #: How fast it fades as the load grows: 1 with the idleness, 2 with its square, and so on up to 4.
    power: int
    #: In seconds, at an idle station, and as variable as service is. Above 0 for a server that has to wake up;
    #: below, where requests get in one another's way, and cost less the fewer there are.
    seconds: float


@dataclass(kw_only=True)
class Interval90(Part):
    """From the 5 % to the 95 % quantile."""
    #: Its lower end; `None` without end.
    lower: float | None = None
    #: Its upper end; `None` without end.
    upper: float | None = None


@dataclass(kw_only=True)
class Intervals(Part):
    """90 % intervals of a model's results."""
    #: How often the demands were drawn.
    draws: int
    #: Of the load up to which each objective is met.
    headroom: list[Interval90]
    #: R, by class.
    response_time: list[Interval90]
    #: Of the rate of all classes together at which the first station saturates.
    saturation_rate: Interval90
    #: The share of draws in which some station could not keep up.
    unstable_share: float


@dataclass(kw_only=True)
class JointDemand(Part):
    """Classes that were measured only together: their demands at the station come from that of their mean request by
    a rule of proportion, which holds while they come in these proportions."""
    #: The classes' names, at least two.
    classes: list[str]
    #: The classes' shares of the requests among them; together 1.
    shares: list[float]
    #: The station's name.
    station: str


@dataclass(kw_only=True)
class LoadCurves(Part):
    """A model along its load, before and after."""
    #: With all changes.
    after: Curve
    #: As it is.
    before: Curve


@dataclass(kw_only=True)
class Model(Part):
    """A network of stations visited by classes of request."""
    #: Who visits.
    classes: list[Class]
    #: Half widths of the demands' 95 % confidence intervals in seconds, stations × classes, as calibration found
    #: them. Empty, or 0 where one is not known: it is then taken as exact.
    demand_ci95_half_width: list[list[float]] | None = None
    #: How the errors of the classes' demands at one station hang together: stations × classes × classes, correlation
    #: coefficients as calibration found them. Empty: they are independent. Those of two stations always are.
    demand_correlation: list[list[list[float]]] | None = None
    #: Service demand in seconds, stations × classes: total time one request of the class needs at the station.
    demands: list[list[float]]
    #: Classes whose demands at a station are known only together. Their rates keep these proportions.
    joint_demands: list[JointDemand] | None = None
    #: Where requests spend time.
    stations: list[Station]


@dataclass(kw_only=True)
class Outlook(Part):
    """What a model says of the server it describes."""
    #: How far the load can grow, by objective.
    headroom: list[Headroom]
    #: 90 % intervals, where the demands have any.
    intervals: Intervals | None = None
    #: The model.
    model: Model
    #: Its solution; `None` if some station cannot keep up.
    solution: Solution | None = None
    #: What gives out first, and what after it.
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
class Station(Part):
    """One station."""
    #: Share of the station's capacity that other work takes (between 0 and 1), as calibration measured it.
    background: float | None = None
    #: What a request costs more, or less, while the servers are partly idle; the demands are then those at
    #: saturation.
    idle_cost: IdleCost | None = None
    #: Its name.
    name: str
    #: Service rate with 1, 2, … requests present, over the rate at which the demands hold; the last holds for any
    #: more. For a station whose speed depends on its load; empty means that it does not, beyond what `servers` says.
    rate_multipliers: list[float] | None = None
    #: The order of service.
    scheduling: Scheduling | None = None
    #: Squared coefficient of variation of the service times of each class by itself; 1 is exponential, 0
    #: deterministic. What all classes together come to follows from their demands and rates. Processor sharing does
    #: not feel it.
    scv: float | None = None
    #: Parallel servers of a queueing station.
    servers: int | None = None
    #: In place of `scv`: that of the service times of all requests together, at the rates of the open classes. At
    #: least what the classes' unequal demands come to by themselves.
    total_scv: float | None = None
    #: Whether requests queue at it.
    type: StationKind


@dataclass(kw_only=True)
class StationLimit(Part):
    """A station and what it can take."""
    #: The rate of all classes together, at their present mix, at which it saturates.
    saturation_rate: float
    #: Its name.
    station: str
    #: Share of what it can give to our classes that is in use; 1 or more if it cannot keep up.
    utilization: float


@dataclass(kw_only=True)
class Steady(Part):
    """A network in its steady state; by class."""
    #: R over all requests.
    mean_response_time: float
    #: R.
    response_time: list[float]
    #: X.
    throughput: list[float]


@dataclass(kw_only=True)
class WhatIf(Document):
    """The document."""
    #: The model with all changes; `None` if one of them is a range.
    after: Outlook | None = None
    #: The model as it is.
    before: Outlook
    #: What to know before relying on the figures.
    caveats: list[str]
    #: What is different, as it is written.
    changes: list[str]
    #: The model along the ranges, if there are any.
    curve: Curve | None = None
    #: After over before, where the demands have intervals.
    effect: Effect | None = None
    #: In one sentence: what becomes of the limit.
    headline: str
    #: Both as their load grows to saturation; absent where there is no common measure of it.
    load_curves: LoadCurves | None = None
    #: `SCHEMA`.
    schema: str


#: Whether a class is fed from outside.
ClassKind: TypeAlias = Literal["open", "closed"]


#: How to solve a network.
Method: TypeAlias = Literal["auto", "exact", "erlang", "seidmann", "schweitzer", "linearizer", "simulation"]


#: The order of service at a queueing station.
Scheduling: TypeAlias = Literal["ps", "fcfs", "priority", "preemptive"]


#: An objective: a measure that is to stay below a limit.
Slo: TypeAlias = str


#: Whether requests queue at a station.
StationKind: TypeAlias = Literal["queue", "delay"]


#: The greatest load at which an objective is met.
Until: TypeAlias = Literal["never"] | dict[str, Any] | Literal["always"]
