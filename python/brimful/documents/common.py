"""Parts that several documents share. Written by document_types.py from schema/."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Part


@dataclass(kw_only=True)
class AcceptQueue(Part):
    """The accept queue of one listening socket."""
    #: Highest number of connections that waited to be accepted, over all samples.
    length: int | None = None
    #: Number of connections that may wait; Linux admits one more.
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
    #: The server's clock minus the generator's, in seconds.
    offset_s: float
    #: Bound of the error of the offset: half the shortest round trip, plus half the drift observed over the run.
    uncertainty_s: float


@dataclass(kw_only=True)
class Core(Part):
    """One CPU."""
    #: Number of the CPU.
    cpu: int
    #: Idle, including waiting for disks.
    idle: float | None = None
    #: Part of `system`: interrupts and softirqs, which do most of TCP's receive work.
    interrupt: float | None = None
    #: Part of `idle` in which a thread waited for a disk.
    io_wait: float | None = None
    #: Time that the hypervisor gave to other guests.
    steal: float | None = None
    #: Kernel, including interrupts.
    system: float | None = None
    #: User mode, including niced threads and guests.
    user: float | None = None


@dataclass(kw_only=True)
class CpuDemand(Part):
    """CPU demand of one request of a class, in microseconds: the mean m of its sampled CPU time plus its part of the
    unexplained CPU time, ```text D = m + (C − Σ mⱼ nⱼ) / N ``` where C is the CPU time of the server's processes
    in the interval (of its workers, if the kernel does not provide that), nⱼ the requests of class j and N all
    requests. The demands of all requests thus add up to C, whatever the sample."""
    #: Half width of the 95 % confidence interval of D. It covers the sampling error and the error of C at the ends
    #: of the interval, as C is known only in clock ticks or at sampled requests.
    ci95_half_width: float
    #: The mean demand D.
    mean: float
    #: Standard deviation of the sampled CPU time.
    stddev: float


@dataclass(kw_only=True)
class CpuParts(Part):
    """Mean CPU time of a request by phase, in microseconds."""
    #: Writing the log line.
    log: float | None = None
    #: Reading and parsing the head.
    parse: float | None = None
    #: Generating the answer and handing it to the kernel.
    process: float | None = None


@dataclass(kw_only=True)
class CpuQuota(Part):
    """A CPU quota of a control group, and how often it was exhausted."""
    #: The quota in CPUs: 0.5 is half of one CPU.
    cpus: float
    #: The directory of the group.
    group: str
    #: Share of the quota's periods in which it was exhausted, so that threads were throttled until the next period.
    throttled_periods: float
    #: Time for which threads were throttled, summed over CPUs.
    throttled_s: float


@dataclass(kw_only=True)
class CpuShares(Part):
    """Shares of CPU time; the sum of `user`, `system`, `idle` and `steal` is 1."""
    #: Idle, including waiting for disks.
    idle: float | None = None
    #: Part of `system`: interrupts and softirqs, which do most of TCP's receive work.
    interrupt: float | None = None
    #: Part of `idle` in which a thread waited for a disk.
    io_wait: float | None = None
    #: Time that the hypervisor gave to other guests.
    steal: float | None = None
    #: Kernel, including interrupts.
    system: float | None = None
    #: User mode, including niced threads and guests.
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
    """Traffic of a disk. A block is 512 bytes, whatever the disk's own block size."""
    #: Blocks read.
    blocks_read_per_s: float | None = None
    #: Blocks written.
    blocks_written_per_s: float | None = None
    #: Mean number of operations in progress.
    queue_length: float | None = None
    #: Read operations completed.
    reads_per_s: float | None = None
    #: Share of time in which an operation was in progress; for several disks, that of the busiest.
    utilization: float | None = None
    #: Write operations completed.
    writes_per_s: float | None = None


@dataclass(kw_only=True)
class Elapsed(Part):
    """Elapsed times, in microseconds. Percentiles are interpolated in buckets, four to an octave: their error is at
    most 25 %, and a few percent if many times are spread over several buckets."""
    #: Number of requests that had this phase.
    count: int
    #: Mean.
    mean: float
    #: Median.
    p50: float
    #: 90th percentile.
    p90: float
    #: 99th percentile.
    p99: float
    #: Standard deviation.
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
    """The expectations of all answers to a class."""
    #: Bytes of content as sent; for a compressed answer, the compressed size.
    length: int | None = None
    #: SHA-256 of the content as sent, in 64 hexadecimal digits.
    sha256: Sha256 | None = None
    #: The status: 200, "2xx", or several of these; any status if absent.
    status: Statuses | None = None


