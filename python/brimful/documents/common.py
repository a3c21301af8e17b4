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
    #: Number of connections that may wait to be accepted; Linux admits one more.
    limit: int | None = None


@dataclass(kw_only=True)
class Axis(Part):
    """A range of a scenario."""
    #: The figure that differs from point to point, such as `cpu.speed`.
    subject: str
    #: Unit of the figure: `x` (a factor), `%` (a relative change), `1/s`, `s`, `bit/s`, `B`, or empty.
    unit: str


@dataclass(kw_only=True)
class ClockOffset(Part):
    """The offset between the monotonic clocks of two hosts, measured by exchanging clock readings (Cristian 1989)."""
    #: The server's clock minus the generator's, in seconds.
    offset_s: float
    #: Bound of the error of the offset: half the shortest round trip, plus half the drift observed over the run.
    uncertainty_s: float


@dataclass(kw_only=True)
class Core(Part):
    """Figures of one CPU."""
    #: Number of the CPU.
    cpu: int
    #: Idle time, including waiting for disks.
    idle: float | None = None
    #: Part of `system`: time in interrupts and softirqs, which do most of TCP's receive work.
    interrupt: float | None = None
    #: Part of `idle`: time in which a thread waited for a disk.
    io_wait: float | None = None
    #: Time that the hypervisor gave to other guests.
    steal: float | None = None
    #: Time in the kernel, including interrupts.
    system: float | None = None
    #: Time in user mode, including niced threads and guests.
    user: float | None = None


@dataclass(kw_only=True)
class CpuDemand(Part):
    """CPU demand of one request of a class, in microseconds: the mean m of its sampled CPU time plus its share of
    the unexplained CPU time: ```text D = m + (C − Σ mⱼ nⱼ) / N ``` where C is the CPU time of the server's
    processes in the interval (of its workers, if the kernel does not provide that), nⱼ the requests of class j
    and N all requests. The demands of all requests thus add up to C, whatever the sample."""
    #: Half width of the 95 % confidence interval of D. It covers the sampling error, and the error of C at the ends
    #: of the interval: C is known only at clock ticks or at sampled requests.
    ci95_half_width: float
    #: The mean demand D.
    mean: float
    #: Standard deviation of the sampled CPU time.
    stddev: float


@dataclass(kw_only=True)
class CpuParts(Part):
    """Mean CPU time of a request by phase, in microseconds."""
    #: CPU time to write the log line.
    log: float | None = None
    #: CPU time to read and parse the head.
    parse: float | None = None
    #: CPU time to generate the answer and to hand it to the kernel.
    process: float | None = None


@dataclass(kw_only=True)
class CpuQuota(Part):
    """A CPU quota of a control group, with the time for which it throttled the group."""
    #: The quota as a number of CPUs: 0.5 is half of one CPU.
    cpus: float
    #: Directory of the control group.
    group: str
    #: Share of the quota's periods in which it was exhausted, so that threads were throttled until the next period.
    throttled_periods: float
    #: Time for which threads were throttled, summed over CPUs.
    throttled_s: float


@dataclass(kw_only=True)
class CpuShares(Part):
    """Shares of CPU time; the sum of `user`, `system`, `idle` and `steal` is 1."""
    #: Idle time, including waiting for disks.
    idle: float | None = None
    #: Part of `system`: time in interrupts and softirqs, which do most of TCP's receive work.
    interrupt: float | None = None
    #: Part of `idle`: time in which a thread waited for a disk.
    io_wait: float | None = None
    #: Time that the hypervisor gave to other guests.
    steal: float | None = None
    #: Time in the kernel, including interrupts.
    system: float | None = None
    #: Time in user mode, including niced threads and guests.
    user: float | None = None


@dataclass(kw_only=True)
class Curve(Part):
    """A model along one range, or over the grid of two."""
    #: The ranges of the scenario, one per axis.
    axes: list[Axis]
    #: The classes, in the order of the points' figures.
    classes: list[str]
    #: The points; with two ranges, the second one changes fastest.
    points: list[CurvePoint]
    #: The stations, in the order of the points' figures.
    stations: list[str]


@dataclass(kw_only=True)
class CurvePoint(Part):
    """One point of a curve."""
    #: The station that saturates first; empty if no station ever does.
    bottleneck: str
    #: The rate of all classes together, at their mix at this point, at which the first station saturates.
    saturation_rate: float | None = None
    #: The steady state at this point; `None` if there is no solution.
    steady: Steady | None = None
    #: The reason why there is no solution: a station cannot keep up, or a solver failed.
    unsolved: str | None = None
    #: Share in use of the capacity that each station has for the model's classes; 1 or more if the station cannot
    #: keep up. For a delay, it is the number of requests present. If there is no solution, closed classes are not
    #: included.
    utilization: list[float]
    #: The number on each axis.
    x: list[float]


