//! The `Record` document: the load that one run offered, its outcome, and the monitor's observations on the same clock.
//!
//! The field names are an interface that scripts rely on. Times are microseconds where the name ends in `_us`, seconds
//! where it ends in `_s`; rates are per second; CPU shares are fractions between 0 and 1.

use crate::account::PackedAccount;
use crate::counts::{Counts, WireBytes};
use crate::http2::Http2Error;
use crate::number::is_default;
use crate::server::Server;
use crate::tls::{TlsFailure, TlsSpoken};
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod generator;
mod machine;

pub use crate::account::NotFollowed;
pub use generator::{ClientCalibration, ClientLevel, Generator, HostContention};
pub use machine::{Machine, join_values};

/// Identifier of the document's schema, and the value of [`Record::schema`].
pub const SCHEMA: &str = "brimful.record/1";

/// The results of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// Start of the run by the `CLOCK_MONOTONIC` of the generator's host, in nanoseconds. Every `t_s` of this Record
    /// counts from this instant.
    pub started_monotonic_ns: u64,
    /// Time from the start of the run to the end of its last call, in seconds.
    pub duration_s: f64,
    /// Length of the window in which load was offered; every rate is the mean over this window. If the load is a fixed
    /// number of calls, the window of an open load ends when the next call would have been due. The window of a closed
    /// load ends with the last call.
    pub window_s: f64,
    /// The version of brimful that made the Record. Absent in Records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brimful_version: Option<String>,
    /// The command line; for a load made in parts, the command line of the first part.
    pub command: Vec<String>,
    /// Labels of the run, from `--label`: the name of each label, and its value. For a load made in parts whose values
    /// differ, all values, separated by commas.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The machine that generated the load. Absent in Records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The server's software as the server names it: the `Server` field of its first response with HTTP/1. A proxy may
    /// name itself instead. Absent if the response had no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_software: Option<String>,
    /// The requested URL, as the user gave it, with a scheme.
    pub target: String,
    /// The workload of the run: its requests, their mix and their arrivals, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Whether the user ended the run early.
    pub interrupted: bool,
    /// The condition of `--stop-when` that ended the run early, like `p99>1s for 5s`; absent if no condition did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// Length of the warm-up before the run, in seconds; absent if there was no warm-up. The results of the Record
    /// exclude the calls of the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_s: Option<f64>,
    /// Verdict on whether the run's measurements can be trusted.
    pub verdict: Verdict,
    /// Rates per second, as means over `window_s`.
    pub rates: Rates,
    /// Number of scheduled calls by outcome.
    pub counts: Counts,
    /// Number of complete responses by status code, like `"503": 12`, including unexpected responses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// Times of complete responses by status class: `1xx` to `5xx`, and `429`, which is part of `4xx` as well. Unlike
    /// `response_time_us`, these times include unexpected responses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_classes: BTreeMap<String, StatusTimes>,
    /// Time from when a call was due to the last byte of its response.
    pub response_time_us: Option<Summary>,
    /// Half width of the 95 % confidence interval of the mean response time, by batch means.
    pub response_mean_ci95_us: Option<f64>,
    /// Time from the first byte sent to the last byte received.
    pub service_time_us: Option<Summary>,
    /// Time from the start of a connection attempt to its establishment.
    pub connect_time_us: Option<Summary>,
    /// Time from the start of a connection attempt to the close of the connection (Mosberger & Jin 1998). Only
    /// connections with a complete response count; those that the end of the run closed count as well. Absent in Records
    /// of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_lifetime_us: Option<Summary>,
    /// Mean number of complete responses of these connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responses_per_connection: Option<f64>,
    /// Time from the establishment of a connection to the end of its TLS handshake; left out without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_time_us: Option<Summary>,
    /// Time from the first byte sent to the first byte received.
    pub first_byte_us: Option<Summary>,
    /// Time from when a call was due to when the generator began it.
    pub lateness_us: Option<Summary>,
    /// The HTTP version of the run: `1.0`, `1.1` or `2`. Absent in Records of older versions of brimful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// TLS parameters that client and server negotiated in the handshake before the run, if one succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpoken>,
    /// Number of calls that failed because of TLS, by fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tls_failures: Vec<TlsFailure>,
    /// HTTP/2 error codes that the server sent, with their texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http2_errors: Vec<Http2Error>,
    /// Whether the URL is `http://` but the port speaks TLS: all calls failed, but a later TLS handshake succeeded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wants_tls: bool,
    /// Bytes on the wire, including heads but not the overhead of TLS.
    pub bytes: WireBytes,
    /// Throughput sampled every five seconds (Mosberger & Jin 1998, §3.2).
    pub reply_rate: ReplyRate,
    /// Results by request class.
    pub classes: BTreeMap<String, ClassRecord>,
    /// Results by address of the server, if the URL's host has several addresses or was resolved again after a
    /// connection failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressRecord>,
    /// Outcomes of the sessions, if the workload has sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionFigures>,
    /// Outcomes of redirects, if the run follows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<Redirects>,
    /// The run in intervals of equal length.
    pub intervals: Vec<Interval>,
    /// The histograms behind the summaries: base64 of compressed HdrHistogram V2, as in other tools (uncompressed in
    /// Records of earlier versions). The unit of their values is `hdr_value_unit`. If there were responses of several
    /// status classes, each class has its own histogram, like `response_time_us.5xx`.
    pub hdr: BTreeMap<String, String>,
    /// The unit of the values in `hdr`: nanoseconds.
    pub hdr_value_unit: String,
    /// Resources that the generator used on its host.
    pub generator: Generator,
    /// The monitor's observations of the server, if a monitor was running.
    pub server: Option<Server>,
    /// The objectives of the run, and whether they were met. For a load made in parts, the objectives given when the
    /// parts were merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Objective>,
    /// The measurement of [`Generator::max_rate`]; `None` if this command did not measure this rate.
    pub calibration: Option<ClientCalibration>,
    /// The parts of a load that was made in parts; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardOrigin>,
    /// All observations of the calls, so that Records of shards can be merged exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<PackedAccount>,
}