@dataclass(kw_only=True)
class FileSet(Part):
    """Files below the class's path."""
    #: Size of a file in bytes, or the distribution of sizes, for `brimful fileset`.
    bytes: Spread | None = None
    #: Number of files.
    files: int
    #: Number of the first file of such a walk.
    first: int | None = None
    #: If set, calls request the files in order, and this share of calls advances to the next file: every fourth call
    #: with 0.25, every call including the first with 1. The first file follows the last. If absent, each call
    #: requests a random file.
    ratio: float | None = None
    #: Number of files that such a walk advances by, for clients that share a set: each begins at its own file and
    #: advances by the number of clients.
    stride: int | None = None


@dataclass(kw_only=True)
class HostProbe(Part):
    """Speed of one CPU of a host, measured for about ten milliseconds. Both figures vary when neighbours share the
    cache, the core or the clock frequency. Runs are comparable if their probes are."""
    #: Integer operations, each of which depends on the result of the previous one, in millions per second.
    arithmetic_mops: float
    #: Reads from random addresses in 16 MiB, each at an address that the previous read returned, in millions per
    #: second.
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
    #: Interrupts of all devices, including timers.
    all_per_s: float | None = None
    #: Softirqs of disks (BLOCK).
    disk_per_s: float | None = None
    #: Softirqs of the network (NET_RX and NET_TX), each caused by a device interrupt or a poll.
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
    #: Length of the accept queue at the end of the interval.
    accept_queue: int | None = None
    #: Length of the longest accept queue in any sample.
    accept_queue_max: int | None = None
    #: Connections established; `sources` says whether they include those of other ports.
    accepted_per_s: float | None = None
    #: Limit of the accept queue, summed over all sockets.
    backlog: int | None = None
    #: SYNs and connections that these sockets dropped because the accept queue was full or memory was short.
    dropped_per_s: float | None = None
    #: The socket that was nearest to its limit. A full socket drops connections even if others have room.
    fullest: AcceptQueue | None = None
    #: Number of sockets: IPv4 and IPv6, or one for each worker (SO_REUSEPORT).
    sockets: int | None = None
    #: SYNs received, both accepted and dropped.
    syn_per_s: float | None = None


@dataclass(kw_only=True)
class Load(Part):
    """The arrivals of calls."""
    #: Arrival process of an open load, in the notation of `--arrivals`; `constant` if absent.
    arrivals: str | None = None
    #: Closed load: number of clients, each of which waits for its answer.
    clients: int | None = None
    #: Open load: the requests of access logs.
    log: LogReplay | None = None
    #: Open load: calls per second, independent of the server; with `stages`, the rate before the first stage.
    rate: float | None = None
    #: S-Clients: number of connection attempts in progress at all times.
    s_clients: int | None = None
    #: Sessions: bursts of calls with think times in between.
    sessions: SessionLoad | None = None
    #: Open load: stages between which the rate changes linearly.
    stages: list[Stage] | None = None
    #: Closed load: time between an answer and the client's next call, in seconds; 0 if absent.
    think_s: float | None = None
    #: Open load: the instants of a file.
    trace: Trace | None = None


@dataclass(kw_only=True)
class LogReplay(Part):
    """The requests of access logs."""
    #: Paths of the logs.
    files: list[str]
    #: Whether the requests are made at a constant rate instead of at their logged times.
    flattened: bool | None = None
    #: Maximum pause between two calls; longer pauses are shortened to it.
    max_gap_s: float | None = None
    #: Factor by which the gaps between requests are divided.
    speed: float | None = None


@dataclass(kw_only=True)
class Memory(Part):
    """Memory, whole machine."""
    #: Memory that programs could still allocate without swapping.
    available_bytes: int | None = None
    #: Size of the memory.
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
    """Server Module group: requests as measured inside the servers (WebMonitor, §3.2)."""
    #: Each class of request of each server.
    classes: list[ModuleClass] | None = None
    #: The servers, one for each file that a module writes. A server that replaced its file during the interval
    #: appears twice, each time with its part of the interval.
    servers: list[ModuleServer] | None = None


