"""Written by document_types.py from schema/model.schema.json."""

from __future__ import annotations

from dataclasses import dataclass

from .._documents import Document
from .common import (
    JointDemand, ModelClass, Station,
)


@dataclass(kw_only=True)
class Model(Document):
    """A network of stations visited by classes of request."""
    #: Classes of requests that visit the stations.
    classes: list[ModelClass]
    #: Half widths of the demands' 95 % confidence intervals in seconds, stations × classes, from calibration. A
    #: demand whose half width is missing or 0 is treated as exact.
    demand_ci95_half_width: list[list[float]] | None = None
    #: Correlation coefficients of the errors of the classes' demands at each station, stations × classes × classes,
    #: from calibration. If empty, the errors are independent; errors of different stations always are.
    demand_correlation: list[list[list[float]]] | None = None
    #: Service demands in seconds, stations × classes: the total time that one request of the class needs at the
    #: station.
    demands: list[list[float]]
    #: Classes whose demands at a station are known only together. Their rates must keep the measured proportions.
    joint_demands: list[JointDemand] | None = None
    #: The stations, where requests spend time.
    stations: list[Station]