@dataclass(kw_only=True)
class Disk(Part):
    """Traffic of a disk. A block is 512 bytes, whatever the disk's own block size."""
    #: Blocks read per second.
    blocks_read_per_s: float | None = None
    #: Blocks written per second.
    blocks_written_per_s: float | None = None
    #: Mean number of operations in progress.
    queue_length: float | None = None
    #: Read operations completed per second.
    reads_per_s: float | None = None
    #: Share of time in which an operation was in progress; for several disks, the share of the busiest one.
    utilization: float | None = None
    #: Write operations completed per second.
    writes_per_s: float | None = None


@dataclass(kw_only=True)
class Elapsed(Part):
    """Elapsed times, in microseconds. Percentiles are interpolated in buckets, four to an octave. Their error is at
    most 25 %, and a few percent if there are many times in several buckets."""
    #: Number of requests that had this phase.
    count: int
    #: Mean time.
    mean: float
    #: Median time.
    p50: float
    #: 90th percentile of the times.
    p90: float
    #: 99th percentile of the times.
    p99: float
    #: Standard deviation of the times.
    stddev: float


@dataclass(kw_only=True)
class Estimate(Part):
    """A number that was fitted or simulated."""
    #: Half width of the 95 % confidence interval; `None` if the data have no degrees of freedom to estimate it.
    ci95_half_width: float | None = None
    #: The estimated value.
    value: float


@dataclass(kw_only=True)
class Expect(Part):
    """Expectations that every answer to a class must match."""
    #: Expected size of the content as sent, in bytes; for a compressed answer, the compressed size.
    length: int | None = None
    #: Expected SHA-256 of the content as sent, in 64 hexadecimal digits.
    sha256: Sha256 | None = None
    #: Expected status: 200, "2xx", or several of these; any status if absent.
    status: Statuses | None = None


@dataclass(kw_only=True)
class FileSet(Part):
    """Files below the class's path."""
    #: Size of a file in bytes, or the distribution of sizes, for `brimful fileset`.
    bytes: Spread | None = None
    #: Number of files.
    files: int
    #: Number of the first file that is requested if the files are requested in order.
    first: int | None = None
    #: Share of the calls that advance to the next file; calls then request the files in order. With 0.25, every
    #: fourth call advances; with 1, every call advances, including the first. The first file follows the last. If
    #: absent, each call requests a random file.
    ratio: float | None = None
    #: Number of files by which a call advances, for clients that share a set: each begins at its own file and
    #: advances by the number of clients.
    stride: int | None = None


@dataclass(kw_only=True)
class HostProbe(Part):
    """Speed of one CPU of a host, measured for about ten milliseconds. Both figures vary when neighbours share the
    cache, the core or the clock frequency. Runs are comparable if their probes are similar."""
    #: Millions of integer operations per second. Each operation depends on the result of the previous one.
    arithmetic_mops: float
    #: Millions of reads per second from random addresses in 16 MiB. Each read returns the address of the next one.
    memory_mreads: float


@dataclass(kw_only=True)
class IdleCost(Part):
    """Dependence of a queue's demands on its load. On average, a request of each visiting class needs
    `seconds`·I^`power` more than its demand. I is the idle share (0 to 1) of the station's capacity, used neither
    by requests nor by other work. If `seconds` is positive, only requests that find idle servers pay the extra
    cost. With one server and power 1, each such request pays all of it, and requests that wait pay nothing (Welch
    1964). If `seconds` is negative, all requests save the same time."""
    #: Exponent of the idle share, 1 to 4: with 1, the extra cost is proportional to the idle share, with 2 to its
    #: square.
    power: int
    #: Extra cost at an idle station, in seconds, with the variability of service. It is positive for a server that
    #: has to wake up. It is negative if concurrent requests slow each other down, so that a request costs less under
    #: light load.
    seconds: float


@dataclass(kw_only=True)
class Interrupts(Part):
    """Interrupts per second of the whole machine."""
    #: Interrupts of all devices, including timers.
    all_per_s: float | None = None
    #: Softirqs of block devices (BLOCK).
    disk_per_s: float | None = None
    #: Softirqs of the network (NET_RX and NET_TX), each caused by a device interrupt or a poll.
    network_per_s: float | None = None


@dataclass(kw_only=True)
class Interval90(Part):
    """The interval from the 5 % to the 95 % quantile."""
    #: The lower end; `None` if it is unbounded.
    lower: float | None = None
    #: The upper end; `None` if it is unbounded.
    upper: float | None = None