@dataclass(kw_only=True)
class ModuleClass(Part):
    """One class of request, from inside the server."""
    #: Requests of `requests` whose client disconnected before it had the answer.
    aborted: int | None = None
    #: Bytes of bodies sent.
    bytes_per_s: float | None = None
    #: Half width of the 95 % confidence interval of the mean of `cpu_us`.
    cpu_ci95_half_width_us: float | None = None
    #: Share of the sampled requests whose thread served other requests in between, so that their CPU time is not
    #: known.
    cpu_mixed: float | None = None
    #: The mean of `cpu_us` by phase.
    cpu_parts_us: CpuParts | None = None
    #: CPU time of one request, user and system, on the thread that served it. Reading that clock is expensive, so
    #: only few requests are sampled.
    cpu_us: Sampled | None = None
    #: CPU demand of a request, including its part of the unexplained CPU time.
    demand_us: CpuDemand | None = None
    #: Requests of `requests` that were answered with 5xx.
    failed: int | None = None
    #: Name of the class. A class of the Record with the same name has the same requests.
    name: str | None = None
    #: Elapsed time by phase.
    phases_us: Phases | None = None
    #: Requests served: all that have a line in the access log.
    requests: int | None = None
    #: Requests served per second.
    requests_per_s: float | None = None
    #: Index of its server in `servers`, from 0.
    server: int | None = None
    #: How often a worker resumed each request on average: once, and again each time that it had set it aside to wait
    #: for the client or for an upstream server. A worker that blocks while it waits, as most of Apache's do, counts
    #: once.
    turns: float | None = None


@dataclass(kw_only=True)
class ModuleServer(Part):
    """A server that has the module loaded."""
    #: Blocks of 512 bytes that its processes read from disks, per request.
    blocks_read_per_request: float | None = None
    #: Connections accepted.
    connections_per_s: float | None = None
    #: CPU time of its workers per second: 1.5 is one and a half CPUs.
    cores: float | None = None
    #: One in this many requests has its CPU time measured, or fewer at high request rates; 0 if none has.
    cpu_one_in: int | None = None
    #: CPU time of its processes in the kernel, per request.
    cpu_system_us: float | None = None
    #: CPU time of its processes in user mode, per request. Linux splits CPU time by sampling at clock ticks, every
    #: few milliseconds, so this is known only for many requests together, not by class.
    cpu_user_us: float | None = None
    #: The file that its module writes.
    file: str | None = None
    #: Name and version of the server's software, like `nginx/1.22.1`.
    name: str | None = None
    #: Read calls of its processes per request, as the kernel counts them (`syscr` of proc(5)): those on files, and
    #: on sockets if the server reads them by `read`.
    reads_per_request: float | None = None
    #: Whether the module records new requests; recording can be turned off.
    recording: bool | None = None
    #: Requests in progress at the end of the interval.
    requests_in_progress: int | None = None
    #: Requests of all classes.
    requests_per_s: float | None = None
    #: CPU time of its workers per request beyond that measured in the phases of requests: accepting and closing
    #: connections, waiting for events. Negative if that is less than the overhead of measuring a request.
    unexplained_cpu_us: float | None = None
    #: Workers at the end of the interval: processes, or threads if threads serve requests.
    workers: int | None = None
    #: Mean number of busy workers.
    workers_busy: float | None = None
    #: Workers for which the file had no room. The figures do not include their requests.
    workers_lost: int | None = None
    #: Highest number of requests or connections that the server handles at a time, if it has such a limit.
    workers_most: int | None = None


@dataclass(kw_only=True)
class Network(Part):
    """Network group: the network of one namespace."""
    #: Collisions on a shared wire, which modern networks do not have.
    collisions_per_s: float | None = None
    #: Each interface by name, without those that appeared, disappeared or reset their counters during the interval.
    interfaces: dict[str, NetworkTraffic] | None = None
    #: Packets that the kernel dropped because a CPU's receive queue was full, whole machine.
    queue_overflows_per_s: float | None = None
    #: Bytes received.
    rx_bytes_per_s: float | None = None
    #: Packets received but dropped, because memory was short or no protocol accepted them.
    rx_dropped_per_s: float | None = None
    #: Packets received with errors.
    rx_errors_per_s: float | None = None
    #: Packets received.
    rx_packets_per_s: float | None = None
    #: TCP of this namespace.
    tcp: Tcp | None = None
    #: Bytes sent.
    tx_bytes_per_s: float | None = None
    #: Packets dropped before they were sent.
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
    #: Packets received but dropped, because memory was short or no protocol accepted them.
    rx_dropped_per_s: float
    #: Packets received with errors.
    rx_errors_per_s: float
    #: Packets received.
    rx_packets_per_s: float
    #: Bytes sent.
    tx_bytes_per_s: float
    #: Packets dropped before they were sent.
    tx_dropped_per_s: float
    #: Packets that could not be sent.
    tx_errors_per_s: float
    #: Packets sent.
    tx_packets_per_s: float


