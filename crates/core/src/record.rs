//! The `Record`: what one run offered, what became of it, and what the server's kernel saw on the same clock.
//!
//! The field names are an interface that scripts rely on. Times are microseconds where the name ends in `_us`, seconds
//! where it ends in `_s`; rates are per second; CPU shares are fractions between 0 and 1.

use crate::account::PackedAccount;
use crate::counts::{Counts, Traffic};
use crate::http2::Http2Error;
use crate::server::{HostProbe, Server};
use crate::tls::{TlsFailure, TlsSpoken};
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub use crate::slo::Objective;
pub use crate::status::StatusTimes;

/// The value of [`Record::schema`].
pub const SCHEMA: &str = "brimful.record/1";

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// `CLOCK_MONOTONIC` at the start, in nanoseconds: anchors every `t_s` of this Record on that host's clock.
    pub started_monotonic_ns: u64,
    /// From the start to the end of the last call.
    pub duration_s: f64,
    /// The window in which load was offered; every rate is over this window. An open load of a number of calls lasts until the
    /// next call would have been due, a closed one until its last call has ended.
    pub window_s: f64,
    /// The command line; of a load that was made in parts, the first one's.
    pub command: Vec<String>,
    /// The URL, as resolved.
    pub target: String,
    /// The load that was made: what was requested, in which mix, and how calls came. Secrets are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Whether the user ended the run early.
    pub interrupted: bool,
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// Per second, over `window_s`.
    pub rates: Rates,
    /// What became of every scheduled call.
    pub counts: Counts,
    /// Whole responses by status code, like `"503": 12`; unexpected ones among them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// Times of whole responses by status class: `1xx` to `5xx`, and `429`, which is part of `4xx` as well. Unexpected
    /// responses are among them, which `response_time_us` leaves out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_classes: BTreeMap<String, StatusTimes>,
    /// From due to the last byte.
    pub response_time_us: Option<Summary>,
    /// Half width of the 95 % confidence interval of the mean response time, by batch means.
    pub response_mean_ci95_us: Option<f64>,
    /// From the first byte sent to the last byte received.
    pub service_time_us: Option<Summary>,
    /// From the start of an attempt to its establishment.
    pub connect_time_us: Option<Summary>,
    /// From the establishment of a connection to the end of its TLS handshake; left out where there is no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_time_us: Option<Summary>,
    /// From the first byte sent to the first byte received.
    pub first_byte_us: Option<Summary>,
    /// From due to the moment the generator acted.
    pub lateness_us: Option<Summary>,
    /// The version of HTTP that was spoken: `1.0`, `1.1` or `2`. Absent from Records of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// What client and server agreed on in the handshake before the run, where there is TLS and one succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpoken>,
    /// Why calls failed that TLS failed, if any did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tls_failures: Vec<TlsFailure>,
    /// The error codes that a server of HTTP/2 sent, and what it said with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http2_errors: Vec<Http2Error>,
    /// An `http://` URL was loaded where the server speaks TLS: nothing but errors came, and a handshake after them worked.
    #[serde(default, skip_serializing_if = "crate::tls::is_false")]
    pub wants_tls: bool,
    /// Bytes on the wire, heads included; those of TLS itself are not.
    pub bytes: Traffic,
    /// Throughput sampled every five seconds (Mosberger & Jin 1998, §3.2).
    pub reply_rate: ReplyRate,
    /// The same, per request class.
    pub classes: BTreeMap<String, ClassRecord>,
    /// The server's addresses, where the URL's host has several or is a name that was looked up again when a connection
    /// failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressRecord>,
    /// What became of its sessions, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionFigures>,
    /// What became of redirects, where they are followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<Redirects>,
    /// The course of the run.
    pub intervals: Vec<Interval>,
    /// The histograms behind the summaries, values in `hdr_value_unit`: base64 of compressed HdrHistogram V2, as other
    /// tools read it (Records of earlier versions hold it uncompressed). Where responses were of several status classes,
    /// each has one of its own, like `response_time_us.5xx`.
    pub hdr: BTreeMap<String, String>,
    /// The unit of the values inside `hdr`: nanoseconds.
    pub hdr_value_unit: String,
    /// What the load cost the host that made it.
    pub generator: Generator,
    /// What the monitor saw, if one was running.
    pub server: Option<Server>,
    /// The objectives that were given, and whether they were met. A load that was made in parts has those that it was merged
    /// with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Objective>,
    /// How [`Generator::max_rate`] was found, if this command found it.
    pub calibration: Option<ClientCalibration>,
    /// Which parts of a load this is, where it was made in parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardOrigin>,
    /// Everything that was seen of the calls, so that Records of shards can be merged exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<PackedAccount>,
}

