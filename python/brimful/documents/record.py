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
    #: Address and port, like `192.0.2.7:443`.
    address: str
    #: Number of calls to this address.
    calls: int
    #: Number of calls to this address that were completed.
    completed: int
    #: Number of connections that were established to this address.
    connections: int
    #: Number of calls to this address that failed, including those that could not connect.
    failed: int
    #: Time from when a call was due to the last byte of its response.
    response_time_us: Summary | None = None
    #: Calls to this address as a share of the calls to all addresses.
    share: float


@dataclass(kw_only=True)
class ClassRecord(Part):
    """Results of one request class of a run."""
    #: Bytes of the calls of this class, as in `Record::bytes`.
    bytes: WireBytes | None = None
    #: Calls of this class by outcome, as in `Record::counts`.
    counts: Counts
    #: Times to the first byte in this class, as in `Record::first_byte_us`.
    first_byte_us: Summary | None = None
    #: Lateness of the calls of this class, as in `Record::lateness_us`.
    lateness_us: Summary | None = None
    #: Response times of this class, as in `Record::response_time_us`.
    response_time_us: Summary | None = None
    #: Service times of this class, as in `Record::service_time_us`.
    service_time_us: Summary | None = None
    #: Times of this class by status class, as in `Record::status_classes`.
    status_classes: dict[str, StatusTimes] | None = None
    #: Status codes of this class, as in `Record::status_codes`.
    status_codes: dict[str, int] | None = None


@dataclass(kw_only=True)
class ClientCalibration(Part):
    """Measurement of the largest load that this client can generate. It is the largest load at which the server's
    throughput is the same with one generator as with two that make half of the load each (Banga & Druschel 1997,
    §4.3). Loads and throughputs are calls per second, or connection attempts per second for S-Clients."""
    #: Every load tried, in increasing order; a load that was tried again appears more than once.
    curve: list[ClientLevel]
    #: Whether the maximum may be higher: the built-in server reached its own limit before the client did.
    lower_bound: bool
    #: The largest load; `None` if the client was the limit at every load tried.
    max_rate: float | None = None
    #: Whether the second generator shared CPUs with the first or with the server because no other CPUs were free.
    #: Then it adds less load than a second host would, and the client's own lateness and CPU time weigh more in the
    #: result.
    second_shares_cpus: bool


@dataclass(kw_only=True)
class ClientLevel(Part):
    """One load of a `ClientCalibration`. Throughputs are means over several short runs."""
    #: Half width of the 95 % confidence interval of `two − one`, from the differences within pairs.
    difference_ci95_half_width: float | None = None
    #: The evidence that the client was the limit at this load; `None` if it was not the limit.
    limited: str | None = None
    #: The offered load.
    load: float
    #: Throughput with one generator.
    one: float
    #: Standard deviation of `one`.
    one_stddev: float | None = None
    #: Number of pairs of runs. Each pair is one run with one generator and one with two.
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
    #: Part of `reset`: calls that ended before any byte of the response, on a connection that had been used or idle
    #: before. Usually, the server closed it while the request was on its way. Left out if zero.
    closed_on_reuse: int | None = None
    #: Complete responses that match what the workload expects, if it expects anything.
    completed: int
    #: Number of connection attempts.
    connect_attempts: int
    #: Number of empty lines before complete responses, where HTTP allows none: the server ends a body with a line
    #: break that its length does not include. The generator skips them. Left out if zero.
    empty_lines: int | None = None
    #: Number of connections that were established.
    established: int
    #: HTTP/2: calls that the server did not process before it closed the connection (GOAWAY). Left out if zero.
    gone_away: int | None = None
    #: TLS handshakes that succeeded. Left out if zero.
    handshakes: int | None = None
    #: Part of `handshakes`: handshakes that resumed an earlier TLS session. Left out if zero.
    handshakes_resumed: int | None = None
    #: Calls in flight when the run ended.
    in_flight_at_end: int
    #: Responses that are not HTTP.
    malformed: int
    #: Connection attempts that were refused.
    refused: int
    #: HTTP/2: number of retries after the server refused a stream (REFUSED_STREAM, GOAWAY). A call whose retry was
    #: answered counts neither as `stream_reset` nor as `gone_away`. Left out if zero.
    refused_streams: int | None = None
    #: Calls whose connection was closed or reset before the response was complete.
    reset: int
    #: Part of `reset`: calls of which nothing had been sent.
    reset_before_sending: int
    #: Number of retries of calls that ended as in `closed_on_reuse` (`--retry-closed`). A call whose retry was
    #: answered does not count as `reset`. Left out if zero.
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
    #: Part of `tls_failed`: calls of which nothing had been sent. Left out if zero.
    tls_failed_before_sending: int | None = None
    #: Complete responses that do not match what the workload expects. Left out if zero.
    unexpected: int | None = None
    #: Calls not yet sent when the run ended.
    unsent_at_end: int