@dataclass(kw_only=True)
class Overhead(Part):
    """Cost of monitoring."""
    #: CPU time of the monitor's thread, or of all of `brimful watch`.
    monitor_cpu_s: float
    #: CPU time of one sample, in microseconds.
    per_sample_us: float
    #: Number of samples taken.
    samples: int


@dataclass(kw_only=True)
class Paging(Part):
    """Paging per second, whole machine. A page is the machine's (4 KiB on most)."""
    #: Page faults that had to wait for a disk.
    major_faults_per_s: float | None = None
    #: Pages read from disks, both file contents and swap.
    page_ins_per_s: float | None = None
    #: Pages written to disks, both file contents and swap.
    page_outs_per_s: float | None = None
    #: Pages read from swap.
    swap_ins_per_s: float | None = None
    #: Pages written to swap.
    swap_outs_per_s: float | None = None


@dataclass(kw_only=True)
class Phases(Part):
    """Elapsed time of a request by phase: WebMonitor's three phases (parse, process, log), separate from the time
    that the client took (head, send) and that other servers took (upstream). Their sum is the time from the first
    byte of the request to its log line."""
    #: Time from the first byte of the request to the last of its head, which depends on the client.
    head: Elapsed | None = None
    #: Writing the log.
    log: Elapsed | None = None
    #: Reading and parsing the head.
    parse: Elapsed | None = None
    #: Generating the answer and handing it to the kernel, without `upstream` and `send`.
    process: Elapsed | None = None
    #: Waiting until the client has read enough for the rest of the answer to be sent, which depends on the client.
    send: Elapsed | None = None
    #: Waiting for an upstream server.
    upstream: Elapsed | None = None


@dataclass(kw_only=True)
class Port(Part):
    """One port of the server."""
    #: Its connections by TCP state. States that the source does not report are left out; others are present even if
    #: 0.
    connections: dict[str, int] | None = None
    #: Its listening sockets together, at the end of the interval; `null` if no socket listened.
    listener: Listener | None = None
    #: The port number.
    port: int | None = None


@dataclass(kw_only=True)
class Pressure(Part):
    """Pressure on each resource."""
    #: Waiting for CPUs.
    cpu: Stall | None = None
    #: Waiting for disks.
    io: Stall | None = None
    #: Waiting for memory.
    memory: Stall | None = None


