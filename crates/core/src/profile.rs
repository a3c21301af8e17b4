//! The `Profile` document: a site's traffic, as `brimful characterize` derives it from access logs. Shares are between
//! 0 and 1, times that end in `_s` are seconds, rates are per second.

use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`Profile::schema`].
pub const SCHEMA: &str = "brimful.profile/1";

/// The profile of a site's traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// The command line, without credentials.
    pub command: Vec<String>,
    /// The files and streams that were read.
    pub sources: Vec<Source>,
    /// Name of the format of most lines.
    pub format: String,
    /// All formats of the log's lines, each with its share of the lines.
    pub formats: Vec<FormatShare>,
    /// The fields of the first line of the most frequent format.
    #[serde(default)]
    pub format_sample: Vec<FieldSample>,
    /// Number of lines by outcome.
    pub lines: Lines,
    /// Time of the first request, RFC 3339.
    pub from: String,
    /// Time of the last request, RFC 3339.
    pub to: String,
    /// Name of the time zone in which hours and days are counted.
    pub timezone: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of bytes of all answers.
    pub bytes: u64,
    /// The busiest window of the log. Classes, burstiness and the workload describe this window.
    pub peak: Peak,
    /// Requests per second over time.
    pub arrivals: Arrivals,
    /// Number of requests by status; `"0"` stands for lines without a status.
    pub status: BTreeMap<String, u64>,
    /// Number of requests by method.
    pub methods: BTreeMap<String, u64>,
    /// Number of answers without a body, by reason: `not_modified`, `not_found`, `head`, `redirect`, `error`,
    /// `aborted`, `other`.
    pub zero_length: BTreeMap<String, u64>,
    /// Sizes of the answers that have a body, in bytes.
    pub sizes: Sizes,
    /// Service time of the server in seconds, if the log contains service times.
    pub service_s: Option<Times>,
    /// Service time of upstream servers in seconds, if the log contains such times.
    pub upstream_s: Option<Times>,
    /// The hour with the slowest answers, if the log contains service times.
    #[serde(default)]
    pub slowest_hour: Option<SlowestHour>,
    /// The URLs with the slowest answers, by the 95th percentile of their service times.
    #[serde(default)]
    pub slowest_urls: Vec<UrlTimes>,
    /// The request classes of the peak window.
    pub classes: Vec<LogClass>,
    /// The method that formed the classes, and the reason for their number.
    pub classes_by: String,
    /// The index of dispersion of arrivals in the peak window, for several lengths of the epoch.
    pub dispersion: Vec<Dispersion>,
    /// Menascé and Almeida's burstiness parameters a and b in the peak window.
    pub burstiness: Option<Burstiness>,
    /// The Hurst parameter of arrivals in the peak window; `None` if there are too few data.
    pub hurst: Option<Hurst>,
    /// The reason why `hurst` is missing; `None` if `hurst` is present.
    pub hurst_missing: Option<String>,
    /// Times between successive requests in the order of the log, in seconds.
    pub interarrival_s: Option<Times>,
    /// Number of distinct URLs, ignoring the order of query parameters; an estimate.
    pub unique_urls: u64,
    /// Number of distinct clients; an estimate.
    pub unique_clients: u64,
    /// Relative standard error of the estimates `unique_urls` and `unique_clients`.
    pub unique_error: f64,
    /// Concentration of requests on URLs.
    pub popularity: UrlPopularity,
    /// Requests of robots, which are recognised by their user agents.
    pub robots: Robots,
    /// Sessions: sequences of requests of one client.
    pub sessions: Option<Sessions>,
    /// A workload with the traffic of this profile.
    pub workload: Option<Workload>,
    /// The reason for the choice of the workload's arrival process.
    pub workload_arrivals_why: String,
    /// Caveats about this profile, one sentence each.
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

/// A log format, and the share of the lines that match it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormatShare {
    /// Name of the format, or the user's format string.
    pub name: String,
    /// Share of the parsed lines, 0 to 1.
    pub share: f64,
}

/// A parsed field of a log line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldSample {
    /// Meaning of the field: `client`, `host`, `time`, `method`, `target`, `protocol`, `status`, `bytes`, `took`,
    /// `upstream took`, `referer` or `agent`.
    pub field: String,
    /// Value of the field; a long value is truncated.
    pub value: String,
}

/// Lines by outcome: `read = parsed + malformed + filtered`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lines {
    /// Number of lines as counted by `wc -l`, plus one for a last line without a newline.
    pub read: u64,
    /// Number of lines whose requests the profile describes.
    pub parsed: u64,
    /// Number of lines that do not match any format.
    pub malformed: u64,
    /// Number of lines that were left out: directives, empty lines, and lines that a filter excluded.
    pub filtered: u64,
    /// The first malformed lines.
    pub first_malformed: Vec<MalformedLine>,
    /// Number of requests that are older than a request on an earlier line of the log.
    pub out_of_order: u64,
}