/// One part of a load: what one process made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShardOrigin {
    /// Which part, from 1.
    pub index: u64,
    /// Of how many.
    pub of: u64,
    /// The host that made it.
    pub host: String,
    /// How long after the agreed instant it began, by its own host's clock; `None` where none was agreed.
    pub offset_us: Option<f64>,
    /// Seconds after the start at which its process was lost, if it was; nothing of it is known after that.
    pub lost_at_s: Option<f64>,
    /// How far its host's clock was ahead of the one by which the instant was agreed on (behind, if negative), where that was
    /// measured. It was taken off when the load began, and is not in `offset_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_us: Option<f64>,
    /// How far off that may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_us: Option<f64>,
    /// What speaks against this part by itself, once it is one of several. That of the whole need not show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// Whether a run can be trusted, and whether its server worked. The two are apart: an overload test that went well is a
/// valid measurement of a failing server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// True when there are no reasons against it: what was measured is the server, not the generator.
    pub valid: bool,
    /// Whether more calls failed than were completed, or none was completed; those that this host had no means for do not
    /// count, nor do the attempts that S-Clients abandon, which is how they overload a server. Absent where the verdict is not
    /// of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<bool>,
    /// The share of the scheduled calls that failed, however, or were refused by their answer: 5xx or 429, where the
    /// Workload expects no particular status. Absent where there was no call, and like `failing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_share: Option<f64>,
    /// The calls in `error_share` that are no failures: whole answers of 5xx or 429. Left out where there is none.
    #[serde(default, skip_serializing_if = "is_none_counted")]
    pub error_answers: u64,
    /// Why not valid.
    pub reasons: Vec<Reason>,
}

/// One reason not to trust a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// For scripts.
    pub code: ReasonCode,
    /// For people: what happened and what to do next.
    pub message: String,
}

/// The reasons a script can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// Calls began too long after they were due.
    GeneratorLate,
    /// The generator's threads had no time left.
    GeneratorCpu,
    /// The generator stood still for a part of the run.
    GeneratorStalled,
    /// A thread of the generator panicked, a defect of brimful: its part of the load ended then.
    GeneratorPanicked,
    /// The generator ran out of file descriptors.
    Descriptors,
    /// The generator ran out of local ports.
    Ports,
    /// The generator ran out of socket memory.
    Memory,
    /// A file with a request's body could not be read during the run.
    BodyFile,
    /// More was asked of the generator than it was found to be able to do.
    BeyondClientMax,
    /// A part of the load was lost, or began when others had long begun: not all of the load was there all the time.
    ShardLost,
    /// The calls do not add up: the generator counted one twice, or lost one.
    Unbalanced,
    /// The user ended the run early.
    Interrupted,
    /// The server stopped answering in the middle.
    ServerDied,
    /// Something else kept the server's CPUs busy.
    OtherWork,
    /// A survey could not be finished.
    Incomplete,
    /// So many calls of a survey's level failed that the rest says little about the server.
    ServerErrors,
    /// The server limits the rate of its clients (429), and a survey's calls were more than that.
    RateLimited,
    /// A CPU quota stopped the server's processes while a survey measured them.
    Throttled,
    /// The server became faster or slower in the course of a survey's calibration.
    ServerChanged,
    /// What a survey measured is far from what its model predicted. The measurements hold.
    ModelRefuted,
}

/// Rates per second over the offered window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Calls the schedule asked for.
    pub offered: f64,
    /// Calls of which a byte was sent.
    pub sent: f64,
    /// Connection attempts.
    pub connect_attempts: f64,
    /// Connections established.
    pub established: f64,
    /// TLS handshakes that succeeded; left out where there is none, as is the next.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handshakes: f64,
    /// Those of them that resumed an earlier session.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handshakes_resumed: f64,
    /// Whole responses received inside the window.
    pub completed: f64,
}

fn is_zero(rate: &f64) -> bool {
    *rate == 0.0
}

fn is_none_counted(count: &u64) -> bool {
    *count == 0
}

/// A distribution of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// Exact.
    pub mean: f64,
    /// Exact.
    pub min: f64,
    /// Median; this and the other quantiles are within 0.1 %.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Exact.
    pub max: f64,
    /// Standard deviation.
    pub stddev: f64,
}

