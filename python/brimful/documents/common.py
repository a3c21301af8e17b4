"""Parts that several documents share. Written by document_types.py from schema/."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Part


@dataclass(kw_only=True)
class AcceptQueue(Part):
    """The accept queue of one listening socket."""
    #: Connections that waited to be accepted, the most that a sample saw.
    length: int | None = None
    #: How many may wait; Linux lets one more.
    limit: int | None = None


@dataclass(kw_only=True)
class Axis(Part):
    """A range."""
    #: What is different from point to point, like `cpu.speed`.
    subject: str
    #: In what: `x` (a factor), `%` (more or less), `1/s`, `s`, `bit/s`, `B`, or nothing.
    unit: str


@dataclass(kw_only=True)
class ClockOffset(Part):
    """The offset between two hosts' monotonic clocks, measured by exchanges of their readings (Cristian 1989)."""
    #: The server's clock less the generator's, in seconds.
    offset_s: float
    #: The offset is within this of the truth: half the shortest round trip, and half the drift seen over the run.
    uncertainty_s: float


@dataclass(kw_only=True)
class Core(Part):
    """One CPU."""
    #: Its number.
    cpu: int
    #: Idle, waiting for disks included.
    idle: float | None = None
    #: Part of `system`: interrupts and what they leave to do, like most of TCP's receiving side.
    interrupt: float | None = None
    #: Part of `idle`: while a thread waited for a disk.
    io_wait: float | None = None
    #: Taken by the hypervisor.
    steal: float | None = None
    #: Kernel, interrupts included.
    system: float | None = None
    #: User mode, niced and guests included.
    user: float | None = None


@dataclass(kw_only=True)
class CpuDemand(Part):
    """What one request of a class costs the server's CPUs, in microseconds: the mean m of its sampled CPU time and
    its part of the unexplained CPU time, ```text D = m + (C − Σ mⱼ nⱼ) / N ``` where C is the CPU time of the
    server's processes in the stretch, or where the kernel does not tell it of its workers, nⱼ the requests of
    each class and N all of them. So the demands of all requests add up to C, whatever was sampled."""
    #: The mean is within this of the truth, at 95 % confidence: D as a sum of means of independent samples, and what
    #: C lacks at the ends of the stretch, as it is told in ticks of the kernel's clock, or was read at sampled
    #: requests.
    ci95_half_width: float
    #: Its mean, D.
    mean: float
    #: Standard deviation of the sampled CPU time.
    stddev: float


@dataclass(kw_only=True)
class CpuParts(Part):
    """Parts of the CPU time of a mean request, in microseconds: by phase."""
    #: The log line was written.
    log: float | None = None
    #: The head was read and understood.
    parse: float | None = None
    #: The answer was made and handed to the kernel.
    process: float | None = None


@dataclass(kw_only=True)
class CpuQuota(Part):
    """A limit on the CPU time of a control group, and how often it was reached."""
    #: CPUs that it may have: 0.5 is half of one.
    cpus: float
    #: The directory of the group.
    group: str
    #: Share of the quota's periods in which it was used up, so that threads were stopped until the next.
    throttled_periods: float
    #: For how long; of several CPUs together.
    throttled_s: float


@dataclass(kw_only=True)
class CpuShares(Part):
    """Shares of CPU time; `user`, `system`, `idle` and `steal` are together 1."""
    #: Idle, waiting for disks included.
    idle: float | None = None
    #: Part of `system`: interrupts and what they leave to do, like most of TCP's receiving side.
    interrupt: float | None = None
    #: Part of `idle`: while a thread waited for a disk.
    io_wait: float | None = None
    #: Taken by the hypervisor.
    steal: float | None = None
    #: Kernel, interrupts included.
    system: float | None = None
    #: User mode, niced and guests included.
    user: float | None = None


@dataclass(kw_only=True)
class Curve(Part):
    """A model along one range, or over the grid of two."""
    #: The ranges.
    axes: list[Axis]
    #: The classes, in the order of the points' figures.
    classes: list[str]
    #: The points; with two ranges, the second one changes fastest.
    points: list[CurvePoint]
    #: The stations, likewise.
    stations: list[str]


@dataclass(kw_only=True)
class CurvePoint(Part):
    """One point."""
    #: Which one that is; empty if none.
    bottleneck: str
    #: The rate of all classes together, at their mix here, at which the first station saturates.
    saturation_rate: float | None = None
    #: What is reached there; `None` if there is no solution.
    steady: Steady | None = None
    #: Why there is none: a station that cannot keep up, or what a solver could not do.
    unsolved: str | None = None
    #: Share in use of what each station can give to our classes, 1 or more where it cannot keep up; of a delay, the
    #: number present. Without closed classes where there is no solution.
    utilization: list[float]
    #: Where it is, by axis.
    x: list[float]


