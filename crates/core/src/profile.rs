//! The `Profile` document: a description of a site's traffic that `brimful characterize` derives from access logs.
//! Shares are fractions between 0 and 1, fields that end in `_s` are seconds, rates are per second.

use crate::JsonSchema;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`Profile::schema`].
pub const SCHEMA: &str = "brimful.profile/1";

/// Description of a site's traffic, derived from access logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// The brimful command that made the profile, without credentials.
    pub command: Vec<String>,
    /// The files and streams that were read.
    pub sources: Vec<Source>,
    /// Name of the format that most lines of the log have.
    pub format: String,
    /// All formats of the log's lines, each with the fraction of lines that match it.
    pub formats: Vec<FormatShare>,
    /// The parsed fields of the first line in the most frequent format, so that the user can check the parsing.
    #[serde(default)]
    pub format_sample: Vec<FieldSample>,
    /// Number of lines that were parsed, malformed or left out.
    pub lines: Lines,
    /// Time of the first request, RFC 3339.
    pub from: String,
    /// Time of the last request, RFC 3339.
    pub to: String,
    /// Name of the time zone for the hours and days of this document.
    pub timezone: String,
    /// Number of requests in the profiled log.
    pub requests: u64,
    /// Number of bytes of all responses in the profiled log.
    pub bytes: u64,
    /// The busiest window of the log. `classes`, `dispersion`, `burstiness`, `hurst` and `workload` describe this
    /// window.
    pub peak: Peak,
    /// The arrival rate over time, and the numbers of requests by hour and weekday.
    pub arrivals: Arrivals,
    /// Number of requests by status code; `"0"` counts lines without a status code.
    pub status: BTreeMap<String, u64>,
    /// Number of requests by HTTP method.
    pub methods: BTreeMap<String, u64>,
    /// Number of responses without a body, by reason: `not_modified`, `not_found`, `head`, `redirect`, `error`,
    /// `aborted`, `other`.
    pub zero_length: BTreeMap<String, u64>,
    /// Sizes of the responses that have a body, in bytes.
    pub sizes: Sizes,
    /// Service times of the server in seconds, if the log contains service times.
    pub service_s: Option<Times>,
    /// Service times of upstream servers in seconds, if the log contains such times.
    pub upstream_s: Option<Times>,
    /// The hour with the slowest responses, if the log contains service times.
    #[serde(default)]
    pub slowest_hour: Option<SlowestHour>,
    /// The URLs with the slowest responses, ordered by the 95th percentile of their service times.
    #[serde(default)]
    pub slowest_urls: Vec<UrlTimes>,
    /// The request classes of the busiest window of the log (`peak`).
    pub classes: Vec<LogClass>,
    /// The method that divided the requests into classes, and the reason for the number of classes.
    pub classes_by: String,
    /// The index of dispersion for counts of arrivals in the window `peak`, for several lengths of the counting
    /// periods.
    pub dispersion: Vec<Dispersion>,
    /// The burstiness parameters a and b of Menascé and Almeida (1998) in the window `peak`.
    pub burstiness: Option<Burstiness>,
    /// The Hurst parameter of the arrivals in the window `peak`; `None` if the window has too few requests.
    pub hurst: Option<Hurst>,
    /// The reason why `hurst` is missing; `None` if `hurst` is present.
    pub hurst_missing: Option<String>,
    /// Times between successive requests in the order of the log, in seconds.
    pub interarrival_s: Option<Times>,
    /// Estimated number of distinct URLs; the order of query parameters is ignored.
    pub unique_urls: u64,
    /// Estimated number of distinct clients.
    pub unique_clients: u64,
    /// Relative standard error of `unique_urls` and `unique_clients`.
    pub unique_error: f64,
    /// Distribution of the requests over the URLs.
    pub popularity: UrlPopularity,
    /// Requests of robots, which are recognised by their user agents.
    pub robots: Robots,
    /// Statistics of sessions, which are sequences of requests of one client; `None` without sessions.
    pub sessions: Option<Sessions>,
    /// A workload that generates traffic like that of this profile.
    pub workload: Option<Workload>,
    /// Explanation for the user why `workload` has this arrival process.
    #[serde(rename = "workload_arrivals_why")]
    pub workload_arrivals_reason: String,
    /// Limitations of this profile for the user, one sentence each.
    pub notes: Vec<String>,
}