/// Replies per second, one sample per five seconds of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyRate {
    /// How many whole samples.
    pub samples: u64,
    /// Lowest.
    pub min: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Highest.
    pub max: Option<f64>,
    /// Standard deviation; needs two samples.
    pub stddev: Option<f64>,
    /// Half width of the 95 % confidence interval of the mean (Student's t); needs two samples.
    pub ci95_half_width: Option<f64>,
}

/// One request class of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRecord {
    /// As in [`Record::counts`].
    pub counts: Counts,
    /// As in [`Record::response_time_us`].
    pub response_time_us: Option<Summary>,
    /// As in [`Record::service_time_us`].
    pub service_time_us: Option<Summary>,
    /// As in [`Record::first_byte_us`].
    pub first_byte_us: Option<Summary>,
    /// As in [`Record::lateness_us`].
    pub lateness_us: Option<Summary>,
    /// As in [`Record::bytes`].
    pub bytes: Option<Traffic>,
    /// As in [`Record::status_codes`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// As in [`Record::status_classes`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_classes: BTreeMap<String, StatusTimes>,
}

/// What became of the calls that went to one address of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddressRecord {
    /// The address and port, like `192.0.2.7:443`.
    pub address: String,
    /// Connections that were established.
    pub connections: u64,
    /// Calls that went there.
    pub calls: u64,
    /// The same, as a share of the calls of all addresses.
    pub share: f64,
    /// Calls that were completed.
    pub completed: u64,
    /// Calls that failed, those that found no connection among them.
    pub failed: u64,
    /// From due to the last byte.
    pub response_time_us: Option<Summary>,
}

/// What became of redirects, in a run that follows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Redirects {
    /// The calls that followed one, up to several after one another. They are in no other figure of the Record: neither
    /// in its counts and rates nor in its classes. Their response time is from when the first call was due.
    pub followed: ClassRecord,
    /// The redirects that none followed.
    pub not_followed: NotFollowed,
}

/// Redirects that were not followed, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotFollowed {
    /// They lead to another server, or to this one by another scheme or port.
    pub elsewhere: u64,
    /// They came after as many as are followed.
    pub too_many: u64,
    /// The content of the request would have had to be sent once more.
    pub content: u64,
    /// Where they lead was not said, or no URL.
    pub nowhere: u64,
}

/// What became of the sessions of a run. The distributions are of those that began within the run and completed in it,
/// and apart of those that failed: where sessions last long against the run, these are the shorter ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFigures {
    /// Sessions of which a call was made: `completed + failed + in_progress`.
    pub started: u64,
    /// Sessions whose last call was completed.
    pub completed: u64,
    /// Sessions that a failed call ended.
    pub failed: u64,
    /// Sessions that had not ended when the run did.
    pub in_progress: u64,
    /// Sessions that began, per second over [`Record::window_s`]; those under way when the run began among them.
    pub rate: f64,
    /// Calls of one session.
    pub calls: Option<SessionSummary>,
    /// Bursts of one session.
    pub bursts: Option<SessionSummary>,
    /// Seconds from a session's first due time to its last answer; none above an hour.
    pub lifetime_s: Option<SessionSummary>,
    /// Connections that were established for one session.
    pub connections: Option<SessionSummary>,
    /// Calls of one session that began within the run and failed, the failed ones among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_calls: Option<SessionSummary>,
    /// Bursts of such a session, the one that it failed in among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_bursts: Option<SessionSummary>,
    /// Seconds from such a session's first due time to the end of its last call; none above an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_lifetime_s: Option<SessionSummary>,
    /// Connections that were established for such a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_connections: Option<SessionSummary>,
}

/// How one figure differs from session to session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// Exact.
    pub mean: f64,
    /// Median; this and the other quantiles are within 0.1 %.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Exact.
    pub max: f64,
}

/// One stretch of the run; all stretches of a run are equally long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Its beginning, seconds after the start.
    pub t_s: f64,
    /// Its length.
    pub length_s: f64,
    /// Calls due in it.
    pub offered: u64,
    /// Calls first sent in it.
    pub sent: u64,
    /// Calls completed in it.
    pub completed: u64,
    /// Calls that failed in it.
    pub errors: u64,
    /// Median response time of those completed.
    pub p50_us: Option<f64>,
    /// 99th percentile of the same.
    pub p99_us: Option<f64>,
}