@dataclass(kw_only=True)
class Intervals(Part):
    """The 90 % intervals of a model's results."""
    #: Number of random draws of the demands.
    draws: int
    #: Interval of the greatest load at which each objective is met.
    headroom: list[Interval90]
    #: Interval of the response time R of each class.
    response_time: list[Interval90]
    #: Interval of the rate of all classes together at which the first station saturates.
    saturation_rate: Interval90
    #: Share of the draws in which a station could not keep up.
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
    """Figures of listening sockets."""
    #: Length of the accept queue at the end of the interval.
    accept_queue: int | None = None
    #: Length of the longest accept queue in any sample.
    accept_queue_max: int | None = None
    #: Connections established per second; `sources` says whether this includes connections of other ports.
    accepted_per_s: float | None = None
    #: Limit of the accept queue, summed over all sockets.
    backlog: int | None = None
    #: SYNs and connections per second that these sockets dropped because the accept queue was full or memory was
    #: short.
    dropped_per_s: float | None = None
    #: The socket whose accept queue was closest to its limit. A full socket drops connections even if other sockets
    #: have room.
    fullest: AcceptQueue | None = None
    #: Number of sockets: one each for IPv4 and IPv6, or one for each worker (SO_REUSEPORT).
    sockets: int | None = None
    #: SYNs received per second, both accepted and dropped.
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
    #: Maximum pause between two calls, in seconds; longer pauses are shortened to it.
    max_gap_s: float | None = None
    #: Factor by which the gaps between requests are divided.
    speed: float | None = None


@dataclass(kw_only=True)
class Memory(Part):
    """Memory of the whole machine."""
    #: Memory that programs could still allocate without swapping, in bytes.
    available_bytes: int | None = None
    #: Size of the memory, in bytes.
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
    #: The stations, where requests spend time.
    stations: list[Station]


@dataclass(kw_only=True)
class ModelClass(Part):
    """One class of request."""
    #: Name of the class.
    name: str
    #: Customers of a closed class.
    population: int | None = None
    #: Urgency at stations that serve by priority; smaller numbers are served first.
    priority: int | None = None
    #: Arrivals per second of an open class.
    rate: float | None = None
    #: Think time of a closed class, in seconds.
    think: float | None = None
    #: Whether the class's requests arrive from outside the network.
    type: ClassKind


@dataclass(kw_only=True)
class Module(Part):
    """Server Module group: requests as measured inside the servers (WebMonitor, §3.2)."""
    #: Figures of each class of request of each server.
    classes: list[ModuleClass] | None = None
    #: The servers, one for each file that a module writes. A server that replaced its file during the interval
    #: appears twice, once for each part of the interval.
    servers: list[ModuleServer] | None = None


@dataclass(kw_only=True)
class ModuleClass(Part):
    """One class of request, as measured inside the server."""
    #: Part of `requests`: requests whose client disconnected before it had received the whole answer.
    aborted: int | None = None
    #: Bytes of response bodies sent per second.
    bytes_per_s: float | None = None
    #: Half width of the 95 % confidence interval of the mean of `cpu_us`.
    cpu_ci95_half_width_us: float | None = None
    #: Share of the sampled requests whose thread served other requests meanwhile. Their CPU time is unknown.
    cpu_mixed: float | None = None
    #: Mean CPU time of the sampled requests, by phase.
    cpu_parts_us: CpuParts | None = None
    #: CPU time of one request, user and system, on the thread that served it. Reading this clock is expensive, so
    #: only few requests are sampled.
    cpu_us: Sampled | None = None
    #: CPU demand of a request, including its share of the unexplained CPU time.
    demand_us: CpuDemand | None = None
    #: Part of `requests`: requests that were answered with 5xx.
    failed: int | None = None
    #: Name of the class. A class of the Record with the same name has the same requests.
    name: str | None = None
    #: Elapsed time by phase.
    phases_us: Phases | None = None
    #: Number of requests served, which are all requests with a line in the access log.
    requests: int | None = None
    #: Requests served per second.
    requests_per_s: float | None = None
    #: Index of the class's server in `servers`, from 0.
    server: int | None = None
    #: Mean number of times that a worker started or resumed a request: one, plus one each time that it had set the
    #: request aside to wait for the client or for an upstream server. It is one for workers that block while they
    #: wait, like most of Apache's.
    turns: float | None = None


