//! The `Record` document: the load that one run offered, its results, and the server's metrics that a monitor measured
//! during the run. Results and metrics have the same time axis.
//!
//! Scripts rely on the field names. Times are microseconds if the name ends in `_us`, and seconds if it ends in `_s`.
//! Rates are per second. CPU shares are fractions between 0 and 1.

use crate::JsonSchema;
use crate::account::PackedAccount;
use crate::counts::{Counts, WireBytes};
use crate::http2::Http2Error;
use crate::number::is_default;
use crate::server::Server;
use crate::tls::{NegotiatedTls, TlsFailure};
use crate::workload::Workload;
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
    /// Start of the run on the clock `CLOCK_MONOTONIC` of the generator's host, in nanoseconds. Every `t_s` in this
    /// Record is relative to this time.
    pub started_monotonic_ns: u64,
    /// Time from the start of the run to the end of its last call, in seconds.
    pub duration_s: f64,
    /// Length of the window in which load was offered, in seconds; every rate is a mean over this window. With a fixed
    /// number of calls, the window of an open load ends when a further call would have been due, and the window of a
    /// closed load ends with the last call.
    pub window_s: f64,
    /// The version of brimful that made the Record. Absent in Records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brimful_version: Option<String>,
    /// The brimful command that made the run, with its arguments. If several processes generated the load, it is the
    /// command of the first process.
    pub command: Vec<String>,
    /// Labels of the run, from `--label`: name and value of each label. If several processes generated the load with
    /// different values, the value of the label lists all of them, separated by commas.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The machine that generated the load. Absent in Records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The `Server` field of the first response, which names the server's software. A proxy may name itself instead.
    /// Absent if the response has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_software: Option<String>,
    /// The requested URL as the user wrote it, with a scheme.
    pub target: String,
    /// The workload of the run: request classes, mix and arrivals. Secrets are masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// Seed of the random numbers of the load.
    pub seed: u64,
    /// Whether the user interrupted the run.
    pub interrupted: bool,
    /// The condition of `--stop-when` that ended the run early, like `p99>1s for 5s`; absent if the run was not ended
    /// by a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// Length of the warm-up before the run, in seconds; absent if there was no warm-up. The results of the Record
    /// exclude the calls of the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_s: Option<f64>,
    /// Verdict on whether the run's measurements can be trusted.
    pub verdict: Verdict,
    /// Rates per second, as means over the window of `window_s`.
    pub rates: Rates,
    /// Number of scheduled calls by outcome.
    pub counts: Counts,
    /// Number of complete responses by status code, like `"503": 12`, including responses that the workload does not
    /// expect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// Times of complete responses by status class: `1xx` to `5xx`, and `429`, whose responses are also included in
    /// `4xx`. Unlike `response_time_us`, these times include unexpected responses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_classes: BTreeMap<String, StatusTimes>,
    /// Time from when a call was due to the last byte of its response.
    pub response_time_us: Option<Summary>,
    /// Half-width of the 95 % confidence interval of the mean response time, by the method of batch means.
    pub response_mean_ci95_us: Option<f64>,
    /// Time from the first byte sent to the last byte received.
    pub service_time_us: Option<Summary>,
    /// Time from the start of a connection attempt to the established connection.
    pub connect_time_us: Option<Summary>,
    /// Time from the start of a connection attempt to the close of the connection (Mosberger & Jin 1998). Only
    /// connections with a complete response are included; connections that were closed at the end of the run are
    /// included too. Absent in Records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_lifetime_us: Option<Summary>,
    /// Mean number of complete responses on the connections of `connection_lifetime_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responses_per_connection: Option<f64>,
    /// Time from the established connection to the end of its TLS handshake; left out without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_time_us: Option<Summary>,
    /// Time from the first byte sent to the first byte received.
    pub first_byte_us: Option<Summary>,
    /// Delay of calls by the generator: time from when a call was due to when the generator began it.
    pub lateness_us: Option<Summary>,
    /// The HTTP version of the run: `1.0`, `1.1` or `2`. Absent in Records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// TLS parameters that client and server negotiated in a handshake before the run; absent if no such handshake
    /// succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<NegotiatedTls>,
    /// Number of calls that failed because of TLS, by kind of failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tls_failures: Vec<TlsFailure>,
    /// HTTP/2 error codes that the server sent, with their counts and an example of the error text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http2_errors: Vec<Http2Error>,
    /// Whether the server probably expects `https://` although the URL begins with `http://`: either no call was
    /// completed and some responses were malformed or reset, or all responses had a status of 4xx; and a later TLS
    /// handshake on the same port succeeded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wants_tls: bool,
    /// Number of bytes sent and received, including the heads of requests and responses, excluding the overhead of TLS.
    pub bytes: WireBytes,
    /// Throughput, sampled every five seconds (Mosberger & Jin 1998, §3.2).
    pub reply_rate: ReplyRate,
    /// Results by request class, with the name of the class as the key.
    pub classes: BTreeMap<String, ClassRecord>,
    /// Results by address of the server. Present if the host of the URL has several addresses, or if its name was
    /// resolved again after a connection failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressRecord>,
    /// Outcomes of the sessions, if the workload has sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionResults>,
    /// Outcomes of redirects, if the run follows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<Redirects>,
    /// The time series of the run, with intervals of equal length.
    pub intervals: Vec<Interval>,
    /// The histograms from which the summaries are computed, in base64 of compressed HdrHistogram V2 (uncompressed in
    /// Records of older versions). The unit of their values is `hdr_value_unit`. If the responses have several status
    /// classes, each status class has its own histogram, like `response_time_us.5xx`.
    pub hdr: BTreeMap<String, String>,
    /// The unit of the histograms' values: nanoseconds.
    pub hdr_value_unit: String,
    /// Resources of its host that the generator used.
    pub generator: Generator,
    /// The monitor's metrics of the server, if a monitor was running.
    pub server: Option<Server>,
    /// The objectives of the run, and whether they were met. If several processes generated the load, these are the
    /// objectives that were specified when the Records of the processes were merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Objective>,
    /// The measurement of the client's maximum rate ([`Generator::max_rate`]), if this command made it.
    pub calibration: Option<ClientCalibration>,
    /// One element for each process that generated a part of the load; empty if a single process generated the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardOrigin>,
    /// Counts and histograms of all calls, so that Records of several shards can be merged exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<PackedAccount>,
}

