"""Written by document_types.py from schema/calibration.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Document, Part
from .common import (
    Estimate, Model, StationLimit,
)


@dataclass(kw_only=True)
class BurstDemand(Part):
    """D = D_f + α·b."""
    #: α, in seconds; never negative.
    alpha: Estimate
    #: D_f: without bursts, in seconds.
    without_bursts: Estimate


@dataclass(kw_only=True)
class BurstFactors(Part):
    """How bursty a sequence of counts is."""
    #: a = λ⁺/λ; `None` if no epoch is above the mean.
    a: float | None = None
    #: b: share of the epochs in which more than the mean arrived.
    b: float
    #: Index of dispersion of the counts: variance (n − 1) over mean.
    dispersion: float
    #: Number of epochs.
    epochs: int
    #: The largest count over the mean one.
    peak_to_mean: float
    #: λ: arrivals per second over all of them.
    rate: float
    #: λ⁺: arrivals per second in those; `None` if there are none.
    rate_above: float | None = None


@dataclass(kw_only=True)
class BurstRun(Part):
    """Burstiness of one run."""
    #: b, or 0 if it is not bursty.
    b: float
    #: Whether it is more than 1 beyond doubt.
    bursty: bool
    #: The index of dispersion, by the length of the window.
    dispersion: list[Dispersion]
    #: Length of an epoch, in seconds.
    epoch_s: float
    #: a and b, and other measures of the same counts.
    factors: BurstFactors
    #: The Record's place in the input, from 0.
    record: int


@dataclass(kw_only=True)
class Bursts(Part):
    """Burstiness of the runs, and the cost of bursts."""
    #: D = D_f + α·b of the mean request of the model's mix, from at least two levels of b.
    demand: BurstDemand | None = None
    #: b at which the model's demands hold: the mean of the runs that they stand on.
    measured_at_b: float
    #: Runs of arrivals that did not wait for answers.
    runs: list[BurstRun]
    #: Requests per second at which the model saturates at the highest b measured.
    saturation_rate: float | None = None


@dataclass(kw_only=True)
class DemandAtRate(Part):
    """Demand of the mean request of the mix at one rate."""
    #: CPU seconds of one.
    demand_s: float
    #: Requests per second, all classes together.
    rate: float


@dataclass(kw_only=True)
class Dispersion(Part):
    """The index of dispersion in windows of one length."""
    #: Its confidence interval.
    ci95: Interval
    #: Variance (n − 1) over mean.
    index: float
    #: Length of a window, in epochs.
    window: int
    #: How many there are.
    windows: int


@dataclass(kw_only=True)
class InsideDemand(Part):
    """One class, in seconds of CPU time for a request."""
    #: Its confidence interval.
    ci95: Interval | None = None
    #: Its name.
    class_: str = field(metadata={"key": "class"})
    #: The same at saturation, with what the server's processes used beside its workers: the model's.
    demand_s: float
    #: Half width of its 95 % confidence interval.
    measured_ci95_half_width: float | None = None
    #: As the module has it over all runs, whatever their load: the mean of `demand_us`. `None` where so few requests
    #: came that this cannot be told.
    measured_s: float | None = None
    #: `demand_s` over `regression_s`.
    ratio: float | None = None
    #: Its confidence interval.
    regression_ci95: Interval | None = None
    #: At saturation, by the utilization law without what was measured inside; `None` where the runs cannot tell the
    #: class from others.
    regression_s: float | None = None
    #: Requests whose CPU time was measured.
    sampled: int


@dataclass(kw_only=True)
class InsideDemands(Part):
    """Demands at the CPU as measured inside the server, and as the runs have them without that."""
    #: Each class of the model, in its order.
    classes: list[InsideDemand]
    #: Why there is no regression, where there is none.
    no_regression: str | None = None
    #: Squared coefficient of variation of the CPU time of requests of a class, over all classes by their second
    #: moments.
    scv: float | None = None
    #: Standard error of `scv`.
    scv_standard_error: float | None = None
    #: Workers that may want a CPU at the same time. Where they are more than the CPUs they take turns, and how long
    #: requests wait says nothing of how variable service is: the model's variability is then fitted, not this.
    workers: int | None = None


@dataclass(kw_only=True)
class Interval(Part):
    """A confidence interval at 95 %."""
    #: Its upper end.
    high: float
    #: Its lower end.
    low: float


@dataclass(kw_only=True)
class Knee(Part):
    """Where a curve bends over."""
    #: How far the curve stands above its chord there, 0..1 of its height.
    height: float
    #: The load there, one of those measured.
    load: float
    #: The throughput there.
    throughput: float


@dataclass(kw_only=True)
class KneeCheck(Part):
    """Where the measured throughput bends."""
    #: Kneedle's knee of the throughput over the load offered, of the runs whose calls did not wait for answers.
    knee: Knee | None = None
    #: Why there is none, and what to do about it.
    knee_absent: str | None = None
    #: The runs of the mix, by what they offered.
    measured: list[MeasuredLoad]
    #: The universal scalability law of the throughput over the requests present: of closed runs if there are any,
    #: else of those that kept up.
    usl: UslFit | None = None
    #: Why there is none, and what to do about it.
    usl_absent: str | None = None


@dataclass(kw_only=True)
class LeftOut(Part):
    """A Record that was not used."""
    #: Why, and what to do about it.
    reason: str
    #: Its place in the input, from 0.
    record: int


@dataclass(kw_only=True)
class LoadDependence(Part):
    """Demands that depend on the load."""
    #: D in seconds, by class, without the term.
    demands: list[Estimate]
    #: The F statistic.
    f: float
    #: Its probability under constant demands, corrected for the number of shapes tried.
    p: float
    #: How: `per_second` where so many servers are busy as soon as there are requests, `idle^2` where what each
    #: request costs more fades with the square of the servers' idleness, `busy` where it grows with their
    #: utilization.
    shape: str
    #: w: busy servers for `per_second`, else seconds per request.
    weight: Estimate


@dataclass(kw_only=True)
class MeasuredLoad(Part):
    """One run, past saturation or not."""
    #: Whether calls waited for answers.
    closed: bool
    #: Whole responses per second.
    completed: float
    #: Calls per second.
    offered: float
    #: Mean number of requests present, by Little's law (N = X·R).
    present: float | None = None
    #: The Record's place in the input, from 0.
    record: int


@dataclass(kw_only=True)
class Merged(Part):
    """Classes with one demand between them."""
    #: Their names.
    classes: list[str]
    #: Demand of their mean request.
    joint_demand_s: float
    #: Their shares of the requests among them, over all runs used: the joint demand holds for these.
    shares: list[float]


@dataclass(kw_only=True)
class OddRun(Part):
    """A run whose CPU time is not what the others say."""
    #: Busy CPUs, as measured.
    busy: float
    #: Busy CPUs at its rates by the law of the other runs.
    expected: float
    #: Probability of one so far out in some run, if all are good.
    p: float
    #: The Record's place in the input, from 0.
    record: int
    #: The difference in its standard errors (externally studentized residual).
    residual: float


@dataclass(kw_only=True)
class Outlier(Part):
    """A point far from the line."""
    #: Probability of as large a one among all points, were they alike.
    p: float
    #: Which, counted from 0.
    point: int
    #: Its distance from the line through the others, in its own standard errors.
    studentized_residual: float


@dataclass(kw_only=True)
class Peak(Part):
    """The highest throughput."""
    #: How reliable it is.
    basis: PeakBasis
    #: N*: √((1 − α)/β).
    load: Estimate
    #: X(N*).
    throughput: Estimate


@dataclass(kw_only=True)
class ResponseFit(Part):
    """What response times tell beyond demands."""
    #: Where `scv` comes from.
    basis: ScvBasis
    #: Z0: time that every request spends elsewhere, in seconds.
    delay: float
    #: Squared coefficient of variation of the service times of each class.
    scv: float
    #: Standard error of `scv`, where it was measured or fitted.
    scv_standard_error: float | None = None


@dataclass(kw_only=True)
class RunDemand(Part):
    """What one run says of the demand of its mean request, whatever its mix."""
    #: The same as the demands have it, at this rate.
    fitted_s: float
    #: CPU seconds of one request, as measured.
    measured_s: float
    #: Requests per second, all classes together.
    rate: float
    #: The Record's place in the input, from 0.
    record: int
    #: Utilization of each of the server's CPUs.
    utilization: float


@dataclass(kw_only=True)
class Saturation(Part):
    """Where a model saturates."""
    #: The station that saturates.
    bottleneck: str
    #: Its confidence interval; `None` where there is none of the demands, or where the CPU is not the bottleneck.
    ci95: Interval | None = None
    #: Requests per second, all classes together.
    rate: float


@dataclass(kw_only=True)
class SizeDemand(Part):
    """CPU demand by the size of the response, head included."""
    #: Names of the classes that the line goes through.
    classes: list[str]
    #: The line.
    fit: SizeFit
    #: Mean size and demand of each.
    points: list[SizePoint]


@dataclass(kw_only=True)
class SizeFit(Part):
    """D = a + b·bytes."""
    #: Which of the two would have been negative.
    held_at_zero: Held | None = None
    #: Points that do not belong to the line, the farthest first.
    outliers: list[Outlier]
    #: b: what a byte costs, in seconds.
    per_byte_s: Estimate
    #: a: what a request costs whatever its size, in seconds.
    per_request_s: Estimate
    #: Share of the variance that the line explains; 1 if there is none.
    r2: float
    #: Standard deviation of a point about the line (n − 2 degrees of freedom), in seconds.
    residual_stddev_s: float


@dataclass(kw_only=True)
class SizePoint(Part):
    """One response, or the mean of several of the same size."""
    #: Size of the response.
    bytes: float
    #: CPU time of one request, in seconds.
    cpu_s: float


@dataclass(kw_only=True)
class Uncertainty(Part):
    """Uncertainty of a demand."""
    #: Interval by the bootstrap within the runs.
    bootstrap_ci95: Interval | None = None
    #: The wider of the two below; `None` where there is neither.
    ci95: Interval | None = None
    #: Interval by the regression over the runs.
    fit_ci95: Interval | None = None
    #: What it was derived from.
    source: Source


@dataclass(kw_only=True)
class UslFit(Part):
    """A fitted law."""
    #: α: contention.
    alpha: Estimate
    #: β: coherency.
    beta: Estimate
    #: γ: throughput at load 1.
    gamma: Estimate
    #: Where the throughput is highest; `None` if it grows without end (β = 0) or never grows (α ≥ 1).
    peak: Peak | None = None
    #: Share of the variance of the throughputs that the law explains.
    r2: float


@dataclass(kw_only=True)
class Calibration(Document):
    """A model calibrated from Records."""
    #: Busy CPUs without requests, of the server's own.
    background: Estimate
    #: How bursty arrivals were, and the cost of bursts.
    bursts: Bursts
    #: Of the regression at the CPU; above some 30 the intervals are wide.
    condition_number: float
    #: D(X) of the mix, where it depends on the load: from the lowest rate measured to saturation.
    demand_curve: list[DemandAtRate]
    #: One sentence with the bottleneck and its rate.
    headline: str
    #: Records of an idle server, likewise.
    idle: list[int]
    #: What the server itself measured of its requests, if it has the Server Module with the classes of the load,
    #: beside what the runs say without that.
    inside: InsideDemands | None = None
    #: Where the measured throughput bends, without a queueing model.
    knee: KneeCheck
    #: The others, and why.
    left_out: list[LeftOut]
    #: The stations in the order in which they saturate.
    limits: list[StationLimit]
    #: Whether requests cost more or less under load.
    load_dependence: LoadDependence | None = None
    #: Classes that the runs cannot tell apart at the CPU.
    merged: list[Merged]
    #: Stations: `cpu`, the disks that were used, and `elsewhere`, a delay, if there were response times. Open
    #: classes, at the mean rates of the runs of the mix (of all runs, if each had one class).
    model: Model
    #: The one of them that the others' law does not explain, if there is one.
    odd: OddRun | None = None
    #: Names of the Records, in the order of their indices in other fields.
    records: list[str]
    #: Delay and variability, from response times.
    response: ResponseFit | None = None
    #: What each run that the demands stand on says of the mean request, and what they say of it.
    runs: list[RunDemand]
    #: Where the model saturates, at the mix of its classes.
    saturation: Saturation
    #: `SCHEMA`.
    schema: str
    #: What demands have to do with sizes, if there are at least three.
    sizes: SizeDemand | None = None
    #: Beside `Model::demands`, stations × classes.
    uncertainty: list[list[Uncertainty]]
    #: Records that the demands stand on, by their place in the input, from 0.
    used: list[int]
    #: Warnings for users of the model.
    warnings: list[str]


#: An unknown that is held at zero because the fit would make it negative.
Held: TypeAlias = Literal["per_request", "per_byte"]


#: How reliable a peak is.
PeakBasis: TypeAlias = Literal["measured", "extrapolated", "doubtful"]


#: Where a coefficient of variation comes from.
ScvBasis: TypeAlias = Literal["measured", "fitted", "too_few_points", "indistinct"]


#: What a demand stands on; the first is trusted most.
Source: TypeAlias = Literal["direct", "single_class_run", "regression", "proportional", "response_times"]
