"""Written by document_types.py from schema/model.schema.json."""

from __future__ import annotations

from dataclasses import dataclass

from .._documents import Document, Part
from .common import (
    ClassKind, JointDemand, Station,
)


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
