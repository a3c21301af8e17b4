"""Written by document_types.py from schema/survey.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Document, Part
from .common import (
    CpuShares, Model, Verdict,
)


@dataclass(kw_only=True)
class ByClients(Part):
    """Throughput of a number of clients. Each client sends its next call as soon as the previous one is answered."""
    #: Half width of the 95 % confidence interval of `throughput`, from the variation between blocks.
    ci95_half_width: float | None = None
    #: Number of clients.
    clients: int
    #: Throughput, in calls per second.
    throughput: float
    #: Utilization of the server's CPUs by its processes, if the processes can be observed.
    utilization: float | None = None


@dataclass(kw_only=True)
class Comparison(Part):
    """A prediction and its measurement."""
    #: Relative error of the prediction: predicted ÷ measured − 1.
    error: float | None = None
    #: The part of the error that is due to the host being faster or slower than during calibration.
    error_drift: float | None = None
    #: Bounds within which 90 % of such measurements are predicted to be, on a host whose speed varies as it did
    #: during calibration.
    interval90: list[float] | None = None
    #: The measured value.
    measured: float | None = None
    #: Half width of the measurement's 95 % confidence interval (batch means).
    measured_ci95_half_width: float | None = None
    #: The value that the model predicts.
    predicted: float | None = None


@dataclass(kw_only=True)
class Connections(Part):
    """The connections that the loads of a survey used."""
    #: Whether each call had a connection of its own because the server closes each connection after its answer.
    closed_by_server: bool | None = None
    #: Size of the connection pool of open loads: a call waited if all connections were busy. Absent if such a call
    #: opened another connection instead.
    most: int | None = None
    #: Whether each call had a connection of its own.
    one_call_each: bool | None = None
    #: Number of connections that the server serves at a time, if the survey reached this limit. Calls on further
    #: connections wait until one of these is closed, even if it is idle.
    served_at_once: int | None = None


@dataclass(kw_only=True)
class Demand(Part):
    """The fitted service demand of one class at one station."""
    #: Half width of the 95 % confidence interval of the demand.
    ci95_half_width: float | None = None
    #: Name of the class.
    class_: str = field(metadata={"key": "class"})
    #: The demand, in seconds per request.
    seconds: float
    #: Name of the station.
    station: str
    #: The true demand, if the server reports it: CPU time per call from the server's own accounting while it was
    #: saturated.
    truth: float | None = None


@dataclass(kw_only=True)
class Inflicted(Part):
    """Load and delays that calibration caused on a server that may have other users, with their permitted bounds."""
    #: Longest response time of a calibration call, which bounds the delay of other users' calls.
    longest_wait_s: float
    #: Permitted bound of `longest_wait_s`, as far as it depends on the server's speed.
    max_delay_s: float | None = None
    #: Permitted bound of `mean_load`.
    max_load: float | None = None
    #: Mean load over all of calibration, including pauses: utilization of the server's CPUs by its processes. If the
    #: processes cannot be observed, it is the throughput as a share of the server's capacity.
    mean_load: float
    #: Highest number of clients at once.
    most_clients: int


@dataclass(kw_only=True)
class InsideServer(Part):
    """The Server Module's measurements during calibration. The demand of a class follows from them: the CPU time
    within the phases of a request, plus an equal share of the CPU time outside of all phases."""
    #: Number of requests whose CPU time was measured.
    sampled: int | None = None
    #: Squared coefficient of variation of the CPU time of a request within its class. The average over classes
    #: weights their second moments.
    scv: float | None = None
    #: Half width of the 95 % confidence interval of `scv`.
    scv_ci95_half_width: float | None = None
    #: Whether the server has more workers than CPUs, so that workers share the CPUs. If so, the variability in the
    #: model does not describe service times but is fitted to the calls' waiting times.
    takes_turns: bool | None = None
    #: Highest number of workers, if it limits the number of calls in service.
    workers: int | None = None
    #: Mean number of busy workers while the server was saturated.
    workers_busy: float | None = None


@dataclass(kw_only=True)
class Law(Part):
    """A law for the dependence of a call's cost on the load."""
    #: Cross-validation error: root mean square of the relative errors when one level at a time is left out of the
    #: fit.
    left_out_error: float
    #: Name of the law: `constant`; `idle^1` for an extra cost that is proportional to the idle share of the server,
    #: `idle^2` to its square, and so on; `busy` for a cost that grows with the load.
    name: str


