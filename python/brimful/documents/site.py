"""Written by document_types.py from schema/site.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._documents import Document, Part
from .common import (
    Model,
)


@dataclass(kw_only=True)
class Interval(Part):
    """A confidence interval at 95 %."""
    #: The upper end.
    high: float
    #: The lower end.
    low: float


@dataclass(kw_only=True)
class Resource(Part):
    """Estimates for one resource."""
    #: Utilization of the resource without requests.
    background: float
    #: Demands of each class, in seconds, estimated by several methods.
    demands: list[SiteDemand]
    #: Name of the resource in the file.
    name: str
    #: The reason why there is no regression, if there is none.
    no_regression: str | None = None
    #: Steps with work that the logs do not explain.
    outliers: list[SiteOutlier]
    #: The period of the steps in `outliers`, in seconds, if they are periodic.
    period_s: int | None = None


@dataclass(kw_only=True)
class SiteDemand(Part):
    """The demand of one class, in seconds."""
    #: Attribution in proportion to the bytes sent (Menascé et al. 1999, Eq. 2).
    by_bytes: float
    #: Attribution in equal parts to all requests (Menascé et al. 1999, Eq. 4).
    by_requests: float
    #: 95 % confidence interval of the least-squares estimate.
    ci95: Interval | None = None
    #: Name of the class.
    class_: str = field(metadata={"key": "class"})
    #: Estimate by least squares over the steps.
    regression: float | None = None


@dataclass(kw_only=True)
class SiteOutlier(Part):
    """A step with work that the logs do not explain."""
    #: Mean number of busy servers that the requests do not explain.
    beyond: float
    #: Start of the step, RFC 3339.
    from_: str = field(metadata={"key": "from"})


@dataclass(kw_only=True)
class Site(Document):
    """Demands estimated from access logs and utilizations."""
    #: A sentence that names the bottleneck and its rate.
    headline: str
    #: The model, with the demands from the regression. If there is no regression, the demands come from the
    #: requested attribution.
    model: Model
    #: Caveats about these figures.
    notes: list[str]
    #: Number of requests in these steps.
    requests: int
    #: Estimates for each resource.
    resources: list[Resource]
    #: Identifier of the document's schema: always `SCHEMA`.
    schema: str
    #: Mean length of a step, in seconds.
    step_s: float
    #: Number of time steps that both the logs and the utilizations cover.
    steps: int