@dataclass(kw_only=True)
class Generator(Part):
    """Resources that the load used on the host that generated it."""
    #: The first request body that could not be read from its file during the run, with the error.
    body_error: str | None = None
    #: Share of time for which the busiest thread had work to do, excluding waiting and spinning.
    busy: float
    #: CPU time of the generator, exact.
    cpu_s: float | None = None
    #: CPU time in the kernel, as sampled by the kernel's clock ticks; `None` if there were too few ticks.
    cpu_system_s: float | None = None
    #: CPU time in user mode, as sampled by the kernel's clock ticks; `None` if there were too few ticks.
    cpu_user_s: float | None = None
    #: Name of the I/O engine.
    engine: str
    #: CPU time that the host withheld from the generator.
    host: HostContention | None = None
    #: Speed of the generator's first CPU right before the load began; for a load made in parts, the speed of the
    #: slowest part. `None` in Records of versions without this probe.
    host_probe: HostProbe | None = None
    #: Longest time for which a thread was stalled: neither waiting nor working, because it was stopped or had no
    #: CPU.
    longest_gap_s: float | None = None
    #: Highest number of connections open at once, over all threads.
    max_open_connections: int
    #: Highest rate that this client can generate without being the limit, as measured; `None` if it was not
    #: measured.
    max_rate: float | None = None
    #: Messages of the threads that panicked. Their calls are counted up to the panic; the other threads continued.
    panics: list[str] | None = None
    #: Number of threads; each runs one shard.
    threads: int
    #: If calls began only at clock ticks, the time between two ticks, in seconds. Calls were late by up to this
    #: time.
    tick_s: float | None = None


@dataclass(kw_only=True)
class HostContention(Part):
    """CPU time that the host withheld from the generator during the run, as its kernel accounts it. A figure that
    the kernel does not provide is absent."""
    #: Time for which a thread was ready to run while the CPU ran something else: the highest value of any thread.
    cpu_wait_s: float | None = None
    #: Share of the time of the generator's CPUs that the hypervisor gave to other guests.
    steal: float | None = None
    #: Time for which a CPU quota throttled the generator's control group, summed over CPUs. The quota may be that of
    #: a parent group.
    throttled_s: float | None = None


@dataclass(kw_only=True)
class Http2Error(Part):
    """The frames of one kind that a server sent with one error code."""
    #: The error code; 4294967295 stands for all codes that RFC 9113 does not name.
    code: int
    #: The kind of frame.
    frame: Http2Frame
    #: The number of frames.
    frames: int
    #: The name of the error code, like `ENHANCE_YOUR_CALM`.
    name: str
    #: One of the texts that the server sent with this code, at most 200 bytes: the first in alphabetical order.
    text: str | None = None


@dataclass(kw_only=True)
class Interval(Part):
    """One interval of the run; all intervals of a run have the same length."""
    #: Number of calls completed in the interval.
    completed: int
    #: Number of calls that failed in the interval.
    errors: int
    #: Length of the interval, in seconds.
    length_s: float
    #: Number of calls that were due in the interval.
    offered: int
    #: Median response time of the completed calls.
    p50_us: float | None = None
    #: 99th percentile of the response time of the completed calls.
    p99_us: float | None = None
    #: Number of calls whose first byte was sent in the interval.
    sent: int
    #: Start of the interval, in seconds after the start of the run.
    t_s: float


@dataclass(kw_only=True)
class Limited(Part):
    """Number of calls for which the generator's host lacked a resource, by resource. Their sum is
    `Counts::client_limited`."""
    #: Number of calls whose request body could not be read from its file.
    bodies: int | None = None
    #: Number of calls that got no file descriptor.
    descriptors: int
    #: Number of calls that got no socket memory.
    memory: int
    #: Number of calls that got no local port.
    ports: int


@dataclass(kw_only=True)
class NotFollowed(Part):
    """Redirects that were not followed, by reason."""
    #: Redirects that would have required sending the request's content again.
    content: int
    #: Redirects to another server, or to another scheme or port of this server.
    elsewhere: int
    #: Redirects without a target, or whose target is not a URL.
    nowhere: int
    #: Redirects that exceeded the limit of redirects in a row.
    too_many: int


