"""Written by document_types.py from schema/record.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Document, Part
from .common import (
    ClockOffset, Core, CpuShares, Disk, HostProbe, Interrupts, Listener, Memory, Module, Network, Overhead, Paging,
    Port, Pressure, Program, Reason, ServerInterval, SocketRequests, Summary, Verdict, Workload,
)


@dataclass(kw_only=True)
class AddressRecord(Part):
    """Results of the calls to one address of the server."""
    #: The address and port, like `192.0.2.7:443`.
    address: str
    #: Calls to this address.
    calls: int
    #: Calls that were completed.
    completed: int
    #: Connections that were established.
    connections: int
    #: Calls that failed, including those that could not connect.
    failed: int
    #: Time from when a call was due to its last byte.
    response_time_us: Summary | None = None
    #: Calls to this address as a share of the calls to all addresses.
    share: float


@dataclass(kw_only=True)
class ClassRecord(Part):
    """One request class of a run."""
    #: As in `Record::bytes`.
    bytes: WireBytes | None = None
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
    """Measurement of the largest load that this client can generate: the largest at which the server's throughput is
    the same whether one generator makes the load or two make half of it each (Banga & Druschel 1997, §4.3). Loads
    and throughputs are calls per second, or connection attempts per second for S-Clients."""
    #: Every load tried, in increasing order; a load that was tried again appears twice.
    curve: list[ClientLevel]
    #: Whether the maximum may be higher: the built-in server reached its own limit before the client did.
    lower_bound: bool
    #: That load; `None` if the client was the limit at every load tried.
    max_rate: float | None = None
    #: Whether the second generator shared CPUs with the first or with the server because no others were free. It
    #: then adds less than another host would, so the client's own lateness and CPU time weigh more in the result.
    second_shares_cpus: bool


@dataclass(kw_only=True)
class ClientLevel(Part):
    """One load of a `ClientCalibration`. Throughputs are means over short runs, made in pairs."""
    #: Half width of the 95 % confidence interval of `two − one`, from the differences within pairs.
    difference_ci95_half_width: float | None = None
    #: Why the client was judged the limit at this load; `None` if it was not.
    limited: str | None = None
    #: The load.
    load: float
    #: Throughput with one generator.
    one: float
    #: Standard deviation of `one`.
    one_stddev: float | None = None
    #: Pairs of runs, each of one run with one generator and one with two.
    pairs: int
    #: Throughput with two generators.
    two: float
    #: Standard deviation of `two`.
    two_stddev: float | None = None


@dataclass(kw_only=True)
class Counts(Part):
    """Calls by outcome. `scheduled = sent + client_limited + abandoned + refused + reset_before_sending +
    tls_failed_before_sending + unsent_at_end`, and `sent = completed + unexpected + timed_out + (reset −
    reset_before_sending) + malformed + stream_reset + gone_away + (tls_failed − tls_failed_before_sending) +
    in_flight_at_end`."""
    #: Connection attempts abandoned after the connect timeout.
    abandoned: int
    #: Calls for which this host had no file descriptor, port or memory, or whose request body it could not read.
    client_limited: int
    #: Calls of `reset` that ended before any byte of the response, on a connection that had been used or idle
    #: before: usually, the server closed it while the request was on its way. Left out if zero.
    closed_on_reuse: int | None = None
    #: Complete responses that match what the workload expects, if it expects anything.
    completed: int
    #: Connection attempts.
    connect_attempts: int
    #: Empty lines before complete responses, where HTTP allows none: the server ends a body with a line break that
    #: its length does not include. They are skipped. Left out if zero.
    empty_lines: int | None = None
    #: Connections established.
    established: int
    #: HTTP/2: calls that the server did not process before it closed the connection (GOAWAY). Left out if zero.
    gone_away: int | None = None
    #: TLS handshakes that succeeded. Left out if zero.
    handshakes: int | None = None
    #: Handshakes of `handshakes` that resumed an earlier TLS session. Left out if zero.
    handshakes_resumed: int | None = None
    #: Calls in flight when the run ended.
    in_flight_at_end: int
    #: Responses that are not HTTP.
    malformed: int
    #: Connection attempts that were refused.
    refused: int
    #: HTTP/2: retries after the server refused a stream (REFUSED_STREAM, GOAWAY). A call whose retry was answered
    #: counts neither as `stream_reset` nor as `gone_away`. Left out if zero.
    refused_streams: int | None = None
    #: Calls whose connection was closed or reset before the response was complete.
    reset: int
    #: Calls of `reset` of which nothing had been sent.
    reset_before_sending: int
    #: Retries after such a close (`--retry-closed`). A call whose retry was answered does not count as `reset`. Left
    #: out if zero.
    retried_closed: int | None = None
    #: Calls that the schedule made due.
    scheduled: int
    #: Calls of which at least one byte was sent.
    sent: int
    #: Complete responses by status class, including unexpected ones.
    status: StatusCounts
    #: HTTP/2: calls whose streams the server reset (RST_STREAM). Left out if zero.
    stream_reset: int | None = None
    #: Calls without a complete response within the response timeout.
    timed_out: int
    #: Calls whose TLS handshake failed, or whose TLS stream violated the protocol. Left out if zero.
    tls_failed: int | None = None
    #: Calls of `tls_failed` of which nothing had been sent. Left out if zero.
    tls_failed_before_sending: int | None = None
    #: Complete responses that do not match what the workload expects. Left out if zero.
    unexpected: int | None = None
    #: Calls not yet sent when the run ended.
    unsent_at_end: int


@dataclass(kw_only=True)
class Generator(Part):
    """Resources that the load took on the host that generated it."""
    #: The first request body that could not be read from its file during the run, with the error.
    body_error: str | None = None
    #: Share of its time for which the busiest thread had work to do, excluding waiting and spinning.
    busy: float
    #: CPU time, exact.
    cpu_s: float | None = None
    #: CPU time in the kernel, as the kernel's ticks sampled it; `None` if there were too few ticks.
    cpu_system_s: float | None = None
    #: CPU time in user mode, as the kernel's ticks sampled it; `None` if there were too few ticks.
    cpu_user_s: float | None = None
    #: Name of the I/O engine.
    engine: str
    #: CPU time that the host withheld from the generator.
    host: HostContention | None = None
    #: Speed of the generator's first CPU right before the load began; for a load made in parts, that of the slowest
    #: part. `None` in Records from versions without this probe.
    host_probe: HostProbe | None = None
    #: Longest time for which a thread was neither waiting nor working because it was stopped or had no CPU.
    longest_gap_s: float | None = None
    #: Highest number of connections open at once, over all threads.
    max_open_connections: int
    #: Highest rate that this client was measured to generate without being the limit, if that was measured.
    max_rate: float | None = None
    #: Messages of the threads that panicked. Their calls are counted up to the panic; the other threads continued.
    panics: list[str] | None = None
    #: Number of threads, one shard each.
    threads: int
    #: If calls were to begin only at ticks, the time between two ticks. Calls were late by up to this.
    tick_s: float | None = None


@dataclass(kw_only=True)
class HostContention(Part):
    """CPU time that the host withheld from the generator during the run, as its kernel accounts it. A figure that
    the kernel does not provide is absent."""
    #: Time for which a thread was ready to run while the CPU ran something else; the largest of all threads.
    cpu_wait_s: float | None = None
    #: Share of the time of the generator's CPUs that the hypervisor gave to other guests.
    steal: float | None = None
    #: Time for which a CPU quota of the generator's control group, or of one above it, throttled the group; summed
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
    """One interval of the run; all intervals of a run have the same length."""
    #: Calls completed in the interval.
    completed: int
    #: Calls that failed in the interval.
    errors: int
    #: Length of the interval.
    length_s: float
    #: Calls due in the interval.
    offered: int
    #: Median response time of the completed calls.
    p50_us: float | None = None
    #: 99th percentile of the response time of the completed calls.
    p99_us: float | None = None
    #: Calls first sent in the interval.
    sent: int
    #: Start of the interval, in seconds after the start of the run.
    t_s: float


@dataclass(kw_only=True)
class Limited(Part):
    """Calls that the generator's host lacked the resources for, by resource. Their sum is `Counts::client_limited`."""
    #: Calls whose request body could not be read from its file.
    bodies: int | None = None
    #: Calls that got no file descriptor.
    descriptors: int
    #: Calls that got no socket memory.
    memory: int
    #: Calls that got no local port.
    ports: int