@dataclass(kw_only=True)
class Disk(Part):
    """Traffic of a disk. A block is 512 bytes, whatever the disk's own are."""
    #: Blocks read.
    blocks_read_per_s: float | None = None
    #: Blocks written.
    blocks_written_per_s: float | None = None
    #: Mean number of operations under way.
    queue_length: float | None = None
    #: Read operations completed.
    reads_per_s: float | None = None
    #: Share of time in which an operation was under way; of several disks, the busiest one's.
    utilization: float | None = None
    #: Write operations completed.
    writes_per_s: float | None = None


@dataclass(kw_only=True)
class Elapsed(Part):
    """Elapsed times, in microseconds. Percentiles are interpolated in buckets, four to an octave: they are within 25
    % of the truth, and within a few percent where many times are spread over several buckets."""
    #: How many requests had this phase.
    count: int
    #: Their mean.
    mean: float
    #: Their median.
    p50: float
    #: Nine of ten are no longer.
    p90: float
    #: 99 of 100 are no longer.
    p99: float
    #: Their standard deviation.
    stddev: float


@dataclass(kw_only=True)
class Estimate(Part):
    """A number that was fitted or simulated."""
    #: Half width of its 95 % confidence interval; `None` where the data leave no freedom to judge it by.
    ci95_half_width: float | None = None
    #: Its value.
    value: float


@dataclass(kw_only=True)
class Expect(Part):
    """What all answers to a class have to be like."""
    #: Bytes of content, as sent: a compressed answer has those it is compressed to.
    length: int | None = None
    #: SHA-256 of the content as sent, in 64 hexadecimal digits.
    sha256: Sha256 | None = None
    #: The status: 200, "2xx", or several of these; any if absent.
    status: Statuses | None = None


@dataclass(kw_only=True)
class FileSet(Part):
    """Files below the class's path."""
    #: Bytes of a file, or how those of all are distributed: the sizes that `brimful fileset` makes.
    bytes: Spread | None = None
    #: How many.
    files: int
    #: The number of the file that such a walk begins at.
    first: int | None = None
    #: They are asked for one after another, and one call in how many goes on to the next: with 0.25 every fourth
    #: call does, with 1 each, the very first one too. After the last comes the first. Without it each call asks for
    #: any of them.
    ratio: float | None = None
    #: How many files such a walk goes on by, for clients that share a set: each begins at a file of its own and goes
    #: on by as many as there are clients.
    stride: int | None = None


@dataclass(kw_only=True)
class HostProbe(Part):
    """How fast one CPU of a host was at one moment, in some ten milliseconds of its time. Both figures swing when
    neighbours share the cache, the core or the clock frequency: runs are comparable where these are."""
    #: Integer operations, each of which needs the result of the one before: millions per second.
    arithmetic_mops: float
    #: Reads at random places of 16 MiB, each at a place that the one before tells: millions per second.
    memory_mreads: float


@dataclass(kw_only=True)
class IdleCost(Part):
    """Dependence of a queue's demands on its load. On average, a request of each visiting class needs
    `seconds`·I^`power` more than its demand, where I is the idle share (0 to 1) of the station's capacity, used
    neither by requests nor by other work. If `seconds` is positive, only requests that find idle servers pay the
    extra cost. With one server and power 1, each of them pays all of it, and requests that wait pay nothing
    (Welch 1964). If it is negative, all requests save alike."""
    #: Exponent of the idle share, 1 to 4: the extra cost falls with the idle share, with its square, and so on.
    power: int
    #: Extra cost at an idle station, in seconds, with the variability of service. Positive for a server that has to
    #: wake up; negative if concurrent requests slow each other down, so that a request costs less under light load.
    seconds: float


@dataclass(kw_only=True)
class Interrupts(Part):
    """Interrupts per second, whole machine."""
    #: From all devices, timers included.
    all_per_s: float | None = None
    #: For disks: the softirq BLOCK.
    disk_per_s: float | None = None
    #: For the network: its softirqs (NET_RX and NET_TX), which one device interrupt or one poll may cause.
    network_per_s: float | None = None


@dataclass(kw_only=True)
class Interval90(Part):
    """From the 5 % to the 95 % quantile."""
    #: Its lower end; `None` if unbounded.
    lower: float | None = None
    #: Its upper end; `None` if unbounded.
    upper: float | None = None


@dataclass(kw_only=True)
class Intervals(Part):
    """90 % intervals of a model's results."""
    #: Number of draws of the demands.
    draws: int
    #: Of the load up to which each objective is met.
    headroom: list[Interval90]
    #: R, by class.
    response_time: list[Interval90]
    #: Of the rate of all classes together at which the first station saturates.
    saturation_rate: Interval90
    #: The share of draws in which some station could not keep up.
    unstable_share: float


@dataclass(kw_only=True)
class JointDemand(Part):
    """Classes that were measured only together. Their demands at the station are derived from the demand of their
    mean request by a proportional rule, which is valid only for the measured shares."""
    #: The classes' names, at least two.
    classes: list[str]
    #: Share of each class in the requests of these classes; the sum is 1.
    shares: list[float]
    #: The station's name.
    station: str