@dataclass(kw_only=True)
class Objective(Part):
    """The result of an objective of a run, like `p99<50ms`. An objective is about expected answers: answers with a
    status that the workload expects or, if it expects none in particular, with any status except 5xx and 429.
    Every other answer and every failed call counts as slower than any limit."""
    #: Share of the calls without an expected answer: they failed, or the answer was 5xx, 429 or another status than
    #: the workload expects. Calls for which this host lacked resources, or that were cut off by the end of the run,
    #: are excluded. Absent if there were no calls.
    error_share: float | None = None
    #: The measured time, in seconds; `None` if too few calls had an expected answer.
    measured_s: float | None = None
    #: Explanation for people: the calls without an expected answer, if any, and what they mean for the objective.
    message: str | None = None
    #: Whether the objective is met.
    met: bool
    #: The objective, in the user's notation.
    objective: str


@dataclass(kw_only=True)
class PackedAccount(Part):
    """The serialised form of an `Account`."""
    #: Counts and response times by server address, where the server has several.
    addresses: list[PackedClass] | None = None
    #: Length of a batch in nanoseconds, a power of two.
    batch_ns: int
    #: Response times in batches, by the time at which their calls ended, up to the last non-empty batch.
    batches: list[PackedBatch]
    #: The request classes, in the workload's order.
    classes: list[PackedClass]
    #: Calls that were completed within the window.
    completed_in_window: int
    #: Time from the start of a connection attempt to its establishment. Like all other times here, it is `None` if
    #: no event of this kind was timed.
    connect_time: PackedTimes | None = None
    #: Time from the establishment of a connection to the end of its TLS handshake.
    handshake_time: PackedTimes | None = None
    #: HTTP/2 error codes that the server sent.
    http2_errors: list[Http2Error] | None = None
    #: Length of an interval in seconds: a power of two, at least 1/32.
    interval_s: float
    #: The intervals of the run, up to the last one with an event.
    intervals: list[PackedInterval]
    #: Calls that this host lacked the resources for.
    limited: Limited
    #: Outcomes of redirects, if the run follows them.
    redirects: PackedRedirects | None = None
    #: Number of calls completed in each period of five seconds of the window, up to the last completed call.
    replies: list[int]
    #: Outcomes of the sessions, if the workload has sessions.
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
    #: Time from when a call was due to the last byte of its response.
    response_time: PackedTimes | None = None
    #: Time from the first byte sent to the last byte received.
    service_time: PackedTimes | None = None
    #: Number of complete responses by status code.
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
    #: Histogram of the response times of the completed calls; `None` if no call was completed. Its values are
    #: microseconds, from 1 µs to a minute, with two significant digits.
    response_us: str | None = None
    #: Calls first sent in the interval.
    sent: int


@dataclass(kw_only=True)
class PackedRedirects(Part):
    """Outcomes of redirects, as in `Redirects`."""
    #: Counts and times of the calls that followed a redirect.
    followed: PackedClass
    #: The redirects that were not followed.
    not_followed: NotFollowed


@dataclass(kw_only=True)
class PackedSessions(Part):
    """Outcomes of the sessions of a run, as in `SessionFigures`. Distributions of counts are stored as if the counts
    were nanoseconds."""
    #: Number of bursts of a completed session.
    bursts: PackedTimes | None = None
    #: Number of calls of a completed session.
    calls: PackedTimes | None = None
    #: Number of sessions whose last call was completed.
    completed: int
    #: Number of connections that were established for a completed session.
    connections: PackedTimes | None = None
    #: Number of sessions that a failed call ended.
    failed: int
    #: Number of bursts of a failed session.
    failed_bursts: PackedTimes | None = None
    #: Number of calls of a failed session.
    failed_calls: PackedTimes | None = None
    #: Number of connections that were established for a failed session.
    failed_connections: PackedTimes | None = None
    #: Time from the due time of a failed session's first call to the end of its last call.
    failed_lifetime: PackedTimes | None = None
    #: Number of sessions that were still in progress when the run ended.
    in_progress: int
    #: Time from the due time of a completed session's first call to its last answer.
    lifetime: PackedTimes | None = None