/// One part of a load that several processes generated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShardOrigin {
    /// Number of the part, from 1.
    pub index: u64,
    /// Number of parts of the load.
    pub of: u64,
    /// The host that generated the part.
    pub host: String,
    /// Delay of the part's start after the agreed instant, in microseconds by the part's own clock; `None` if no
    /// instant was agreed.
    pub offset_us: Option<f64>,
    /// Time from the start of the run until contact with the part's process was lost, in seconds. Absent if it was not
    /// lost. Later events of the part are unknown.
    pub lost_at_s: Option<f64>,
    /// Difference between the host's clock and the clock that set the agreed instant, if it was measured: positive if
    /// the host's clock was ahead. The start was corrected by this difference, so `offset_us` does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_us: Option<f64>,
    /// Bound of the error of `clock_ahead_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_us: Option<f64>,
    /// Reasons not to trust this part alone. The verdict of the whole load does not always contain these reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// Whether a run can be trusted, and whether its server worked. These are separate questions: a successful overload
/// test is a valid measurement of a failing server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether the run measured the server and not the generator. If true, `reasons` is empty.
    pub valid: bool,
    /// Whether no call was completed, or more calls failed than were completed. Calls for which this host lacked
    /// resources do not count. Attempts that S-Clients abandon do not count either, because that is how they overload a
    /// server. Absent if the verdict is not about a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<bool>,
    /// Share of the scheduled calls that failed, or whose answer was 5xx or 429 although the workload expects no
    /// particular status. Absent if no call was scheduled, and wherever `failing` is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_share: Option<f64>,
    /// Number of calls in `error_share` that were answered with 5xx or 429 instead of failing. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub error_answers: u64,
    /// The reasons why the run is not valid.
    pub reasons: Vec<Reason>,
}

