//! The serialised form of an `Account`: the counts and histograms of all calls of a run. A Record (the document of a
//! run's results) contains its account, so that Records of several shards can be merged without loss.
//!
//! Histograms are base64 of compressed HdrHistogram V2. Uncompressed histograms of older Records can also be read.

use crate::JsonSchema;
use crate::counts::{Counts, WireBytes};
use crate::http2::Http2Error;
use crate::number::is_default;
use crate::tls::TlsFault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of equal parts into which the measurement window is divided, to count the completed calls of each part.
pub const WINDOW_PARTS: usize = 4096;

/// The serialised form of an `Account`: the counts and histograms of all calls of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedAccount {
    /// Planned length of the window in which load is offered, in nanoseconds; `None` if the length was not known before
    /// the run.
    pub window_ns: Option<u64>,
    /// Results of each request class, in the workload's order.
    pub classes: Vec<PackedClass>,
    /// Time from the start of a connection attempt to the established connection; `None` if no connection was
    /// established. Every distribution in this document is `None` if it has no values.
    pub connect_time: Option<PackedTimes>,
    /// Time from the established connection to the end of its TLS handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_time: Option<PackedTimes>,
    /// Time from the start of a connection attempt to the close of the connection. Only connections with at least one
    /// complete response are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_lifetime: Option<PackedTimes>,
    /// Number of complete responses on the connections of `connection_lifetime`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub responses_on_closed: u64,
    /// Number of calls that failed because of TLS, by kind of failure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls_faults: BTreeMap<TlsFault, u64>,
    /// HTTP/2 error codes that the server sent, with their counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http2_errors: Vec<Http2Error>,
    /// Counts and response times of each address of the server, if the server has several addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<PackedClass>,
    /// Number of calls that were completed within the window in which load was offered.
    pub completed_in_window: u64,
    /// Number of calls that failed because the generator's host lacked a resource, by resource.
    pub limited: HostLimitedCalls,
    /// Length of each of the `intervals` in seconds: a power of two, at least 1/32.
    pub interval_s: f64,
    /// The time series of the run: one element per interval, up to the last interval with an event.
    pub intervals: Vec<PackedInterval>,
    /// Number of calls completed in each successive period of five seconds within the window in which load was offered,
    /// up to the last completed call.
    pub replies: Vec<u64>,
    /// Number of calls completed in each of 4096 equal parts of the window in which load was offered, up to the last
    /// completed call. Only runs with the shortest possible intervals (1/32 s) have these counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completed_by_part: Vec<u32>,
    /// Length of each of the `batches` in nanoseconds: a power of two.
    pub batch_ns: u64,
    /// Sums of response times for the method of batch means, which yields the confidence interval of the mean response
    /// time. Calls are assigned to batches by the time at which they ended. The list ends with the last non-empty
    /// batch.
    pub batches: Vec<PackedBatch>,
    /// Outcomes of the sessions, if the workload has sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<PackedSessions>,
    /// Outcomes of redirects, if the run follows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<PackedRedirects>,
}

/// The serialised outcomes of redirects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedRedirects {
    /// Counts and times of the calls that followed a redirect.
    pub followed: PackedClass,
    /// Number of redirects that were not followed, by reason.
    pub not_followed: NotFollowed,
}

/// Number of redirects that were not followed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotFollowed {
    /// Number of redirects that lead to another server, or to another scheme or port of this server.
    #[serde(rename = "elsewhere")]
    pub other_server: u64,
    /// Number of redirects that were received after the limit of successive redirects was reached.
    pub too_many: u64,
    /// Number of redirects that would require sending the request body again.
    #[serde(rename = "content")]
    pub needs_body: u64,
    /// Number of redirects without a `Location` field, or with a field that is not a URL.
    #[serde(rename = "nowhere")]
    pub invalid_location: u64,
}

/// The serialised outcomes of the sessions of a run. Distributions of counts are stored as distributions of times: a
/// count of 3 is stored as 3 ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedSessions {
    /// Number of sessions whose last call was completed.
    pub completed: u64,
    /// Number of sessions that a failed call ended.
    pub failed: u64,
    /// Number of sessions that were still in progress when the run ended.
    pub in_progress: u64,
    /// Distribution of the number of calls in a completed session.
    pub calls: Option<PackedTimes>,
    /// Distribution of the number of bursts (groups of calls, like a page with its images) in a completed session.
    pub bursts: Option<PackedTimes>,
    /// Time from when the first call of a completed session was due to the session's last response.
    pub lifetime: Option<PackedTimes>,
    /// Distribution of the number of connections that were established for a completed session.
    pub connections: Option<PackedTimes>,
    /// Distribution of the number of calls in a failed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_calls: Option<PackedTimes>,
    /// Distribution of the number of bursts (groups of calls, like a page with its images) in a failed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_bursts: Option<PackedTimes>,
    /// Time from when the first call of a failed session was due to the end of the session's last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_lifetime: Option<PackedTimes>,
    /// Distribution of the number of connections that were established for a failed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_connections: Option<PackedTimes>,
}