@dataclass(kw_only=True)
class Listener(Part):
    """Listening sockets."""
    #: Length of the accept queue at the end.
    accept_queue: int | None = None
    #: The longest accept queue that a sample saw.
    accept_queue_max: int | None = None
    #: Connections established; `sources` says whether those of other ports are among them.
    accepted_per_s: float | None = None
    #: The queues' limit, that of all sockets together.
    backlog: int | None = None
    #: Dropped by these sockets, because the accept queue was full or for want of memory.
    dropped_per_s: float | None = None
    #: The socket that was nearest to its limit: one that is full drops, whatever room the others have.
    fullest: AcceptQueue | None = None
    #: How many sockets these are: IPv4 and IPv6, or one for each worker (SO_REUSEPORT).
    sockets: int | None = None
    #: SYNs that asked for a connection: accepted and dropped.
    syn_per_s: float | None = None


@dataclass(kw_only=True)
class Load(Part):
    """How calls come."""
    #: How calls of an open load are spaced, as `--arrivals` writes it; `constant` if absent.
    arrivals: str | None = None
    #: Closed load: so many clients that wait for their answers.
    clients: int | None = None
    #: Open load: the requests of access logs.
    log: LogReplay | None = None
    #: Open load: calls per second, whatever the server does; with `stages`, the rate before the first.
    rate: float | None = None
    #: S-Clients: so many connection attempts always under way.
    s_clients: int | None = None
    #: Sessions: bursts of calls with time to think in between.
    sessions: SessionLoad | None = None
    #: Open load: the rate goes linearly from stage to stage.
    stages: list[Stage] | None = None
    #: Between an answer and the client's next call, in seconds; 0 if absent.
    think_s: float | None = None
    #: Open load: at these instants.
    trace: Trace | None = None


@dataclass(kw_only=True)
class LogReplay(Part):
    """The requests of access logs."""
    #: Their paths.
    files: list[str]
    #: Whether the same requests come at a constant rate.
    flattened: bool | None = None
    #: The longest pause between two calls; longer ones are cut to it.
    max_gap_s: float | None = None
    #: What the gaps between requests are divided by.
    speed: float | None = None


@dataclass(kw_only=True)
class Memory(Part):
    """Memory, whole machine."""
    #: What programs could still get without swapping.
    available_bytes: int | None = None
    #: All there is.
    total_bytes: int


@dataclass(kw_only=True)
class Model(Part):
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
    #: Where requests spend time.
    stations: list[Station]


@dataclass(kw_only=True)
class ModelClass(Part):
    """One class of request."""
    #: Its name.
    name: str
    #: Customers of a closed class.
    population: int | None = None
    #: Urgency at stations that serve by priority; smaller numbers are served first.
    priority: int | None = None
    #: Arrivals per second of an open class.
    rate: float | None = None
    #: Think time of a closed class, in seconds.
    think: float | None = None
    #: Whether its requests arrive from outside the network.
    type: ClassKind


@dataclass(kw_only=True)
class Module(Part):
    """Server Module: requests as the servers themselves see them (WebMonitor, §3.2)."""
    #: Each class of request of each server.
    classes: list[ModuleClass] | None = None
    #: The servers, one for each file that a module writes. What replaced its file in the stretch is there twice,
    #: each with its part of the time.
    servers: list[ModuleServer] | None = None


@dataclass(kw_only=True)
class ModuleClass(Part):
    """One class of request, from inside the server."""
    #: Of the requests, those whose client went away before it had the answer.
    aborted: int | None = None
    #: Bytes of bodies sent.
    bytes_per_s: float | None = None
    #: The mean of `cpu_us` is within this of the truth, at 95 % confidence.
    cpu_ci95_half_width_us: float | None = None
    #: Of the requests chosen to be sampled, the share whose thread worked on others in between: their CPU time is
    #: not known.
    cpu_mixed: float | None = None
    #: What the mean of `cpu_us` is made of.
    cpu_parts_us: CpuParts | None = None
    #: CPU time of one request, user and system, on the thread that served it. Reading that clock is costly, so few
    #: requests are sampled.
    cpu_us: Sampled | None = None
    #: What a request costs the server's CPUs, its part of the unexplained CPU time included.
    demand_us: CpuDemand | None = None
    #: Of the requests, those answered with 5xx.
    failed: int | None = None
    #: Its name. Those of a Record's class that is called the same are the same requests.
    name: str | None = None
    #: Elapsed time by phase.
    phases_us: Phases | None = None
    #: Requests served, all of them: those that have a line in the access log.
    requests: int | None = None
    #: The same per second.
    requests_per_s: float | None = None
    #: Which of `servers` it is of, from 0.
    server: int | None = None
    #: Per request: how often a worker took it up, once and again each time that it had left it to wait for its
    #: client or a server behind this one. A worker that waits itself, as most of Apache's do, does not leave it.
    turns: float | None = None