/// One process of a load that several processes generated together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShardOrigin {
    /// Number of the process among the processes of the load, from 1.
    pub index: u64,
    /// Total number of processes that generated the load.
    #[serde(rename = "of")]
    pub total: u64,
    /// The host on which the process ran.
    pub host: String,
    /// Delay of the process's start after the agreed start time, in microseconds by the clock of its host; `None` if no
    /// start time was agreed.
    pub offset_us: Option<f64>,
    /// Time from the start of the run to the loss of contact with the process, in seconds. Absent if contact was not
    /// lost. Later events of the process are unknown.
    pub lost_at_s: Option<f64>,
    /// Difference between the clock of the process's host and the clock of the agreed start time, in microseconds, if
    /// it was measured. It is positive if the host's clock was ahead. The start was corrected by this difference, so
    /// `offset_us` does not include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_us: Option<f64>,
    /// Upper bound of the error of `clock_ahead_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_us: Option<f64>,
    /// Reasons to distrust the measurements of this process. The verdict of the whole load need not include all of
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// Whether the measurements of a run can be trusted (`valid`), and whether the server failed (`failing`). The two are
/// independent: a successful overload test is a valid measurement of a failing server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether the run measured the server and not the limits of the generator. If true, `reasons` is empty.
    pub valid: bool,
    /// Whether the server failed: no call was completed, or more calls failed than were completed. Calls that failed
    /// because the generator's host lacked a resource are excluded. Connection attempts that S-Clients (Banga &
    /// Druschel 1997) abandoned are also excluded, because S-Clients abandon attempts by design. Absent if the verdict
    /// is not about a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<bool>,
    /// Fraction of the scheduled calls that failed. If the workload does not specify an expected status, answers with
    /// 5xx or 429 also count as failures. Absent if no call was scheduled, and in all verdicts without `failing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_share: Option<f64>,
    /// Number of calls that `error_share` includes because they were answered with 5xx or 429. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub error_answers: u64,
    /// The reasons why the measurements cannot be trusted.
    pub reasons: Vec<Reason>,
}

/// One reason to distrust the measurements of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Identifier of the reason, for programs.
    pub code: ReasonCode,
    /// Explanation for the user: what happened and what to do.
    pub message: String,
}

/// Identifier of a reason to distrust the measurements of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// The generator began calls too long after they were due.
    GeneratorLate,
    /// The generator's threads were busy for the whole run.
    GeneratorCpu,
    /// The generator did not run for part of the time.
    GeneratorStalled,
    /// A thread of the generator panicked because of a bug in brimful. The load of this thread ended early.
    GeneratorPanicked,
    /// The generator ran out of file descriptors.
    Descriptors,
    /// The generator ran out of local ports.
    Ports,
    /// The generator ran out of socket memory.
    Memory,
    /// The file with a request body could not be read during the run.
    BodyFile,
    /// The offered load exceeds the maximum rate that was measured for this client.
    BeyondClientMax,
    /// One of the processes that generated the load was lost or began much later than the others, so the load was
    /// incomplete for part of the time.
    ShardLost,
    /// The counts of calls violate a conservation law: the generator lost a call, or counted a call twice.
    Unbalanced,
    /// The user interrupted the run.
    Interrupted,
    /// The server stopped answering during the run.
    ServerDied,
    /// Programs other than the server used the server's CPUs.
    OtherWork,
    /// The survey could not be completed.
    Incomplete,
    /// Too many calls failed at one of a survey's request rates, so its measurements do not describe the server's
    /// performance.
    ServerErrors,
    /// The server limits the rate of its clients (status 429), and the load of the survey exceeded this limit.
    RateLimited,
    /// A CPU quota throttled the server's processes during a survey.
    Throttled,
    /// The server became faster or slower during the calibration of a survey.
    ServerChanged,
    /// The measurements of the survey differ too much from its predictions. The measurements are valid.
    ModelRefuted,
}

