"""Written by document_types.py from schema/record.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Document, Part
from .common import (
    ClockOffset, Core, CpuShares, Disk, Expect, FileSet, HostProbe, Interrupts, Listener, Load, Memory, Module, Order,
    Overhead, Paging, Port, Pressure, Program, Reason, ServerInterval, SocketRequests, Tcp, Tls, Url, Verdict,
)


@dataclass(kw_only=True)
class AddressRecord(Part):
    """What became of the calls that went to one address of the server."""
    #: The address and port, like `192.0.2.7:443`.
    address: str
    #: Calls that went there.
    calls: int
    #: Calls that were completed.
    completed: int
    #: Connections that were established.
    connections: int
    #: Calls that failed, those that found no connection among them.
    failed: int
    #: From due to the last byte.
    response_time_us: Summary | None = None
    #: The same, as a share of the calls of all addresses.
    share: float


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
    #: As in `Record::status_classes`.
    status_classes: dict[str, StatusTimes] | None = None
    #: As in `Record::status_codes`.
    status_codes: dict[str, int] | None = None


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
class Counts(Part):
    """What became of every call. `scheduled = sent + client_limited + abandoned + refused + reset_before_sending +
    tls_failed_before_sending + unsent_at_end`, and `sent = completed + unexpected + timed_out + (reset −
    reset_before_sending) + malformed + stream_reset + gone_away + (tls_failed − tls_failed_before_sending) +
    in_flight_at_end`."""
    #: Attempts given up after the connect timeout.
    abandoned: int
    #: Calls that this host had no descriptor, port or memory for, or whose body it could not read.
    client_limited: int
    #: Those of `reset` that came before any byte of the response, on a connection that had answered before or had
    #: been idle: as a rule, the server had closed it while the request was on its way. Left out where there is none.
    closed_on_reuse: int | None = None
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
    #: HTTP/2: times that a call was sent again because the server had refused its stream (REFUSED_STREAM, GOAWAY); a
    #: call that was answered then is neither of the two before. Left out where there is none.
    refused_streams: int | None = None
    #: Connections closed or reset before the response was whole.
    reset: int
    #: Those of `reset` that happened before anything was sent.
    reset_before_sending: int
    #: Times that a call was sent again because it had met such a connection (`--retry-closed`); a call that was
    #: answered then is no `reset`. Left out where there is none.
    retried_closed: int | None = None
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
class Generator(Part):
    """What the load cost the host that made it."""
    #: The first request body that could not be read from its file during the run, and why.
    body_error: str | None = None
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
    #: Messages of its threads that panicked. Their calls are counted up to then, and the other threads went on.
    panics: list[str] | None = None
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
class Http2Error(Part):
    """The frames of one kind that a server sent with one error code."""
    #: The error code; 4294967295 stands for all that RFC 9113 does not name.
    code: int
    #: The kind of frame.
    frame: Http2Frame
    #: The number of frames.
    frames: int
    #: Its name, like `ENHANCE_YOUR_CALM`.
    name: str
    #: One of the texts that the server sent with it, at most 200 bytes: the first in alphabetical order.
    text: str | None = None


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
    #: The file with the request's body could not be read.
    bodies: int | None = None
    #: For want of a file descriptor.
    descriptors: int
    #: For want of socket memory.
    memory: int
    #: For want of a local port.
    ports: int


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
class NotFollowed(Part):
    """Redirects that were not followed, by why."""
    #: The content of the request would have had to be sent once more.
    content: int
    #: They lead to another server, or to this one by another scheme or port.
    elsewhere: int
    #: Where they lead was not said, or no URL.
    nowhere: int
    #: They came after as many as are followed.
    too_many: int


@dataclass(kw_only=True)
class Objective(Part):
    """What came of an objective of a run, like `p99<50ms`. It is about answers that were expected: any but 5xx and
    429, or those of the statuses that the Workload expects. Every other answer and every failed call counts as
    slower than any limit."""
    #: The share of its calls that were not answered as expected: they failed, or the answer was 5xx, 429 or another
    #: status than the Workload expects. Calls that this host had no means for, or that the end of the run cut off,
    #: are not among its calls. Absent where there was no call.
    error_share: float | None = None
    #: What was measured, in seconds; `None` where so many calls were not answered as expected, or so few were made,
    #: that there is no such time.
    measured_s: float | None = None
    #: For people: which calls were not answered as expected, if there were any, and what that means for the
    #: objective.
    message: str | None = None
    #: Whether the objective is met.
    met: bool
    #: As it is written.
    objective: str


@dataclass(kw_only=True)
class PackedAccount(Part):
    """The whole Account."""
    #: Calls by the server's addresses, where these are told apart: their counts and response times.
    addresses: list[PackedClass] | None = None
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
    #: The error codes that a server of HTTP/2 sent.
    http2_errors: list[Http2Error] | None = None
    #: Length of an interval in seconds, a power of two from 1/32 on.
    interval_s: float
    #: The course of the run, up to its last event.
    intervals: list[PackedInterval]
    #: What this host had no means for.
    limited: Limited
    #: What became of redirects, where they are followed.
    redirects: PackedRedirects | None = None
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
    #: Whole responses by status code.
    status_codes: dict[str, int] | None = None
    #: `response_time` and `service_time` by status class, and the times of unexpected responses. Left out where all
    #: responses were expected and of one class.
    status_times: list[PackedStatusTimes] | None = None


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
class PackedRedirects(Part):
    """What became of redirects, as in `Redirects`."""
    #: The calls that followed one.
    followed: PackedClass
    #: The redirects that none followed.
    not_followed: NotFollowed


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
class PackedStatusTimes(Part):
    """Times of the whole responses of one status class."""
    #: Whether they are completed calls, and in `response_time`; false for unexpected responses.
    expected: bool
    #: As in `PackedClass`.
    response_time: PackedTimes | None = None
    #: As in `PackedClass`.
    service_time: PackedTimes | None = None
    #: `1xx`, `2xx`, `3xx`, `4xx` (all but 429), `429` or `5xx`.
    status: str


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
class Redirects(Part):
    """What became of redirects, in a run that follows them."""
    #: The calls that followed one, up to several after one another. They are in no other figure of the Record:
    #: neither in its counts and rates nor in its classes. Their response time is from when the first call was due.
    followed: ClassRecord
    #: The redirects that none followed.
    not_followed: NotFollowed


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
class StatusTimes(Part):
    """Whole responses of one status class."""
    #: How many.
    count: int
    #: From due to the last byte.
    response_time_us: Summary | None = None
    #: From the first byte sent to the last byte received.
    service_time_us: Summary | None = None


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
    #: The server's addresses, where the URL's host has several or is a name that was looked up again when a
    #: connection failed.
    addresses: list[AddressRecord] | None = None
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
    #: The histograms behind the summaries, values in `hdr_value_unit`: base64 of compressed HdrHistogram V2, as
    #: other tools read it (Records of earlier versions hold it uncompressed). Where responses were of several status
    #: classes, each has one of its own, like `response_time_us.5xx`.
    hdr: dict[str, str]
    #: The unit of the values inside `hdr`: nanoseconds.
    hdr_value_unit: str
    #: The version of HTTP that was spoken: `1.0`, `1.1` or `2`. Absent from Records of versions that did not say.
    http: str | None = None
    #: The error codes that a server of HTTP/2 sent, and what it said with them.
    http2_errors: list[Http2Error] | None = None
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
    #: What became of redirects, where they are followed.
    redirects: Redirects | None = None
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
    #: Times of whole responses by status class: `1xx` to `5xx`, and `429`, which is part of `4xx` as well.
    #: Unexpected responses are among them, which `response_time_us` leaves out.
    status_classes: dict[str, StatusTimes] | None = None
    #: Whole responses by status code, like `"503": 12`; unexpected ones among them.
    status_codes: dict[str, int] | None = None
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


#: The frames that carry an error code.
Http2Frame: TypeAlias = Literal["GOAWAY", "RST_STREAM"]


#: A law of popularity, written as `zipf:0.8`.
Popularity: TypeAlias = str


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


#: A whole number that may be too large for a number of JSON: its decimal digits in a string.
Whole: TypeAlias = str