@dataclass(kw_only=True)
class ModuleServer(Part):
    """A server that has the module loaded."""
    #: Blocks of 512 bytes that its processes had read from disks, per request.
    blocks_read_per_request: float | None = None
    #: Connections accepted.
    connections_per_s: float | None = None
    #: CPU time of its workers per time: 1.5 is one CPU and a half.
    cores: float | None = None
    #: CPU time is measured of one request in so many, or of fewer where they come densely; 0 of none.
    cpu_one_in: int | None = None
    #: The same in the kernel.
    cpu_system_us: float | None = None
    #: CPU time of its processes per request, outside the kernel. Linux splits CPU time by what it finds running when
    #: its clock ticks, every few milliseconds: so this is known of many requests together, and not by class.
    cpu_user_us: float | None = None
    #: The file that its module writes.
    file: str | None = None
    #: What it calls itself, like `nginx/1.22.1`.
    name: str | None = None
    #: Read calls of its processes per request, as the kernel counts them (`syscr` of proc(5)): of files, and of
    #: sockets where the server reads them like files.
    reads_per_request: float | None = None
    #: Whether it records the requests that begin; it may be turned off.
    recording: bool | None = None
    #: Requests at this moment.
    requests_in_progress: int | None = None
    #: Requests of all classes.
    requests_per_s: float | None = None
    #: CPU time of its workers per request, less what was measured in the phases of requests: accepting and closing
    #: connections, waiting for events. Below zero where that is less than what the measuring of a request costs it.
    unexplained_cpu_us: float | None = None
    #: Worker processes, or threads where these serve, at this moment.
    workers: int | None = None
    #: How many of them were busy, on average.
    workers_busy: float | None = None
    #: Workers that found no place in the file: what they serve is missing here.
    workers_lost: int | None = None
    #: How many requests or connections the server works on at a time at most, where it has such a limit.
    workers_most: int | None = None


@dataclass(kw_only=True)
class Network(Part):
    """Network group: the network of one namespace."""
    #: Collisions on a shared wire, which modern networks do not have.
    collisions_per_s: float | None = None
    #: Each interface by name; without those that came, went or began to count anew.
    interfaces: dict[str, NetworkTraffic] | None = None
    #: Packets that the kernel dropped because a CPU's receive queue was full, whole machine.
    queue_overflows_per_s: float | None = None
    #: Bytes received.
    rx_bytes_per_s: float | None = None
    #: Packets received and thrown away, for want of memory or of a taker.
    rx_dropped_per_s: float | None = None
    #: Packets that came damaged.
    rx_errors_per_s: float | None = None
    #: Packets received.
    rx_packets_per_s: float | None = None
    #: TCP of this namespace.
    tcp: Tcp | None = None
    #: Bytes sent.
    tx_bytes_per_s: float | None = None
    #: Packets to be sent and thrown away.
    tx_dropped_per_s: float | None = None
    #: Packets that could not be sent.
    tx_errors_per_s: float | None = None
    #: Packets sent.
    tx_packets_per_s: float | None = None


@dataclass(kw_only=True)
class NetworkTraffic(Part):
    """Traffic of network interfaces, per second."""
    #: Collisions on a shared wire, which modern networks do not have.
    collisions_per_s: float
    #: Bytes received.
    rx_bytes_per_s: float
    #: Packets received and thrown away, for want of memory or of a taker.
    rx_dropped_per_s: float
    #: Packets that came damaged.
    rx_errors_per_s: float
    #: Packets received.
    rx_packets_per_s: float
    #: Bytes sent.
    tx_bytes_per_s: float
    #: Packets to be sent and thrown away.
    tx_dropped_per_s: float
    #: Packets that could not be sent.
    tx_errors_per_s: float
    #: Packets sent.
    tx_packets_per_s: float


@dataclass(kw_only=True)
class Overhead(Part):
    """What watching cost."""
    #: CPU time of the monitor's thread; of `brimful watch` all of it.
    monitor_cpu_s: float
    #: CPU time of one sample, in microseconds.
    per_sample_us: float
    #: How many samples were taken.
    samples: int


@dataclass(kw_only=True)
class Paging(Part):
    """Paging per second, whole machine. A page is the machine's (4 KiB on most)."""
    #: Page faults that had to wait for a disk.
    major_faults_per_s: float | None = None
    #: Pages read from disks, file contents and swap.
    page_ins_per_s: float | None = None
    #: Pages written to disks, file contents and swap.
    page_outs_per_s: float | None = None
    #: Of them, from swap.
    swap_ins_per_s: float | None = None
    #: Of them, to swap.
    swap_outs_per_s: float | None = None


@dataclass(kw_only=True)
class Phases(Part):
    """Elapsed time of a request by what the server did: WebMonitor's three phases (parse, process, log), with what
    is the client's own (head, send) and what other servers took (upstream) apart from them. Together they are the
    time from the first byte of the request to its log line."""
    #: From the first byte of the request to the last of its head: the client's own.
    head: Elapsed | None = None
    #: Writing the log.
    log: Elapsed | None = None
    #: The head is read and understood.
    parse: Elapsed | None = None
    #: The answer is made and handed to the kernel, but for the next two.
    process: Elapsed | None = None
    #: Waiting until the client has read enough for the rest to be handed over: the client's own.
    send: Elapsed | None = None
    #: Waiting for a server behind this one.
    upstream: Elapsed | None = None