@dataclass(kw_only=True)
class NotFollowed(Part):
    """Redirects that were not followed, by reason."""
    #: Following the redirect would have required sending the request's content again.
    content: int
    #: The redirect leads to another server, or to this one by another scheme or port.
    elsewhere: int
    #: The redirect names no target, or its target is not a URL.
    nowhere: int
    #: The limit of redirects in a row was reached.
    too_many: int


@dataclass(kw_only=True)
class Objective(Part):
    """The result of an objective of a run, like `p99<50ms`. An objective is about expected answers: those of the
    statuses that the workload expects, or else any but 5xx and 429. Every other answer and every failed call
    counts as slower than any limit."""
    #: Share of its calls that were not answered as expected: they failed, or the answer was 5xx, 429 or another
    #: status than the workload expects. It excludes calls that this host lacked the resources for, or that the end
    #: of the run cut off. Absent if there were no calls.
    error_share: float | None = None
    #: The measured time, in seconds; `None` if too few calls were answered as expected for such a time to exist.
    measured_s: float | None = None
    #: Text for people: the calls that were not answered as expected, if any, and what they mean for the objective.
    message: str | None = None
    #: Whether the objective is met.
    met: bool
    #: The objective, as it was written.
    objective: str


@dataclass(kw_only=True)
class PackedAccount(Part):
    """The whole Account."""
    #: Counts and response times by server address, where the server has several.
    addresses: list[PackedClass] | None = None
    #: Length of a batch in nanoseconds, a power of two.
    batch_ns: int
    #: Batches of response times, by the time at which their calls ended, up to the last batch that is not empty.
    batches: list[PackedBatch]
    #: The request classes, in the workload's order.
    classes: list[PackedClass]
    #: Calls that were completed within the window.
    completed_in_window: int
    #: Time from the start of a connection attempt to its establishment. This and all other times are `None` where
    #: nothing was timed.
    connect_time: PackedTimes | None = None
    #: Time from the establishment of a connection to the end of its TLS handshake.
    handshake_time: PackedTimes | None = None
    #: HTTP/2 error codes that the server sent.
    http2_errors: list[Http2Error] | None = None
    #: Length of an interval in seconds, a power of two from 1/32 on.
    interval_s: float
    #: The intervals of the run, up to the last that has an event.
    intervals: list[PackedInterval]
    #: Calls that this host lacked the resources for.
    limited: Limited
    #: Outcomes of redirects, if the run follows them.
    redirects: PackedRedirects | None = None
    #: Calls completed in each five seconds of the window, up to the last completed call.
    replies: list[int]
    #: The sessions, if the workload has any.
    sessions: PackedSessions | None = None
    #: Calls that failed because of TLS, by fault.
    tls_faults: dict[str, int] | None = None
    #: Planned length of the offered window, in nanoseconds; `None` if it was not known before the run.
    window_ns: int | None = None