/// One file or stream that was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Path of the file, or `-` for standard input.
    pub path: String,
    /// Number of lines read from the source.
    pub lines: u64,
    /// Number of bytes read from the source, after decompression.
    pub bytes: u64,
    /// The reason why reading stopped before the end of the source; `None` if the whole source was read.
    pub cut_short: Option<String>,
}

/// A log format and the fraction of the lines that match it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormatShare {
    /// Name of the format; if the user defined the format, the format string.
    pub name: String,
    /// Fraction of the parsed lines that match the format, 0 to 1.
    pub share: f64,
}

/// One parsed field of a log line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldSample {
    /// Name of the field: `client`, `host`, `time`, `method`, `target`, `protocol`, `status`, `bytes`, `took` (the
    /// service time), `upstream took` (the service time of the upstream server), `referer` or `agent`.
    pub field: String,
    /// Value of the field as parsed; a long value is truncated.
    pub value: String,
}

/// Number of lines by outcome, with `read = parsed + malformed + filtered`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lines {
    /// Number of lines: the newlines, plus one if the last line has no newline.
    pub read: u64,
    /// Number of parsed lines; the profile describes their requests.
    pub parsed: u64,
    /// Number of lines that do not match any format.
    pub malformed: u64,
    /// Number of lines that the profile excludes: directives, empty lines, and lines that a filter of the user
    /// excluded.
    pub filtered: u64,
    /// The first lines that do not match any format.
    pub first_malformed: Vec<MalformedLine>,
    /// Number of requests with an earlier time than a request on a previous line.
    pub out_of_order: u64,
}

/// A line that does not match any format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MalformedLine {
    /// Name of the file that contains the line.
    pub file: String,
    /// Number of the line in the file, from 1.
    pub line: u64,
    /// Position of the mismatch in the line, in bytes from 1.
    pub column: u64,
    /// The content that was expected at that position.
    pub expected: String,
    /// The beginning of the line, with control characters escaped.
    pub text: String,
}

/// The busiest window of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// Start of the busiest window, RFC 3339.
    pub from: String,
    /// Length of the busiest window, in seconds.
    pub seconds: u64,
    /// Mean requests per second in the busiest window.
    pub rate: f64,
    /// Number of requests in the busiest window.
    pub requests: u64,
    /// Whether the user chose the window. If false, brimful chose the busiest window.
    #[serde(rename = "given")]
    pub chosen_by_user: bool,
}

/// Rates and numbers of requests over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Mean requests per second, from the first request to the last.
    pub mean_rate: f64,
    /// Number of requests in the busiest second.
    pub busiest_second: u64,
    /// Number of requests in the busiest minute.
    pub busiest_minute: u64,
    /// Start of the first period of `rates`, RFC 3339.
    pub from: String,
    /// Length of each period of `rates` in seconds: a whole number of minutes.
    pub step_s: u64,
    /// Mean requests per second in each period, in order of time.
    pub rates: Vec<f64>,
    /// Number of requests by hour of the day: 24 values.
    pub by_hour: Vec<u64>,
    /// Number of requests by weekday: 7 values, Monday first.
    pub by_weekday: Vec<u64>,
    /// Mean requests per second by weekday and hour: 7 × 24 values. The value is 0 for hours that the log does not
    /// cover.
    pub by_weekday_and_hour: Vec<Vec<f64>>,
    /// The hours of the week that are regularly busier than the rest of the week. `None` if there are no such hours, or
    /// if the log covers less than a week.
    #[serde(default)]
    pub busy_hours: Option<BusyHours>,
    /// Number of requests in each second of a short period around the busiest second of the window `peak`. `None` if
    /// these numbers are unknown.
    #[serde(default)]
    pub seconds: Option<SecondCounts>,
}