@dataclass(kw_only=True)
class Port(Part):
    """One port of the server."""
    #: Its connections by TCP state. A state that the source cannot tell is left out; one that it tells is there, be
    #: it 0.
    connections: dict[str, int] | None = None
    #: Its listening sockets together, as they were last; `null` if nothing listened.
    listener: Listener | None = None
    #: Which.
    port: int | None = None


@dataclass(kw_only=True)
class Pressure(Part):
    """Pressure of each resource."""
    #: Of the CPUs.
    cpu: Stall | None = None
    #: Of disks.
    io: Stall | None = None
    #: Of memory.
    memory: Stall | None = None


@dataclass(kw_only=True)
class Program(Part):
    """Process group: one program, that is processes with their descendants. Totals are over the stretch."""
    #: Context switches, voluntary and not.
    context_switches: int | None = None
    #: CPU time per time: 1.5 is one CPU and a half.
    cores: float | None = None
    #: CPU time, nanosecond clock. Of processes that ended there is what was read last, which for those that their
    #: parent has waited for is all; what lived shorter than from one sample to the next and was never waited for is
    #: missing.
    cpu_s: float | None = None
    #: Of it, in the kernel.
    cpu_s_system: float | None = None
    #: Of it, in user mode (the split is the kernel's, the sum is `cpu_s`).
    cpu_s_user: float | None = None
    #: Processes that were found to have ended.
    ended: int | None = None
    #: Page faults that had to wait for a disk.
    major_faults: int | None = None
    #: `rss_bytes` as a share of the machine's memory; more than 1 is possible where pages are shared.
    memory_share: float | None = None
    #: Its name.
    name: str | None = None
    #: Its processes.
    pids: list[int] | None = None
    #: How many copies of it there are: Table 2's *started processes*.
    processes: int | None = None
    #: The limit on its CPU time, of its control group or of one above it: of several, the one that stopped it for
    #: longest, or else the tightest. Left out where there is none, or none can be seen.
    quota: CpuQuota | None = None
    #: Resident memory; pages that processes share count once for each. The kernel adds up its counters of each CPU
    #: now and then: of each process up to 96 pages for each CPU (384 KiB) may be missing.
    rss_bytes: int | None = None
    #: Time that its threads were ready and waited for a CPU.
    run_queue_wait_s: float | None = None
    #: Its threads that run or wait for a CPU: Table 2's *running processes*.
    running: int | None = None
    #: Processes that were found to have started.
    started: int | None = None
    #: Threads of all its processes.
    threads: int | None = None


@dataclass(kw_only=True)
class Reason(Part):
    """One reason not to trust a run."""
    #: Identifier of the reason, for scripts.
    code: ReasonCode
    #: Text for people: what happened and what to do next.
    message: str


@dataclass(kw_only=True)
class RequestClass(Part):
    """One class of request."""
    #: Request body.
    body: str | None = None
    #: A file with the request body, in place of `body`; its path from the working directory. It is sent piece by
    #: piece as the server takes it, with its size at the start of the run as `Content-Length`.
    body_file: str | None = None
    #: A file of comma-separated values for `{csv.COLUMN}`; its first line names the columns. The n-th call of the
    #: class has the n-th row, and after the last the first comes again.
    csv: str | None = None
    #: What an answer has to be like; one that is not is `unexpected`, and a failure.
    expect: Expect | None = None
    #: A set of files below `path`.
    file_set: FileSet | None = None
    #: Extra header fields.
    headers: dict[str, str] | None = None
    #: HTTP method.
    method: str | None = None
    #: Its name in every table and document; unique.
    name: str
    #: In which order those of a list are asked for.
    order: Order | None = None
    #: Path and query; the URL on the command line gives scheme and authority. Left out where there are `urls`. Here,
    #: in `urls`, in the values of `headers` and in `body`, `{seq}`, `{uuid}`, `{rand:1-500}` and `{csv.COLUMN}` are
    #: filled in anew for every call.
    path: str | None = None
    #: How often each of them is asked for, by its place in the list or set: `zipf:0.8`. Where it is absent, their
    #: weights say so.
    popularity: Popularity | None = None
    #: In place of `urls`: a file of requests, one JSON object on a line: path, and method, headers, body, class,
    #: weight and bytes if wanted. Of requests that name a class it has those of this one.
    requests_file: str | None = None
    #: What is asked for in place of one path, each as often as its weight says.
    urls: list[Url] | None = None
    #: In place of `urls`: a file of them, one on a line, each with its weight and its bytes if wanted: `/a.png 3
    #: 4096`.
    urls_file: str | None = None
    #: Its share of the calls, relative to the other classes' weights.
    weight: float | None = None