/// A line that does not match any format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MalformedLine {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
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
    /// Start of the window, RFC 3339.
    pub from: String,
    /// Length of the window, in seconds.
    pub seconds: u64,
    /// Requests per second in the window.
    pub rate: f64,
    /// Number of requests in the window.
    pub requests: u64,
    /// Whether the user chose the window.
    pub given: bool,
}

/// Arrivals of requests over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Mean requests per second, from the first request to the last.
    pub mean_rate: f64,
    /// Number of requests in the busiest second.
    pub busiest_second: u64,
    /// Number of requests in the busiest minute.
    pub busiest_minute: u64,
    /// Start of the first step of `rates`, RFC 3339.
    pub from: String,
    /// Length of a step of `rates` in seconds: a whole number of minutes.
    pub step_s: u64,
    /// Mean requests per second in each step, in order of time.
    pub rates: Vec<f64>,
    /// Number of requests by hour of the day: 24 values.
    pub by_hour: Vec<u64>,
    /// Number of requests by weekday: 7 values, Monday first.
    pub by_weekday: Vec<u64>,
    /// Mean requests per second by weekday and hour: 7 × 24 values; 0 outside the time that the log covers.
    pub by_weekday_and_hour: Vec<Vec<f64>>,
    /// The hours of the week that are regularly busier than the others. `None` if there are no such hours, or if the
    /// log covers less than a week.
    #[serde(default)]
    pub busy_hours: Option<BusyHours>,
    /// Requests in each second around the busiest second of the peak window. `None` if they are not known.
    #[serde(default)]
    pub seconds: Option<SecondCounts>,
}

/// Hours of the week that are regularly busier than the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyHours {
    /// The days and hours, for people: `weekdays 9–17`.
    pub name: String,
    /// The weekdays: 0 is Monday.
    pub weekdays: Vec<u8>,
    /// The hour of the day at which the busy hours begin, 0 to 23.
    pub from_hour: u8,
    /// The hour of the day at which they end, 1 to 24. If it is not greater than `from_hour`, they end on the next day.
    pub to_hour: u8,
    /// Mean requests per second in these hours.
    pub rate: f64,
    /// Mean requests per second in all other hours of the week.
    pub other_rate: f64,
    /// Share of the variance of hourly rates over the week that the difference between these hours and the others
    /// explains.
    pub explained: f64,
}

/// Requests in each second of a short period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondCounts {
    /// The first second, RFC 3339.
    pub from: String,
    /// Number of requests in each second.
    pub counts: Vec<u64>,
}

/// The hour with the slowest answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowestHour {
    /// Start of the hour, RFC 3339.
    pub from: String,
    /// Service times in this hour. Percentiles are accurate to 6 %.
    pub service_s: Times,
    /// Median of the 95th percentiles of all hours, in seconds.
    pub usual_p95_s: f64,
}

/// Service times of a URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UrlTimes {
    /// Path and query of the URL, as in the log.
    pub url: String,
    /// The method of most of the URL's requests.
    pub method: String,
    /// Service times of the URL's requests, except requests before the URL was frequent enough to get a counter of its
    /// own. Percentiles are accurate to 6 %.
    pub service_s: Times,
    /// The URL's share of the service time of all requests.
    pub share_time: f64,
}

/// The distribution of the sizes of answers, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sizes {
    /// Number of answers with a body.
    pub responses: u64,
    /// Mean size of the answers that have a body, in bytes.
    pub mean: f64,
    /// Percentiles of the sizes, in bytes: `"50"`, `"90"`, `"95"`, `"99"`, `"99.9"`.
    pub percentiles: BTreeMap<String, f64>,
    /// Size of the largest answer, in bytes.
    pub max: u64,
    /// Pairs of a size in bytes and the share of answers that are larger, for a chart on logarithmic axes.
    pub complementary: Vec<(f64, f64)>,
    /// The tail of the distribution, if it follows a power law.
    pub tail: Option<Tail>,
}

/// A tail of a distribution that follows a power law: the share of larger answers falls like size^−index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// The index α; if it is below 2, the variance is infinite.
    pub index: f64,
    /// 95 % confidence interval of the index.
    pub interval95: [f64; 2],
    /// Size at which the tail begins, in bytes.
    pub from_bytes: u64,
    /// Number of answers in the tail.
    pub responses: u64,
}

/// A distribution of times in seconds, or of counts per session or burst.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Number of values in the distribution.
    pub samples: u64,
    /// Mean of the values.
    pub mean: f64,
    /// Squared coefficient of variation of the values.
    pub scv: f64,
    /// Percentiles of the values: `"50"`, `"90"`, `"95"`, `"99"`.
    pub percentiles: BTreeMap<String, f64>,
    /// The largest value.
    pub max: f64,
}

