"""Written by document_types.py from schema/record.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Document, Part


@dataclass(kw_only=True)
class AcceptQueue(Part):
    """The accept queue of one listening socket."""
    #: Connections that waited to be accepted, the most that a sample saw.
    length: int | None = None
    #: How many may wait; Linux lets one more.
    limit: int | None = None


@dataclass(kw_only=True)
class Class(Part):
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
class ClassRecord(Part):
    """One request class of a run."""
    #: As in `Record::bytes`.
    bytes: Traffic | None = None
    #: As in `Record::counts`.
    counts: Counts
    #: As in `Record::first_byte_us`.
    first_byte_us: Summary | None = None
    #: As in `Record::lateness_us`.
    lateness_us: Summary | None = None
    #: As in `Record::response_time_us`.
    response_time_us: Summary | None = None
    #: As in `Record::service_time_us`.
    service_time_us: Summary | None = None


@dataclass(kw_only=True)
class ClientCalibration(Part):
    """What this client can offer: the largest load of which a server answers as much when it comes from one
    generator as when it comes from two, half from each (Banga & Druschel 1997, §4.3). Loads and throughputs are
    calls per second, or connection attempts per second for S-Clients."""
    #: Every load tried, in increasing order; one that was tried again is there twice.
    curve: list[ClientLevel]
    #: Whether the maximum may be higher: the built-in server that answered fell short before the client did.
    lower_bound: bool
    #: That load; `None` when the client was its own limit at every load tried.
    max_rate: float | None = None
    #: Whether the second generator had to share CPUs with the first or with the server, for want of free ones. Its
    #: help is then smaller than another host's would be, and the client's own lateness and CPU time decide more.
    second_shares_cpus: bool


@dataclass(kw_only=True)
class ClientLevel(Part):
    """One load of a `ClientCalibration`. Throughputs are means over short runs, made in pairs."""
    #: Half width of the 95 % confidence interval of `two − one`, from the differences within pairs.
    difference_ci95_half_width: float | None = None
    #: Why the client was held to be the limit at this load; `None` where it was not.
    limited: str | None = None
    #: The load.
    load: float
    #: Throughput with one generator.
    one: float
    #: Its standard deviation.
    one_stddev: float | None = None
    #: Pairs of runs: one with one generator, one with two.
    pairs: int
    #: Throughput with two generators.
    two: float
    #: Its standard deviation.
    two_stddev: float | None = None


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
class Counts(Part):
    """What became of every call. `scheduled = sent + client_limited + abandoned + refused + reset_before_sending +
    tls_failed_before_sending + unsent_at_end`, and `sent = completed + unexpected + timed_out + (reset −
    reset_before_sending) + malformed + stream_reset + gone_away + (tls_failed − tls_failed_before_sending) +
    in_flight_at_end`."""
    #: Attempts given up after the connect timeout.
    abandoned: int
    #: Calls this host had no descriptor, port or memory for.
    client_limited: int
    #: Whole responses that are as expected, where something is.
    completed: int
    #: Connection attempts.
    connect_attempts: int
    #: Empty lines before whole responses, where none belongs: a server that ends a body with a line break which its
    #: length does not count. They are skipped. Left out where there is none.
    empty_lines: int | None = None
    #: Connections established.
    established: int
    #: HTTP/2: calls that a server that goes away has not looked at (GOAWAY).
    gone_away: int | None = None
    #: TLS handshakes that succeeded.
    handshakes: int | None = None
    #: Those of `handshakes` that resumed an earlier session.
    handshakes_resumed: int | None = None
    #: Calls in flight when the run ended.
    in_flight_at_end: int
    #: Responses that are not HTTP.
    malformed: int
    #: Attempts refused.
    refused: int
    #: Connections closed or reset before the response was whole.
    reset: int
    #: Those of `reset` that happened before anything was sent.
    reset_before_sending: int
    #: Calls the schedule brought.
    scheduled: int
    #: Calls of which a byte was sent.
    sent: int
    #: Whole responses by status class, unexpected ones among them.
    status: StatusCounts
    #: HTTP/2: calls whose streams the server gave up (RST_STREAM). This and the next are left out where there is
    #: none.
    stream_reset: int | None = None
    #: Calls without a whole response within the response timeout.
    timed_out: int
    #: Calls whose TLS handshake failed, or whose TLS stream broke its rules. This and the next three are left out
    #: where there is none.
    tls_failed: int | None = None
    #: Those of `tls_failed` that happened before anything was sent.
    tls_failed_before_sending: int | None = None
    #: Whole responses that are not what was expected. Left out where there is none.
    unexpected: int | None = None
    #: Calls not yet sent when the run ended.
    unsent_at_end: int


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
    #: They are asked for one after another, and one call in how many goes on to the next: with 0.25 each is asked
    #: for four times in a row. After the last comes the first. Without it each call asks for any of them.
    ratio: float | None = None


@dataclass(kw_only=True)
class Generator(Part):
    """What the load cost the host that made it."""
    #: Share of the threads' time in which they had work to do (waiting and spinning excluded): the busiest thread's.
    busy: float
    #: CPU time, exact.
    cpu_s: float | None = None
    #: Of that, in the kernel, likewise.
    cpu_system_s: float | None = None
    #: Of that, in user mode, as the kernel's ticks sampled it; `None` when they were too few to tell.
    cpu_user_s: float | None = None
    #: Which I/O engine ran.
    engine: str
    #: What its host kept from it.
    host: HostContention | None = None
    #: How fast its first CPU was right before the load began; of a load that was made in parts, the slowest part's.
    #: `None` in Records from before there was such a probe.
    host_probe: HostProbe | None = None
    #: The longest that a thread was kept from its work: it neither waited nor got on with what was due, but was
    #: stopped or had no CPU.
    longest_gap_s: float | None = None
    #: Most connections open at once, over all threads.
    max_open_connections: int
    #: The highest rate this client was found to offer without being the limit itself, if that was measured.
    max_rate: float | None = None
    #: Threads, one shard each.
    threads: int
    #: Calls began only once in so many seconds, and so up to that late, if that was asked for.
    tick_s: float | None = None


@dataclass(kw_only=True)
class HostContention(Part):
    """What a host kept from the generator during the run, from its kernel's accounts. What the kernel does not say
    is absent."""
    #: Time for which a thread was ready to run and something else had the CPU: the thread's that waited longest.
    cpu_wait_s: float | None = None
    #: Share of the time of the generator's CPUs that the hypervisor gave to other guests.
    steal: float | None = None
    #: Time for which a CPU quota of the generator's control group, or of one above it, stopped the group; summed
    #: over CPUs.
    throttled_s: float | None = None


@dataclass(kw_only=True)
class HostProbe(Part):
    """How fast one CPU of a host was at one moment, in some ten milliseconds of its time. Both figures swing when
    neighbours share the cache, the core or the clock frequency: runs are comparable where these are."""
    #: Integer operations, each of which needs the result of the one before: millions per second.
    arithmetic_mops: float
    #: Reads at random places of 16 MiB, each at a place that the one before tells: millions per second.
    memory_mreads: float


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
class Interval(Part):
    """One stretch of the run; all stretches of a run are equally long."""
    #: Calls completed in it.
    completed: int
    #: Calls that failed in it.
    errors: int
    #: Its length.
    length_s: float
    #: Calls due in it.
    offered: int
    #: Median response time of those completed.
    p50_us: float | None = None
    #: 99th percentile of the same.
    p99_us: float | None = None
    #: Calls first sent in it.
    sent: int
    #: Its beginning, seconds after the start.
    t_s: float


@dataclass(kw_only=True)
class Limited(Part):
    """Calls that the generator's host had no means for, by what was lacking. Together they are
    `Counts::client_limited`."""
    #: For want of a file descriptor.
    descriptors: int
    #: For want of socket memory.
    memory: int
    #: For want of a local port.
    ports: int


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
    interfaces: dict[str, Traffic2] | None = None
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
class Objective(Part):
    """An objective of a run, like `p99<50ms`."""
    #: What was measured, in seconds; `None` where so many calls failed, or so few were made, that there is no such
    #: time.
    measured_s: float | None = None
    #: Whether it is below the limit.
    met: bool
    #: As it is written.
    objective: str


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
class PackedAccount(Part):
    """The whole Account."""
    #: Length of a batch in nanoseconds, a power of two.
    batch_ns: int
    #: Response times by when their calls ended, up to the last batch that has one.
    batches: list[PackedBatch]
    #: In the workload's order.
    classes: list[PackedClass]
    #: Calls that were completed within the window.
    completed_in_window: int
    #: From the start of an attempt to its establishment; `None` where there is none, like all times.
    connect_time: PackedTimes | None = None
    #: From the establishment of a connection to the end of its TLS handshake.
    handshake_time: PackedTimes | None = None
    #: Length of an interval in seconds, a power of two from 1/32 on.
    interval_s: float
    #: The course of the run, up to its last event.
    intervals: list[PackedInterval]
    #: What this host had no means for.
    limited: Limited
    #: Calls completed in each five seconds of the window, up to the last that has one.
    replies: list[int]
    #: Its sessions, if it has any.
    sessions: PackedSessions | None = None
    #: Calls that TLS failed, by why.
    tls_faults: dict[str, int] | None = None
    #: For how long load was to be offered, in nanoseconds; `None` when that was not known beforehand.
    window_ns: int | None = None


@dataclass(kw_only=True)
class PackedBatch(Part):
    """The response times of one batch."""
    #: How many.
    count: int
    #: In nanoseconds.
    sum: Whole


@dataclass(kw_only=True)
class PackedClass(Part):
    """What became of the calls of one class."""
    #: Bytes on the wire, heads included.
    bytes: Traffic
    #: As in `ClassRecord`, as are the others.
    counts: Counts
    #: From the first byte sent to the first byte received.
    first_byte: PackedTimes | None = None
    #: From due to the moment the generator acted.
    lateness: PackedTimes | None = None
    #: The class.
    name: str
    #: From due to the last byte.
    response_time: PackedTimes | None = None
    #: From the first byte sent to the last byte received.
    service_time: PackedTimes | None = None


@dataclass(kw_only=True)
class PackedInterval(Part):
    """One interval of the course of a run."""
    #: Calls completed in it.
    completed: int
    #: Calls that failed in it.
    errors: int
    #: Calls due in it.
    offered: int
    #: Response times of those completed, if there were any: in microseconds, from 1 to a minute, two digits.
    response_us: str | None = None
    #: Calls first sent in it.
    sent: int


@dataclass(kw_only=True)
class PackedSessions(Part):
    """What became of the sessions of a run, as in `SessionFigures`. Whole numbers are distributed as if they were
    nanoseconds."""
    #: Bursts of one session.
    bursts: PackedTimes | None = None
    #: Calls of one session.
    calls: PackedTimes | None = None
    #: Sessions whose last call was completed.
    completed: int
    #: Connections that were established for one session.
    connections: PackedTimes | None = None
    #: Sessions that a failed call ended.
    failed: int
    #: Bursts of such a session.
    failed_bursts: PackedTimes | None = None
    #: Calls of one session that failed.
    failed_calls: PackedTimes | None = None
    #: Connections that were established for such a session.
    failed_connections: PackedTimes | None = None
    #: From such a session's first due time to the end of its last call.
    failed_lifetime: PackedTimes | None = None
    #: Sessions that had not ended when the run did.
    in_progress: int
    #: From a session's first due time to its last answer.
    lifetime: PackedTimes | None = None


@dataclass(kw_only=True)
class PackedTimes(Part):
    """A distribution of at least one time, in nanoseconds."""
    #: From 1 ns to an hour, three digits.
    histogram: str
    #: The longest.
    max: int
    #: The shortest.
    min: int
    #: Of all times.
    sum: Whole
    #: Of the squares of all times.
    sum_of_squares: Whole


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
class Rates(Part):
    """Rates per second over the offered window."""
    #: Whole responses received inside the window.
    completed: float
    #: Connection attempts.
    connect_attempts: float
    #: Connections established.
    established: float
    #: TLS handshakes that succeeded; left out where there is none, as is the next.
    handshakes: float | None = None
    #: Those of them that resumed an earlier session.
    handshakes_resumed: float | None = None
    #: Calls the schedule asked for.
    offered: float
    #: Calls of which a byte was sent.
    sent: float


@dataclass(kw_only=True)
class Reason(Part):
    """One reason not to trust a run."""
    #: For scripts.
    code: ReasonCode
    #: For people: what happened and what to do next.
    message: str


@dataclass(kw_only=True)
class ReplyRate(Part):
    """Replies per second, one sample per five seconds of the window."""
    #: Half width of the 95 % confidence interval of the mean (Student's t); needs two samples.
    ci95_half_width: float | None = None
    #: Highest.
    max: float | None = None
    #: Mean.
    mean: float | None = None
    #: Lowest.
    min: float | None = None
    #: How many whole samples.
    samples: int
    #: Standard deviation; needs two samples.
    stddev: float | None = None


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
class Server(Part):
    """What the monitor saw of a server over a run."""
    #: Threads that waited for a disk, whole machine.
    blocked: int | None = None
    #: How the server's clock was brought to the generator's, if the server is on another host.
    clock: ClockOffset | None = None
    #: Connections of all watched ports together, by TCP state.
    connections: dict[str, int] | None = None
    #: Whole machine.
    context_switches_per_s: float | None = None
    #: Each of them that was online all the time.
    cores: list[Core] | None = None
    #: The CPUs that were watched (all, or those named), together.
    cpu: CpuShares | None = None
    #: Which CPUs those are.
    cpus: list[int] | None = None
    #: Whole disks together.
    disk: Disk | None = None
    #: Each whole disk by name, if it was there all the time.
    disks: dict[str, Disk] | None = None
    #: Processes and threads started, whole machine.
    forks_per_s: float | None = None
    #: How fast the server's host was when `brimful watch` began there.
    host_probe: HostProbe | None = None
    #: Work that devices asked for.
    interrupts: Interrupts | None = None
    #: The course of the run.
    intervals: list[ServerInterval] | None = None
    #: The listening sockets of all watched ports together.
    listener: Listener | None = None
    #: Memory.
    memory: Memory | None = None
    #: What the Server Module saw from inside the server, if it is loaded there.
    module: Module | None = None
    #: The network of the server's namespace.
    network: Network | None = None
    #: What watching cost.
    overhead: Overhead | None = None
    #: Traffic between memory and disks.
    paging: Paging | None = None
    #: Each watched port.
    ports: list[Port] | None = None
    #: Pressure stall information: the share of time in which work waited for want of something.
    pressure: Pressure | None = None
    #: The server's programs.
    process: list[Program] | None = None
    #: Requests as the server's sockets show them, if that was asked for.
    requests: SocketRequests | None = None
    #: Threads that ran or waited for a CPU, whole machine, the monitor's own left out.
    runnable: int | None = None
    #: Where each kind of figures comes from, or `none: …` with the reason and what to do about it.
    sources: dict[str, str] | None = None


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
class SessionFigures(Part):
    """What became of the sessions of a run. The distributions are of those that began within the run and completed
    in it, and apart of those that failed: where sessions last long against the run, these are the shorter ones."""
    #: Bursts of one session.
    bursts: SessionSummary | None = None
    #: Calls of one session.
    calls: SessionSummary | None = None
    #: Sessions whose last call was completed.
    completed: int
    #: Connections that were established for one session.
    connections: SessionSummary | None = None
    #: Sessions that a failed call ended.
    failed: int
    #: Bursts of such a session, the one that it failed in among them.
    failed_bursts: SessionSummary | None = None
    #: Calls of one session that began within the run and failed, the failed ones among them.
    failed_calls: SessionSummary | None = None
    #: Connections that were established for such a session.
    failed_connections: SessionSummary | None = None
    #: Seconds from such a session's first due time to the end of its last call; none above an hour.
    failed_lifetime_s: SessionSummary | None = None
    #: Sessions that had not ended when the run did.
    in_progress: int
    #: Seconds from a session's first due time to its last answer; none above an hour.
    lifetime_s: SessionSummary | None = None
    #: Sessions that began, per second over `Record::window_s`; those under way when the run began among them.
    rate: float
    #: Sessions of which a call was made: `completed + failed + in_progress`.
    started: int


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
class SessionSummary(Part):
    """How one figure differs from session to session."""
    #: Exact.
    max: float
    #: Exact.
    mean: float
    #: Median; this and the other quantiles are within 0.1 %.
    p50: float
    #: 90th percentile.
    p90: float
    #: 99th percentile.
    p99: float


@dataclass(kw_only=True)
class ShardOrigin(Part):
    """One part of a load: what one process made of it."""
    #: How far its host's clock was ahead of the one by which the instant was agreed on (behind, if negative), where
    #: that was measured. It was taken off when the load began, and is not in `offset_us`.
    clock_ahead_us: float | None = None
    #: How far off that may be.
    clock_error_us: float | None = None
    #: The host that made it.
    host: str
    #: Which part, from 1.
    index: int
    #: Seconds after the start at which its process was lost, if it was; nothing of it is known after that.
    lost_at_s: float | None = None
    #: Of how many.
    of: int
    #: How long after the agreed instant it began, by its own host's clock; `None` where none was agreed.
    offset_us: float | None = None
    #: What speaks against this part by itself, once it is one of several. That of the whole need not show it.
    reasons: list[Reason] | None = None


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
class StatusCounts(Part):
    """Whole responses by status class."""
    #: The protocol was switched (101), which spends the connection. Other informational responses are passed over.
    #: Left out where there is none.
    status_1xx: int | None = field(default=None, metadata={"key": "1xx"})
    #: Success.
    status_2xx: int = field(metadata={"key": "2xx"})
    #: Redirection.
    status_3xx: int = field(metadata={"key": "3xx"})
    #: Of those, "too many requests": the server limits the rate of its clients. Left out where there is none.
    status_429: int | None = field(default=None, metadata={"key": "429"})
    #: The client's error.
    status_4xx: int = field(metadata={"key": "4xx"})
    #: The server's error; invalid codes from 600 on are taken for such (RFC 9110 §15).
    status_5xx: int = field(metadata={"key": "5xx"})


@dataclass(kw_only=True)
class Summary(Part):
    """A distribution of times, in microseconds."""
    #: How many.
    count: int
    #: Exact.
    max: float
    #: Exact.
    mean: float
    #: Exact.
    min: float
    #: Median; this and the other quantiles are within 0.1 %.
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
class TlsFailure(Part):
    """Calls that TLS failed, of one kind."""
    #: How many calls.
    calls: int
    #: Why, for people: what happened and what to do next.
    message: str
    #: Why, for scripts.
    reason: TlsFault


@dataclass(kw_only=True)
class TlsSpoken(Part):
    """What client and server agreed on in the handshake before a run."""
    #: Cipher suite, by its name at IANA.
    cipher_suite: str
    #: Group of the key exchange, like `X25519`.
    key_exchange: str | None = None
    #: The protocol inside, if the server chose one (ALPN): `http/1.1` or `h2`.
    protocol: str | None = None
    #: Version, like `TLS 1.3`.
    version: str


@dataclass(kw_only=True)
class Trace(Part):
    """The instants of a file."""
    #: Its path: one instant in seconds per line.
    file: str
    #: What the gaps between them are divided by.
    speed: float | None = None


@dataclass(kw_only=True)
class Traffic(Part):
    """Bytes on the wire."""
    #: Of responses.
    received: int
    #: Of requests.
    sent: int


@dataclass(kw_only=True)
class Traffic2(Part):
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
    #: The share of the scheduled calls that failed, however. Absent where there was no call, and like `failing`.
    error_share: float | None = None
    #: Whether more calls failed than were completed, or none was completed; those that this host had no means for do
    #: not count, nor do the attempts that S-Clients abandon, which is how they overload a server. Absent where the
    #: verdict is not of one run.
    failing: bool | None = None
    #: Why not valid.
    reasons: list[Reason]
    #: True when there are no reasons against it: what was measured is the server, not the generator.
    valid: bool


@dataclass(kw_only=True)
class Workload(Part):
    """The whole document."""
    #: The request classes, at least one.
    class_: list[Class] = field(metadata={"key": "class"})
    #: How calls come; absent where a command line says it, or where it is the command's own business.
    load: Load | None = None
    #: How connections to an `https://` URL are secured, where that is not as usual.
    tls: Tls | None = None


@dataclass(kw_only=True)
class Record(Document):
    """One run."""
    #: Everything that was seen of the calls, so that Records of shards can be merged exactly.
    account: PackedAccount | None = None
    #: Bytes on the wire, heads included; those of TLS itself are not.
    bytes: Traffic
    #: How `Generator::max_rate` was found, if this command found it.
    calibration: ClientCalibration | None = None
    #: The same, per request class.
    classes: dict[str, ClassRecord]
    #: The command line; of a load that was made in parts, the first one's.
    command: list[str]
    #: From the start of an attempt to its establishment.
    connect_time_us: Summary | None = None
    #: What became of every scheduled call.
    counts: Counts
    #: From the start to the end of the last call.
    duration_s: float
    #: From the first byte sent to the first byte received.
    first_byte_us: Summary | None = None
    #: What the load cost the host that made it.
    generator: Generator
    #: From the establishment of a connection to the end of its TLS handshake; left out where there is no TLS.
    handshake_time_us: Summary | None = None
    #: The histograms behind the summaries: base64 of HdrHistogram V2, values in `hdr_value_unit`.
    hdr: dict[str, str]
    #: The unit of the values inside `hdr`: nanoseconds.
    hdr_value_unit: str
    #: The version of HTTP that was spoken: `1.0`, `1.1` or `2`. Absent from Records of versions that did not say.
    http: str | None = None
    #: Whether the user ended the run early.
    interrupted: bool
    #: The course of the run.
    intervals: list[Interval]
    #: From due to the moment the generator acted.
    lateness_us: Summary | None = None
    #: The objectives that were given, and whether they were met. A load that was made in parts has those that it was
    #: merged with.
    objectives: list[Objective] | None = None
    #: Per second, over `window_s`.
    rates: Rates
    #: Throughput sampled every five seconds (Mosberger & Jin 1998, §3.2).
    reply_rate: ReplyRate
    #: Half width of the 95 % confidence interval of the mean response time, by batch means.
    response_mean_ci95_us: float | None = None
    #: From due to the last byte.
    response_time_us: Summary | None = None
    #: `SCHEMA`.
    schema: str
    #: Seed of all randomness.
    seed: int
    #: What the monitor saw, if one was running.
    server: Server | None = None
    #: From the first byte sent to the last byte received.
    service_time_us: Summary | None = None
    #: What became of its sessions, if it has any.
    sessions: SessionFigures | None = None
    #: Which parts of a load this is, where it was made in parts.
    shards: list[ShardOrigin] | None = None
    #: Wall-clock time of the start, RFC 3339.
    started_at: str
    #: `CLOCK_MONOTONIC` at the start, in nanoseconds: anchors every `t_s` of this Record on that host's clock.
    started_monotonic_ns: int
    #: The URL, as resolved.
    target: str
    #: What client and server agreed on in the handshake before the run, where there is TLS and one succeeded.
    tls: TlsSpoken | None = None
    #: Why calls failed that TLS failed, if any did.
    tls_failures: list[TlsFailure] | None = None
    #: Whether the numbers can be trusted.
    verdict: Verdict
    #: An `http://` URL was loaded where the server speaks TLS: nothing but errors came, and a handshake after them
    #: worked.
    wants_tls: bool | None = None
    #: The window in which load was offered; every rate is over this window. An open load of a number of calls lasts
    #: until the next call would have been due, a closed one until its last call has ended.
    window_s: float
    #: The load that was made: what was requested, in which mix, and how calls came. Secrets are left out.
    workload: Workload | None = None


#: What becomes of a session's connections while its user thinks.
BetweenBursts: TypeAlias = Literal["keep", "close"]


#: In which order what is listed is asked for.
Order: TypeAlias = Literal["random", "listed", "once"]


#: A law of popularity, written as `zipf:0.8`.
Popularity: TypeAlias = str


#: The reasons a script can tell apart.
ReasonCode: TypeAlias = Literal[
    "generator_late",
    "generator_cpu",
    "generator_stalled",
    "descriptors",
    "ports",
    "memory",
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


#: The digest of a body.
Sha256: TypeAlias = str


#: A distribution of numbers that are not negative; the unit is that of the field.
Spread: TypeAlias = float | str


#: One of several.
Status: TypeAlias = int | str


#: The ways a handshake can fail, or a TLS stream can break its rules.
TlsFault: TypeAlias = Literal[
    "not_tls",
    "certificate_expired",
    "certificate_not_yet_valid",
    "certificate_name",
    "certificate_issuer",
    "certificate_invalid",
    "version",
    "nothing_in_common",
    "client_certificate",
    "unknown_name",
    "protocol",
    "alert",
    "timed_out",
    "truncated",
    "undecryptable",
    "misbehaved",
]


#: A version of TLS.
TlsVersion: TypeAlias = Literal["1.2", "1.3"]


#: A whole number that may be too large for a number of JSON: its decimal digits in a string.
Whole: TypeAlias = str


#: Some status codes.
Statuses: TypeAlias = int | str | list[Status]