@dataclass(kw_only=True)
class Sampled(Part):
    """Times of a sample of the requests, in microseconds."""
    #: How many were sampled.
    count: int
    #: Their mean.
    mean: float
    #: Their standard deviation.
    stddev: float


@dataclass(kw_only=True)
class Script(Part):
    """One session."""
    #: Its bursts, at least one.
    bursts: list[ScriptedBurst]


@dataclass(kw_only=True)
class ScriptedBurst(Part):
    """One burst of a session."""
    #: Its calls, at least one; the first is answered before the others are made.
    calls: list[ScriptedCall]
    #: Seconds from its last answer to the next burst's first call; as the sessions' `think_s` says if absent.
    think_s: float | None = None


@dataclass(kw_only=True)
class ScriptedCall(Part):
    """One call of a burst."""
    #: Request body; the class's if absent.
    body: str | None = None
    #: The class that it is reported as; the first one if absent.
    class_: str | None = field(default=None, metadata={"key": "class"})
    #: HTTP method; the class's if absent.
    method: str | None = None
    #: Path and query; the class's if absent.
    path: str | None = None


@dataclass(kw_only=True)
class ServerInterval(Part):
    """One stretch between two samples of the monitor: the course of the main figures, for charts."""
    #: Length of the accept queue at its end.
    accept_queue: int | None = None
    #: Connections established, per second.
    accepted_per_s: float | None = None
    #: Context switches per second, whole machine.
    context_switches_per_s: float | None = None
    #: The CPUs that were watched.
    cpu: CpuShares | None = None
    #: Utilization of the busiest disk.
    disk_utilization: float | None = None
    #: SYNs dropped by the listener, per second.
    dropped_per_s: float | None = None
    #: Connections that are established, at its end.
    established: int | None = None
    #: Its length.
    length_s: float | None = None
    #: Bytes received and sent per second, all interfaces.
    network_bytes_per_s: float | None = None
    #: CPU time of all watched processes, in cores: 0.5 is half of one core.
    process_cores: float | None = None
    #: Of it, in user mode.
    process_cores_user: float | None = None
    #: Requests per second, as the Server Module counts them.
    requests_per_s: float | None = None
    #: TCP segments sent again, per second.
    retransmitted_per_s: float | None = None
    #: Time that the threads of watched processes waited for a CPU, per second.
    run_queue_wait: float | None = None
    #: Its beginning, seconds after the start of the load.
    t_s: float | None = None
    #: Workers that were busy on average, as the Server Module says.
    workers_busy: float | None = None


@dataclass(kw_only=True)
class SessionLoad(Part):
    """A load of sessions."""
    #: How they are spaced, as `--arrivals` writes it; `poisson` if absent.
    arrivals: str | None = None
    #: What becomes of its connections between bursts.
    between_bursts: BetweenBursts | None = None
    #: Bursts of one session; 1 if absent.
    bursts: Spread | None = None
    #: In place of `bursts`: calls of one session in all, in as many bursts as it takes.
    calls: Spread | None = None
    #: Calls of one burst; the first is answered before the others are made; 1 if absent.
    calls_per_burst: Spread | None = None
    #: Connections of one session at most.
    connections: int | None = None
    #: Whether each session keeps the cookies that it is given, and sends them.
    cookies: bool | None = None
    #: Whether the load begins as if it had always gone on.
    in_progress: bool | None = None
    #: Whether the other calls of a burst go out together on one connection, as long as the server keeps it open.
    pipelined: bool | None = None
    #: New sessions per second, whatever the server does.
    rate: float | None = None
    #: Seconds from the end of a user's session to the next one's beginning; 0 if absent.
    rest_s: Spread | None = None
    #: Whether a call whose answer is whole, but not what its class expects, is made again at once, and does not end
    #: its session.
    retry: bool | None = None
    #: Sessions that are written out, made in turn, in place of `bursts` and `calls_per_burst`.
    script: list[Script] | None = None
    #: So many sessions in all; no bound if absent.
    sessions: int | None = None
    #: In place of `bursts`: the probability that a user stays for another burst after each.
    stay: float | None = None
    #: Seconds from the last answer of a burst to the next burst's first call.
    think_s: Spread | None = None
    #: In place of a rate: so many users, each beginning another session after the last one.
    users: int | None = None


@dataclass(kw_only=True)
class SocketClass(Part):
    """Requests of one port whose answers have similar sizes, heads included."""
    #: Its name, as of the Server Module's own classes.
    name: str | None = None
    #: Which port.
    port: int | None = None
    #: Requests that had their answer before their slice's end.
    requests: int | None = None
    #: The same per second.
    requests_per_s: float | None = None
    #: Bytes of answers per second.
    sent_bytes_per_s: float | None = None
    #: As of the port.
    service_us: Elapsed | None = None
    #: As of the port.
    wait_us: Elapsed | None = None