/// What the load cost the host that made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// CPU time, exact.
    pub cpu_s: Option<f64>,
    /// Of that, in user mode, as the kernel's ticks sampled it; `None` when they were too few to tell.
    pub cpu_user_s: Option<f64>,
    /// Of that, in the kernel, likewise.
    pub cpu_system_s: Option<f64>,
    /// Share of the threads' time in which they had work to do (waiting and spinning excluded): the busiest thread's.
    pub busy: f64,
    /// The longest that a thread was kept from its work: it neither waited nor got on with what was due, but was stopped or
    /// had no CPU.
    pub longest_gap_s: Option<f64>,
    /// Threads, one shard each.
    pub threads: u64,
    /// Most connections open at once, over all threads.
    pub max_open_connections: u64,
    /// Which I/O engine ran.
    pub engine: String,
    /// Calls began only once in so many seconds, and so up to that late, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_s: Option<f64>,
    /// The highest rate this client was found to offer without being the limit itself, if that was measured.
    pub max_rate: Option<f64>,
    /// What its host kept from it.
    #[serde(default)]
    pub host: HostContention,
    /// How fast its first CPU was right before the load began; of a load that was made in parts, the slowest part's. `None`
    /// in Records from before there was such a probe.
    #[serde(default)]
    pub host_probe: Option<HostProbe>,
    /// Messages of its threads that panicked. Their calls are counted up to then, and the other threads went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panics: Vec<String>,
    /// The first request body that could not be read from its file during the run, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_error: Option<String>,
}

/// What a host kept from the generator during the run, from its kernel's accounts. What the kernel does not say is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostContention {
    /// Time for which a thread was ready to run and something else had the CPU: the thread's that waited longest.
    pub cpu_wait_s: Option<f64>,
    /// Time for which a CPU quota of the generator's control group, or of one above it, stopped the group; summed over CPUs.
    pub throttled_s: Option<f64>,
    /// Share of the time of the generator's CPUs that the hypervisor gave to other guests.
    pub steal: Option<f64>,
}

/// What this client can offer: the largest load of which a server answers as much when it comes from one generator as when
/// it comes from two, half from each (Banga & Druschel 1997, §4.3). Loads and throughputs are calls per second, or connection
/// attempts per second for S-Clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCalibration {
    /// That load; `None` when the client was its own limit at every load tried.
    pub max_rate: Option<f64>,
    /// Whether the maximum may be higher: the built-in server that answered fell short before the client did.
    pub lower_bound: bool,
    /// Whether the second generator had to share CPUs with the first or with the server, for want of free ones. Its help is then
    /// smaller than another host's would be, and the client's own lateness and CPU time decide more.
    pub second_shares_cpus: bool,
    /// Every load tried, in increasing order; one that was tried again is there twice.
    pub curve: Vec<ClientLevel>,
}

impl ClientCalibration {
    /// Beyond which the client is the limit, where that was found: of a lower bound nobody knows.
    pub fn limit(&self) -> Option<f64> {
        self.max_rate.filter(|_| !self.lower_bound)
    }
}

/// One load of a [`ClientCalibration`]. Throughputs are means over short runs, made in pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientLevel {
    /// The load.
    pub load: f64,
    /// Pairs of runs: one with one generator, one with two.
    pub pairs: u64,
    /// Throughput with one generator.
    pub one: f64,
    /// Its standard deviation.
    pub one_stddev: Option<f64>,
    /// Throughput with two generators.
    pub two: f64,
    /// Its standard deviation.
    pub two_stddev: Option<f64>,
    /// Half width of the 95 % confidence interval of `two − one`, from the differences within pairs.
    pub difference_ci95_half_width: Option<f64>,
    /// Why the client was held to be the limit at this load; `None` where it was not.
    pub limited: Option<String>,
}

impl Verdict {
    /// A verdict from what speaks against the run.
    pub fn from_reasons(reasons: Vec<Reason>) -> Verdict {
        Verdict { valid: reasons.is_empty(), reasons, ..Verdict::default() }
    }
}

impl ShardOrigin {
    /// On how many hosts several parts were made, and how many seconds apart they began at most, with what is not known of
    /// two hosts' clocks. `None` where no start was agreed on.
    pub fn start_skew(shards: &[ShardOrigin]) -> Option<(usize, f64)> {
        let hosts: BTreeSet<&str> = shards.iter().map(|shard| shard.host.as_str()).collect();
        // One that was lost has not said.
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
        // From 35 to 95 µs, by a clock that may be 30 µs off.
        assert_eq!(skew(&[a.clone(), shard("b", Some(65.0), Some(30.0))]), Some((2, 75.0)));
        assert_eq!(skew(&[shard("a", Some(0.0), Some(9.0)), shard("b", Some(0.0), Some(30.0))]), Some((2, 39.0)));
        assert_eq!((skew(&[a]), skew(&[])), (None, None));
    }
}
