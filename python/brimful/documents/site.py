"""Written by document_types.py from schema/site.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Document, Part


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
class Interval(Part):
    """A confidence interval at 95 %."""
    #: Its upper end.
    high: float
    #: Its lower end.
    low: float


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
class Resource(Part):
    """One resource."""
    #: Busy servers without requests, over all of them.
    background: float
    #: Demands by class, in seconds: two ways side by side.
    demands: list[SiteDemand]
    #: Its name in the file.
    name: str
    #: Why there is no regression, if there is none.
    no_regression: str | None = None
    #: Steps with work that the log knows nothing of.
    outliers: list[SiteOutlier]
    #: In seconds, the period of these, if they have one.
    period_s: int | None = None


@dataclass(kw_only=True)
class SiteDemand(Part):
    """The demand of one class, in seconds."""
    #: In proportion to the bytes sent (Menascé et al. 1999, Eq. 2).
    by_bytes: float
    #: Every request alike (their Eq. 4).
    by_requests: float
    #: Its 95 % interval.
    ci95: Interval | None = None
    #: The class.
    class_: str = field(metadata={"key": "class"})
    #: By least squares over the steps.
    regression: float | None = None


@dataclass(kw_only=True)
class SiteOutlier(Part):
    """A step with other work."""
    #: Busy servers that no request explains.
    beyond: float
    #: When it begins, RFC 3339.
    from_: str = field(metadata={"key": "from"})


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
class Site(Document):
    """The document."""
    #: In one sentence: what limits, and at which rate.
    headline: str
    #: The model with the demands of the regression, or where that is not possible, of the attribution that was asked
    #: for.
    model: Model
    #: What to know before these figures are used.
    notes: list[str]
    #: Requests in them.
    requests: int
    #: What was found of each resource.
    resources: list[Resource]
    #: `SCHEMA`.
    schema: str
    #: Mean length of one, in seconds.
    step_s: float
    #: Steps of time that both the logs and the utilizations have.
    steps: int


#: Whether a class is fed from outside.
ClassKind: TypeAlias = Literal["open", "closed"]


#: The order of service at a queueing station.
Scheduling: TypeAlias = Literal["ps", "fcfs", "priority", "preemptive"]


#: Whether requests queue at a station.
StationKind: TypeAlias = Literal["queue", "delay"]