/// One reason not to trust a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Identifier of the reason, for scripts.
    pub code: ReasonCode,
    /// Text for people: what happened and what to do next.
    pub message: String,
}

/// Identifier of a reason not to trust a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// Calls began too long after they were due.
    GeneratorLate,
    /// The generator's threads were busy during the whole run.
    GeneratorCpu,
    /// The generator was stalled for part of the run.
    GeneratorStalled,
    /// A thread of the generator panicked, which is a defect of brimful. Its part of the load ended early.
    GeneratorPanicked,
    /// The generator ran out of file descriptors.
    Descriptors,
    /// The generator ran out of local ports.
    Ports,
    /// The generator ran out of socket memory.
    Memory,
    /// The file of a request body could not be read during the run.
    BodyFile,
    /// The offered load exceeds the highest rate that this client can generate, as measured.
    BeyondClientMax,
    /// A part of the load was lost, or began much later than the other parts, so the load was incomplete for some of
    /// the time.
    ShardLost,
    /// The counts of calls do not add up: the generator lost a call or counted one twice.
    Unbalanced,
    /// The user ended the run early.
    Interrupted,
    /// The server stopped answering during the run.
    ServerDied,
    /// Other programs used the server's CPUs.
    OtherWork,
    /// A survey could not be completed.
    Incomplete,
    /// Too many calls of a survey's level failed, so the level's measurements do not describe the server.
    ServerErrors,
    /// The server limits the rate of its clients (429), and the survey's calls exceeded the limit.
    RateLimited,
    /// A CPU quota throttled the server's processes while a survey measured them.
    Throttled,
    /// The server became faster or slower during a survey's calibration.
    ServerChanged,
    /// The survey's measurements are far from its predictions. The measurements are valid.
    ModelRefuted,
}

/// Rates per second over the offered window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Calls per second that the schedule made due.
    pub offered: f64,
    /// Calls per second of which at least one byte was sent.
    pub sent: f64,
    /// Connection attempts per second.
    pub connect_attempts: f64,
    /// Connections established per second.
    pub established: f64,
    /// TLS handshakes per second that succeeded. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handshakes: f64,
    /// Handshakes per second that resumed an earlier TLS session. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handshakes_resumed: f64,
    /// Complete responses per second that arrived inside the window.
    pub completed: f64,
}

/// A distribution of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of measured times.
    pub count: u64,
    /// Mean time, exact.
    pub mean: f64,
    /// The shortest time, exact.
    pub min: f64,
    /// Median time. All quantiles are accurate to 0.1 %.
    pub p50: f64,
    /// 90th percentile of the times.
    pub p90: f64,
    /// 95th percentile of the times.
    pub p95: f64,
    /// 99th percentile of the times.
    pub p99: f64,
    /// 99.9th percentile of the times.
    pub p999: f64,
    /// The longest time, exact.
    pub max: f64,
    /// Standard deviation of the times.
    pub stddev: f64,
}

/// Replies per second, with one sample per five seconds of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyRate {
    /// Number of samples. Each covers a whole period of five seconds.
    pub samples: u64,
    /// Lowest sample, in replies per second.
    pub min: Option<f64>,
    /// Mean of the samples.
    pub mean: Option<f64>,
    /// Highest sample, in replies per second.
    pub max: Option<f64>,
    /// Standard deviation of the samples; absent with fewer than two samples.
    pub stddev: Option<f64>,
    /// Half width of the 95 % confidence interval of the mean (Student's t); absent with fewer than two samples.
    pub ci95_half_width: Option<f64>,
}

/// Complete responses of one status class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusTimes {
    /// Number of responses.
    pub count: u64,
    /// Time from when a call was due to the last byte of its response.
    pub response_time_us: Option<Summary>,
    /// Time from the first byte sent to the last byte received.
    pub service_time_us: Option<Summary>,
}