@dataclass(kw_only=True)
class ModuleServer(Part):
    """A server that has the module loaded."""
    #: Blocks of 512 bytes that the server's processes read from disks, per request.
    blocks_read_per_request: float | None = None
    #: Connections accepted per second.
    connections_per_s: float | None = None
    #: CPU time of the server's workers per second: 1.5 is one and a half CPUs.
    cores: float | None = None
    #: One request in this many has its CPU time measured; at high request rates, fewer. 0 if CPU time is not
    #: measured.
    cpu_one_in: int | None = None
    #: CPU time of the server's processes in the kernel, per request.
    cpu_system_us: float | None = None
    #: CPU time of the server's processes in user mode, per request. Linux samples user and system time at clock
    #: ticks, every few milliseconds. So this is known only for many requests together, not by class.
    cpu_user_us: float | None = None
    #: The file that the server's module writes.
    file: str | None = None
    #: Name and version of the server's software, like `nginx/1.22.1`.
    name: str | None = None
    #: Read calls of the server's processes per request, as counted by the kernel (`syscr` of proc(5)). Reads of
    #: files always count; reads of sockets count if the server uses `read`.
    reads_per_request: float | None = None
    #: Whether the module records new requests. Recording can be turned off.
    recording: bool | None = None
    #: Number of requests in progress at the end of the interval.
    requests_in_progress: int | None = None
    #: Requests of all classes per second.
    requests_per_s: float | None = None
    #: CPU time of the server's workers per request that is not part of the measured phases: accepting and closing
    #: connections, waiting for events. It is negative if it is smaller than the overhead of measuring a request.
    unexplained_cpu_us: float | None = None
    #: Number of workers at the end of the interval: processes, or threads if threads serve requests.
    workers: int | None = None
    #: Mean number of busy workers.
    workers_busy: float | None = None
    #: Number of workers for which the file had no room. The figures do not include their requests.
    workers_lost: int | None = None
    #: Highest number of requests or connections that the server handles at a time, if it has such a limit.
    workers_most: int | None = None


@dataclass(kw_only=True)
class Network(Part):
    """Network group: figures of one network namespace."""
    #: Collisions per second on a shared wire, which modern networks do not have.
    collisions_per_s: float | None = None
    #: Traffic of each interface, by name. Interfaces that appeared, disappeared or reset their counters during the
    #: interval are left out.
    interfaces: dict[str, NetworkTraffic] | None = None
    #: Packets per second that the kernel dropped because a CPU's receive queue was full, in the whole machine.
    queue_overflows_per_s: float | None = None
    #: Bytes received per second.
    rx_bytes_per_s: float | None = None
    #: Packets per second that were received but dropped, because memory was short or no protocol accepted them.
    rx_dropped_per_s: float | None = None
    #: Packets per second that were received with errors.
    rx_errors_per_s: float | None = None
    #: Packets received per second.
    rx_packets_per_s: float | None = None
    #: Figures of TCP in this namespace.
    tcp: Tcp | None = None
    #: Bytes sent per second.
    tx_bytes_per_s: float | None = None
    #: Packets per second that were dropped before they were sent.
    tx_dropped_per_s: float | None = None
    #: Packets per second that could not be sent.
    tx_errors_per_s: float | None = None
    #: Packets sent per second.
    tx_packets_per_s: float | None = None


@dataclass(kw_only=True)
class NetworkTraffic(Part):
    """Traffic of network interfaces, per second."""
    #: Collisions per second on a shared wire, which modern networks do not have.
    collisions_per_s: float
    #: Bytes received per second.
    rx_bytes_per_s: float
    #: Packets per second that were received but dropped, because memory was short or no protocol accepted them.
    rx_dropped_per_s: float
    #: Packets per second that were received with errors.
    rx_errors_per_s: float
    #: Packets received per second.
    rx_packets_per_s: float
    #: Bytes sent per second.
    tx_bytes_per_s: float
    #: Packets per second that were dropped before they were sent.
    tx_dropped_per_s: float
    #: Packets per second that could not be sent.
    tx_errors_per_s: float
    #: Packets sent per second.
    tx_packets_per_s: float


@dataclass(kw_only=True)
class Overhead(Part):
    """Cost of monitoring."""
    #: CPU time of the monitor's thread; for `brimful watch`, of the whole process.
    monitor_cpu_s: float
    #: CPU time of one sample, in microseconds.
    per_sample_us: float
    #: Number of samples taken.
    samples: int


@dataclass(kw_only=True)
class Paging(Part):
    """Paging per second of the whole machine. Pages have the machine's size (usually 4 KiB)."""
    #: Page faults per second that had to wait for a disk.
    major_faults_per_s: float | None = None
    #: Pages read from disks per second, both file contents and swap.
    page_ins_per_s: float | None = None
    #: Pages written to disks per second, both file contents and swap.
    page_outs_per_s: float | None = None
    #: Pages read from swap per second.
    swap_ins_per_s: float | None = None
    #: Pages written to swap per second.
    swap_outs_per_s: float | None = None


