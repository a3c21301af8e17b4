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
    """The fitted line D = D_f + α·b."""
    #: α: additional demand for each unit of b, in seconds; never negative.
    alpha: Estimate
    #: D_f: demand without bursts, in seconds.
    without_bursts: Estimate


@dataclass(kw_only=True)
class BurstFactors(Part):
    """The burstiness of a sequence of counts."""
    #: a = λ⁺/λ; `None` if no epoch is above the mean.
    a: float | None = None
    #: b: share of the epochs with more arrivals than the mean.
    b: float
    #: Index of dispersion of the counts: the sample variance (divisor n − 1) divided by the mean.
    dispersion: float
    #: Number of epochs.
    epochs: int
    #: Ratio of the largest count to the mean.
    peak_to_mean: float
    #: λ: arrivals per second over all epochs.
    rate: float
    #: λ⁺: arrivals per second in the epochs above the mean; `None` if there are none.
    rate_above: float | None = None


@dataclass(kw_only=True)
class BurstRun(Part):
    """Burstiness of one run."""
    #: b, or 0 if the run is not bursty.
    b: float
    #: Whether the index of dispersion is significantly greater than 1.
    bursty: bool
    #: The index of dispersion for each length of the window.
    dispersion: list[Dispersion]
    #: Length of an epoch, in seconds.
    epoch_s: float
    #: Measures of burstiness, such as a and b.
    factors: BurstFactors
    #: Index of the Record in the input, from 0.
    record: int


@dataclass(kw_only=True)
class Bursts(Part):
    """Burstiness of the runs, and the cost of bursts."""
    #: D = D_f + α·b of the mean request of the model's mix; `None` without two levels of b.
    demand: BurstDemand | None = None
    #: b for which the model's demands are valid: the mean over the runs that the demands were fitted to.
    measured_at_b: float
    #: The runs with an open load, whose arrivals did not wait for responses.
    runs: list[BurstRun]
    #: Requests per second at which the model saturates at the highest b measured.
    saturation_rate: float | None = None


@dataclass(kw_only=True)
class DemandAtRate(Part):
    """Demand of the mean request of the mix at one rate."""
    #: CPU seconds of one request.
    demand_s: float
    #: Requests per second, all classes together.
    rate: float


@dataclass(kw_only=True)
class Dispersion(Part):
    """The index of dispersion in windows of one length."""
    #: Confidence interval of the index.
    ci95: Interval
    #: Index of dispersion: the sample variance (divisor n − 1) divided by the mean.
    index: float
    #: Length of a window, in epochs.
    window: int
    #: Number of windows.
    windows: int


@dataclass(kw_only=True)
class InsideDemand(Part):
    """Demand of one class, in seconds of CPU time per request."""
    #: Confidence interval of `demand_s`.
    ci95: Interval | None = None
    #: Name of the class.
    class_: str = field(metadata={"key": "class"})
    #: The model's demand, at saturation. It includes a share of the CPU time of the server's processes outside of
    #: the module's measurement.
    demand_s: float
    #: Half width of the 95 % confidence interval of `measured_s`.
    measured_ci95_half_width: float | None = None
    #: The module's measurement over all runs, whatever their load: the mean of `demand_us`. `None` if there were too
    #: few requests.
    measured_s: float | None = None
    #: Ratio of `demand_s` to `regression_s`.
    ratio: float | None = None
    #: Confidence interval of `regression_s`.
    regression_ci95: Interval | None = None
    #: Demand at saturation by the utilization law, without the module's measurements; `None` if the runs cannot
    #: distinguish the class from others.
    regression_s: float | None = None
    #: Number of requests whose CPU time was measured.
    sampled: int


@dataclass(kw_only=True)
class InsideDemands(Part):
    """Demands at the CPU: measured inside the server, and estimated from the runs alone."""
    #: One entry for each class, in the model's order.
    classes: list[InsideDemand]
    #: The reason why there is no regression; `None` if there is one.
    no_regression: str | None = None
    #: Squared coefficient of variation of the CPU time of requests of the same class. It is one figure for all
    #: classes, from their second moments.
    scv: float | None = None
    #: Standard error of `scv`.
    scv_standard_error: float | None = None
    #: Number of workers that may want a CPU at the same time. If there are more workers than CPUs, they take turns.
    #: Waiting times then do not show the variability of service, so the model's variability is fitted instead of
    #: measured.
    workers: int | None = None


@dataclass(kw_only=True)
class Interval(Part):
    """A confidence interval at 95 %."""
    #: The upper end.
    high: float
    #: The lower end.
    low: float


@dataclass(kw_only=True)
class Knee(Part):
    """The point at which a curve bends."""
    #: Distance of the curve above its chord at the knee, as a share of the curve's height, 0..1.
    height: float
    #: The load at the knee, which is one of the measured loads.
    load: float
    #: The throughput at the knee.
    throughput: float