@dataclass(kw_only=True)
class PackedBatch(Part):
    """The response times of one batch."""
    #: Number of response times.
    count: int
    #: Sum of the response times, in nanoseconds.
    sum: Whole


@dataclass(kw_only=True)
class PackedClass(Part):
    """Counts and times of the calls of one class, with the fields of `ClassRecord`."""
    #: Bytes on the wire, including heads.
    bytes: WireBytes
    #: Calls by outcome.
    counts: Counts
    #: Time from the first byte sent to the first byte received.
    first_byte: PackedTimes | None = None
    #: Time from when a call was due to when the generator began it.
    lateness: PackedTimes | None = None
    #: Name of the class.
    name: str
    #: Time from when a call was due to its last byte.
    response_time: PackedTimes | None = None
    #: Time from the first byte sent to the last byte received.
    service_time: PackedTimes | None = None
    #: Whole responses by status code.
    status_codes: dict[str, int] | None = None
    #: `response_time` and `service_time` by status class, and the times of unexpected responses. Left out if all
    #: responses were expected and of one status class.
    status_times: list[PackedStatusTimes] | None = None


@dataclass(kw_only=True)
class PackedInterval(Part):
    """One interval of a run."""
    #: Calls completed in the interval.
    completed: int
    #: Calls that failed in the interval.
    errors: int
    #: Calls due in the interval.
    offered: int
    #: Histogram of the response times of the completed calls, if there were any: from 1 µs to a minute, in
    #: microseconds, with two significant digits.
    response_us: str | None = None
    #: Calls first sent in the interval.
    sent: int