@dataclass(kw_only=True)
class Phases(Part):
    """Elapsed time of a request by phase. WebMonitor's three phases (parse, process, log) are separate from the time
    spent waiting for the client (head, send) and for other servers (upstream). The sum of all phases is the time
    from the first byte of the request to its log line."""
    #: Time from the first to the last byte of the request's head, which depends on the client.
    head: Elapsed | None = None
    #: Time to write the log line.
    log: Elapsed | None = None
    #: Time to read and parse the head.
    parse: Elapsed | None = None
    #: Time to generate the answer and to hand it to the kernel, excluding `upstream` and `send`.
    process: Elapsed | None = None
    #: Time spent waiting for the client to read, so that the rest of the answer could be sent.
    send: Elapsed | None = None
    #: Time spent waiting for an upstream server.
    upstream: Elapsed | None = None


@dataclass(kw_only=True)
class Port(Part):
    """Figures of one port of the server."""
    #: Number of the port's connections by TCP state. States that the source does not report are left out; others are
    #: present even if 0.
    connections: dict[str, int] | None = None
    #: The port's listening sockets together, at the end of the interval; `null` if no socket listened.
    listener: Listener | None = None
    #: The port number.
    port: int | None = None


@dataclass(kw_only=True)
class Pressure(Part):
    """Pressure stall information of each resource."""
    #: Shares of time spent waiting for CPUs.
    cpu: Stall | None = None
    #: Shares of time spent waiting for disks.
    io: Stall | None = None
    #: Shares of time spent waiting for memory.
    memory: Stall | None = None


@dataclass(kw_only=True)
class Program(Part):
    """Process group: figures of one program, which is a set of processes with their descendants. Totals are over the
    interval."""
    #: Number of context switches, voluntary and involuntary.
    context_switches: int | None = None
    #: CPU time per second: 1.5 is one and a half CPUs.
    cores: float | None = None
    #: CPU time, measured in nanoseconds. For a process that ended, this is the last value read, which is complete if
    #: its parent waited for it. The CPU time of a process is missing if it started and ended between two samples and
    #: no parent waited for it.
    cpu_s: float | None = None
    #: Part of `cpu_s` in the kernel, split in the same way.
    cpu_s_system: float | None = None
    #: Part of `cpu_s` in user mode, split by the kernel's ratio of user to system time.
    cpu_s_user: float | None = None
    #: Number of processes that were observed to end between two samples.
    ended: int | None = None
    #: Number of page faults that had to wait for a disk.
    major_faults: int | None = None
    #: `rss_bytes` as a share of the machine's memory; it may exceed 1 if processes share pages.
    memory_share: float | None = None
    #: Name of the program.
    name: str | None = None
    #: IDs of the program's processes.
    pids: list[int] | None = None
    #: Number of the program's processes: *started processes* in Table 2.
    processes: int | None = None
    #: The CPU quota that limits the program: that of its control group or of a parent group. If there are several,
    #: it is the one that throttled the program longest, or else the lowest. Left out if there is none, or if it
    #: cannot be read.
    quota: CpuQuota | None = None
    #: Resident memory; shared pages count once per process. The kernel updates this total in batches, so up to 96
    #: pages (384 KiB) per process and CPU may be missing.
    rss_bytes: int | None = None
    #: Time for which the program's threads were ready and waited for a CPU.
    run_queue_wait_s: float | None = None
    #: Number of the program's threads that run or wait for a CPU: *running processes* in Table 2.
    running: int | None = None
    #: Number of processes that were observed to start between two samples.
    started: int | None = None
    #: Number of threads of all the program's processes.
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
    #: Body of the requests.
    body: str | None = None
    #: Alternative to `body`: path of a file with the request body, relative to the working directory. The file is
    #: sent in pieces as the server reads them. Its size at the start of the run is the `Content-Length`.
    body_file: str | None = None
    #: A file of comma-separated values for `{csv.COLUMN}`. Its first line names the columns. The n-th call of the
    #: class uses the n-th row, starting over after the last row.
    csv: str | None = None
    #: Expectations of answers. An answer that does not match is `unexpected`, which is a failure.
    expect: Expect | None = None
    #: A set of files below `path`.
    file_set: FileSet | None = None
    #: Additional header fields of the requests.
    headers: dict[str, str] | None = None
    #: HTTP method.
    method: str | None = None
    #: Unique name of the class, for tables and documents.
    name: str
    #: The order in which the entries of a list are requested.
    order: Order | None = None
    #: Path and query; the URL on the command line provides scheme and authority. Left out if there are `urls`. Every
    #: call fills in the placeholders `{seq}`, `{uuid}`, `{rand:1-500}` and `{csv.COLUMN}`, here, in `urls`, in the
    #: values of `headers` and in `body`.
    path: str | None = None
    #: Law that determines how often each URL or file is requested, by its position in the list or set: `zipf:0.8`.
    #: If absent, the weights determine it.
    popularity: Popularity | None = None
    #: Alternative to `urls`: a file of requests, one JSON object per line with a path and optionally method,
    #: headers, body, class, weight and bytes. If some requests name a class, this class has only the requests that
    #: name it.
    requests_file: str | None = None
    #: Alternative to `path`: URLs, requested in proportion to their weights.
    urls: list[Url] | None = None
    #: Alternative to `urls`: a file of URLs, one per line, each optionally with its weight and the size of its
    #: answer in bytes: `/a.png 3 4096`.
    urls_file: str | None = None
    #: Share of the calls, relative to the other classes' weights.
    weight: float | None = None