/// Hours of the week that are regularly busier than the rest of the week.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyHours {
    /// Description of the hours for the user, like `weekdays 9–17`.
    pub name: String,
    /// The weekdays on which the hours are busy: 0 is Monday.
    pub weekdays: Vec<u8>,
    /// The hour of the day at which the busy hours begin, 0 to 23.
    pub from_hour: u8,
    /// The hour of the day at which the busy hours end, 1 to 24. If it is not greater than `from_hour`, the busy hours
    /// end on the next day.
    pub to_hour: u8,
    /// Mean requests per second in the busy hours.
    pub rate: f64,
    /// Mean requests per second in the rest of the week.
    pub other_rate: f64,
    /// Fraction of the variance of the hourly rates over the week that is explained by dividing the week into busy
    /// hours and the rest.
    pub explained: f64,
}

/// Number of requests in each second of a short period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondCounts {
    /// Start of the first second, RFC 3339.
    pub from: String,
    /// Number of requests in each second of the period.
    pub counts: Vec<u64>,
}

/// The hour with the slowest responses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowestHour {
    /// Start of the hour with the slowest responses, RFC 3339.
    pub from: String,
    /// Service times in this hour. The error of a percentile is at most 6 %.
    pub service_s: Times,
    /// Median, over all hours of the log, of the hour's 95th percentile of the service time, in seconds.
    #[serde(rename = "usual_p95_s")]
    pub median_p95_s: f64,
}

/// Service times of a URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UrlTimes {
    /// Path and query of the URL, as in the log.
    pub url: String,
    /// The method of most of the URL's requests.
    pub method: String,
    /// Service times of the URL's requests. Requests before brimful began to count this URL separately are excluded.
    /// The error of a percentile is at most 6 %.
    pub service_s: Times,
    /// Sum of the URL's service times divided by the sum of all service times.
    #[serde(rename = "share_time")]
    pub time_share: f64,
}

/// The distribution of response sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sizes {
    /// Number of responses that have a body.
    pub responses: u64,
    /// Mean size of the responses that have a body, in bytes.
    pub mean: f64,
    /// Percentiles of the sizes, in bytes: `"50"`, `"90"`, `"95"`, `"99"`, `"99.9"`.
    pub percentiles: BTreeMap<String, f64>,
    /// Size of the largest response, in bytes.
    pub max: u64,
    /// The complementary distribution function: pairs of a size in bytes and the fraction of responses that are larger,
    /// for a chart with logarithmic axes.
    pub complementary: Vec<(f64, f64)>,
    /// The tail of the distribution, if a power law describes it.
    pub tail: Option<Tail>,
}

/// The tail of a distribution, described by a power law: the fraction of larger responses is proportional to
/// size^−index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// The exponent α of the power law. If it is below 2, the variance of the sizes is infinite.
    pub index: f64,
    /// 95 % confidence interval of the index.
    pub interval95: [f64; 2],
    /// Size at which the tail begins, in bytes.
    pub from_bytes: u64,
    /// Number of responses in the tail of the distribution.
    pub responses: u64,
}

/// A distribution of times in seconds, or of numbers of requests or bursts (pages with their embedded objects).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Number of values in the distribution.
    pub samples: u64,
    /// Mean of the distribution's values.
    pub mean: f64,
    /// Squared coefficient of variation of the values.
    pub scv: f64,
    /// Percentiles of the values: `"50"`, `"90"`, `"95"`, `"99"`.
    pub percentiles: BTreeMap<String, f64>,
    /// The largest value of the distribution.
    pub max: f64,
}

/// A class of similar requests in a log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogClass {
    /// Name of the request class.
    pub name: String,
    /// Description for the user of the requests in the class, like `1 – 4,372 bytes`.
    pub range: String,
    /// The method that formed the class, such as `from the spanning tree's cluster 1` (clustering by a minimum spanning
    /// tree).
    pub derived_from: String,
    /// Number of requests of the class in the window `peak`.
    pub requests: u64,
    /// Fraction of all requests that belong to the class.
    pub share_requests: f64,
    /// Fraction of all bytes that belong to the class.
    pub share_bytes: f64,
    /// Mean size of a response, in bytes.
    pub mean_bytes: f64,
    /// Size of the smallest and of the largest response, in bytes.
    pub bytes_range: [u64; 2],
    /// Squared coefficient of variation of the response sizes.
    pub bytes_scv: f64,
    /// Estimated number of distinct URLs in the class.
    pub unique_urls: u64,
    /// The most popular URLs of the class, with their numbers of requests and mean sizes.
    pub urls: Vec<PopularUrl>,
    /// Mean service time of the server in seconds, if the log contains service times.
    pub mean_service_s: Option<f64>,
    /// Distribution of the service times of the class, if the log contains service times. The error of a percentile is
    /// at most 6 %.
    #[serde(default)]
    pub service_s: Option<Times>,
}