@dataclass(kw_only=True)
class SocketPort(Part):
    """The requests of one port."""
    #: Of the requests, the share that had no answer, or not all of it, at their slice's end.
    open_share: float | None = None
    #: Which.
    port: int | None = None
    #: Bytes of requests per second, with their heads and whatever encrypts them.
    received_bytes_per_s: float | None = None
    #: Requests that were counted.
    requests: int | None = None
    #: Requests per second; `null` if nothing was attached.
    requests_per_s: float | None = None
    #: Bytes of answers per second, likewise.
    sent_bytes_per_s: float | None = None
    #: From there until the last bytes of the answer were handed to the kernel.
    service_us: Elapsed | None = None
    #: Of the requests, the share whose connection the server closed, or lost, without a byte of an answer.
    unanswered_share: float | None = None
    #: Requests that waited or were being served, on average; those without an answer at their slice's end are
    #: missing.
    under_way: float | None = None
    #: From when the first bytes of a request could be read until the server read them: its own queueing.
    wait_us: Elapsed | None = None


@dataclass(kw_only=True)
class SocketRequests(Part):
    """Requests seen on the sockets of the watched ports, by tracepoints that are attached for slices of time. A
    request is counted if its first bytes arrive in the first part of a slice, and followed until the slice ends.
    So rates are of that first part, however long requests take; and times are of those that had their answer
    before the end, with the share of those that did not beside them."""
    #: Requests of each port by the size of their answers.
    classes: list[SocketClass] | None = None
    #: The share of time in which the tracepoints were attached.
    duty: float | None = None
    #: What these figures do not tell, in words.
    limits: list[str] | None = None
    #: Each port.
    ports: list[SocketPort] | None = None
    #: How long a slice is at the end of the stretch; `null` if they are attached all the time.
    slice_s: float | None = None
    #: Slices that ended in the stretch.
    slices: int | None = None


@dataclass(kw_only=True)
class Stage(Part):
    """The rate goes linearly from where it was to `rate` within `length_s`. A stage of no length is a jump, one with
    the rate before it a level."""
    #: How long, in seconds.
    length_s: float
    #: Calls per second at its end.
    rate: float


@dataclass(kw_only=True)
class Stall(Part):
    """Shares of time (Linux's PSI, from its totals in microseconds)."""
    #: All threads that had anything to do waited. Of CPUs there is no such thing, because some thread runs on them.
    full: float | None = None
    #: Some threads waited.
    some: float


@dataclass(kw_only=True)
class Station(Part):
    """One station."""
    #: Share of the station's capacity that other work uses (between 0 and 1), from calibration.
    background: float | None = None
    #: Additional (or, if negative, saved) cost of a request while the servers are partly idle; the demands are then
    #: those at saturation.
    idle_cost: IdleCost | None = None
    #: Its name.
    name: str
    #: Service rate with 1, 2, … requests present, over the rate at which the demands hold; the last holds for any
    #: more. For a station whose speed depends on its load; empty means that it does not, beyond what `servers` says.
    rate_multipliers: list[float] | None = None
    #: The order of service.
    scheduling: Scheduling | None = None
    #: Squared coefficient of variation of the service times within each class; 1 is exponential, 0 deterministic.
    #: That of all classes together follows from their demands and rates. It has no effect under processor sharing.
    scv: float | None = None
    #: Parallel servers of a queueing station.
    servers: int | None = None
    #: Squared coefficient of variation of the service times of all requests together, at the rates of the open
    #: classes; replaces `scv`. It is at least that of the classes' mean demands.
    total_scv: float | None = None
    #: Whether requests queue at it.
    type: StationKind


@dataclass(kw_only=True)
class StationLimit(Part):
    """A station and the load at which it saturates."""
    #: The rate of all classes together, at their present mix, at which it saturates.
    saturation_rate: float
    #: Its name.
    station: str
    #: Share of what it can give to our classes that is in use; 1 or more if it cannot keep up.
    utilization: float


@dataclass(kw_only=True)
class Steady(Part):
    """A network in its steady state; by class."""
    #: R over all requests.
    mean_response_time: float
    #: R.
    response_time: list[float]
    #: X.
    throughput: list[float]


@dataclass(kw_only=True)
class Summary(Part):
    """A distribution of times, in microseconds."""
    #: Number of times.
    count: int
    #: Maximum, exact.
    max: float
    #: Mean, exact.
    mean: float
    #: Minimum, exact.
    min: float
    #: Median. All quantiles are within 0.1 %.
    p50: float
    #: 90th percentile.
    p90: float
    #: 95th percentile.
    p95: float
    #: 99th percentile.
    p99: float
    #: 99.9th percentile.
    p999: float
    #: Standard deviation.
    stddev: float