@dataclass(kw_only=True)
class Sampled(Part):
    """Times of sampled requests, in microseconds."""
    #: Number of sampled requests.
    count: int
    #: Mean of the sampled times.
    mean: float
    #: Standard deviation of the sampled times.
    stddev: float


@dataclass(kw_only=True)
class Script(Part):
    """One scripted session."""
    #: The bursts, at least one.
    bursts: list[ScriptedBurst]


@dataclass(kw_only=True)
class ScriptedBurst(Part):
    """One burst of a session."""
    #: The calls of the burst, at least one. The calls after the first are sent when the first is answered.
    calls: list[ScriptedCall]
    #: Seconds from the burst's last answer to the next burst; if absent, drawn from the sessions' `think_s`.
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
    #: Context switches per second of the whole machine.
    context_switches_per_s: float | None = None
    #: Shares of the time of the watched CPUs.
    cpu: CpuShares | None = None
    #: Utilization of the busiest disk.
    disk_utilization: float | None = None
    #: SYNs dropped per second by the listening sockets.
    dropped_per_s: float | None = None
    #: Established connections at the end of the interval.
    established: int | None = None
    #: Length of the interval, in seconds.
    length_s: float | None = None
    #: Bytes received and sent per second over all interfaces.
    network_bytes_per_s: float | None = None
    #: CPU time of all watched processes, in cores: 0.5 is half of one core.
    process_cores: float | None = None
    #: CPU time of all watched processes in user mode, in cores.
    process_cores_user: float | None = None
    #: Requests per second, as counted by the Server Module.
    requests_per_s: float | None = None
    #: TCP segments retransmitted per second.
    retransmitted_per_s: float | None = None
    #: Time per second that threads of watched processes waited for a CPU, summed over threads.
    run_queue_wait: float | None = None
    #: Start of the interval, in seconds after the start of the load.
    t_s: float | None = None
    #: Mean number of busy workers, as reported by the Server Module.
    workers_busy: float | None = None


@dataclass(kw_only=True)
class SessionLoad(Part):
    """A load of sessions."""
    #: Arrival process of sessions, in the notation of `--arrivals`; `poisson` if absent.
    arrivals: str | None = None
    #: What happens to a session's connections between bursts.
    between_bursts: BetweenBursts | None = None
    #: Number of bursts of a session; 1 if absent.
    bursts: Spread | None = None
    #: Alternative to `bursts`: number of calls of a session, in as many bursts as necessary.
    calls: Spread | None = None
    #: Number of calls of a burst; 1 if absent. The calls after the first are sent when the first is answered.
    calls_per_burst: Spread | None = None
    #: Highest number of connections of a session.
    connections: int | None = None
    #: Whether each session stores the cookies that it receives, and sends them.
    cookies: bool | None = None
    #: Whether the load begins in its steady state, with sessions in progress.
    in_progress: bool | None = None
    #: Whether the calls of a burst after its first are sent together on one connection, as long as the server keeps
    #: it open.
    pipelined: bool | None = None
    #: New sessions per second, independent of the server.
    rate: float | None = None
    #: Seconds from the end of a user's session to the start of the next one; 0 if absent.
    rest_s: Spread | None = None
    #: Whether a call with a complete but unexpected answer is repeated at once. If not, such an answer ends the
    #: session.
    retry: bool | None = None
    #: Alternative to `bursts` and `calls_per_burst`: scripted sessions. New sessions use them in order, starting
    #: over after the last.
    script: list[Script] | None = None
    #: Total number of sessions; unlimited if absent.
    sessions: int | None = None
    #: Alternative to `bursts`: the probability that the user stays for another burst, after each burst.
    stay: float | None = None
    #: Seconds from the last answer of a burst to the first call of the next burst.
    think_s: Spread | None = None
    #: Alternative to `rate`: number of users. Each begins another session after the previous one.
    users: int | None = None