/// The result of an objective of a run, like `p99<50ms`. An objective is about expected answers: answers with a status
/// that the workload expects or, if it expects none in particular, with any status except 5xx and 429. Every other
/// answer and every failed call counts as slower than any limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// The objective, in the user's notation.
    pub objective: String,
    /// The measured time, in seconds; `None` if too few calls had an expected answer.
    pub measured_s: Option<f64>,
    /// Whether the objective is met.
    pub met: bool,
    /// Share of the calls without an expected answer: they failed, or the answer was 5xx, 429 or a status that the
    /// workload does not expect. Excluded are calls for which this host lacked resources, and calls that the end of the
    /// run cut off. Absent if there were no calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_share: Option<f64>,
    /// Explanation for people: the calls without an expected answer, if any, and their effect on the objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Results of one request class of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRecord {
    /// Calls of this class by outcome, as in [`Record::counts`].
    pub counts: Counts,
    /// Response times of this class, as in [`Record::response_time_us`].
    pub response_time_us: Option<Summary>,
    /// Service times of this class, as in [`Record::service_time_us`].
    pub service_time_us: Option<Summary>,
    /// Times to the first byte in this class, as in [`Record::first_byte_us`].
    pub first_byte_us: Option<Summary>,
    /// Lateness of the calls of this class, as in [`Record::lateness_us`].
    pub lateness_us: Option<Summary>,
    /// Bytes of the calls of this class, as in [`Record::bytes`].
    pub bytes: Option<WireBytes>,
    /// Status codes of this class, as in [`Record::status_codes`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// Times of this class by status class, as in [`Record::status_classes`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_classes: BTreeMap<String, StatusTimes>,
}

/// Results of the calls to one address of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddressRecord {
    /// Address and port, like `192.0.2.7:443`.
    pub address: String,
    /// Number of connections that were established to this address.
    pub connections: u64,
    /// Number of calls to this address.
    pub calls: u64,
    /// Calls to this address as a share of the calls to all addresses.
    pub share: f64,
    /// Number of calls to this address that were completed.
    pub completed: u64,
    /// Number of calls to this address that failed, including calls that could not connect.
    pub failed: u64,
    /// Time from when a call was due to the last byte of its response.
    pub response_time_us: Option<Summary>,
}

/// Outcomes of redirects in a run that follows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Redirects {
    /// The calls that followed redirects. All other results of the Record exclude these calls. The response time of a
    /// call that followed a redirect starts when the redirected call was due.
    pub followed: ClassRecord,
    /// The redirects that were not followed.
    pub not_followed: NotFollowed,
}

/// Outcomes of the sessions of a run. There are separate distributions for completed and for failed sessions. Both
/// contain only sessions that began and ended within the run, so if sessions are long compared with the run, the
/// longest sessions are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFigures {
    /// Number of sessions that made a call: `completed + failed + in_progress`.
    pub started: u64,
    /// Number of sessions whose last call was completed.
    pub completed: u64,
    /// Number of sessions that a failed call ended.
    pub failed: u64,
    /// Number of sessions that were still in progress when the run ended.
    pub in_progress: u64,
    /// Number of sessions that began per second, as a mean over [`Record::window_s`]. The rate includes sessions that
    /// were already in progress when the run began.
    pub rate: f64,
    /// Distribution of the number of calls in a completed session.
    pub calls: Option<SessionSummary>,
    /// Distribution of the number of bursts in a completed session.
    pub bursts: Option<SessionSummary>,
    /// Distribution of the time from the due time of a completed session's first call to its last answer, in seconds;
    /// at most an hour.
    pub lifetime_s: Option<SessionSummary>,
    /// Distribution of the number of connections that were established for a completed session.
    pub connections: Option<SessionSummary>,
    /// Distribution of the number of calls in a failed session, including the failed calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_calls: Option<SessionSummary>,
    /// Distribution of the number of bursts in a failed session, including the burst in which the session failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_bursts: Option<SessionSummary>,
    /// Distribution of the time from the due time of a failed session's first call to the end of its last call, in
    /// seconds; at most an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_lifetime_s: Option<SessionSummary>,
    /// Distribution of the number of connections that were established for a failed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_connections: Option<SessionSummary>,
}