@dataclass(kw_only=True)
class Program(Part):
    """Process group: one program, which is a set of processes with their descendants. Totals are over the interval."""
    #: Context switches, voluntary and not.
    context_switches: int | None = None
    #: CPU time per second: 1.5 is one and a half CPUs.
    cores: float | None = None
    #: CPU time, by a clock of nanoseconds. For a process that ended, it is the last value read, which is complete if
    #: its parent waited for it. A process that started and ended between two samples and that no parent waited for
    #: is missing.
    cpu_s: float | None = None
    #: Part of `cpu_s` in the kernel.
    cpu_s_system: float | None = None
    #: Part of `cpu_s` in user mode, by the kernel's ratio of user to system time.
    cpu_s_user: float | None = None
    #: Processes that samples showed to have ended.
    ended: int | None = None
    #: Page faults that had to wait for a disk.
    major_faults: int | None = None
    #: `rss_bytes` as a share of the machine's memory; more than 1 is possible where pages are shared.
    memory_share: float | None = None
    #: Its name.
    name: str | None = None
    #: Its processes.
    pids: list[int] | None = None
    #: Number of its processes: *started processes* in Table 2.
    processes: int | None = None
    #: The CPU quota of its control group or of one above it. Of several quotas, it is the one that throttled it
    #: longest, or else the lowest. Left out if there is none, or if it cannot be read.
    quota: CpuQuota | None = None
    #: Resident memory; shared pages count once per process. The kernel updates this total in batches, so up to 96
    #: pages (384 KiB) per process and CPU may be missing.
    rss_bytes: int | None = None
    #: Time for which its threads were ready and waited for a CPU.
    run_queue_wait_s: float | None = None
    #: Its threads that run or wait for a CPU: *running processes* in Table 2.
    running: int | None = None
    #: Processes that samples showed to have started.
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
    #: In place of `body`: path of a file with the request body, relative to the working directory. It is sent in
    #: pieces as the server reads them, with its size at the start of the run as `Content-Length`.
    body_file: str | None = None
    #: A file of comma-separated values for `{csv.COLUMN}`, whose first line names the columns. The n-th call of the
    #: class uses the n-th row, starting over after the last.
    csv: str | None = None
    #: Expectations of answers; an answer that does not match is `unexpected`, which is a failure.
    expect: Expect | None = None
    #: A set of files below `path`.
    file_set: FileSet | None = None
    #: Extra header fields.
    headers: dict[str, str] | None = None
    #: HTTP method.
    method: str | None = None
    #: Unique name of the class, for tables and documents.
    name: str
    #: The order in which the entries of a list are requested.
    order: Order | None = None
    #: Path and query; the URL on the command line provides scheme and authority. Left out if there are `urls`. Here,
    #: in `urls`, in the values of `headers` and in `body`, every call fills in the placeholders `{seq}`, `{uuid}`,
    #: `{rand:1-500}` and `{csv.COLUMN}` anew.
    path: str | None = None
    #: Law of the request frequency of URLs or files by their place in the list or set: `zipf:0.8`. If absent, their
    #: weights determine it.
    popularity: Popularity | None = None
    #: In place of `urls`: a file of requests, one JSON object per line with a path and optionally method, headers,
    #: body, class, weight and bytes. If requests name a class, this class has only its own.
    requests_file: str | None = None
    #: In place of `path`: URLs, requested in proportion to their weights.
    urls: list[Url] | None = None
    #: In place of `urls`: a file of URLs, one per line, each optionally with its weight and its bytes: `/a.png 3
    #: 4096`.
    urls_file: str | None = None
    #: Share of the calls, relative to the other classes' weights.
    weight: float | None = None


@dataclass(kw_only=True)
class Sampled(Part):
    """Times of a sample of the requests, in microseconds."""
    #: Number of sampled requests.
    count: int
    #: Mean.
    mean: float
    #: Standard deviation.
    stddev: float


@dataclass(kw_only=True)
class Script(Part):
    """One scripted session."""
    #: The bursts, at least one.
    bursts: list[ScriptedBurst]


@dataclass(kw_only=True)
class ScriptedBurst(Part):
    """One burst of a session."""
    #: The calls, at least one; the others are sent after the first is answered.
    calls: list[ScriptedCall]
    #: Seconds from the burst's last answer to the next burst; drawn from the sessions' `think_s` if absent.
    think_s: float | None = None


@dataclass(kw_only=True)
class ScriptedCall(Part):
    """One call of a burst."""
    #: Request body; the class's if absent.
    body: str | None = None
    #: The class that the call is reported under; the first class if absent.
    class_: str | None = field(default=None, metadata={"key": "class"})
    #: HTTP method; the class's if absent.
    method: str | None = None
    #: Path and query; the class's if absent.
    path: str | None = None


@dataclass(kw_only=True)
class ServerInterval(Part):
    """The main figures of the interval between two samples of the monitor, for charts."""
    #: Length of the accept queue at the end of the interval.
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
    #: Established connections at the end of the interval.
    established: int | None = None
    #: Length of the interval.
    length_s: float | None = None
    #: Bytes received and sent per second, all interfaces.
    network_bytes_per_s: float | None = None
    #: CPU time of all watched processes, in cores: 0.5 is half of one core.
    process_cores: float | None = None
    #: CPU time of all watched processes in user mode, in cores.
    process_cores_user: float | None = None
    #: Requests per second, as the Server Module counts them.
    requests_per_s: float | None = None
    #: TCP segments retransmitted per second.
    retransmitted_per_s: float | None = None
    #: Time that the threads of watched processes waited for a CPU, per second.
    run_queue_wait: float | None = None
    #: Start of the interval, in seconds after the start of the load.
    t_s: float | None = None
    #: Mean number of busy workers, as the Server Module reports it.
    workers_busy: float | None = None


