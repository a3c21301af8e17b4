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
    #: Mean rate by weekday and hour, 7 × 24; 0 where the log does not reach.
    by_weekday_and_hour: list[list[float]]
    #: When the first step of `rates` begins, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: Requests per second, from the first to the last.
    mean_rate: float
    #: Mean rate in each step, one after another.
    rates: list[float]
    #: Length of a step of `rates`: a whole number of minutes.
    step_s: int


@dataclass(kw_only=True)
class Burstiness(Part):
    """Menascé & Almeida (1998): epochs with more arrivals than the mean."""
    #: Mean rate of the epochs above the mean, over the mean.
    a: float
    #: Their share of all epochs.
    b: float
    #: Length of an epoch.
    epoch_s: float
    #: The largest count over the mean one.
    peak_to_mean: float


@dataclass(kw_only=True)
class Dispersion(Part):
    """The index of dispersion of counts at one length of epoch."""
    #: Length of an epoch.
    epoch_s: float
    #: How many there are.
    epochs: int
    #: Variance over mean; 1 for Poisson arrivals.
    index: float
    #: Its 95 % interval.
    interval95: list[float]


@dataclass(kw_only=True)
class FieldSample(Part):
    """A field of a line of a log, as it was read."""
    #: What the field is: `client`, `host`, `time`, `method`, `target`, `protocol`, `status`, `bytes`, `took`,
    #: `upstream took`, `referer` or `agent`.
    field: str
    #: Its value; long ones are cut.
    value: str


@dataclass(kw_only=True)
class FormatShare(Part):
    """A format, and the share of lines that it reads."""
    #: Its name, or the format string that was given.
    name: str
    #: Of the lines that were parsed, 0..1.
    share: float


@dataclass(kw_only=True)
class Hurst(Part):
    """Long-range dependence."""
    #: Length of the shortest scale that it rests on.
    from_s: float
    #: Its 95 % interval.
    interval95: list[float]
    #: Length of the longest.
    to_s: float
    #: H; 0.5 without, towards 1 with.
    value: float


@dataclass(kw_only=True)
class Lines(Part):
    """`read = parsed + malformed + filtered`."""
    #: Lines that were left out: directives, empty lines, and what a filter excluded.
    filtered: int
    #: The first malformed ones.
    first_malformed: list[MalformedLine]
    #: Lines that are not of the format.
    malformed: int
    #: Requests that came before one above them in the log.
    out_of_order: int
    #: Requests that the profile is of.
    parsed: int
    #: All; what `wc -l` says, plus one for a last line without newline.
    read: int


@dataclass(kw_only=True)
class LogClass(Part):
    """A class of request."""
    #: Smallest and largest answer.
    bytes_range: list[int]
    #: Squared coefficient of variation of the answers' bytes.
    bytes_scv: float
    #: How it came about: `from the spanning tree's cluster 1`.
    derived_from: str
    #: Of an answer.
    mean_bytes: float
    #: Mean time that the server took, where the log has it.
    mean_service_s: float | None = None
    #: Its name.
    name: str
    #: What belongs to it, for people: `1 – 4,372 bytes`.
    range: str
    #: Requests.
    requests: int
    #: Of all bytes.
    share_bytes: float
    #: Of all requests.
    share_requests: float
    #: Distinct URLs; an estimate.
    unique_urls: int
    #: Its most popular URLs, with what of its requests they are and how large.
    urls: list[PopularUrl]


@dataclass(kw_only=True)
class MalformedLine(Part):
    """A line that is not of the format."""
    #: Where in the line, in bytes from 1.
    column: int
    #: What should have been there.
    expected: str
    #: In which file.
    file: str
    #: Which line of it, from 1.
    line: int
    #: The line's beginning, with what a terminal would obey escaped.
    text: str


@dataclass(kw_only=True)
class Peak(Part):
    """The busiest window."""
    #: When it begins, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: Whether it was given, and not found.
    given: bool
    #: Requests per second in it.
    rate: float
    #: Requests in it.
    requests: int
    #: How long it is.
    seconds: int


@dataclass(kw_only=True)
class PopularUrl(Part):
    """A URL."""
    #: Mean bytes of its answers.
    mean_bytes: float
    #: The method that it is mostly asked for with.
    method: str
    #: How often.
    requests: int
    #: It may have been as much less often.
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
    #: How many, whatever became of them.
    requests: int


@dataclass(kw_only=True)
class Sessions(Part):
    """What clients do, one request after another."""
    #: A pause as short as this goes on with a burst: a page and what it embeds.
    burst_gap_s: float
    #: Bursts of one.
    bursts: Times
    #: Sessions that were ended by force because too many were open at once.
    cut_short: int
    #: A pause as long as this ends one.
    gap_s: float
    #: From its first request to its last.
    length_s: Times
    #: New ones per second.
    rate: float
    #: Requests of one.
    requests: Times
    #: Requests of a burst.
    requests_per_burst: Times
    #: How many.
    sessions: int
    #: Between two bursts.
    think_s: Times