/// Distribution of a quantity over the sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// Mean of the quantity, exact.
    pub mean: f64,
    /// Median of the quantity. All quantiles are accurate to 0.1 %.
    pub p50: f64,
    /// 90th percentile of the quantity.
    pub p90: f64,
    /// 99th percentile of the quantity.
    pub p99: f64,
    /// Maximum of the quantity, exact.
    pub max: f64,
}

/// One interval of the run; all intervals of a run have the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Start of the interval, in seconds after the start of the run.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub length_s: f64,
    /// Number of calls that were due in the interval.
    pub offered: u64,
    /// Number of calls whose first byte was sent in the interval.
    pub sent: u64,
    /// Number of calls completed in the interval.
    pub completed: u64,
    /// Number of calls that failed in the interval.
    pub errors: u64,
    /// Median response time of the completed calls.
    pub p50_us: Option<f64>,
    /// 99th percentile of the response time of the completed calls.
    pub p99_us: Option<f64>,
}

impl Verdict {
    /// Creates a verdict with these reasons. The verdict is valid if `reasons` is empty.
    pub fn from_reasons(reasons: Vec<Reason>) -> Verdict {
        Verdict { valid: reasons.is_empty(), reasons, ..Verdict::default() }
    }
}

impl ShardOrigin {
    /// The number of hosts that generated the parts, and an upper bound of the time in seconds between the starts of
    /// any two parts. The bound includes the uncertainty of the hosts' clocks. `None` if fewer than two parts have an
    /// agreed start.
    pub fn start_skew(shards: &[ShardOrigin]) -> Option<(usize, f64)> {
        let hosts: BTreeSet<&str> = shards.iter().map(|shard| shard.host.as_str()).collect();
        // A part with which contact was lost has reported no offset.
        let mut began: Vec<f64> = shards.iter().filter_map(|shard| shard.offset_us).collect();
        let mut errors: Vec<f64> = shards.iter().map(|shard| shard.clock_error_us.unwrap_or(0.0)).collect();
        began.sort_by(f64::total_cmp);
        errors.sort_by(|a, b| b.total_cmp(a));
        let [first, .., last] = began[..] else { return None };
        let unknown: f64 = errors.iter().take(2).sum();
        Some((hosts.len(), (last - first + unknown) / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_apart_parts_began_includes_what_clocks_hide() {
        let shard = |host: &str, offset_us, clock_error_us| ShardOrigin {
            host: host.to_owned(),
            offset_us,
            clock_error_us,
            ..ShardOrigin::default()
        };
        let skew = |shards: &[ShardOrigin]| {
            ShardOrigin::start_skew(shards).map(|(hosts, skew_s)| (hosts, (skew_s * 1e6).round()))
        };
        let [a, b] = [shard("a", Some(20.0), None), shard("a", Some(65.0), None)];
        assert_eq!(skew(&[a.clone(), b.clone(), shard("a", None, None)]), Some((1, 45.0)));
        // The offsets differ by 45 µs, and the clocks by up to 30 µs. So the parts began 15 to 75 µs apart.
        assert_eq!(skew(&[a.clone(), shard("b", Some(65.0), Some(30.0))]), Some((2, 75.0)));
        assert_eq!(skew(&[shard("a", Some(0.0), Some(9.0)), shard("b", Some(0.0), Some(30.0))]), Some((2, 39.0)));
        assert_eq!((skew(&[a]), skew(&[])), (None, None));
    }
}