@dataclass(kw_only=True)
class SessionLoad(Part):
    """A load of sessions."""
    #: Arrival process of sessions, in the notation of `--arrivals`; `poisson` if absent.
    arrivals: str | None = None
    #: What happens to a session's connections between bursts.
    between_bursts: BetweenBursts | None = None
    #: Bursts of a session; 1 if absent.
    bursts: Spread | None = None
    #: In place of `bursts`: calls of a session, in as many bursts as necessary.
    calls: Spread | None = None
    #: Calls of a burst; the others are sent after the first is answered; 1 if absent.
    calls_per_burst: Spread | None = None
    #: Highest number of connections of a session.
    connections: int | None = None
    #: Whether each session stores the cookies that it receives, and sends them.
    cookies: bool | None = None
    #: Whether the load begins in its steady state.
    in_progress: bool | None = None
    #: Whether the other calls of a burst are sent together on one connection, as long as the server keeps it open.
    pipelined: bool | None = None
    #: New sessions per second, independent of the server.
    rate: float | None = None
    #: Seconds from the end of a user's session to the start of the next one; 0 if absent.
    rest_s: Spread | None = None
    #: Whether a call with a complete but unexpected answer is repeated at once, instead of ending its session.
    retry: bool | None = None
    #: In place of `bursts` and `calls_per_burst`: scripted sessions, which are made in turn.
    script: list[Script] | None = None
    #: Total number of sessions; no bound if absent.
    sessions: int | None = None
    #: In place of `bursts`: the probability that the user stays for another burst after each.
    stay: float | None = None
    #: Seconds from the last answer of a burst to the next burst's first call.
    think_s: Spread | None = None
    #: In place of `rate`: number of users, each of whom begins another session after the last one.
    users: int | None = None


@dataclass(kw_only=True)
class SocketClass(Part):
    """Requests of one port whose answers have similar sizes, including heads."""
    #: Name of the class, like those of the Server Module's classes.
    name: str | None = None
    #: The port number.
    port: int | None = None
    #: Requests that were answered before their slice ended.
    requests: int | None = None
    #: Requests that were answered before their slice ended, per second.
    requests_per_s: float | None = None
    #: Bytes of answers per second.
    sent_bytes_per_s: float | None = None
    #: As in `SocketPort::service_us`.
    service_us: Elapsed | None = None
    #: As in `SocketPort::wait_us`.
    wait_us: Elapsed | None = None


@dataclass(kw_only=True)
class SocketPort(Part):
    """The requests of one port."""
    #: Share of the requests that had no complete answer when their slice ended.
    open_share: float | None = None
    #: The port number.
    port: int | None = None
    #: Bytes of requests per second, including heads and TLS.
    received_bytes_per_s: float | None = None
    #: Requests that were counted.
    requests: int | None = None
    #: Requests per second; `null` if nothing was attached.
    requests_per_s: float | None = None
    #: Bytes of answers per second, including heads and TLS.
    sent_bytes_per_s: float | None = None
    #: Time from when the server read the request until the last bytes of the answer were handed to the kernel.
    service_us: Elapsed | None = None
    #: Share of the requests whose connection the server closed or lost without sending a byte of an answer.
    unanswered_share: float | None = None
    #: Mean number of requests that waited or were being served, without those still unanswered when their slice
    #: ended.
    under_way: float | None = None
    #: Time from when the first bytes of a request were readable until the server read them: queueing in the server.
    wait_us: Elapsed | None = None


@dataclass(kw_only=True)
class SocketRequests(Part):
    """Requests observed on the sockets of the watched ports, by tracepoints that are attached for slices of time. A
    request is counted if its first bytes arrive in the first part of a slice, and is followed until the slice
    ends. Rates are those of the first part, however long requests take. Times are those of requests answered
    before the slice ended; the share of the others is reported beside them."""
    #: Requests of each port by the size of their answers.
    classes: list[SocketClass] | None = None
    #: The share of time in which the tracepoints were attached.
    duty: float | None = None
    #: Limitations of these figures, in words.
    limits: list[str] | None = None
    #: Each port.
    ports: list[SocketPort] | None = None
    #: Length of a slice at the end of the interval; `null` if the tracepoints are attached all the time.
    slice_s: float | None = None
    #: Slices that ended in the interval.
    slices: int | None = None