/// The index of dispersion for counts with one epoch length. An epoch is one of the equal periods into which the window
/// is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dispersion {
    /// Length of each epoch (equal period), in seconds.
    pub epoch_s: f64,
    /// Number of epochs (equal periods) in the window.
    pub epochs: u64,
    /// The index: variance of the numbers of requests in the epochs, divided by their mean. It is 1 for Poisson
    /// arrivals.
    pub index: f64,
    /// 95 % confidence interval of the index.
    pub interval95: [f64; 2],
}

/// Burstiness parameters of the arrivals (Menascé & Almeida 1998). The window is divided into equal epochs; an epoch
/// with more arrivals than the mean is called busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burstiness {
    /// Length of each epoch (equal period), in seconds.
    pub epoch_s: f64,
    /// Mean arrival rate in the busy epochs, divided by the mean arrival rate of the window.
    pub a: f64,
    /// Fraction of the epochs that are busy.
    pub b: f64,
    /// Number of arrivals in the busiest epoch, divided by the mean number of arrivals in an epoch.
    pub peak_to_mean: f64,
}

/// Estimate of the long-range dependence of the arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hurst {
    /// The Hurst parameter H: 0.5 without long-range dependence, close to 1 for strong dependence.
    pub value: f64,
    /// 95 % confidence interval of the Hurst parameter H.
    pub interval95: [f64; 2],
    /// Shortest time scale from which H is estimated, in seconds.
    pub from_s: f64,
    /// Longest time scale from which H is estimated, in seconds.
    pub to_s: f64,
}

/// Distribution of the requests over the URLs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UrlPopularity {
    /// Exponent s of Zipf's law: the number of requests for the n-th most popular URL is proportional to n^−s.
    pub zipf: Option<f64>,
    /// R² of the fit of Zipf's law: a linear regression of the logarithm of the count on the logarithm of the rank.
    pub zipf_fit: Option<f64>,
    /// Pairs of a number n and the fraction of the requests that are for the n most popular URLs.
    pub concentration: Vec<(u64, f64)>,
    /// The most popular URLs. Their numbers of requests are exact, or have an error bound.
    pub urls: Vec<PopularUrl>,
}

/// A URL with its number of requests and mean response size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PopularUrl {
    /// Path and query of the URL, as in the log.
    pub url: String,
    /// The method of most of the URL's requests.
    pub method: String,
    /// Number of requests for the URL. The true number may be lower by up to `requests_error`.
    pub requests: u64,
    /// Upper bound of the error of `requests`; 0 if `requests` is exact.
    pub requests_error: u64,
    /// Mean size of the URL's responses, in bytes.
    pub mean_bytes: f64,
}

/// Requests of robots, which are recognised by their user agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Robots {
    /// The option of the user for robots: `keep`, `drop` or `only` their requests.
    pub policy: String,
    /// Number of requests of robots, both kept and dropped.
    pub requests: u64,
    /// Number of bytes of the responses to robots.
    pub bytes: u64,
}

/// Statistics of sessions, which are sequences of requests of one client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// Minimum pause that ends a session, in seconds. The next request of the client then begins a new session.
    pub gap_s: f64,
    /// Maximum pause between two requests of a burst, in seconds. A burst is a page with its embedded objects.
    pub burst_gap_s: f64,
    /// Number of sessions that the statistics include.
    pub sessions: u64,
    /// Number of sessions that begin per second.
    pub rate: f64,
    /// Distribution of the number of requests in a session.
    pub requests: Times,
    /// Distribution of the time from the first to the last request of a session, in seconds.
    pub length_s: Times,
    /// Distribution of the number of bursts (pages with their embedded objects) in a session.
    pub bursts: Times,
    /// Distribution of the number of requests in a burst (a page with its embedded objects).
    pub requests_per_burst: Times,
    /// Distribution of the think times: the times between successive bursts of a session, in seconds.
    pub think_s: Times,
    /// Number of sessions that were ended early because the number of open sessions reached a limit.
    pub cut_short: u64,
}