@dataclass(kw_only=True)
class SocketClass(Part):
    """Requests of one port whose answers have similar sizes, including heads."""
    #: Name of the class, in the notation of the Server Module's classes.
    name: str | None = None
    #: The port number.
    port: int | None = None
    #: Number of requests that were answered before their slice ended.
    requests: int | None = None
    #: Requests that were answered before their slice ended, per second.
    requests_per_s: float | None = None
    #: Bytes of answers per second.
    sent_bytes_per_s: float | None = None
    #: Time from when the server read the request until its answer was sent, as in `SocketPort::service_us`.
    service_us: Elapsed | None = None
    #: Time from when the first bytes of a request were readable until the server read them, as in
    #: `SocketPort::wait_us`.
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
    #: Number of requests that were counted.
    requests: int | None = None
    #: Requests per second; `null` if no tracepoint was attached.
    requests_per_s: float | None = None
    #: Bytes of answers per second, including heads and TLS.
    sent_bytes_per_s: float | None = None
    #: Time from when the server read the request until the last bytes of the answer were handed to the kernel.
    service_us: Elapsed | None = None
    #: Share of the requests whose connection the server closed or lost without sending a byte of an answer.
    unanswered_share: float | None = None
    #: Mean number of requests that waited or were being served. Excludes requests that were unanswered when their
    #: slice ended.
    under_way: float | None = None
    #: Time from when the first bytes of a request were readable until the server read them: the queueing time in the
    #: server.
    wait_us: Elapsed | None = None


@dataclass(kw_only=True)
class SocketRequests(Part):
    """Requests observed on the sockets of the watched ports, by tracepoints that are attached during short slices of
    time. A request is counted if its first bytes arrive in the first part of a slice, and is followed until the
    slice ends. Rates are those of the first part, however long requests take. Times describe requests that were
    answered before the slice ended; the share of requests that were not is reported as well."""
    #: Requests of each port by the size of their answers.
    classes: list[SocketClass] | None = None
    #: The share of time in which the tracepoints were attached.
    duty: float | None = None
    #: Limitations of these figures, as text for people.
    limits: list[str] | None = None
    #: Figures of each port.
    ports: list[SocketPort] | None = None
    #: Length of a slice in seconds, at the end of the interval; `null` if the tracepoints are attached all the time.
    slice_s: float | None = None
    #: Number of slices that ended in the interval.
    slices: int | None = None


@dataclass(kw_only=True)
class Stage(Part):
    """A stage in which the rate changes linearly from the previous stage's rate to `rate`. If its length is zero,
    the rate jumps; if both rates are equal, the rate is constant."""
    #: Length of the stage, in seconds.
    length_s: float
    #: Calls per second at the end of the stage.
    rate: float


@dataclass(kw_only=True)
class Stall(Part):
    """Shares of time in which threads waited for a resource (Linux's PSI, from its totals in microseconds)."""
    #: Share of time in which all non-idle threads waited. Absent for CPUs, because one of the threads is always
    #: running.
    full: float | None = None
    #: Share of time in which at least one thread waited.
    some: float


@dataclass(kw_only=True)
class Station(Part):
    """One station."""
    #: Share of the station's capacity that other work uses (between 0 and 1), from calibration.
    background: float | None = None
    #: Additional (or, if negative, saved) cost of a request while some servers are idle; the demands are then those
    #: at saturation.
    idle_cost: IdleCost | None = None
    #: Name of the station.
    name: str
    #: For a station with load-dependent speed: its service rate with 1, 2, … requests present, relative to the rate
    #: that the demands assume. The last value also applies to more requests. If empty, the speed depends on the load
    #: only through `servers`.
    rate_multipliers: list[float] | None = None
    #: The order in which the station serves requests.
    scheduling: Scheduling | None = None
    #: Squared coefficient of variation of the service times within each class: 1 for exponential, 0 for
    #: deterministic times. The value for all classes together follows from their demands and rates. It has no effect
    #: under processor sharing.
    scv: float | None = None
    #: Parallel servers of a queueing station.
    servers: int | None = None
    #: Squared coefficient of variation of the service times of all requests together, at the rates of the open
    #: classes; replaces `scv`. It must be at least the value that the classes' mean demands alone imply.
    total_scv: float | None = None
    #: Whether requests queue at the station.
    type: StationKind