/// Rates per second, as means over the window in which load was offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Calls per second that became due according to the workload's schedule.
    pub offered: f64,
    /// Calls per second of which at least one byte was sent.
    pub sent: f64,
    /// Connection attempts per second.
    pub connect_attempts: f64,
    /// Connections established per second.
    pub established: f64,
    /// Successful TLS handshakes per second. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handshakes: f64,
    /// TLS handshakes per second that resumed an earlier TLS session. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handshakes_resumed: f64,
    /// Complete responses per second that arrived within the window.
    pub completed: f64,
}

/// Statistics of a distribution of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of times in the distribution.
    pub count: u64,
    /// Mean of the times, without quantisation error.
    pub mean: f64,
    /// The shortest time, without quantisation error.
    pub min: f64,
    /// Median time. The error of a quantile is at most 0.1 %, because quantiles are computed from a histogram.
    pub p50: f64,
    /// 90th percentile of the times.
    pub p90: f64,
    /// 95th percentile of the times.
    pub p95: f64,
    /// 99th percentile of the times.
    pub p99: f64,
    /// 99.9th percentile of the times.
    pub p999: f64,
    /// The longest time, without quantisation error.
    pub max: f64,
    /// Standard deviation of the times.
    pub stddev: f64,
}

/// Statistics of the throughput, in complete responses per second, with one sample per period of five seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyRate {
    /// Number of samples. Incomplete periods have no sample.
    pub samples: u64,
    /// Lowest sample, in complete responses per second.
    pub min: Option<f64>,
    /// Mean of the throughput samples.
    pub mean: Option<f64>,
    /// Highest sample, in complete responses per second.
    pub max: Option<f64>,
    /// Standard deviation of the samples; absent with fewer than two samples.
    pub stddev: Option<f64>,
    /// Half-width of the 95 % confidence interval of the mean throughput (Student's t); absent with fewer than two
    /// samples.
    pub ci95_half_width: Option<f64>,
}

/// Number and times of the complete responses of one status class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusTimes {
    /// Number of complete responses with this status class.
    pub count: u64,
    /// Time from when a call was due to the last byte of its response.
    pub response_time_us: Option<Summary>,
    /// Time from the first byte sent to the last byte received.
    pub service_time_us: Option<Summary>,
}

/// Whether a run meets one objective, like `p99<50ms`. An answer is expected if its status is one that the workload
/// expects; if the workload specifies no status, all answers except 5xx and 429 are expected. The times of expected
/// answers are compared with the limit. Every other answer and every failed call counts as slower than the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// The objective as the user wrote it.
    pub objective: String,
    /// The measured time in seconds; `None` if too few calls have an expected answer.
    pub measured_s: Option<f64>,
    /// Whether the run meets the objective.
    pub met: bool,
    /// Fraction of the calls without an expected answer: failed calls, and calls with an unexpected answer. Excluded
    /// are calls for which the generator's host lacked a resource, and calls that were unfinished at the end of the
    /// run. Absent if there are no calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_share: Option<f64>,
    /// Explanation for the user: the number of calls without an expected answer, if any, and its effect on the
    /// objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Results of one request class of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRecord {
    /// Number of calls of this class by outcome, as in [`Record::counts`].
    pub counts: Counts,
    /// Response times of this class, as in [`Record::response_time_us`].
    pub response_time_us: Option<Summary>,
    /// Service times of this class, as in [`Record::service_time_us`].
    pub service_time_us: Option<Summary>,
    /// Times to the first byte in this class, as in [`Record::first_byte_us`].
    pub first_byte_us: Option<Summary>,
    /// Lateness of the calls of this class, as in [`Record::lateness_us`].
    pub lateness_us: Option<Summary>,
    /// Bytes of the requests and responses of this class, as in [`Record::bytes`].
    pub bytes: Option<WireBytes>,
    /// Number of complete responses of this class by status code, as in [`Record::status_codes`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// Times of this class's complete responses by status class, as in [`Record::status_classes`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_classes: BTreeMap<String, StatusTimes>,
}

