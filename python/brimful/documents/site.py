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