@dataclass(kw_only=True)
class PackedStatusTimes(Part):
    """Times of the whole responses of one status class."""
    #: Whether these responses were expected. Expected responses are completed calls, and their times are also in the
    #: class's `response_time`.
    expected: bool
    #: Time from when a call was due to the last byte of its response.
    response_time: PackedTimes | None = None
    #: Time from the first byte sent to the last byte received.
    service_time: PackedTimes | None = None
    #: Status class: `1xx`, `2xx`, `3xx`, `4xx` (all but 429), `429` or `5xx`.
    status: str


@dataclass(kw_only=True)
class PackedTimes(Part):
    """A distribution of at least one time. Times are in nanoseconds."""
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
    #: Complete responses per second that arrived inside the window.
    completed: float
    #: Connection attempts per second.
    connect_attempts: float
    #: Connections established per second.
    established: float
    #: TLS handshakes per second that succeeded. Left out if zero.
    handshakes: float | None = None
    #: Handshakes per second that resumed an earlier TLS session. Left out if zero.
    handshakes_resumed: float | None = None
    #: Calls per second that the schedule made due.
    offered: float
    #: Calls per second of which at least one byte was sent.
    sent: float


@dataclass(kw_only=True)
class Redirects(Part):
    """Outcomes of redirects in a run that follows them."""
    #: The calls that followed redirects. All other figures of the Record exclude these calls. Their response time
    #: starts when the redirected call was due.
    followed: ClassRecord
    #: The redirects that were not followed.
    not_followed: NotFollowed


@dataclass(kw_only=True)
class ReplyRate(Part):
    """Replies per second, with one sample per five seconds of the window."""
    #: Half width of the 95 % confidence interval of the mean (Student's t); absent with fewer than two samples.
    ci95_half_width: float | None = None
    #: Highest sample, in replies per second.
    max: float | None = None
    #: Mean of the samples.
    mean: float | None = None
    #: Lowest sample, in replies per second.
    min: float | None = None
    #: Number of samples. Each covers a whole period of five seconds.
    samples: int
    #: Standard deviation of the samples; absent with fewer than two samples.
    stddev: float | None = None


@dataclass(kw_only=True)
class Server(Part):
    """The monitor's figures of a server over a run."""
    #: Number of threads in the whole machine that waited for a disk.
    blocked: int | None = None
    #: Offset between the server's and the generator's clocks, if the server is on another host.
    clock: ClockOffset | None = None
    #: Number of connections of all watched ports together, by TCP state.
    connections: dict[str, int] | None = None
    #: Context switches per second of the whole machine.
    context_switches_per_s: float | None = None
    #: Figures of each watched CPU that was online for the whole interval.
    cores: list[Core] | None = None
    #: Shares of the time of all watched CPUs together. All CPUs are watched unless the user names some.
    cpu: CpuShares | None = None
    #: Numbers of the watched CPUs.
    cpus: list[int] | None = None
    #: Traffic of all disks together; partitions are not counted separately.
    disk: Disk | None = None
    #: Traffic of each disk, by name, if the disk was present for the whole interval.
    disks: dict[str, Disk] | None = None
    #: Processes and threads started per second in the whole machine.
    forks_per_s: float | None = None
    #: Speed of the server's host when `brimful watch` began there.
    host_probe: HostProbe | None = None
    #: Interrupts of the whole machine.
    interrupts: Interrupts | None = None
    #: The main figures in successive intervals of the run.
    intervals: list[ServerInterval] | None = None
    #: The listening sockets of all watched ports together.
    listener: Listener | None = None
    #: Memory of the whole machine.
    memory: Memory | None = None
    #: Figures of the Server Module, if the server has loaded it.
    module: Module | None = None
    #: Figures of the network namespace of the server.
    network: Network | None = None
    #: Cost of monitoring.
    overhead: Overhead | None = None
    #: Traffic between memory and disks.
    paging: Paging | None = None
    #: Figures of each watched port.
    ports: list[Port] | None = None
    #: Pressure stall information: the share of time for which work waited for a resource.
    pressure: Pressure | None = None
    #: Figures of the server's programs.
    process: list[Program] | None = None
    #: Requests observed on the server's sockets, if that was requested.
    requests: SocketRequests | None = None
    #: Number of threads in the whole machine that ran or waited for a CPU, excluding the monitor's own.
    runnable: int | None = None
    #: The source of each kind of figures, or `none: …` with the reason and what to do about it.
    sources: dict[str, str] | None = None


