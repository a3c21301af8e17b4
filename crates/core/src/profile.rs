//! The profile of a site's traffic, as `brimful characterize` finds it in access logs. Shares are 0..1, times that end in
//! `_s` are seconds, rates are per second.

use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `schema` of a profile.
pub const SCHEMA: &str = "brimful.profile/1";

/// The whole document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// [`SCHEMA`].
    pub schema: String,
    /// The program that made it.
    pub brimful_version: String,
    /// The command line, without credentials.
    pub command: Vec<String>,
    /// What was read.
    pub sources: Vec<Source>,
    /// The format of most lines, by name.
    pub format: String,
    /// Every format that lines were read with.
    pub formats: Vec<FormatShare>,
    /// The first line of that format, read out field by field.
    #[serde(default)]
    pub format_sample: Vec<FieldSample>,
    /// What became of the lines.
    pub lines: Lines,
    /// The first request, RFC 3339.
    pub from: String,
    /// The last one.
    pub to: String,
    /// The zone that hours and days are counted in.
    pub timezone: String,
    /// How many.
    pub requests: u64,
    /// Of all answers.
    pub bytes: u64,
    /// The busiest window; what classes, burstiness and the Workload are of.
    pub peak: Peak,
    /// Requests per second and their course.
    pub arrivals: Arrivals,
    /// Requests by status; `"0"` has none.
    pub status: BTreeMap<String, u64>,
    /// Requests by method.
    pub methods: BTreeMap<String, u64>,
    /// Answers without a body, by reason: `not_modified`, `not_found`, `head`, `redirect`, `error`, `aborted`, `other`.
    pub zero_length: BTreeMap<String, u64>,
    /// Bytes of answers that have a body.
    pub sizes: Sizes,
    /// Time that the server took, where the log has it.
    pub service_s: Option<Times>,
    /// Time that those behind it took, where the log has it.
    pub upstream_s: Option<Times>,
    /// The classes of request in the peak window.
    pub classes: Vec<LogClass>,
    /// How the classes were made, and why so many.
    pub classes_by: String,
    /// The index of dispersion of arrivals in the peak window, by length of the epoch.
    pub dispersion: Vec<Dispersion>,
    /// Menascé and Almeida's a and b in the peak window.
    pub burstiness: Option<Burstiness>,
    /// The Hurst parameter of arrivals in the peak window; `None` where there is not enough data.
    pub hurst: Option<Hurst>,
    /// Why there is none.
    pub hurst_missing: Option<String>,
    /// Times between requests, in the order of the log.
    pub interarrival_s: Option<Times>,
    /// Distinct URLs, without their queries' order being looked at; an estimate.
    pub unique_urls: u64,
    /// Distinct clients; an estimate.
    pub unique_clients: u64,
    /// Relative standard error of both estimates.
    pub unique_error: f64,
    /// How requests concentrate on URLs.
    pub popularity: UrlPopularity,
    /// Requests of robots, by what they call themselves.
    pub robots: Robots,
    /// What clients do, one after another.
    pub sessions: Option<Sessions>,
    /// The load that has this traffic.
    pub workload: Option<Workload>,
    /// Why calls come in it as they do.
    pub workload_arrivals_why: String,
    /// What to know before these figures are used, one sentence each.
    pub notes: Vec<String>,
}

/// One file or stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Its path, or `-`.
    pub path: String,
    /// Lines read from it.
    pub lines: u64,
    /// Bytes read from it, after decompression.
    pub bytes: u64,
    /// Why it was not read to its end, if it was not.
    pub cut_short: Option<String>,
}

/// A format, and the share of lines that it reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormatShare {
    /// Its name, or the format string that was given.
    pub name: String,
    /// Of the lines that were parsed, 0..1.
    pub share: f64,
}

/// A field of a line of a log, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldSample {
    /// What the field is: `client`, `host`, `time`, `method`, `target`, `protocol`, `status`, `bytes`, `took`,
    /// `upstream took`, `referer` or `agent`.
    pub field: String,
    /// Its value; long ones are cut.
    pub value: String,
}

/// `read = parsed + malformed + filtered`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lines {
    /// All; what `wc -l` says, plus one for a last line without newline.
    pub read: u64,
    /// Requests that the profile is of.
    pub parsed: u64,
    /// Lines that are not of the format.
    pub malformed: u64,
    /// Lines that were left out: directives, empty lines, and what a filter excluded.
    pub filtered: u64,
    /// The first malformed ones.
    pub first_malformed: Vec<MalformedLine>,
    /// Requests that came before one above them in the log.
    pub out_of_order: u64,
}

/// A line that is not of the format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MalformedLine {
    /// In which file.
    pub file: String,
    /// Which line of it, from 1.
    pub line: u64,
    /// Where in the line, in bytes from 1.
    pub column: u64,
    /// What should have been there.
    pub expected: String,
    /// The line's beginning, with what a terminal would obey escaped.
    pub text: String,
}

/// The busiest window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// When it begins, RFC 3339.
    pub from: String,
    /// How long it is.
    pub seconds: u64,
    /// Requests per second in it.
    pub rate: f64,
    /// Requests in it.
    pub requests: u64,
    /// Whether it was given, and not found.
    pub given: bool,
}