@dataclass(kw_only=True)
class KneeCheck(Part):
    """The load at which the measured throughput bends."""
    #: Kneedle's knee of the throughput as a function of the offered load, from the runs with an open load.
    knee: Knee | None = None
    #: The reason why there is no knee, and what to do about it.
    knee_absent: str | None = None
    #: The runs of the mix, in ascending order of the offered load.
    measured: list[MeasuredLoad]
    #: The universal scalability law of the throughput as a function of the number of requests present. It is fitted
    #: to closed runs if there are any, and otherwise to the open runs that kept up.
    usl: UslFit | None = None
    #: The reason why there is no such law, and what to do about it.
    usl_absent: str | None = None


@dataclass(kw_only=True)
class LeftOut(Part):
    """A Record that was not used."""
    #: The reason, and what to do about it.
    reason: str
    #: Index of the Record in the input, from 0.
    record: int


@dataclass(kw_only=True)
class LoadDependence(Part):
    """Demands that depend on the load."""
    #: D without the term, in seconds, for each class.
    demands: list[Estimate]
    #: The F statistic.
    f: float
    #: The probability of such an F statistic under constant demands, corrected for the number of shapes tried.
    p: float
    #: The shape of the dependence. `per_second`: a constant number of servers is busy as soon as there are requests.
    #: `idle^2`: requests cost more in proportion to the square of the servers' idleness. `busy`: requests cost more
    #: in proportion to the servers' utilization.
    shape: str
    #: w: the weight of the term, in busy servers for `per_second` and in seconds per request otherwise.
    weight: Estimate


@dataclass(kw_only=True)
class MeasuredLoad(Part):
    """One run, which may be past saturation."""
    #: Whether the load was closed, so that calls waited for responses.
    closed: bool
    #: Number of complete responses per second.
    completed: float
    #: Offered load, in calls per second.
    offered: float
    #: Mean number of requests present, by Little's law (N = X·R).
    present: float | None = None
    #: Index of the Record in the input, from 0.
    record: int


@dataclass(kw_only=True)
class Merged(Part):
    """Classes that share one demand."""
    #: Names of the classes.
    classes: list[str]
    #: Demand of the mean request of these classes, in seconds.
    joint_demand_s: float
    #: Shares of the classes in the requests of all of them, over all used runs. The joint demand is valid for these
    #: shares.
    shares: list[float]


@dataclass(kw_only=True)
class OddRun(Part):
    """A run whose CPU time disagrees with the law of the other runs."""
    #: Measured number of busy CPUs.
    busy: float
    #: Number of busy CPUs that the law of the other runs predicts for this run's rates.
    expected: float
    #: Probability that the largest residual of all runs is at least this large, if all runs are good.
    p: float
    #: Index of the Record in the input, from 0.
    record: int
    #: The difference divided by its standard error (externally studentized residual).
    residual: float


@dataclass(kw_only=True)
class Outlier(Part):
    """A point far from the line."""
    #: Probability that the largest of all residuals is at least as large, if all points belong to the line.
    p: float
    #: Index of the point, from 0.
    point: int
    #: Distance of the point from the line through the other points, in standard errors of that distance.
    studentized_residual: float


@dataclass(kw_only=True)
class Peak(Part):
    """The highest throughput."""
    #: The reliability of the peak.
    basis: PeakBasis
    #: N* = √((1 − α)/β): the load at the peak.
    load: Estimate
    #: X(N*): the throughput at the peak.
    throughput: Estimate


@dataclass(kw_only=True)
class ResponseFit(Part):
    """Delay and variability of service, estimated from response times."""
    #: The origin of `scv`.
    basis: ScvBasis
    #: Z0: time that every request spends elsewhere, in seconds.
    delay: float
    #: Squared coefficient of variation of the service times of each class.
    scv: float
    #: Standard error of `scv`, if it was measured or fitted.
    scv_standard_error: float | None = None


@dataclass(kw_only=True)
class RunDemand(Part):
    """The demand of the mean request of one run, for the mix of that run."""
    #: CPU seconds of one request, as predicted by the fitted demands at this rate.
    fitted_s: float
    #: CPU seconds of one request, as measured.
    measured_s: float
    #: Requests per second, all classes together.
    rate: float
    #: Index of the Record in the input, from 0.
    record: int
    #: Utilization of the server's CPUs.
    utilization: float


@dataclass(kw_only=True)
class Saturation(Part):
    """The rate and the station at which a model saturates."""
    #: Name of the station that saturates.
    bottleneck: str
    #: Confidence interval of the rate; `None` if the demands have no interval, or if the CPU is not the bottleneck.
    ci95: Interval | None = None
    #: Requests per second, all classes together.
    rate: float


@dataclass(kw_only=True)
class SizeDemand(Part):
    """CPU demand as a function of the size of the response, head included."""
    #: Names of the classes that the line goes through.
    classes: list[str]
    #: The fitted line.
    fit: SizeFit
    #: Mean size and mean demand of each of these classes.
    points: list[SizePoint]