@dataclass(kw_only=True)
class SessionFigures(Part):
    """Outcomes of the sessions of a run. There are separate distributions for completed and for failed sessions.
    Both contain only sessions that began and ended within the run, so if sessions are long compared with the run,
    the longest ones are missing."""
    #: Number of bursts of a completed session.
    bursts: SessionSummary | None = None
    #: Number of calls of a completed session.
    calls: SessionSummary | None = None
    #: Number of sessions whose last call was completed.
    completed: int
    #: Number of connections that were established for a completed session.
    connections: SessionSummary | None = None
    #: Number of sessions that a failed call ended.
    failed: int
    #: Number of bursts of a failed session, including the burst in which it failed.
    failed_bursts: SessionSummary | None = None
    #: Number of calls of a failed session, including the failed calls.
    failed_calls: SessionSummary | None = None
    #: Number of connections that were established for a failed session.
    failed_connections: SessionSummary | None = None
    #: Time from the due time of a failed session's first call to the end of its last call; at most an hour.
    failed_lifetime_s: SessionSummary | None = None
    #: Number of sessions that were still in progress when the run ended.
    in_progress: int
    #: Time from the due time of a completed session's first call to its last answer; at most an hour.
    lifetime_s: SessionSummary | None = None
    #: Sessions that began per second, as a mean over `Record::window_s`. Includes sessions that were already in
    #: progress when the run began.
    rate: float
    #: Number of sessions that made a call: `completed + failed + in_progress`.
    started: int


@dataclass(kw_only=True)
class SessionSummary(Part):
    """Distribution of one figure over the sessions."""
    #: Maximum of the figure, exact.
    max: float
    #: Mean of the figure, exact.
    mean: float
    #: Median of the figure. All quantiles are accurate to 0.1 %.
    p50: float
    #: 90th percentile of the figure.
    p90: float
    #: 99th percentile of the figure.
    p99: float


@dataclass(kw_only=True)
class ShardOrigin(Part):
    """One part of a load that several processes generated."""
    #: Difference between the host's clock and the clock that set the agreed instant, if it was measured: positive if
    #: the host's clock was ahead. The start was corrected by this difference, so `offset_us` does not contain it.
    clock_ahead_us: float | None = None
    #: Bound of the error of `clock_ahead_us`.
    clock_error_us: float | None = None
    #: The host that generated the part.
    host: str
    #: Number of the part, from 1.
    index: int
    #: Time after the start at which contact with the part's process was lost; absent if it was not lost. Later
    #: events of the part are unknown.
    lost_at_s: float | None = None
    #: Number of parts of the load.
    of: int
    #: Delay of the part's start after the agreed instant, in microseconds by the part's own clock; `None` if no
    #: instant was agreed.
    offset_us: float | None = None
    #: Reasons not to trust this part alone. The verdict of the whole load does not always contain them.
    reasons: list[Reason] | None = None


@dataclass(kw_only=True)
class StatusCounts(Part):
    """Complete responses by status class."""
    #: Responses that switch the protocol (101), after which the connection carries no more calls. Other
    #: informational responses are not counted. Left out if zero.
    status_1xx: int | None = field(default=None, metadata={"key": "1xx"})
    #: Responses that report success.
    status_2xx: int = field(metadata={"key": "2xx"})
    #: Responses that redirect the client.
    status_3xx: int = field(metadata={"key": "3xx"})
    #: Part of `4xx`: responses with status 429, "too many requests": the server limits the rate of its clients. Left
    #: out if zero.
    status_429: int | None = field(default=None, metadata={"key": "429"})
    #: Responses that report an error of the client.
    status_4xx: int = field(metadata={"key": "4xx"})
    #: Responses that report an error of the server, including invalid codes from 600 on (RFC 9110 §15).
    status_5xx: int = field(metadata={"key": "5xx"})


@dataclass(kw_only=True)
class StatusTimes(Part):
    """Complete responses of one status class."""
    #: Number of responses.
    count: int
    #: Time from when a call was due to the last byte of its response.
    response_time_us: Summary | None = None
    #: Time from the first byte sent to the last byte received.
    service_time_us: Summary | None = None


@dataclass(kw_only=True)
class TlsFailure(Part):
    """Calls that failed because of one TLS fault."""
    #: Number of calls that failed because of this fault.
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
    #: Negotiated version, like `TLS 1.3`.
    version: str


@dataclass(kw_only=True)
class WireBytes(Part):
    """Bytes on the wire."""
    #: Number of bytes of responses.
    received: int
    #: Number of bytes of requests.
    sent: int