@dataclass(kw_only=True)
class Sizes(Part):
    """Bytes of answers."""
    #: Share of answers with more bytes than this: pairs of bytes and share, for a chart on logarithmic axes.
    complementary: list[tuple[float, float]]
    #: The largest.
    max: int
    #: Mean bytes of these.
    mean: float
    #: Percentiles in bytes: `"50"`, `"90"`, `"95"`, `"99"`, `"99.9"`.
    percentiles: dict[str, float]
    #: How many answers have a body.
    responses: int
    #: Index of the tail, where it falls like a power of the size.
    tail: Tail | None = None


@dataclass(kw_only=True)
class Source(Part):
    """One file or stream."""
    #: Bytes read from it, after decompression.
    bytes: int
    #: Why it was not read to its end, if it was not.
    cut_short: str | None = None
    #: Lines read from it.
    lines: int
    #: Its path, or `-`.
    path: str


@dataclass(kw_only=True)
class Tail(Part):
    """A tail that falls like size^−index."""
    #: From so many bytes on.
    from_bytes: int
    #: α; below 2 the variance has no bound.
    index: float
    #: Its 95 % interval.
    interval95: list[float]
    #: How many answers that are.
    responses: int


@dataclass(kw_only=True)
class Times(Part):
    """A distribution of times."""
    #: The longest.
    max: float
    #: Their mean.
    mean: float
    #: Percentiles: `"50"`, `"90"`, `"95"`, `"99"`.
    percentiles: dict[str, float]
    #: How many.
    samples: int
    #: Squared coefficient of variation.
    scv: float


@dataclass(kw_only=True)
class UrlPopularity(Part):
    """How requests concentrate."""
    #: Share of requests for the so many most popular URLs: pairs of their number and the share.
    concentration: list[tuple[int, float]]
    #: The most popular ones, exact or with the error that they have.
    urls: list[PopularUrl]
    #: s of Zipf's law: the n-th most popular URL is asked for as n^−s.
    zipf: float | None = None
    #: R² of that, over the logarithms of rank and count.
    zipf_fit: float | None = None


@dataclass(kw_only=True)
class Profile(Document):
    """The whole document."""
    #: Requests per second and their course.
    arrivals: Arrivals
    #: The program that made it.
    brimful_version: str
    #: Menascé and Almeida's a and b in the peak window.
    burstiness: Burstiness | None = None
    #: Of all answers.
    bytes: int
    #: The classes of request in the peak window.
    classes: list[LogClass]
    #: How the classes were made, and why so many.
    classes_by: str
    #: The command line, without credentials.
    command: list[str]
    #: The index of dispersion of arrivals in the peak window, by length of the epoch.
    dispersion: list[Dispersion]
    #: The format of most lines, by name.
    format: str
    #: The first line of that format, read out field by field.
    format_sample: list[FieldSample] | None = None
    #: Every format that lines were read with.
    formats: list[FormatShare]
    #: The first request, RFC 3339.
    from_: str = field(metadata={"key": "from"})
    #: The Hurst parameter of arrivals in the peak window; `None` where there is not enough data.
    hurst: Hurst | None = None
    #: Why there is none.
    hurst_missing: str | None = None
    #: Times between requests, in the order of the log.
    interarrival_s: Times | None = None
    #: What became of the lines.
    lines: Lines
    #: Requests by method.
    methods: dict[str, int]
    #: What to know before these figures are used, one sentence each.
    notes: list[str]
    #: The busiest window; what classes, burstiness and the Workload are of.
    peak: Peak
    #: How requests concentrate on URLs.
    popularity: UrlPopularity
    #: How many.
    requests: int
    #: Requests of robots, by what they call themselves.
    robots: Robots
    #: `SCHEMA`.
    schema: str
    #: Time that the server took, where the log has it.
    service_s: Times | None = None
    #: What clients do, one after another.
    sessions: Sessions | None = None
    #: Bytes of answers that have a body.
    sizes: Sizes
    #: What was read.
    sources: list[Source]
    #: Requests by status; `"0"` has none.
    status: dict[str, int]
    #: The zone that hours and days are counted in.
    timezone: str
    #: The last one.
    to: str
    #: Distinct clients; an estimate.
    unique_clients: int
    #: Relative standard error of both estimates.
    unique_error: float
    #: Distinct URLs, without their queries' order being looked at; an estimate.
    unique_urls: int
    #: Time that those behind it took, where the log has it.
    upstream_s: Times | None = None
    #: The load that has this traffic.
    workload: Workload | None = None
    #: Why calls come in it as they do.
    workload_arrivals_why: str
    #: Answers without a body, by reason: `not_modified`, `not_found`, `head`, `redirect`, `error`, `aborted`,
    #: `other`.
    zero_length: dict[str, int]
