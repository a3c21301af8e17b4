"""Written by document_types.py from schema/model.schema.json."""

from __future__ import annotations

from dataclasses import dataclass
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
class Model(Document):
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


#: Whether a class is fed from outside.
ClassKind: TypeAlias = Literal["open", "closed"]


#: The order of service at a queueing station.
Scheduling: TypeAlias = Literal["ps", "fcfs", "priority", "preemptive"]


#: Whether requests queue at a station.
StationKind: TypeAlias = Literal["queue", "delay"]
