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
    """Throughput of so many clients, each calling again as soon as it is answered."""
    #: Half width of its 95 % confidence interval, by the blocks.
    ci95_half_width: float | None = None
    #: How many.
    clients: int
    #: Calls per second.
    throughput: float
    #: Of the server's CPUs by the server's processes, if those can be seen.
    utilization: float | None = None


@dataclass(kw_only=True)
class Comparison(Part):
    """A prediction beside its measurement."""
    #: predicted ÷ measured − 1, signed.
    error: float | None = None
    #: What of the error is the host's: it was faster or slower then than during calibration.
    error_drift: float | None = None
    #: Between which figures 90 % of such measurements lie, as it said beforehand, on a host as variable as
    #: calibration saw it.
    interval90: list[float] | None = None
    #: What was then measured.
    measured: float | None = None
    #: Half width of the measurement's 95 % confidence interval (batch means).
    measured_ci95_half_width: float | None = None
    #: What the model said beforehand.
    predicted: float | None = None


@dataclass(kw_only=True)
class Connections(Part):
    """Which connections the loads of a survey used."""
    #: Whether that is because the server closes each connection after its answer.
    closed_by_server: bool | None = None
    #: Connections that an open load had at most at once: calls that found all of them taken waited for one. Absent
    #: where each such call opened a connection more.
    most: int | None = None
    #: Whether each call had a connection of its own.
    one_call_each: bool | None = None
    #: Connections that the server serves at a time, where the survey met that limit: calls on further connections
    #: wait until one of these is closed, though it is idle.
    served_at_once: int | None = None


@dataclass(kw_only=True)
class Demand(Part):
    """The fitted service demand of one class at one station."""
    #: Half width of its 95 % confidence interval.
    ci95_half_width: float | None = None
    #: The class.
    class_: str = field(metadata={"key": "class"})
    #: The demand, in seconds per request.
    seconds: float
    #: The station.
    station: str
    #: The true demand, where the server tells it: CPU time per call by its own account, while it was saturated.
    truth: float | None = None


@dataclass(kw_only=True)
class Inflicted(Part):
    """What calibration did to a server that others use, too, and what it was allowed to."""
    #: The longest response time of calibration's calls: so long a stranger's call may have had to wait for ours.
    longest_wait_s: float
    #: What that was to stay below, in so far as the server's own speed decides it.
    max_delay_s: float | None = None
    #: What that was to stay below.
    max_load: float | None = None
    #: Mean load over all of calibration, rests included: of the server's CPUs by its processes, or where those
    #: cannot be seen, throughput as a share of what the server can take.
    mean_load: float
    #: The most clients at once.
    most_clients: int


@dataclass(kw_only=True)
class InsideServer(Part):
    """What a server measured of its own requests during calibration: how its classes differ, whose demands are CPU
    time within the phases of a request and an equal share of what the server used outside of them."""
    #: Requests whose CPU time was measured.
    sampled: int | None = None
    #: Squared coefficient of variation of the CPU time of a request of a class, over classes by their second
    #: moments.
    scv: float | None = None
    #: Half width of its 95 % confidence interval.
    scv_ci95_half_width: float | None = None
    #: Whether its workers are more than its CPUs and take turns there: then the model's variability is not that of
    #: service, but fitted to how long calls waited.
    takes_turns: bool | None = None
    #: How many workers it may have, where it serves no more calls at a time.
    workers: int | None = None
    #: How many of them were busy while clients left it no rest.
    workers_busy: float | None = None


@dataclass(kw_only=True)
class Law(Part):
    """A law that was tried."""
    #: Root mean square of its relative error at the levels left out, each in turn.
    left_out_error: float
    #: Its name: `constant`, or `idle^1` for a cost that fades with the idleness of the server, `idle^2` with its
    #: square, and so on; `busy` for one that grows with the load.
    name: str


@dataclass(kw_only=True)
class Level(Part):
    """One load level."""
    #: Share and cost of each class in this level.
    classes: list[LevelClass]
    #: Clients of a closed level; open levels have none.
    clients: int | None = None
    #: Where the time of the server's CPUs went.
    cpu: CpuShares | None = None
    #: Share of the calls that failed or were answered with an error of the server (5xx).
    error_share: float
    #: The planned load over the saturation rate as it was known when the level was planned.
    fraction: float
    #: Speed of the server just before and after this level over that during calibration, with as many clients: 0.9
    #: is a tenth slower.
    host_speed: float | None = None
    #: Median lateness of the generator.
    lateness_p50_s: float | None = None
    #: 99th percentile of the same.
    lateness_p99_s: float | None = None
    #: Offered load, calls per second; for a closed level, what its clients came to.
    offered: float
    #: Percentiles of the response time.
    response_percentiles_s: Percentiles
    #: Mean response time, from due to last byte. Predicted on a host as variable as calibration saw it.
    response_time_s: Comparison
    #: What the level is for.
    role: Role
    #: The same as predicted on a host that keeps its speed, which is what the model by itself says.
    steady_response_s: float | None = None
    #: Whole responses per second.
    throughput: Comparison
    #: Of the server's CPUs by the server's processes.
    utilization: Comparison
    #: Whether this level can be trusted.
    verdict: Verdict
    #: How long load was offered.
    window_s: float
    #: What was requested: `mix`, or the name of the one class.
    workload: str