@dataclass(kw_only=True)
class Level(Part):
    """Predictions and measurements at one load level."""
    #: Share and cost of each class in this level.
    classes: list[LevelClass]
    #: Number of clients of a closed level; absent for open levels.
    clients: int | None = None
    #: Shares of the time of the server's CPUs.
    cpu: CpuShares | None = None
    #: Share of the calls that failed or were answered with an error of the server (5xx).
    error_share: float
    #: Planned load as a share of the saturation rate that was known when the level was planned.
    fraction: float
    #: Speed of the server just before and after this level, relative to its speed during calibration with the same
    #: number of clients: 0.9 is ten percent slower.
    host_speed: float | None = None
    #: Median lateness of the generator, in seconds.
    lateness_p50_s: float | None = None
    #: 99th percentile of the generator's lateness, in seconds.
    lateness_p99_s: float | None = None
    #: Offered load in calls per second; for a closed level, the rate at which its clients made calls.
    offered: float
    #: Percentiles of the response time.
    response_percentiles_s: ResponsePercentiles
    #: Mean time from when a call was due to its last byte. It is predicted for a host whose speed varies as it did
    #: during calibration.
    response_time_s: Comparison
    #: Purpose of the level.
    role: Role
    #: The mean response time that the model predicts for a host of constant speed.
    steady_response_s: float | None = None
    #: Complete responses per second.
    throughput: Comparison
    #: Utilization of the server's CPUs by its processes.
    utilization: Comparison
    #: Whether this level can be trusted.
    verdict: Verdict
    #: Length of the window in which load was offered, in seconds.
    window_s: float
    #: The requests of the level: `mix`, or the name of a single class.
    workload: str


@dataclass(kw_only=True)
class LevelClass(Part):
    """Results of one class at one level."""
    #: Name of the class.
    name: str
    #: Mean response time.
    response_time_s: Comparison
    #: Complete responses per second.
    throughput: float


@dataclass(kw_only=True)
class ProgramDemand(Part):
    """CPU demand of a call of the mix in one of the server's programs, while the server is saturated."""
    #: Half width of the 95 % confidence interval of `demand_s`, from the variation between blocks.
    ci95_half_width: float | None = None
    #: CPU time of a call, in seconds.
    demand_s: float
    #: The program's name.
    name: str
    #: Number of processes of the program.
    processes: int
    #: The program's share of the CPU time of a call in all programs, 0 to 1.
    share: float


@dataclass(kw_only=True)
class ResponsePercentiles(Part):
    """Percentiles of a response time."""
    #: Median of the response time.
    p50: Comparison
    #: 95th percentile of the response time.
    p95: Comparison
    #: 99th percentile of the response time.
    p99: Comparison


@dataclass(kw_only=True)
class Stopped(Part):
    """Where and why a survey stopped early."""
    #: The level at which the survey stopped.
    level: str
    #: The reason why the survey stopped.
    reason: str


@dataclass(kw_only=True)
class WhatIf(Part):
    """A change of the server whose effect was predicted and then measured. The change was undone afterwards."""
    #: The change, as on the command line: `quota=50%`.
    change: str
    #: Number of CPUs of the changed server.
    cpus: float
    #: Speed of the server just before and after the change, relative to its speed during calibration.
    host_speed: float | None = None
    #: The rate at which the mean response time was measured: half of the predicted capacity.
    offered: float
    #: Period of the quota, in seconds: when the quota is exhausted, the server is throttled until the next period.
    period_s: float
    #: Mean response time at `offered`. Its prediction is less accurate than those of the levels, because it comes
    #: from a simulation of the quota.
    response_time_s: Comparison
    #: Capacity of the changed server, in calls per second.
    saturation_rate: Comparison
    #: Utilization of the server's CPUs by its processes at the measured capacity.
    utilization: Comparison
    #: Whether these figures can be trusted.
    verdict: Verdict


