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
    #: Its upper end.
    high: float
    #: Its lower end.
    low: float


@dataclass(kw_only=True)
class Resource(Part):
    """One resource."""
    #: Utilization without requests.
    background: float
    #: Demands by class, in seconds, by several methods.
    demands: list[SiteDemand]
    #: Name of the resource in the file.
    name: str
    #: Why there is no regression, if there is none.
    no_regression: str | None = None
    #: Steps with work that the log does not explain.
    outliers: list[SiteOutlier]
    #: The period of these steps in seconds, if they are periodic.
    period_s: int | None = None


@dataclass(kw_only=True)
class SiteDemand(Part):
    """The demand of one class, in seconds."""
    #: Attribution in proportion to the bytes sent (Menascé et al. 1999, Eq. 2).
    by_bytes: float
    #: Attribution in equal parts to all requests (their Eq. 4).
    by_requests: float
    #: 95 % confidence interval of the least-squares estimate.
    ci95: Interval | None = None
    #: The class.
    class_: str = field(metadata={"key": "class"})
    #: Estimate by least squares over the steps.
    regression: float | None = None


@dataclass(kw_only=True)
class SiteOutlier(Part):
    """A step with other work."""
    #: Mean number of busy servers that no request explains.
    beyond: float
    #: Start of the step, RFC 3339.
    from_: str = field(metadata={"key": "from"})


@dataclass(kw_only=True)
class Site(Document):
    """Demands estimated from access logs and utilizations."""
    #: One sentence with the bottleneck and its rate.
    headline: str
    #: The model with the demands of the regression, or, if that is not possible, of the requested attribution.
    model: Model
    #: Caveats about these figures.
    notes: list[str]
    #: Number of requests in these steps.
    requests: int
    #: Estimates for each resource.
    resources: list[Resource]
    #: `SCHEMA`.
    schema: str
    #: Mean length of a step, in seconds.
    step_s: float
    #: Number of time steps that both the logs and the utilizations cover.
    steps: int