@dataclass(kw_only=True)
class PackedRedirects(Part):
    """Outcomes of redirects, as in `Redirects`."""
    #: The calls that followed a redirect.
    followed: PackedClass
    #: The redirects that were not followed.
    not_followed: NotFollowed


@dataclass(kw_only=True)
class PackedSessions(Part):
    """Outcomes of the sessions of a run, as in `SessionFigures`. Distributions of counts are stored as if the counts
    were nanoseconds."""
    #: Bursts of a session.
    bursts: PackedTimes | None = None
    #: Calls of a session.
    calls: PackedTimes | None = None
    #: Sessions whose last call was completed.
    completed: int
    #: Connections that were established for a session.
    connections: PackedTimes | None = None
    #: Sessions that a failed call ended.
    failed: int
    #: Bursts of a failed session.
    failed_bursts: PackedTimes | None = None
    #: Calls of a failed session.
    failed_calls: PackedTimes | None = None
    #: Connections that were established for a failed session.
    failed_connections: PackedTimes | None = None
    #: Time from the due time of a failed session's first call to the end of its last call.
    failed_lifetime: PackedTimes | None = None
    #: Sessions that had not ended when the run did.
    in_progress: int
    #: Time from the due time of a session's first call to its last answer.
    lifetime: PackedTimes | None = None


@dataclass(kw_only=True)
class PackedStatusTimes(Part):
    """Times of the whole responses of one status class."""
    #: Whether these responses were expected: they are then completed calls, and their times are in the class's
    #: `response_time` as well.
    expected: bool
    #: Time from when a call was due to its last byte.
    response_time: PackedTimes | None = None
    #: Time from the first byte sent to the last byte received.
    service_time: PackedTimes | None = None
    #: `1xx`, `2xx`, `3xx`, `4xx` (all but 429), `429` or `5xx`.
    status: str


@dataclass(kw_only=True)
class PackedTimes(Part):
    """A distribution of at least one time, in nanoseconds."""
    #: Histogram from 1 ns to an hour, with three significant digits.
    histogram: str
    #: The longest time.
    max: int
    #: The shortest time.
    min: int
    #: Sum of the times.
    sum: Whole
    #: Sum of the squares of the times.
    sum_of_squares: Whole


@dataclass(kw_only=True)
class Rates(Part):
    """Rates per second over the offered window."""
    #: Complete responses received inside the window.
    completed: float
    #: Connection attempts.
    connect_attempts: float
    #: Connections established.
    established: float
    #: TLS handshakes that succeeded. Left out if zero.
    handshakes: float | None = None
    #: Handshakes that resumed an earlier TLS session. Left out if zero.
    handshakes_resumed: float | None = None
    #: Calls that the schedule made due.
    offered: float
    #: Calls of which at least one byte was sent.
    sent: float


@dataclass(kw_only=True)
class Redirects(Part):
    """Outcomes of redirects, in a run that follows them."""
    #: The calls that followed redirects. No other figure of the Record includes them: neither counts and rates nor
    #: classes. Their response time starts when the redirected call was due.
    followed: ClassRecord
    #: The redirects that were not followed.
    not_followed: NotFollowed