@dataclass(kw_only=True)
class Survey(Document):
    """The results of one survey."""
    #: Share of the server's CPU time that was in use before any load.
    background: float | None = None
    #: The station of the model that limits the server: `cpu`; `disk` and a name; `workers`, the processes or threads
    #: that calls occupy; `lock or backend`, which serves one call at a time; or `backend pool`, which serves
    #: several. For a black-box server, it is `server`.
    bottleneck: str | None = None
    #: Explanation for people of the evidence for the bottleneck.
    bottleneck_evidence: str | None = None
    #: The version of brimful that made the document.
    brimful_version: str
    #: Numbers of the client's CPUs.
    client_cpus: list[int]
    #: Highest rate that this client can generate without being the limit, as measured.
    client_max_rate: float | None = None
    #: The command line.
    command: list[str]
    #: The connections that the loads used.
    connections: Connections | None = None
    #: Service demands of one request.
    demands: list[Demand]
    #: Duration of the survey, in seconds.
    elapsed_s: float | None = None
    #: A sentence that states the server's capacity, or that it was not determined.
    headline: str
    #: Load and delays that calibration caused on the server.
    inflicted: Inflicted | None = None
    #: The Server Module's measurements during calibration. Absent unless the demands of the classes are based on
    #: them, which requires that the server has the module, with the classes of the load.
    inside: InsideServer | None = None
    #: The laws that were tried for the dependence of a call's cost on the load, each with its cross-validation
    #: error. The best law is first; the model uses it.
    laws: list[Law] | None = None
    #: The load levels, in the order of their offered load.
    levels: list[Level]
    #: The model behind the predictions, fitted before any held-out level was measured. Its demands are those of a
    #: busy server, as in `demands`. Its rates have the proportions of the mix, and their sum is 0.7 of the predicted
    #: saturation rate. It has no stations if the survey ended before the fit.
    model: Model
    #: CPU demand of a call of the mix by program, in decreasing order. Programs that share CPUs are one station of
    #: the model.
    programs: list[ProgramDemand] | None = None
    #: Path of the report, if one was written.
    report: str | None = None
    #: The server's capacity, in calls per second.
    saturation_rate: Comparison
    #: Identifier of the document's schema: always `SCHEMA`.
    schema: str
    #: Seed of all randomness.
    seed: int
    #: Numbers of the server's CPUs.
    server_cpus: list[int]
    #: Speed of the server in each block of calibration, in order, relative to the mean: 0.9 is ten percent slower.
    speed_by_block: list[float] | None = None
    #: Wall-clock time of the start, RFC 3339.
    started_at: str
    #: Where and why the survey stopped early; absent if it was completed.
    stopped: Stopped | None = None
    #: Throughput by number of clients during calibration, in increasing order of that number: the server as a flow-
    #: equivalent station (Chandy, Herzog & Woo 1975).
    throughput_by_clients: list[ByClients] | None = None
    #: URL of the surveyed server.
    url: str
    #: Whether the numbers can be trusted.
    verdict: Verdict
    #: Extra cost of a call at an idle server, in seconds. At other loads, it is multiplied by a power of the idle
    #: share of the server's CPUs; the model contains the exponent.
    wakeup_s: float | None = None
    #: A change of the server that was predicted and then measured, if the user requested one.
    what_if: WhatIf | None = None


#: Purpose of a level.
Role: TypeAlias = Literal["calibration", "held_out", "past_saturation"]