@dataclass(kw_only=True)
class Tcp(Part):
    """TCP of a network namespace, all ports."""
    #: Connections that this side began.
    active_opens_per_s: float | None = None
    #: Segments dropped because a socket's backlog was full.
    backlog_drops_per_s: float | None = None
    #: Sockets in use.
    in_use: int | None = None
    #: Packets dropped at a listener for any reason, overflows included.
    listen_drops_per_s: float | None = None
    #: Packets that found a listener's accept queue full.
    listen_overflows_per_s: float | None = None
    #: Memory of all sockets' buffers, whole machine.
    memory_bytes: int | None = None
    #: Sockets that no process holds any more, whole machine.
    orphans: int | None = None
    #: Connections that the other side began and that were established.
    passive_opens_per_s: float | None = None
    #: Resets sent.
    resets_out_per_s: float | None = None
    #: Segments sent again.
    retransmitted_per_s: float | None = None
    #: Segments received.
    segments_in_per_s: float | None = None
    #: Segments sent, without those sent again.
    segments_out_per_s: float | None = None
    #: SYN cookies sent, because the queue of half-open connections was full.
    syn_cookies_per_s: float | None = None
    #: Sockets in TIME_WAIT.
    time_wait: int | None = None


@dataclass(kw_only=True)
class Tls(Part):
    """How the connections to an `https://` URL are secured: the table `[tls]`. Keys and certificates are never in a
    document; the command line names their files."""
    #: Whether any certificate will do.
    insecure: bool | None = None
    #: The oldest version that is spoken.
    minimum: TlsVersion | None = None
    #: Whether a new connection resumes the session of an earlier one where it has a ticket for it. Without that
    #: every handshake is a full one, as those of users who come for the first time are.
    resume: bool | None = None
    #: The server's name: what it is asked for, and what its certificate has to be for; the URL's host if absent.
    sni: str | None = None


@dataclass(kw_only=True)
class Trace(Part):
    """The instants of a file."""
    #: Its path: one instant in seconds per line.
    file: str
    #: What the gaps between them are divided by.
    speed: float | None = None


@dataclass(kw_only=True)
class Url(Part):
    """One of the URLs of a class."""
    #: Bytes of the answer's body, where that is known: the size of the file that `brimful fileset` makes.
    bytes: int | None = None
    #: Path and query.
    path: str
    #: Its share of the class's calls, relative to the other URLs' weights.
    weight: float | None = None


@dataclass(kw_only=True)
class Verdict(Part):
    """Whether a run can be trusted, and whether its server worked. The two are apart: an overload test that went
    well is a valid measurement of a failing server."""
    #: Calls of `error_share` that are complete answers of 5xx or 429, not failures. Left out if zero.
    error_answers: int | None = None
    #: Share of the scheduled calls that failed, or whose answer was 5xx or 429 although the workload expects no
    #: particular status. Absent if no call was scheduled, and wherever `failing` is absent.
    error_share: float | None = None
    #: Whether more calls failed than were completed, or none was completed. Calls that this host lacked the
    #: resources for do not count; nor do attempts that S-Clients abandon, which is how they overload a server.
    #: Absent if the verdict is not of a single run.
    failing: bool | None = None
    #: The reasons why the run is not valid.
    reasons: list[Reason]
    #: Whether there are no reasons against the run: it measured the server, not the generator.
    valid: bool


@dataclass(kw_only=True)
class Workload(Part):
    """The whole document."""
    #: The request classes, at least one.
    class_: list[RequestClass] = field(metadata={"key": "class"})
    #: How calls come; absent where a command line says it, or where it is the command's own business.
    load: Load | None = None
    #: How connections to an `https://` URL are secured, where that is not as usual.
    tls: Tls | None = None


#: What becomes of a session's connections while its user thinks.
BetweenBursts: TypeAlias = Literal["keep", "close"]


#: Whether the requests of a class arrive from outside the network.
ClassKind: TypeAlias = Literal["open", "closed"]


#: How to solve a network.
Method: TypeAlias = Literal["auto", "exact", "erlang", "seidmann", "schweitzer", "linearizer", "simulation"]


#: In which order what is listed is asked for.
Order: TypeAlias = Literal["random", "listed", "once"]


#: A law of popularity, written as `zipf:0.8`.
Popularity: TypeAlias = str


#: Identifier of a reason not to trust a run.
ReasonCode: TypeAlias = Literal[
    "generator_late",
    "generator_cpu",
    "generator_stalled",
    "generator_panicked",
    "descriptors",
    "ports",
    "memory",
    "body_file",
    "beyond_client_max",
    "shard_lost",
    "unbalanced",
    "interrupted",
    "server_died",
    "other_work",
    "incomplete",
    "server_errors",
    "rate_limited",
    "throttled",
    "server_changed",
    "model_refuted",
]


#: The order of service at a queueing station.
Scheduling: TypeAlias = Literal["ps", "fcfs", "priority", "preemptive"]


#: The digest of a body.
Sha256: TypeAlias = str


#: A distribution of numbers that are not negative; the unit is that of the field.
Spread: TypeAlias = float | str


#: Whether requests queue at a station.
StationKind: TypeAlias = Literal["queue", "delay"]


#: One of several.
Status: TypeAlias = int | str


#: A version of TLS.
TlsVersion: TypeAlias = Literal["1.2", "1.3"]


#: Some status codes.
Statuses: TypeAlias = int | str | list[Status]
