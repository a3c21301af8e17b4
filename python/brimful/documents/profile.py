"""Written by document_types.py from schema/profile.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._documents import Document, Part
from .common import (
    Workload,
)


@dataclass(kw_only=True)
class Arrivals(Part):
    """Arrivals of requests over time."""
    #: Requests in the busiest minute.
    busiest_minute: int
    #: Requests in the busiest second.
    busiest_second: int
    #: Number of requests by hour of the day: 24 values.
    by_hour: list[int]
    #: Number of requests by weekday: 7 values, Monday first.
    by_weekday: list[int]
    #: Mean requests per second by weekday and hour: 7 × 24 values; 0 outside the time that the log covers.
    by_weekday_and_hour: list[list[float]]
    #: Start of the first step of `rates`, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: Mean requests per second, from the first request to the last.
    mean_rate: float
    #: Mean requests per second in each step, in order of time.
    rates: list[float]
    #: Length of a step of `rates` in seconds: a whole number of minutes.
    step_s: int


@dataclass(kw_only=True)
class Burstiness(Part):
    """Burstiness of arrivals, from the epochs with more arrivals than the mean (Menascé & Almeida 1998)."""
    #: Mean rate of the epochs with more arrivals than the mean, divided by the mean rate.
    a: float
    #: Share of the epochs with more arrivals than the mean.
    b: float
    #: Length of an epoch, in seconds.
    epoch_s: float
    #: Largest count of an epoch, divided by the mean count.
    peak_to_mean: float


@dataclass(kw_only=True)
class Dispersion(Part):
    """The index of dispersion of counts for one length of epoch."""
    #: Length of an epoch, in seconds.
    epoch_s: float
    #: Number of epochs.
    epochs: int
    #: Variance of the epochs' counts divided by their mean; 1 for Poisson arrivals.
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
    #: Shortest time scale of the estimate, in seconds.
    from_s: float
    #: 95 % confidence interval of H.
    interval95: list[float]
    #: Longest time scale of the estimate, in seconds.
    to_s: float
    #: The Hurst parameter H: 0.5 without long-range dependence, and closer to 1 the stronger the dependence is.
    value: float


@dataclass(kw_only=True)
class Lines(Part):
    """Lines by outcome: `read = parsed + malformed + filtered`."""
    #: Number of lines that were left out: directives, empty lines, and lines that a filter excluded.
    filtered: int
    #: The first malformed lines.
    first_malformed: list[MalformedLine]
    #: Number of lines that do not match any format.
    malformed: int
    #: Number of requests that are older than a request on an earlier line of the log.
    out_of_order: int
    #: Number of lines whose requests the profile describes.
    parsed: int
    #: Number of lines as counted by `wc -l`, plus one for a last line without a newline.
    read: int


@dataclass(kw_only=True)
class LogClass(Part):
    """A class of similar requests in the log."""
    #: Sizes of the smallest and of the largest answer, in bytes.
    bytes_range: list[int]
    #: Squared coefficient of variation of the answers' sizes.
    bytes_scv: float
    #: Origin of the class: `from the spanning tree's cluster 1`.
    derived_from: str
    #: Mean size of an answer, in bytes.
    mean_bytes: float
    #: Mean service time of the server, if the log contains it.
    mean_service_s: float | None = None
    #: Name of the class.
    name: str
    #: The requests that belong to the class, for people: `1 – 4,372 bytes`.
    range: str
    #: Number of requests of the class.
    requests: int
    #: The class's share of all bytes.
    share_bytes: float
    #: The class's share of all requests.
    share_requests: float
    #: Number of distinct URLs; an estimate.
    unique_urls: int
    #: The class's most popular URLs, with their requests and sizes.
    urls: list[PopularUrl]


@dataclass(kw_only=True)
class MalformedLine(Part):
    """A line that does not match any format."""
    #: Position of the mismatch in the line, in bytes from 1.
    column: int
    #: What was expected at that position.
    expected: str
    #: Name of the file.
    file: str
    #: Number of the line, from 1.
    line: int
    #: The beginning of the line, with control characters escaped.
    text: str


@dataclass(kw_only=True)
class Peak(Part):
    """The busiest window of the log."""
    #: Start of the window, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: Whether the user chose the window.
    given: bool
    #: Requests per second in the window.
    rate: float
    #: Number of requests in the window.
    requests: int
    #: Length of the window, in seconds.
    seconds: int


@dataclass(kw_only=True)
class PopularUrl(Part):
    """A popular URL."""
    #: Mean size of the URL's answers, in bytes.
    mean_bytes: float
    #: The method of most of the URL's requests.
    method: str
    #: Number of requests for the URL; an upper bound.
    requests: int
    #: Error bound of `requests`: the true number may be lower by up to this.
    requests_error: int
    #: Path and query of the URL, as in the log.
    url: str


@dataclass(kw_only=True)
class Robots(Part):
    """Requests of robots."""
    #: Bytes of the answers to robots.
    bytes: int
    #: What the user chose to do with requests of robots: `keep`, `drop` or `only`.
    policy: str
    #: Number of requests of robots, whether kept or dropped.
    requests: int


@dataclass(kw_only=True)
class Sessions(Part):
    """Sessions: sequences of requests of one client."""
    #: A pause of at most this many seconds continues a burst, which is a page and its embedded objects.
    burst_gap_s: float
    #: Number of bursts of a session.
    bursts: Times
    #: Number of sessions that were ended early because too many were open at once.
    cut_short: int
    #: A pause of at least this many seconds ends a session.
    gap_s: float
    #: Time from a session's first request to its last, in seconds.
    length_s: Times
    #: New sessions per second.
    rate: float
    #: Number of requests of a session.
    requests: Times
    #: Number of requests of a burst.
    requests_per_burst: Times
    #: Number of sessions.
    sessions: int
    #: Time between two bursts of a session, in seconds.
    think_s: Times


@dataclass(kw_only=True)
class Sizes(Part):
    """The distribution of the sizes of answers, in bytes."""
    #: Share of answers that are larger than a size: pairs of size in bytes and share, for a chart on logarithmic
    #: axes.
    complementary: list[tuple[float, float]]
    #: Size of the largest answer, in bytes.
    max: int
    #: Mean size of these answers, in bytes.
    mean: float
    #: Percentiles of the sizes, in bytes: `"50"`, `"90"`, `"95"`, `"99"`, `"99.9"`.
    percentiles: dict[str, float]
    #: Number of answers with a body.
    responses: int
    #: The tail of the distribution, if it follows a power law.
    tail: Tail | None = None


@dataclass(kw_only=True)
class Source(Part):
    """One file or stream that was read."""
    #: Number of bytes read from the source, after decompression.
    bytes: int
    #: The reason why reading stopped before the end of the source, if it did.
    cut_short: str | None = None
    #: Number of lines read from the source.
    lines: int
    #: Path of the file, or `-` for standard input.
    path: str


@dataclass(kw_only=True)
class Tail(Part):
    """A tail of a distribution that follows a power law: the share of larger answers falls like size^−index."""
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
    #: The longest time.
    max: float
    #: Mean time.
    mean: float
    #: Percentiles of the times: `"50"`, `"90"`, `"95"`, `"99"`.
    percentiles: dict[str, float]
    #: Number of values in the distribution.
    samples: int
    #: Squared coefficient of variation of the times.
    scv: float


@dataclass(kw_only=True)
class UrlPopularity(Part):
    """Concentration of requests on URLs."""
    #: Pairs of a number n and the share of requests that go to the n most popular URLs.
    concentration: list[tuple[int, float]]
    #: The most popular URLs, with exact counts or error bounds.
    urls: list[PopularUrl]
    #: Exponent s of Zipf's law: requests for the n-th most popular URL are proportional to n^−s.
    zipf: float | None = None
    #: R² of the fit to Zipf's law, on the logarithms of rank and count.
    zipf_fit: float | None = None


@dataclass(kw_only=True)
class Profile(Document):
    """The profile of a site's traffic."""
    #: Requests per second over time.
    arrivals: Arrivals
    #: The version of brimful that made the document.
    brimful_version: str
    #: Menascé and Almeida's burstiness parameters a and b in the peak window.
    burstiness: Burstiness | None = None
    #: Bytes of all answers.
    bytes: int
    #: The request classes of the peak window.
    classes: list[LogClass]
    #: The method that formed the classes, and the reason for their number.
    classes_by: str
    #: The command line, without credentials.
    command: list[str]
    #: The index of dispersion of arrivals in the peak window, for several lengths of the epoch.
    dispersion: list[Dispersion]
    #: Name of the format of most lines.
    format: str
    #: The fields of the first line of the most frequent format.
    format_sample: list[FieldSample] | None = None
    #: All formats of the lines, each with its share.
    formats: list[FormatShare]
    #: Time of the first request, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: The Hurst parameter of arrivals in the peak window; `None` if there are too few data.
    hurst: Hurst | None = None
    #: The reason why `hurst` is missing, if it is.
    hurst_missing: str | None = None
    #: Times between successive requests, in the order of the log.
    interarrival_s: Times | None = None
    #: Number of lines by outcome.
    lines: Lines
    #: Number of requests by method.
    methods: dict[str, int]
    #: Caveats about these figures, one sentence each.
    notes: list[str]
    #: The busiest window of the log. Classes, burstiness and the workload describe this window.
    peak: Peak
    #: Concentration of requests on URLs.
    popularity: UrlPopularity
    #: Number of requests.
    requests: int
    #: Requests of robots, which are recognised by their user agents.
    robots: Robots
    #: Identifier of the document's schema: always `SCHEMA`.
    schema: str
    #: Service time of the server, if the log contains it.
    service_s: Times | None = None
    #: Sessions: sequences of requests of one client.
    sessions: Sessions | None = None
    #: Sizes of the answers that have a body, in bytes.
    sizes: Sizes
    #: The files and streams that were read.
    sources: list[Source]
    #: Number of requests by status; `"0"` stands for lines without a status.
    status: dict[str, int]
    #: The time zone of hours and days.
    timezone: str
    #: Time of the last request, RFC 3339.
    to: str
    #: Number of distinct clients; an estimate.
    unique_clients: int
    #: Relative standard error of the estimates `unique_urls` and `unique_clients`.
    unique_error: float
    #: Number of distinct URLs, ignoring the order of query parameters; an estimate.
    unique_urls: int
    #: Service time of upstream servers, if the log contains it.
    upstream_s: Times | None = None
    #: A workload with the traffic of this profile.
    workload: Workload | None = None
    #: The reason for the choice of the workload's arrival process.
    workload_arrivals_why: str
    #: Number of answers without a body, by reason: `not_modified`, `not_found`, `head`, `redirect`, `error`,
    #: `aborted`, `other`.
    zero_length: dict[str, int]