@dataclass(kw_only=True)
class StationLimit(Part):
    """A station and the load at which it saturates."""
    #: The rate of all classes together, at their present mix, at which the station saturates.
    saturation_rate: float
    #: Name of the station.
    station: str
    #: Share in use of the capacity that the station has for the model's classes; 1 or more if the station cannot
    #: keep up.
    utilization: float


@dataclass(kw_only=True)
class Steady(Part):
    """The steady state of a network."""
    #: Mean response time R over all requests.
    mean_response_time: float
    #: R: response time of each class.
    response_time: list[float]
    #: X: throughput of each class.
    throughput: list[float]


@dataclass(kw_only=True)
class Summary(Part):
    """A distribution of times, in microseconds."""
    #: Number of measured times.
    count: int
    #: The longest time, exact.
    max: float
    #: Mean time, exact.
    mean: float
    #: The shortest time, exact.
    min: float
    #: Median time. All quantiles are accurate to 0.1 %.
    p50: float
    #: 90th percentile of the times.
    p90: float
    #: 95th percentile of the times.
    p95: float
    #: 99th percentile of the times.
    p99: float
    #: 99.9th percentile of the times.
    p999: float
    #: Standard deviation of the times.
    stddev: float


@dataclass(kw_only=True)
class Tcp(Part):
    """Figures of TCP in a network namespace, for all ports."""
    #: Connections per second that this side initiated.
    active_opens_per_s: float | None = None
    #: Segments per second dropped because a socket's backlog was full.
    backlog_drops_per_s: float | None = None
    #: Number of sockets in use.
    in_use: int | None = None
    #: Packets per second dropped at a listener for any reason, including overflows.
    listen_drops_per_s: float | None = None
    #: Packets per second that arrived while a listener's accept queue was full.
    listen_overflows_per_s: float | None = None
    #: Memory of all socket buffers in the whole machine, in bytes.
    memory_bytes: int | None = None
    #: Number of sockets that no process has open any more, in the whole machine.
    orphans: int | None = None
    #: Connections per second that peers initiated and that were established.
    passive_opens_per_s: float | None = None
    #: Resets sent per second.
    resets_out_per_s: float | None = None
    #: Segments retransmitted per second.
    retransmitted_per_s: float | None = None
    #: Segments received per second.
    segments_in_per_s: float | None = None
    #: Segments sent per second, excluding retransmissions.
    segments_out_per_s: float | None = None
    #: SYN cookies sent per second, because the queue of half-open connections was full.
    syn_cookies_per_s: float | None = None
    #: Number of sockets in TIME_WAIT.
    time_wait: int | None = None


@dataclass(kw_only=True)
class Tls(Part):
    """TLS settings of the connections to an `https://` URL: the table `[tls]`. Documents never contain keys and
    certificates; only the command line names the files that contain them."""
    #: Whether any certificate is accepted.
    insecure: bool | None = None
    #: The oldest permitted version.
    minimum: TlsVersion | None = None
    #: Whether a new connection resumes an earlier TLS session if it has a ticket. If not, every handshake is a full
    #: one, like that of a new user.
    resume: bool | None = None
    #: The server name that the client sends and that the certificate must be valid for; the host of the URL if
    #: absent.
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
    #: Size of the answer's body in bytes, if known; `brimful fileset` makes files of this size.
    bytes: int | None = None
    #: Path and query.
    path: str
    #: Share of the class's calls, relative to the other URLs' weights.
    weight: float | None = None


@dataclass(kw_only=True)
class Verdict(Part):
    """Whether a run can be trusted, and whether its server worked. These are separate questions: a successful
    overload test is a valid measurement of a failing server."""
    #: Number of calls in `error_share` that were answered with 5xx or 429 instead of failing. Left out if zero.
    error_answers: int | None = None
    #: Share of the scheduled calls that failed, or whose answer was 5xx or 429 although the workload expects no
    #: particular status. Absent if no call was scheduled, and wherever `failing` is absent.
    error_share: float | None = None
    #: Whether no call was completed, or more calls failed than were completed. Calls for which this host lacked
    #: resources do not count. Attempts that S-Clients abandon do not count either, because that is how they overload
    #: a server. Absent if the verdict is not about a single run.
    failing: bool | None = None
    #: The reasons why the run is not valid.
    reasons: list[Reason]
    #: Whether the run measured the server and not the generator: there are no reasons against it.
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


#: The method that solves a network.
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


#: The serialised form of one `Status`.
Status: TypeAlias = int | str


#: A version of TLS.
TlsVersion: TypeAlias = Literal["1.2", "1.3"]


#: A set of status codes.
Statuses: TypeAlias = int | str | list[Status]
