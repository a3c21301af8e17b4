"""Written by document_types.py from schema/profile.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._documents import Document, Part
from .common import (
    Workload,
)


@dataclass(kw_only=True)
class Arrivals(Part):
    """Requests by time."""
    #: Requests in the busiest minute.
    busiest_minute: int
    #: Requests in the busiest second.
    busiest_second: int
    #: Requests by hour of the day, 24.
    by_hour: list[int]
    #: Requests by weekday, Monday first, 7.
    by_weekday: list[int]
    #: Mean rate by weekday and hour, 7 × 24; 0 outside the time that the log covers.
    by_weekday_and_hour: list[list[float]]
    #: Start of the first step of `rates`, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: Mean requests per second, from the first request to the last.
    mean_rate: float
    #: Mean rate in each step, in order of time.
    rates: list[float]
    #: Length of a step of `rates`: a whole number of minutes.
    step_s: int


@dataclass(kw_only=True)
class Burstiness(Part):
    """Burstiness by the epochs with more arrivals than the mean (Menascé & Almeida 1998)."""
    #: Mean rate of the epochs above the mean, divided by the mean rate.
    a: float
    #: Share of the epochs that are above the mean.
    b: float
    #: Length of an epoch.
    epoch_s: float
    #: Largest count of an epoch, divided by the mean count.
    peak_to_mean: float


@dataclass(kw_only=True)
class Dispersion(Part):
    """The index of dispersion of counts at one length of epoch."""
    #: Length of an epoch.
    epoch_s: float
    #: Number of epochs.
    epochs: int
    #: Variance divided by mean of the counts; 1 for Poisson arrivals.
    index: float
    #: 95 % confidence interval of the index.
    interval95: list[float]


@dataclass(kw_only=True)
class FieldSample(Part):
    """A parsed field of a log line."""
    #: Meaning of the field: `client`, `host`, `time`, `method`, `target`, `protocol`, `status`, `bytes`, `took`,
    #: `upstream took`, `referer` or `agent`.
    field: str
    #: Value of the field; a long value is truncated.
    value: str


@dataclass(kw_only=True)
class FormatShare(Part):
    """A log format, and the share of the lines that match it."""
    #: Name of the format, or the user's format string.
    name: str
    #: Share of the parsed lines, 0 to 1.
    share: float


@dataclass(kw_only=True)
class Hurst(Part):
    """Long-range dependence of arrivals."""
    #: Shortest time scale of the estimate.
    from_s: float
    #: 95 % confidence interval of H.
    interval95: list[float]
    #: Longest time scale of the estimate.
    to_s: float
    #: The Hurst parameter H: 0.5 without long-range dependence, nearer to 1 the stronger it is.
    value: float


@dataclass(kw_only=True)
class Lines(Part):
    """Lines by outcome: `read = parsed + malformed + filtered`."""
    #: Lines that were left out: directives, empty lines, and those that a filter excluded.
    filtered: int
    #: The first malformed lines.
    first_malformed: list[MalformedLine]
    #: Lines that do not match any format.
    malformed: int
    #: Requests that are older than a request above them in the log.
    out_of_order: int
    #: Lines whose requests the profile describes.
    parsed: int
    #: Number of lines: that of `wc -l`, plus one for a last line without newline.
    read: int


@dataclass(kw_only=True)
class LogClass(Part):
    """A class of similar requests in the log."""
    #: Bytes of the smallest and of the largest answer.
    bytes_range: list[int]
    #: Squared coefficient of variation of the answers' bytes.
    bytes_scv: float
    #: Origin of the class: `from the spanning tree's cluster 1`.
    derived_from: str
    #: Mean bytes of an answer.
    mean_bytes: float
    #: Mean service time of the server, if the log contains it.
    mean_service_s: float | None = None
    #: Name of the class.
    name: str
    #: The requests that belong to it, for people: `1 – 4,372 bytes`.
    range: str
    #: Number of requests.
    requests: int
    #: Share of all bytes.
    share_bytes: float
    #: Share of all requests.
    share_requests: float
    #: Number of distinct URLs; an estimate.
    unique_urls: int
    #: Its most popular URLs, with their requests and sizes.
    urls: list[PopularUrl]


@dataclass(kw_only=True)
class MalformedLine(Part):
    """A line that does not match any format."""
    #: Position of the mismatch in the line, in bytes from 1.
    column: int
    #: What was expected at that position.
    expected: str
    #: The file.
    file: str
    #: Number of the line, from 1.
    line: int
    #: The beginning of the line, with control characters escaped.
    text: str


@dataclass(kw_only=True)
class Peak(Part):
    """The busiest window."""
    #: Start of the window, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: Whether the user chose the window.
    given: bool
    #: Requests per second in the window.
    rate: float
    #: Requests in the window.
    requests: int
    #: Length of the window.
    seconds: int


@dataclass(kw_only=True)
class PopularUrl(Part):
    """A popular URL."""
    #: Mean bytes of its answers.
    mean_bytes: float
    #: The method of most of its requests.
    method: str
    #: Number of requests; an upper bound.
    requests: int
    #: Error bound: the true number may be lower by this.
    requests_error: int
    #: Path and query, as in the log.
    url: str


@dataclass(kw_only=True)
class Robots(Part):
    """Requests of robots."""
    #: Bytes of their answers.
    bytes: int
    #: `keep`, `drop` or `only`.
    policy: str
    #: Number of requests of robots, whether kept or dropped.
    requests: int


@dataclass(kw_only=True)
class Sessions(Part):
    """Sessions: sequences of requests of one client."""
    #: A pause of at most this length continues a burst, which is a page and its embedded objects.
    burst_gap_s: float
    #: Bursts of a session.
    bursts: Times
    #: Sessions that were ended early because too many were open at once.
    cut_short: int
    #: A pause of at least this length ends a session.
    gap_s: float
    #: Time from a session's first request to its last.
    length_s: Times
    #: New sessions per second.
    rate: float
    #: Requests of a session.
    requests: Times
    #: Requests of a burst.
    requests_per_burst: Times
    #: Number of sessions.
    sessions: int
    #: Time between two bursts.
    think_s: Times


@dataclass(kw_only=True)
class Sizes(Part):
    """Bytes of answers."""
    #: Share of answers with more bytes than this: pairs of bytes and share, for a chart on logarithmic axes.
    complementary: list[tuple[float, float]]
    #: The largest.
    max: int
    #: Mean bytes of these answers.
    mean: float
    #: Percentiles in bytes: `"50"`, `"90"`, `"95"`, `"99"`, `"99.9"`.
    percentiles: dict[str, float]
    #: Number of answers with a body.
    responses: int
    #: The tail, if it is a power law.
    tail: Tail | None = None


@dataclass(kw_only=True)
class Source(Part):
    """One file or stream that was read."""
    #: Bytes read from it, after decompression.
    bytes: int
    #: Why reading stopped before the end, if it did.
    cut_short: str | None = None
    #: Lines read from it.
    lines: int
    #: Its path, or `-`.
    path: str


@dataclass(kw_only=True)
class Tail(Part):
    """A tail that falls like size^−index."""
    #: Size at which the tail begins.
    from_bytes: int
    #: The index α; if it is below 2, the variance is infinite.
    index: float
    #: 95 % confidence interval of the index.
    interval95: list[float]
    #: Number of answers in the tail.
    responses: int


@dataclass(kw_only=True)
class Times(Part):
    """A distribution of times."""
    #: Maximum.
    max: float
    #: Mean.
    mean: float
    #: Percentiles: `"50"`, `"90"`, `"95"`, `"99"`.
    percentiles: dict[str, float]
    #: Number of times.
    samples: int
    #: Squared coefficient of variation.
    scv: float


@dataclass(kw_only=True)
class UrlPopularity(Part):
    """Concentration of requests on URLs."""
    #: Pairs of a number of most popular URLs and their share of the requests.
    concentration: list[tuple[int, float]]
    #: The most popular URLs, with exact counts or error bounds.
    urls: list[PopularUrl]
    #: Exponent s of Zipf's law: requests for the n-th most popular URL are proportional to n^−s.
    zipf: float | None = None
    #: R² of the fit to Zipf's law, on logarithms of rank and count.
    zipf_fit: float | None = None


@dataclass(kw_only=True)
class Profile(Document):
    """The profile of a site's traffic."""
    #: Requests per second over time.
    arrivals: Arrivals
    #: The version of brimful that made it.
    brimful_version: str
    #: Menascé and Almeida's a and b in the peak window.
    burstiness: Burstiness | None = None
    #: Bytes of all answers.
    bytes: int
    #: The request classes of the peak window.
    classes: list[LogClass]
    #: The method that formed the classes, and the reason for their number.
    classes_by: str
    #: The command line, without credentials.
    command: list[str]
    #: The index of dispersion of arrivals in the peak window, by length of the epoch.
    dispersion: list[Dispersion]
    #: Name of the format of most lines.
    format: str
    #: The fields of the first line of the most frequent format.
    format_sample: list[FieldSample] | None = None
    #: All formats of the lines, with their shares.
    formats: list[FormatShare]
    #: Time of the first request, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: The Hurst parameter of arrivals in the peak window; `None` if there are too few data.
    hurst: Hurst | None = None
    #: Why `hurst` is missing.
    hurst_missing: str | None = None
    #: Times between successive requests, in the order of the log.
    interarrival_s: Times | None = None
    #: Lines by outcome.
    lines: Lines
    #: Requests by method.
    methods: dict[str, int]
    #: Caveats about these figures, one sentence each.
    notes: list[str]
    #: The busiest window. Classes, burstiness and the workload describe this window.
    peak: Peak
    #: Concentration of requests on URLs.
    popularity: UrlPopularity
    #: Number of requests.
    requests: int
    #: Requests of robots, by their user agents.
    robots: Robots
    #: `SCHEMA`.
    schema: str
    #: Service time of the server, if the log contains it.
    service_s: Times | None = None
    #: Sessions of clients.
    sessions: Sessions | None = None
    #: Bytes of answers that have a body.
    sizes: Sizes
    #: The files and streams that were read.
    sources: list[Source]
    #: Requests by status; `"0"` stands for lines without a status.
    status: dict[str, int]
    #: The time zone of hours and days.
    timezone: str
    #: Time of the last request, RFC 3339.
    to: str
    #: Number of distinct clients; an estimate.
    unique_clients: int
    #: Relative standard error of both estimates.
    unique_error: float
    #: Number of distinct URLs, ignoring the order of query parameters; an estimate.
    unique_urls: int
    #: Service time of upstream servers, if the log contains it.
    upstream_s: Times | None = None
    #: A workload with the traffic of this profile.
    workload: Workload | None = None
    #: Why the workload has its arrival process.
    workload_arrivals_why: str
    #: Answers without a body, by reason: `not_modified`, `not_found`, `head`, `redirect`, `error`, `aborted`,
    #: `other`.
    zero_length: dict[str, int]