/// Results of the calls to one address of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddressRecord {
    /// Address and port of the server, like `192.0.2.7:443`.
    pub address: String,
    /// Number of connections that were established to this address.
    pub connections: u64,
    /// Number of calls to this address.
    pub calls: u64,
    /// Calls to this address as a share of the calls to all addresses.
    pub share: f64,
    /// Number of calls to this address that were completed.
    pub completed: u64,
    /// Number of calls to this address that failed, including calls whose connection attempt failed.
    pub failed: u64,
    /// Time from when a call was due to the last byte of its response.
    pub response_time_us: Option<Summary>,
}

/// Outcomes of redirects, for a run that follows redirects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Redirects {
    /// The calls that followed a redirect. They are not included in the other results of the Record. The response time
    /// of such a call is measured from the due time of the original call.
    pub followed: ClassRecord,
    /// Number of redirects that were not followed, by reason.
    pub not_followed: NotFollowed,
}

/// Outcomes of the sessions of a run, with separate distributions for completed and failed sessions. The distributions
/// include only sessions that began and ended within the run. If sessions are long compared with the run, the longest
/// sessions are therefore missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SessionFigures")]
pub struct SessionResults {
    /// Number of sessions that made a call: `completed + failed + in_progress`.
    pub started: u64,
    /// Number of sessions whose last call was completed.
    pub completed: u64,
    /// Number of sessions that a failed call ended.
    pub failed: u64,
    /// Number of sessions that were still in progress when the run ended.
    pub in_progress: u64,
    /// Number of sessions that began per second, as a mean over [`Record::window_s`]. Sessions that were already in
    /// progress when the run began are included.
    pub rate: f64,
    /// Distribution of the number of calls in a completed session.
    pub calls: Option<SessionSummary>,
    /// Distribution of the number of bursts (groups of calls, like a page with its images) in a completed session.
    pub bursts: Option<SessionSummary>,
    /// Distribution of the time from when a completed session's first call was due to the session's last response, in
    /// seconds. Times above an hour are recorded as an hour.
    pub lifetime_s: Option<SessionSummary>,
    /// Distribution of the number of connections that were established for a completed session.
    pub connections: Option<SessionSummary>,
    /// Distribution of the number of calls in a failed session, including the failed calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_calls: Option<SessionSummary>,
    /// Distribution of the number of bursts (groups of calls, like a page with its images) in a failed session,
    /// including the burst in which the session failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_bursts: Option<SessionSummary>,
    /// Distribution of the time from when a failed session's first call was due to the end of the session's last call,
    /// in seconds. Times above an hour are recorded as an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_lifetime_s: Option<SessionSummary>,
    /// Distribution of the number of connections that were established for a failed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_connections: Option<SessionSummary>,
}

/// Statistics of a quantity, such as the number of calls, over the sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// Mean of the quantity, without quantisation error.
    pub mean: f64,
    /// Median of the quantity. The error of a quantile is at most 0.1 %, because quantiles are computed from a
    /// histogram.
    pub p50: f64,
    /// 90th percentile of the quantity.
    pub p90: f64,
    /// 99th percentile of the quantity.
    pub p99: f64,
    /// Maximum of the quantity, without quantisation error.
    pub max: f64,
}

/// Counts and response times of one interval of the run; all intervals have the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Start of the interval, in seconds since the start of the run.
    pub t_s: f64,
    /// Length of the interval of the time series, in seconds.
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
    /// Creates a verdict. The verdict is valid if `reasons` is empty.
    pub fn from_reasons(reasons: Vec<Reason>) -> Verdict {
        Verdict { valid: reasons.is_empty(), reasons, ..Verdict::default() }
    }
}

impl ShardOrigin {
    /// Returns the number of hosts that generated the load, and an upper bound of the time between the starts of any
    /// two processes of the load, in seconds. The bound includes the uncertainty of the hosts' clocks. Returns `None`
    /// unless at least two processes have an agreed start time.
    pub fn start_skew(shards: &[ShardOrigin]) -> Option<(usize, f64)> {
        let hosts: BTreeSet<&str> = shards.iter().map(|shard| shard.host.as_str()).collect();
        // The offset is unknown if contact with the process was lost.
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
        // The offsets differ by 45 µs, and the clock of host b has an error of up to 30 µs: the two processes began at
        // most 75 µs apart.
        assert_eq!(skew(&[a.clone(), shard("b", Some(65.0), Some(30.0))]), Some((2, 75.0)));
        assert_eq!(skew(&[shard("a", Some(0.0), Some(9.0)), shard("b", Some(0.0), Some(30.0))]), Some((2, 39.0)));
        assert_eq!((skew(&[a]), skew(&[])), (None, None));
    }
}