/// A class of similar requests in the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogClass {
    /// Name of the class.
    pub name: String,
    /// The requests that belong to the class, for people: `1 – 4,372 bytes`.
    pub range: String,
    /// Method that formed the class, like `from the spanning tree's cluster 1` for clustering by a minimum spanning
    /// tree.
    pub derived_from: String,
    /// Number of requests of the class.
    pub requests: u64,
    /// The class's share of all requests.
    pub share_requests: f64,
    /// The class's share of all bytes.
    pub share_bytes: f64,
    /// Mean size of an answer, in bytes.
    pub mean_bytes: f64,
    /// Sizes of the smallest and of the largest answer, in bytes.
    pub bytes_range: [u64; 2],
    /// Squared coefficient of variation of the answers' sizes.
    pub bytes_scv: f64,
    /// Number of distinct URLs; an estimate.
    pub unique_urls: u64,
    /// The class's most popular URLs, with their requests and sizes.
    pub urls: Vec<PopularUrl>,
    /// Mean service time of the server in seconds, if the log contains service times.
    pub mean_service_s: Option<f64>,
    /// Service times of the class, if the log contains service times. Percentiles are accurate to 6 %.
    #[serde(default)]
    pub service_s: Option<Times>,
}

/// The index of dispersion of counts for one length of epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dispersion {
    /// Length of an epoch, in seconds.
    pub epoch_s: f64,
    /// Number of epochs.
    pub epochs: u64,
    /// Variance of the epochs' counts divided by their mean; 1 for Poisson arrivals.
    pub index: f64,
    /// 95 % confidence interval of the index.
    pub interval95: [f64; 2],
}

/// Burstiness of arrivals, from the epochs with more arrivals than the mean (Menascé & Almeida 1998).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burstiness {
    /// Length of an epoch, in seconds.
    pub epoch_s: f64,
    /// Mean rate of the epochs with more arrivals than the mean, divided by the mean rate.
    pub a: f64,
    /// Share of the epochs with more arrivals than the mean.
    pub b: f64,
    /// Largest count of an epoch, divided by the mean count.
    pub peak_to_mean: f64,
}

/// Long-range dependence of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hurst {
    /// The Hurst parameter H: 0.5 without long-range dependence, close to 1 for strong dependence.
    pub value: f64,
    /// 95 % confidence interval of H.
    pub interval95: [f64; 2],
    /// Shortest time scale of the estimate, in seconds.
    pub from_s: f64,
    /// Longest time scale of the estimate, in seconds.
    pub to_s: f64,
}

/// Concentration of requests on URLs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UrlPopularity {
    /// Exponent s of Zipf's law: requests for the n-th most popular URL are proportional to n^−s.
    pub zipf: Option<f64>,
    /// R² of the fit to Zipf's law, on the logarithms of rank and count.
    pub zipf_fit: Option<f64>,
    /// Pairs of a number n and the share of requests that go to the n most popular URLs.
    pub concentration: Vec<(u64, f64)>,
    /// The most popular URLs, with exact counts or error bounds.
    pub urls: Vec<PopularUrl>,
}

/// A popular URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PopularUrl {
    /// Path and query of the URL, as in the log.
    pub url: String,
    /// The method of most of the URL's requests.
    pub method: String,
    /// Number of requests for the URL; an upper bound.
    pub requests: u64,
    /// Error bound of `requests`: the true number may be lower by up to this many requests.
    pub requests_error: u64,
    /// Mean size of the URL's answers, in bytes.
    pub mean_bytes: f64,
}

/// Requests of robots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Robots {
    /// The user's choice for requests of robots: `keep`, `drop` or `only`.
    pub policy: String,
    /// Number of requests of robots, whether kept or dropped.
    pub requests: u64,
    /// Bytes of the answers to robots.
    pub bytes: u64,
}

/// Sessions: sequences of requests of one client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// A pause of at least this many seconds ends a session.
    pub gap_s: f64,
    /// A pause of at most this many seconds continues a burst, which is a page and its embedded objects.
    pub burst_gap_s: f64,
    /// Number of sessions.
    pub sessions: u64,
    /// New sessions per second.
    pub rate: f64,
    /// Distribution of the number of requests in a session.
    pub requests: Times,
    /// Distribution of the time from a session's first request to its last, in seconds.
    pub length_s: Times,
    /// Distribution of the number of bursts in a session.
    pub bursts: Times,
    /// Distribution of the number of requests in a burst.
    pub requests_per_burst: Times,
    /// Distribution of the think times in seconds: times between successive bursts of a session.
    pub think_s: Times,
    /// Number of sessions that were ended early because too many were open at once.
    pub cut_short: u64,
}