@dataclass(kw_only=True)
class ReplyRate(Part):
    """Replies per second, one sample per five seconds of the window."""
    #: Half width of the 95 % confidence interval of the mean (Student's t); needs two samples.
    ci95_half_width: float | None = None
    #: Highest sample.
    max: float | None = None
    #: Mean of the samples.
    mean: float | None = None
    #: Lowest sample.
    min: float | None = None
    #: Number of samples of a whole five seconds.
    samples: int
    #: Standard deviation; needs two samples.
    stddev: float | None = None


@dataclass(kw_only=True)
class Server(Part):
    """The monitor's figures of a server over a run."""
    #: Threads that waited for a disk, whole machine.
    blocked: int | None = None
    #: Offset between the server's and the generator's clocks, if the server is on another host.
    clock: ClockOffset | None = None
    #: Connections of all watched ports together, by TCP state.
    connections: dict[str, int] | None = None
    #: Context switches, whole machine.
    context_switches_per_s: float | None = None
    #: Each watched CPU that was online for the whole interval.
    cores: list[Core] | None = None
    #: The CPUs that were watched (all, or those named), together.
    cpu: CpuShares | None = None
    #: Numbers of the watched CPUs.
    cpus: list[int] | None = None
    #: All disks together; partitions are not counted separately.
    disk: Disk | None = None
    #: Each disk by name, if it was present for the whole interval.
    disks: dict[str, Disk] | None = None
    #: Processes and threads started, whole machine.
    forks_per_s: float | None = None
    #: Speed of the server's host when `brimful watch` began there.
    host_probe: HostProbe | None = None
    #: Interrupts, whole machine.
    interrupts: Interrupts | None = None
    #: The run in intervals.
    intervals: list[ServerInterval] | None = None
    #: The listening sockets of all watched ports together.
    listener: Listener | None = None
    #: Memory.
    memory: Memory | None = None
    #: Figures of the Server Module, if the server has loaded it.
    module: Module | None = None
    #: The network of the server's namespace.
    network: Network | None = None
    #: Cost of monitoring.
    overhead: Overhead | None = None
    #: Traffic between memory and disks.
    paging: Paging | None = None
    #: Each watched port.
    ports: list[Port] | None = None
    #: Pressure stall information: the share of time for which work waited for a resource.
    pressure: Pressure | None = None
    #: The server's programs.
    process: list[Program] | None = None
    #: Requests observed on the server's sockets, if that was requested.
    requests: SocketRequests | None = None
    #: Threads that ran or waited for a CPU, whole machine, without the monitor's own.
    runnable: int | None = None
    #: The source of each kind of figures, or `none: …` with the reason and what to do about it.
    sources: dict[str, str] | None = None


@dataclass(kw_only=True)
class SessionFigures(Part):
    """Outcomes of the sessions of a run. The distributions describe the sessions that began and completed within the
    run and, separately, those that began and failed in it. If sessions are long compared with the run, the longer
    ones are missing from both."""
    #: Bursts of a session.
    bursts: SessionSummary | None = None
    #: Calls of a session.
    calls: SessionSummary | None = None
    #: Sessions whose last call was completed.
    completed: int
    #: Connections that were established for a session.
    connections: SessionSummary | None = None
    #: Sessions that a failed call ended.
    failed: int
    #: Bursts of a failed session, including the burst in which it failed.
    failed_bursts: SessionSummary | None = None
    #: Calls of a failed session, including the failed calls.
    failed_calls: SessionSummary | None = None
    #: Connections that were established for a failed session.
    failed_connections: SessionSummary | None = None
    #: Time from the due time of a failed session's first call to the end of its last call; at most an hour.
    failed_lifetime_s: SessionSummary | None = None
    #: Sessions that had not ended when the run did.
    in_progress: int
    #: Time from the due time of a session's first call to its last answer; at most an hour.
    lifetime_s: SessionSummary | None = None
    #: Sessions that began, per second over `Record::window_s`, including those already under way when the run began.
    rate: float
    #: Sessions that made a call: `completed + failed + in_progress`.
    started: int


