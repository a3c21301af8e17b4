"""Written by document_types.py from schema/solution.schema.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .._documents import Document, Part
from .common import (
    Curve, Estimate, Intervals, Method, Model, StationLimit,
)


@dataclass(kw_only=True)
class AsymptoticBounds(Part):
    """Asymptotic bounds of one class."""
    #: What they say at the given population.
    bounds: Bounds
    #: N* = (D + Z)/Dmax: the population of this class at which its two upper bounds on X meet and queueing must
    #: begin.
    saturation_population: float


@dataclass(kw_only=True)
class Bounds(Part):
    """Where a closed class must lie."""
    #: R, in seconds, without think time and with delay stations; at most infinite (JSON: null) where nothing is
    #: known.
    response_time: Range
    #: X, per second.
    throughput: Range


@dataclass(kw_only=True)
class Percentiles(Part):
    """Predicted percentiles of the response time of a class, in seconds."""
    #: Median.
    p50: float
    #: 95th percentile.
    p95: float
    #: 99th percentile.
    p99: float


@dataclass(kw_only=True)
class Range(Part):
    """From the least to the most."""
    #: The least.
    lower: float
    #: The most.
    upper: float


@dataclass(kw_only=True)
class ResponseTime(Part):
    """The response time of a class: from arrival to the end of the last visit, without think time."""
    #: Its mean.
    mean: Estimate
    #: Its median.
    p50: Estimate
    #: What 90 % of requests do not exceed.
    p90: Estimate
    #: What 95 % of requests do not exceed.
    p95: Estimate
    #: What 99 % of requests do not exceed.
    p99: Estimate


@dataclass(kw_only=True)
class Run(Part):
    """How a run went."""
    #: Length of each.
    batch_s: float
    #: Number of batches of the rest.
    batches: int
    #: What to know before relying on the figures, and what to do about it. Empty if there is nothing.
    caveats: list[str]
    #: Why it ended.
    ended: Ended
    #: Events in all.
    events: int
    #: The greatest correlation of successive batches, among the classes' mean response times.
    lag1_correlation: float
    #: The widest interval, as a share of its figure, among the classes' throughputs and mean response times; `None`
    #: if one of them has none.
    precision: float | None = None
    #: Seed of the random numbers.
    seed: int
    #: Whether warm-up was over before half the run.
    settled: bool
    #: Simulated time that was recorded, warm-up included.
    time_s: float
    #: How much of that was left out as warm-up.
    warm_up_s: float


@dataclass(kw_only=True)
class Simulation(Part):
    """Result of a simulation. Every figure has a 95 % confidence interval."""
    #: N, stations × classes.
    queue_length: list[list[Estimate]]
    #: Time from arrival at the station to departure, stations × classes; 0 where the class has no demand, `None`
    #: where no visit was seen.
    residence: list[list[Estimate | None]]
    #: R, by class; `None` of a class of which no request was completed.
    response_time: list[ResponseTime | None]
    #: How the run went.
    run: Run
    #: X, by class.
    throughput: list[Estimate]
    #: U of the nominal capacity, stations × classes; of a delay station, the number present.
    utilization: list[list[Estimate]]


@dataclass(kw_only=True)
class Solution(Document):
    """A solved network. Matrices are stations × classes, in the order of the model."""
    #: The station that saturates first; empty if none ever does.
    bottleneck: str | None = None
    #: Upper and lower bounds of each class of a closed network; empty for other networks.
    bounds: list[AsymptoticBounds]
    #: Caveats about the figures.
    caveats: list[str]
    #: The same model from idleness to saturation, or at growing populations.
    curve: Curve | None = None
    #: One sentence with the bottleneck and its rate.
    headline: str
    #: 90 % intervals, if the demands have intervals.
    intervals: Intervals | None = None
    #: The stations in the order in which they saturate.
    limits: list[StationLimit]
    #: R over all requests, at their present mix.
    mean_response_time: float | None = None
    #: How it was solved; never `auto`.
    method: Method | None = None
    #: The network.
    model: Model
    #: N; stations × classes.
    queue_length: list[list[float]] | None = None
    #: Time spent at the station, queued or served; stations × classes.
    residence: list[list[float]] | None = None
    #: Approximate percentiles of the response time, by class. Empty without an analytic solution.
    response_percentiles: list[Percentiles]
    #: R, by class; without think time.
    response_time: list[float] | None = None
    #: The rate of all classes together, at their present mix, at which it saturates; infinite (JSON: null) if never.
    saturation_rate: float | None = None
    #: `SCHEMA`.
    schema: str
    #: Results of a simulation, if one was requested.
    simulation: Simulation | None = None
    #: X, by class.
    throughput: list[float] | None = None
    #: U = X·D/m, of the nominal capacity and by our classes alone; stations × classes. Of a delay station, the
    #: number present; of one with rate multipliers, X·D.
    utilization: list[list[float]] | None = None
    #: Why this way.
    why: str | None = None


#: Why a run ended.
Ended: TypeAlias = Literal["precision", "events", "time", "resolution"]