@dataclass(kw_only=True)
class SizeFit(Part):
    """The fitted line D = a + b·bytes."""
    #: The coefficient that would have been negative, if there is one.
    held_at_zero: Held | None = None
    #: Points far from the line, the farthest first.
    outliers: list[Outlier]
    #: b: cost of a byte, in seconds.
    per_byte_s: Estimate
    #: a: cost of a request, independent of its size, in seconds.
    per_request_s: Estimate
    #: Share of the variance that the line explains; 1 if there is no variance.
    r2: float
    #: Standard deviation of a point about the line (n − 2 degrees of freedom), in seconds.
    residual_stddev_s: float


@dataclass(kw_only=True)
class SizePoint(Part):
    """One response, or the mean of several of the same size."""
    #: Size of the response in bytes.
    bytes: float
    #: CPU time of one request, in seconds.
    cpu_s: float


@dataclass(kw_only=True)
class Uncertainty(Part):
    """Uncertainty of a demand."""
    #: Confidence interval of the bootstrap within the runs.
    bootstrap_ci95: Interval | None = None
    #: The wider of the two intervals below; `None` if there is neither.
    ci95: Interval | None = None
    #: Confidence interval of the regression over the runs.
    fit_ci95: Interval | None = None
    #: The data that the demand was derived from.
    source: Source


@dataclass(kw_only=True)
class UslFit(Part):
    """A fitted law."""
    #: α: the coefficient of contention.
    alpha: Estimate
    #: β: the coefficient of coherency.
    beta: Estimate
    #: γ: throughput at load 1.
    gamma: Estimate
    #: The point at which the throughput is highest; `None` if the throughput grows without end (β = 0) or never
    #: grows (α ≥ 1).
    peak: Peak | None = None
    #: Share of the variance of the throughputs that the law explains.
    r2: float


@dataclass(kw_only=True)
class Calibration(Document):
    """A model calibrated from Records."""
    #: Number of CPUs that the server itself keeps busy without requests.
    background: Estimate
    #: The burstiness of the arrivals, and the cost of bursts.
    bursts: Bursts
    #: Condition number of the regression at the CPU; above about 30 the intervals are wide.
    condition_number: float
    #: D(X) of the mix, from the lowest rate measured to saturation. Empty if D does not depend on the load.
    demand_curve: list[DemandAtRate]
    #: A sentence that names the bottleneck and its rate.
    headline: str
    #: Indices in the input, from 0, of the Records of an idle server.
    idle: list[int]
    #: Demands measured inside the server, compared with those of the runs alone; `None` without the Server Module or
    #: if it does not have the load's classes.
    inside: InsideDemands | None = None
    #: The load at which the measured throughput bends, without a queueing model.
    knee: KneeCheck
    #: The Records that were not used, with the reasons.
    left_out: list[LeftOut]
    #: The highest rate of each station, in the order in which the stations saturate.
    limits: list[StationLimit]
    #: The dependence of the cost of a request on the load; `None` if the cost is constant.
    load_dependence: LoadDependence | None = None
    #: Classes that the runs cannot distinguish at the CPU.
    merged: list[Merged]
    #: The model. Its stations are `cpu`, the disks that were used, and `elsewhere`, a delay, if there were response
    #: times. Its open classes have the mean rates of the runs of the mix, or of all runs if each had one class.
    model: Model
    #: The run whose CPU time the law of the other runs does not explain, if there is one.
    odd: OddRun | None = None
    #: Names of the Records, in the order of their indices in other fields.
    records: list[str]
    #: Delay and variability of service, from response times.
    response: ResponseFit | None = None
    #: For each run that the demands were fitted to: the demand of its mean request, as measured and as fitted.
    runs: list[RunDemand]
    #: The rate at which the model saturates, at the mix of its classes.
    saturation: Saturation
    #: Identifier of the document's schema: always `SCHEMA`.
    schema: str
    #: The dependence of demands on response sizes, if there are at least three sizes.
    sizes: SizeDemand | None = None
    #: Uncertainty of each of the `Model::demands`, stations × classes.
    uncertainty: list[list[Uncertainty]]
    #: Indices in the input, from 0, of the Records that the demands were fitted to.
    used: list[int]
    #: Warnings for users of the model.
    warnings: list[str]


#: A coefficient that is set to zero because the fit would make it negative.
Held: TypeAlias = Literal["per_request", "per_byte"]


#: The reliability of a peak.
PeakBasis: TypeAlias = Literal["measured", "extrapolated", "doubtful"]


#: The origin of a coefficient of variation.
ScvBasis: TypeAlias = Literal["measured", "fitted", "too_few_points", "indistinct"]


#: The data that a demand was derived from. The first source is the most reliable.
Source: TypeAlias = Literal["direct", "single_class_run", "regression", "proportional", "response_times"]