@dataclass(kw_only=True)
class SessionSummary(Part):
    """Distribution of one figure over the sessions."""
    #: Maximum, exact.
    max: float
    #: Mean, exact.
    mean: float
    #: Median. All quantiles are within 0.1 %.
    p50: float
    #: 90th percentile.
    p90: float
    #: 99th percentile.
    p99: float


@dataclass(kw_only=True)
class ShardOrigin(Part):
    """One part of a load that several processes generated."""
    #: By how much the host's clock was ahead of the clock that set the agreed instant, if that was measured;
    #: negative if it was behind. The start was corrected by this, so `offset_us` does not contain it.
    clock_ahead_us: float | None = None
    #: Bound of the error of `clock_ahead_us`.
    clock_error_us: float | None = None
    #: The host that generated the part.
    host: str
    #: Number of the part, from 1.
    index: int
    #: Time after the start at which the part's process was lost, if it was; nothing later is known of the part.
    lost_at_s: float | None = None
    #: Number of parts.
    of: int
    #: Delay of the part's start after the agreed instant, by its own host's clock; `None` if no instant was agreed.
    offset_us: float | None = None
    #: Reasons not to trust this part alone. The verdict of the whole load need not contain them.
    reasons: list[Reason] | None = None


@dataclass(kw_only=True)
class StatusCounts(Part):
    """Complete responses by status class."""
    #: The protocol was switched (101), after which the connection carries no more calls. Other informational
    #: responses are not counted. Left out if zero.
    status_1xx: int | None = field(default=None, metadata={"key": "1xx"})
    #: Success.
    status_2xx: int = field(metadata={"key": "2xx"})
    #: Redirection.
    status_3xx: int = field(metadata={"key": "3xx"})
    #: Responses of `4xx` that are 429, "too many requests": the server limits the rate of its clients. Left out if
    #: zero.
    status_429: int | None = field(default=None, metadata={"key": "429"})
    #: The client's error.
    status_4xx: int = field(metadata={"key": "4xx"})
    #: The server's error, including invalid codes from 600 on (RFC 9110 §15).
    status_5xx: int = field(metadata={"key": "5xx"})


@dataclass(kw_only=True)
class StatusTimes(Part):
    """Complete responses of one status class."""
    #: Number of responses.
    count: int
    #: Time from when a call was due to its last byte.
    response_time_us: Summary | None = None
    #: Time from the first byte sent to the last byte received.
    service_time_us: Summary | None = None


@dataclass(kw_only=True)
class TlsFailure(Part):
    """Calls that failed because of one TLS fault."""
    #: Number of calls.
    calls: int
    #: Text for people: what happened and what to do next.
    message: str
    #: Identifier of the fault, for scripts.
    reason: TlsFault


@dataclass(kw_only=True)
class TlsSpoken(Part):
    """The parameters that client and server negotiated in the handshake before a run."""
    #: IANA name of the cipher suite.
    cipher_suite: str
    #: Group of the key exchange, like `X25519`.
    key_exchange: str | None = None
    #: The application protocol, if the server selected one by ALPN: `http/1.1` or `h2`.
    protocol: str | None = None
    #: Version, like `TLS 1.3`.
    version: str


@dataclass(kw_only=True)
class WireBytes(Part):
    """Bytes on the wire."""
    #: Bytes of responses.
    received: int
    #: Bytes of requests.
    sent: int


