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
    #: The bounds at the class's population.
    bounds: Bounds
    #: N* = (D + Z)/Dmax: the population of this class at which its two upper bounds on X meet. Queueing must begin
    #: there.
    saturation_population: float


@dataclass(kw_only=True)
class Bounds(Part):
    """Bounds on the throughput and the response time of a closed class."""
    #: R: response time in seconds, without think time and with delay stations. Where nothing is known, its upper
    #: bound is infinite (JSON: null).
    response_time: Range
    #: X: throughput, in requests per second.
    throughput: Range


@dataclass(kw_only=True)
class Percentiles(Part):
    """Predicted percentiles of the response time of a class, in seconds."""
    #: Median of the response time.
    p50: float
    #: 95th percentile of the response time.
    p95: float
    #: 99th percentile of the response time.
    p99: float


@dataclass(kw_only=True)
class Range(Part):
    """A range of values."""
    #: The smallest value.
    lower: float
    #: The largest value.
    upper: float


@dataclass(kw_only=True)
class ResponseTime(Part):
    """The response time of a class: from arrival to the end of the last visit, without think time."""
    #: The mean.
    mean: Estimate
    #: The median.
    p50: Estimate
    #: The 90th percentile.
    p90: Estimate
    #: The 95th percentile.
    p95: Estimate
    #: The 99th percentile.
    p99: Estimate


@dataclass(kw_only=True)
class Run(Part):
    """Length and precision of a run."""
    #: Length of a batch in seconds.
    batch_s: float
    #: Number of batches after the warm-up.
    batches: int
    #: Caveats for users of the figures, and what to do about them.
    caveats: list[str]
    #: The reason why the run ended.
    ended: Ended
    #: Number of simulated events.
    events: int
    #: The greatest correlation between successive batches, among the classes' mean response times.
    lag1_correlation: float
    #: The widest interval, as a share of its figure, among the classes' throughputs and mean response times; `None`
    #: if one of these figures has no interval.
    precision: float | None = None
    #: Seed of the random numbers.
    seed: int
    #: Whether the warm-up was over before half the run.
    settled: bool
    #: Simulated time that was recorded, warm-up included.
    time_s: float
    #: Part of `time_s` that was excluded as warm-up, in seconds.
    warm_up_s: float


@dataclass(kw_only=True)
class Simulation(Part):
    """Result of a simulation. Every figure has a 95 % confidence interval."""
    #: N: number of requests, stations × classes.
    queue_length: list[list[Estimate]]
    #: Time from arrival at the station to departure, stations × classes. It is 0 where the class has no demand, and
    #: `None` where no visit was simulated.
    residence: list[list[Estimate | None]]
    #: R: response time of each class; `None` for a class without completed requests.
    response_time: list[ResponseTime | None]
    #: Length and precision of the run.
    run: Run
    #: X: throughput of each class.
    throughput: list[Estimate]
    #: U: utilization of the nominal capacity, stations × classes; for a delay station, the number of requests
    #: present.
    utilization: list[list[Estimate]]


@dataclass(kw_only=True)
class Solution(Document):
    """A solved network. Matrices are stations × classes, in the order of the model."""
    #: The station that saturates first; empty if no station ever does.
    bottleneck: str | None = None
    #: Upper and lower bounds of each class of a closed network; empty for other networks.
    bounds: list[AsymptoticBounds]
    #: Caveats about the figures.
    caveats: list[str]
    #: Solutions of the same model from idleness to saturation, or for growing populations.
    curve: Curve | None = None
    #: A sentence that names the bottleneck and its rate.
    headline: str
    #: 90 % confidence intervals of the figures; absent if the demands have no intervals.
    intervals: Intervals | None = None
    #: The highest rate of each station, in the order in which the stations saturate.
    limits: list[StationLimit]
    #: Mean response time R over all requests, at their present mix.
    mean_response_time: float | None = None
    #: The method that was used; never `auto`.
    method: Method | None = None
    #: The network.
    model: Model
    #: N: number of requests; stations × classes.
    queue_length: list[list[float]] | None = None
    #: Time spent at the station, waiting and in service; stations × classes.
    residence: list[list[float]] | None = None
    #: Approximate percentiles of the response time, by class. Empty without an analytic solution.
    response_percentiles: list[Percentiles]
    #: R: response time of each class, without think time.
    response_time: list[float] | None = None
    #: The rate of all classes together, at their present mix, at which the bottleneck saturates; infinite (JSON:
    #: null) if it never does.
    saturation_rate: float | None = None
    #: Identifier of the document's schema: always `SCHEMA`.
    schema: str
    #: Results of a simulation, if one was requested.
    simulation: Simulation | None = None
    #: X: throughput of each class.
    throughput: list[float] | None = None
    #: U = X·D/m: utilization of the nominal capacity by the model's classes alone; stations × classes. For a delay
    #: station it is the number of requests present; for a station with rate multipliers it is X·D.
    utilization: list[list[float]] | None = None
    #: The reason for this method.
    why: str | None = None


#: The reason why a run ended.
Ended: TypeAlias = Literal["precision", "events", "time", "resolution"]