/// Requests by time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Requests per second, from the first to the last.
    pub mean_rate: f64,
    /// Requests in the busiest second.
    pub busiest_second: u64,
    /// Requests in the busiest minute.
    pub busiest_minute: u64,
    /// When the first step of `rates` begins, RFC 3339.
    pub from: String,
    /// Length of a step of `rates`: a whole number of minutes.
    pub step_s: u64,
    /// Mean rate in each step, one after another.
    pub rates: Vec<f64>,
    /// Requests by hour of the day, 24.
    pub by_hour: Vec<u64>,
    /// Requests by weekday, Monday first, 7.
    pub by_weekday: Vec<u64>,
    /// Mean rate by weekday and hour, 7 × 24; 0 where the log does not reach.
    pub by_weekday_and_hour: Vec<Vec<f64>>,
}

/// Bytes of answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sizes {
    /// How many answers have a body.
    pub responses: u64,
    /// Mean bytes of these.
    pub mean: f64,
    /// Percentiles in bytes: `"50"`, `"90"`, `"95"`, `"99"`, `"99.9"`.
    pub percentiles: BTreeMap<String, f64>,
    /// The largest.
    pub max: u64,
    /// Share of answers with more bytes than this: pairs of bytes and share, for a chart on logarithmic axes.
    pub complementary: Vec<(f64, f64)>,
    /// Index of the tail, where it falls like a power of the size.
    pub tail: Option<Tail>,
}

/// A tail that falls like size^−index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// α; below 2 the variance has no bound.
    pub index: f64,
    /// Its 95 % interval.
    pub interval95: [f64; 2],
    /// From so many bytes on.
    pub from_bytes: u64,
    /// How many answers that are.
    pub responses: u64,
}

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// How many.
    pub samples: u64,
    /// Their mean.
    pub mean: f64,
    /// Squared coefficient of variation.
    pub scv: f64,
    /// Percentiles: `"50"`, `"90"`, `"95"`, `"99"`.
    pub percentiles: BTreeMap<String, f64>,
    /// The longest.
    pub max: f64,
}

/// A class of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogClass {
    /// Its name.
    pub name: String,
    /// What belongs to it, for people: `1 – 4,372 bytes`.
    pub range: String,
    /// How it came about: `from the spanning tree's cluster 1`.
    pub derived_from: String,
    /// Requests.
    pub requests: u64,
    /// Of all requests.
    pub share_requests: f64,
    /// Of all bytes.
    pub share_bytes: f64,
    /// Of an answer.
    pub mean_bytes: f64,
    /// Smallest and largest answer.
    pub bytes_range: [u64; 2],
    /// Squared coefficient of variation of the answers' bytes.
    pub bytes_scv: f64,
    /// Distinct URLs; an estimate.
    pub unique_urls: u64,
    /// Its most popular URLs, with what of its requests they are and how large.
    pub urls: Vec<PopularUrl>,
    /// Mean time that the server took, where the log has it.
    pub mean_service_s: Option<f64>,
}

/// The index of dispersion of counts at one length of epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dispersion {
    /// Length of an epoch.
    pub epoch_s: f64,
    /// How many there are.
    pub epochs: u64,
    /// Variance over mean; 1 for Poisson arrivals.
    pub index: f64,
    /// Its 95 % interval.
    pub interval95: [f64; 2],
}

/// Menascé & Almeida (1998): epochs with more arrivals than the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burstiness {
    /// Length of an epoch.
    pub epoch_s: f64,
    /// Mean rate of the epochs above the mean, over the mean.
    pub a: f64,
    /// Their share of all epochs.
    pub b: f64,
    /// The largest count over the mean one.
    pub peak_to_mean: f64,
}

/// Long-range dependence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hurst {
    /// H; 0.5 without, towards 1 with.
    pub value: f64,
    /// Its 95 % interval.
    pub interval95: [f64; 2],
    /// Length of the shortest scale that it rests on.
    pub from_s: f64,
    /// Length of the longest.
    pub to_s: f64,
}

/// How requests concentrate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UrlPopularity {
    /// s of Zipf's law: the n-th most popular URL is asked for as n^−s.
    pub zipf: Option<f64>,
    /// R² of that, over the logarithms of rank and count.
    pub zipf_fit: Option<f64>,
    /// Share of requests for the so many most popular URLs: pairs of their number and the share.
    pub concentration: Vec<(u64, f64)>,
    /// The most popular ones, exact or with the error that they have.
    pub urls: Vec<PopularUrl>,
}

/// A URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PopularUrl {
    /// Path and query, as in the log.
    pub url: String,
    /// The method that it is mostly asked for with.
    pub method: String,
    /// How often.
    pub requests: u64,
    /// It may have been as much less often.
    pub requests_error: u64,
    /// Mean bytes of its answers.
    pub mean_bytes: f64,
}

/// Requests of robots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Robots {
    /// `keep`, `drop` or `only`.
    pub policy: String,
    /// How many, whatever became of them.
    pub requests: u64,
    /// Bytes of their answers.
    pub bytes: u64,
}

/// What clients do, one request after another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// A pause as long as this ends one.
    pub gap_s: f64,
    /// A pause as short as this goes on with a burst: a page and what it embeds.
    pub burst_gap_s: f64,
    /// How many.
    pub sessions: u64,
    /// New ones per second.
    pub rate: f64,
    /// Requests of one.
    pub requests: Times,
    /// From its first request to its last.
    pub length_s: Times,
    /// Bursts of one.
    pub bursts: Times,
    /// Requests of a burst.
    pub requests_per_burst: Times,
    /// Between two bursts.
    pub think_s: Times,
    /// Sessions that were ended by force because too many were open at once.
    pub cut_short: u64,
}