@dataclass(kw_only=True)
class Record(Document):
    """One run."""
    #: Everything that was observed of the calls, so that Records of shards can be merged exactly.
    account: PackedAccount | None = None
    #: Results by address of the server, if the URL's host has several addresses or was resolved again after a
    #: connection failed.
    addresses: list[AddressRecord] | None = None
    #: Bytes on the wire, including heads but not the overhead of TLS.
    bytes: WireBytes
    #: The measurement of `Generator::max_rate`, if this command made it.
    calibration: ClientCalibration | None = None
    #: Results by request class.
    classes: dict[str, ClassRecord]
    #: The command line; for a load made in parts, that of the first part.
    command: list[str]
    #: Time from the start of a connection attempt to its establishment.
    connect_time_us: Summary | None = None
    #: Scheduled calls by outcome.
    counts: Counts
    #: Time from the start of the run to the end of its last call.
    duration_s: float
    #: Time from the first byte sent to the first byte received.
    first_byte_us: Summary | None = None
    #: Resources that the load took on the host that generated it.
    generator: Generator
    #: Time from the establishment of a connection to the end of its TLS handshake; left out without TLS.
    handshake_time_us: Summary | None = None
    #: The histograms behind the summaries, with values in `hdr_value_unit`: base64 of compressed HdrHistogram V2,
    #: the format of other tools (uncompressed in Records of earlier versions). If responses were of several status
    #: classes, each class has its own histogram, like `response_time_us.5xx`.
    hdr: dict[str, str]
    #: The unit of the values inside `hdr`: nanoseconds.
    hdr_value_unit: str
    #: The HTTP version of the run: `1.0`, `1.1` or `2`. Absent from Records of older versions of brimful.
    http: str | None = None
    #: HTTP/2 error codes that the server sent, and the texts it sent with them.
    http2_errors: list[Http2Error] | None = None
    #: Whether the user ended the run early.
    interrupted: bool
    #: The run in intervals of equal length.
    intervals: list[Interval]
    #: Time from when a call was due to when the generator began it.
    lateness_us: Summary | None = None
    #: The objectives of the run, and whether they were met. For a load made in parts, those given when it was
    #: merged.
    objectives: list[Objective] | None = None
    #: Per second, over `window_s`.
    rates: Rates
    #: Outcomes of redirects, if the run follows them.
    redirects: Redirects | None = None
    #: Throughput sampled every five seconds (Mosberger & Jin 1998, §3.2).
    reply_rate: ReplyRate
    #: Half width of the 95 % confidence interval of the mean response time, by batch means.
    response_mean_ci95_us: float | None = None
    #: Time from when a call was due to its last byte.
    response_time_us: Summary | None = None
    #: `SCHEMA`.
    schema: str
    #: Seed of all randomness.
    seed: int
    #: The monitor's observations of the server, if a monitor was running.
    server: Server | None = None
    #: Time from the first byte sent to the last byte received.
    service_time_us: Summary | None = None
    #: Outcomes of the sessions, if the workload has any.
    sessions: SessionFigures | None = None
    #: The parts of the load, if it was made in parts.
    shards: list[ShardOrigin] | None = None
    #: Wall-clock time of the start, RFC 3339.
    started_at: str
    #: `CLOCK_MONOTONIC` at the start, in nanoseconds: anchors every `t_s` of this Record on that host's clock.
    started_monotonic_ns: int
    #: Times of complete responses by status class: `1xx` to `5xx`, and `429`, which is part of `4xx` as well. They
    #: include unexpected responses, which `response_time_us` does not.
    status_classes: dict[str, StatusTimes] | None = None
    #: Complete responses by status code, like `"503": 12`, including unexpected ones.
    status_codes: dict[str, int] | None = None
    #: The URL, as resolved.
    target: str
    #: TLS parameters that client and server negotiated in the handshake before the run, if one succeeded.
    tls: TlsSpoken | None = None
    #: Calls that failed because of TLS, by fault.
    tls_failures: list[TlsFailure] | None = None
    #: Whether the numbers can be trusted.
    verdict: Verdict
    #: Whether the URL is `http://` but the port speaks TLS: all calls failed, and a TLS handshake after them
    #: succeeded.
    wants_tls: bool | None = None
    #: Length of the window in which load was offered; every rate is over this window. If the load is a number of
    #: calls, the window of an open load ends when the next call would have been due, that of a closed load when the
    #: last call ends.
    window_s: float
    #: The workload of the run: its requests, their mix and their arrivals. Secrets are left out.
    workload: Workload | None = None


#: The frames that carry an error code.
Http2Frame: TypeAlias = Literal["GOAWAY", "RST_STREAM"]


#: A reason for the failure of a TLS handshake or a TLS stream.
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


#: A whole number that may be too large for a JSON number; it is serialised as a string of decimal digits.
Whole: TypeAlias = str