@dataclass(kw_only=True)
class LevelClass(Part):
    """One class at one level."""
    #: Its name.
    name: str
    #: Mean response time.
    response_time_s: Comparison
    #: Whole responses per second.
    throughput: float


@dataclass(kw_only=True)
class Percentiles(Part):
    """Percentiles of a response time."""
    #: Median.
    p50: Comparison
    #: 95th.
    p95: Comparison
    #: 99th.
    p99: Comparison


@dataclass(kw_only=True)
class ProgramDemand(Part):
    """What a call of the mix costs in one of the server's programs while clients leave it no rest."""
    #: Half width of its 95 % confidence interval, by the blocks.
    ci95_half_width: float | None = None
    #: CPU seconds of a call.
    demand_s: float
    #: The program's name.
    name: str
    #: How many processes it has.
    processes: int
    #: Of the CPU time of a call in all programs, 0..1.
    share: float


@dataclass(kw_only=True)
class Stopped(Part):
    """Where and why a survey stopped early."""
    #: At which level.
    level: str
    #: Why.
    reason: str


@dataclass(kw_only=True)
class WhatIf(Part):
    """A change of the server that was predicted, then made, measured and undone."""
    #: What was changed, as on the command line: `quota=50%`.
    change: str
    #: CPUs that the server then had.
    cpus: float
    #: Speed of the server just before and after over that during calibration.
    host_speed: float | None = None
    #: Half of the predicted rate, offered to measure the mean response time.
    offered: float
    #: The period of the quota, in seconds: when it is used up, the server stops until the next.
    period_s: float
    #: Mean response time there. It is predicted more roughly than that of levels: from a simulation of the quota.
    response_time_s: Comparison
    #: The server's capacity then, in calls per second.
    saturation_rate: Comparison
    #: Of the server's CPUs by the server's processes at that rate.
    utilization: Comparison
    #: Whether these figures can be trusted.
    verdict: Verdict


@dataclass(kw_only=True)
class Survey(Document):
    """One survey."""
    #: Share of the server's CPUs that was busy before any load.
    background: float | None = None
    #: What is full when the server takes no more: a station of the model. `cpu`; `disk` and a name; `workers` whom
    #: calls occupy, processes or threads; `lock or backend`, one call at a time; `backend pool`, several. A server
    #: that is a black box is `server`.
    bottleneck: str | None = None
    #: Why that is believed, for people.
    bottleneck_evidence: str | None = None
    #: The version of brimful that made it.
    brimful_version: str
    #: The client's CPUs.
    client_cpus: list[int]
    #: The highest rate this client was found to offer without being the limit itself.
    client_max_rate: float | None = None
    #: The command line.
    command: list[str]
    #: Which connections the loads used.
    connections: Connections | None = None
    #: What one request costs.
    demands: list[Demand]
    #: How long the survey took.
    elapsed_s: float | None = None
    #: What the server can take, or that this was not determined.
    headline: str
    #: What calibration did to the server.
    inflicted: Inflicted | None = None
    #: What the server itself measured of its requests during calibration, where the demands of the classes stand on
    #: that: it has the Server Module, with the classes of the load.
    inside: InsideServer | None = None
    #: How the cost of a call might depend on the load, and how far off each of these laws is at a calibration level
    #: that it was not fitted to. The best comes first and is the model's.
    laws: list[Law] | None = None
    #: The load levels, in the order of their offered load.
    levels: list[Level]
    #: The model that the predictions are of, fitted before any held-out level was measured. Its demands are those of
    #: a busy server, which `demands` has too; its rates come to 0.7 of the predicted saturation rate in the
    #: proportions of the mix. Without stations if the survey ended before there was a model.
    model: Model
    #: The programs in which a call of the mix spends its CPU time, the costliest first. Programs that share CPUs are
    #: one station of the model.
    programs: list[ProgramDemand] | None = None
    #: Path of the report, if one was written.
    report: str | None = None
    #: The server's capacity, in calls per second.
    saturation_rate: Comparison
    #: `SCHEMA`.
    schema: str
    #: Seed of all randomness.
    seed: int
    #: The server's CPUs.
    server_cpus: list[int]
    #: How fast the server was in each block of calibration, in turn, over its mean: 0.9 is a tenth slower.
    speed_by_block: list[float] | None = None
    #: Wall-clock time of the start, RFC 3339.
    started_at: str
    #: Where the survey stopped, if it did not reach its end.
    stopped: Stopped | None = None
    #: What came of so many clients at once during calibration, in the order of their number: the server seen from
    #: outside (Chandy, Herzog & Woo 1975).
    throughput_by_clients: list[ByClients] | None = None
    #: What was surveyed.
    url: str
    #: Whether the numbers can be trusted.
    verdict: Verdict
    #: What a call costs the server beyond its demand when it finds it idle: this times a power, the model's, of the
    #: share of time in which the server's CPUs are idle.
    wakeup_s: float | None = None
    #: What a change of the server did, in the end.
    what_if: WhatIf | None = None


#: What a level is for.
Role: TypeAlias = Literal["calibration", "held_out", "past_saturation"]