@dataclass(kw_only=True)
class Stage(Part):
    """A stage in which the rate changes linearly from the previous one to `rate`. With a length of zero it is a
    step; with the previous rate, the rate is constant."""
    #: Length of the stage, in seconds.
    length_s: float
    #: Calls per second at the end of the stage.
    rate: float


@dataclass(kw_only=True)
class Stall(Part):
    """Shares of time in which threads waited for a resource (Linux's PSI, from its totals in microseconds)."""
    #: All threads that were not idle waited. Absent for CPUs, because one of the threads is always running.
    full: float | None = None
    #: At least one thread waited.
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
    #: For a station with load-dependent speed: its service rate with 1, 2, … requests present, relative to the rate
    #: that the demands assume; the last one applies to more requests as well. If empty, the speed depends on the
    #: load only through `servers`.
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
    #: Connections that this side initiated.
    active_opens_per_s: float | None = None
    #: Segments dropped because a socket's backlog was full.
    backlog_drops_per_s: float | None = None
    #: Sockets in use.
    in_use: int | None = None
    #: Packets dropped at a listener for any reason, including overflows.
    listen_drops_per_s: float | None = None
    #: Packets that found a listener's accept queue full.
    listen_overflows_per_s: float | None = None
    #: Memory of all socket buffers, whole machine.
    memory_bytes: int | None = None
    #: Sockets that no process has open any more, whole machine.
    orphans: int | None = None
    #: Connections that peers initiated and that were established.
    passive_opens_per_s: float | None = None
    #: Resets sent.
    resets_out_per_s: float | None = None
    #: Segments retransmitted.
    retransmitted_per_s: float | None = None
    #: Segments received.
    segments_in_per_s: float | None = None
    #: Segments sent, without retransmissions.
    segments_out_per_s: float | None = None
    #: SYN cookies sent, because the queue of half-open connections was full.
    syn_cookies_per_s: float | None = None
    #: Sockets in TIME_WAIT.
    time_wait: int | None = None


@dataclass(kw_only=True)
class Tls(Part):
    """TLS settings of the connections to an `https://` URL: the table `[tls]`. Documents never contain keys and
    certificates; the command line names their files."""
    #: Whether any certificate is accepted.
    insecure: bool | None = None
    #: The oldest permitted version.
    minimum: TlsVersion | None = None
    #: Whether a new connection resumes an earlier TLS session if it has a ticket. Otherwise every handshake is a
    #: full one, like that of a new user.
    resume: bool | None = None
    #: The server name that is sent, and that the certificate must be valid for; the URL's host if absent.
    sni: str | None = None


@dataclass(kw_only=True)
class Trace(Part):
    """The recorded instants of a file."""
    #: Path of the file, which has one instant in seconds per line.
    file: str
    #: Factor by which the gaps between instants are divided.
    speed: float | None = None


@dataclass(kw_only=True)
class Url(Part):
    """One of the URLs of a class."""
    #: Bytes of the answer's body, if known; `brimful fileset` makes files of this size.
    bytes: int | None = None
    #: Path and query.
    path: str
    #: Share of the class's calls, relative to the other URLs' weights.
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
    """The load of a run: its requests and their arrivals."""
    #: The request classes, at least one.
    class_: list[RequestClass] = field(metadata={"key": "class"})
    #: The arrivals of calls; absent if the command line or the command determines them.
    load: Load | None = None
    #: TLS settings of connections to an `https://` URL, if they differ from the defaults.
    tls: Tls | None = None


#: What happens to a session's connections during think times.
BetweenBursts: TypeAlias = Literal["keep", "close"]


#: Whether the requests of a class arrive from outside the network.
ClassKind: TypeAlias = Literal["open", "closed"]


#: How to solve a network.
Method: TypeAlias = Literal["auto", "exact", "erlang", "seidmann", "schweitzer", "linearizer", "simulation"]


#: The order in which the entries of a list are requested.
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


#: The SHA-256 digest of a body.
Sha256: TypeAlias = str


#: A distribution of non-negative numbers, in the unit of the field.
Spread: TypeAlias = float | str


#: Whether requests queue at a station.
StationKind: TypeAlias = Literal["queue", "delay"]


#: One of several statuses.
Status: TypeAlias = int | str


#: A version of TLS.
TlsVersion: TypeAlias = Literal["1.2", "1.3"]


#: A set of status codes.
Statuses: TypeAlias = int | str | list[Status]