/// The serialised counts and times of the calls of one request class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedClass {
    /// Name of the request class, or the address of the server.
    pub name: String,
    /// Number of calls of the class by outcome.
    pub counts: Counts,
    /// Time from when a call was due to the last byte of its response.
    pub response_time: Option<PackedTimes>,
    /// Time from the first byte sent to the last byte received.
    pub service_time: Option<PackedTimes>,
    /// Time from the first byte sent to the first byte received.
    pub first_byte: Option<PackedTimes>,
    /// Delay of calls by the generator: time from when a call was due to when the generator began it.
    pub lateness: Option<PackedTimes>,
    /// Number of bytes sent and received, including the heads of requests and responses.
    pub bytes: WireBytes,
    /// Number of complete responses by status code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// Times of responses by status class, and times of unexpected responses. Left out if all responses were expected
    /// and have the same status class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_times: Vec<PackedStatusTimes>,
}

/// Times of the complete responses of one status class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedStatusTimes {
    /// Status class: `1xx`, `2xx`, `3xx`, `4xx` (all but 429), `429` or `5xx`.
    pub status: String,
    /// Whether the workload expects these responses. Expected responses are completed calls, and their times are also
    /// included in the `response_time` and `service_time` of the class.
    pub expected: bool,
    /// Time from when a call was due to the last byte of its response.
    pub response_time: Option<PackedTimes>,
    /// Time from the first byte sent to the last byte received.
    pub service_time: Option<PackedTimes>,
}

/// The serialised form of a distribution of times in nanoseconds, with at least one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedTimes {
    /// Histogram from 1 ns to an hour, with three significant digits, in base64.
    pub histogram: String,
    /// Sum of all times of the distribution, in nanoseconds.
    pub sum: DecimalInteger,
    /// Sum of the squares of the times.
    pub sum_of_squares: DecimalInteger,
    /// The shortest time of the distribution, in nanoseconds.
    pub min: u64,
    /// The longest time of the distribution, in nanoseconds.
    pub max: u64,
}

/// Counts and response times of one interval of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedInterval {
    /// Number of calls that were due in the interval.
    pub offered: u64,
    /// Number of calls whose first byte was sent in the interval.
    pub sent: u64,
    /// Number of calls completed in the interval.
    pub completed: u64,
    /// Number of calls that failed in the interval.
    pub errors: u64,
    /// Histogram of the response times of the completed calls in microseconds, from 1 µs to a minute, with two
    /// significant digits. `None` if no call was completed.
    pub response_us: Option<String>,
}

/// Number and sum of the response times of the calls that ended in one batch: a period of [`PackedAccount::batch_ns`]
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedBatch {
    /// Number of response times in the batch.
    pub count: u64,
    /// Sum of the response times, in nanoseconds.
    pub sum: DecimalInteger,
}

/// Number of calls that failed because the generator's host lacked a resource, by resource. Their sum is
/// `Counts::client_limited`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Limited")]
pub struct HostLimitedCalls {
    /// Number of calls that failed because no file descriptor was available (`EMFILE`, `ENFILE`).
    pub descriptors: u64,
    /// Number of calls that failed because no local port was available (`EADDRNOTAVAIL`, `EADDRINUSE`).
    pub ports: u64,
    /// Number of calls that failed because no socket memory was available (`ENOBUFS`, `ENOMEM`).
    pub memory: u64,
    /// Number of calls that failed because the request body could not be read from its file.
    #[serde(default)]
    pub bodies: u64,
}

/// An integer that may be too large for a JSON number. It is serialised as a string of decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", rename = "Whole")]
pub struct DecimalInteger(pub u128);

impl From<DecimalInteger> for String {
    fn from(whole: DecimalInteger) -> String {
        whole.0.to_string()
    }
}

impl TryFrom<String> for DecimalInteger {
    type Error = std::num::ParseIntError;

    fn try_from(digits: String) -> Result<DecimalInteger, std::num::ParseIntError> {
        digits.parse().map(DecimalInteger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_survives_json_and_others_are_refused() {
        let text = serde_json::to_string(&DecimalInteger(u128::MAX)).unwrap();
        assert_eq!(serde_json::from_str::<DecimalInteger>(&text).unwrap(), DecimalInteger(u128::MAX));
        for text in ["1", "\"\"", "\"-1\"", "\"1e3\"", "\"340282366920938463463374607431768211456\""] {
            assert!(serde_json::from_str::<DecimalInteger>(text).is_err(), "{text}");
        }
    }
}