@dataclass(kw_only=True)
class Record(Document):
    """The results of one run."""
    #: All observations of the calls, so that Records of shards can be merged exactly.
    account: PackedAccount | None = None
    #: Results by address of the server, if the URL's host has several addresses or was resolved again after a
    #: connection failed.
    addresses: list[AddressRecord] | None = None
    #: Bytes on the wire, including heads but not the overhead of TLS.
    bytes: WireBytes
    #: The measurement of `Generator::max_rate`, if this command measured it.
    calibration: ClientCalibration | None = None
    #: Results by request class.
    classes: dict[str, ClassRecord]
    #: The command line; for a load made in parts, the command line of the first part.
    command: list[str]
    #: Time from the start of a connection attempt to its establishment.
    connect_time_us: Summary | None = None
    #: Number of scheduled calls by outcome.
    counts: Counts
    #: Time from the start of the run to the end of its last call.
    duration_s: float
    #: Time from the first byte sent to the first byte received.
    first_byte_us: Summary | None = None
    #: Resources that the load used on the host that generated it.
    generator: Generator
    #: Time from the establishment of a connection to the end of its TLS handshake; left out without TLS.
    handshake_time_us: Summary | None = None
    #: The histograms behind the summaries: base64 of compressed HdrHistogram V2, as in other tools (uncompressed in
    #: Records of earlier versions). Their values are in `hdr_value_unit`. If there were responses of several status
    #: classes, each class has its own histogram, like `response_time_us.5xx`.
    hdr: dict[str, str]
    #: The unit of the values in `hdr`: nanoseconds.
    hdr_value_unit: str
    #: The HTTP version of the run: `1.0`, `1.1` or `2`. Absent in Records of older versions of brimful.
    http: str | None = None
    #: HTTP/2 error codes that the server sent, with their texts.
    http2_errors: list[Http2Error] | None = None
    #: Whether the user ended the run early.
    interrupted: bool
    #: The run in intervals of equal length.
    intervals: list[Interval]
    #: Time from when a call was due to when the generator began it.
    lateness_us: Summary | None = None
    #: The objectives of the run, and whether they were met. For a load made in parts, the objectives given when the
    #: parts were merged.
    objectives: list[Objective] | None = None
    #: Rates per second, as means over `window_s`.
    rates: Rates
    #: Outcomes of redirects, if the run follows them.
    redirects: Redirects | None = None
    #: Throughput sampled every five seconds (Mosberger & Jin 1998, §3.2).
    reply_rate: ReplyRate
    #: Half width of the 95 % confidence interval of the mean response time, by batch means.
    response_mean_ci95_us: float | None = None
    #: Time from when a call was due to the last byte of its response.
    response_time_us: Summary | None = None
    #: Identifier of the document's schema: always `SCHEMA`.
    schema: str
    #: Seed of all randomness.
    seed: int
    #: The monitor's observations of the server, if a monitor was running.
    server: Server | None = None
    #: Time from the first byte sent to the last byte received.
    service_time_us: Summary | None = None
    #: Outcomes of the sessions, if the workload has sessions.
    sessions: SessionFigures | None = None
    #: The parts of the load, if it was made in parts.
    shards: list[ShardOrigin] | None = None
    #: Wall-clock time of the start, RFC 3339.
    started_at: str
    #: `CLOCK_MONOTONIC` at the start, in nanoseconds. It anchors every `t_s` of this Record on that host's clock.
    started_monotonic_ns: int
    #: Times of complete responses by status class: `1xx` to `5xx`, and `429`, which is part of `4xx` as well. Unlike
    #: `response_time_us`, they include unexpected responses.
    status_classes: dict[str, StatusTimes] | None = None
    #: Number of complete responses by status code, like `"503": 12`, including unexpected responses.
    status_codes: dict[str, int] | None = None
    #: The requested URL, as the user gave it, with a scheme.
    target: str
    #: TLS parameters that client and server negotiated in the handshake before the run, if one succeeded.
    tls: TlsSpoken | None = None
    #: Calls that failed because of TLS, by fault.
    tls_failures: list[TlsFailure] | None = None
    #: Whether the numbers can be trusted.
    verdict: Verdict
    #: Whether the URL is `http://` but the port speaks TLS: all calls failed, but a later TLS handshake succeeded.
    wants_tls: bool | None = None
    #: Length of the window in which load was offered; every rate is the mean over this window. If the load is a
    #: fixed number of calls, the window of an open load ends when the next call would have been due. The window of a
    #: closed load ends with the last call.
    window_s: float
    #: The workload of the run: its requests, their mix and their arrivals, without secrets.
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
