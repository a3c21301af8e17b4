//! The serialised form of an `Account`, which is everything that the shards of a run observed of its calls. A Record
//! contains it, so that Records of shards can be merged and derived again exactly.
//!
//! Histograms are base64 of compressed HdrHistogram V2. The uncompressed histograms of earlier versions are read as
//! well.

use crate::counts::{Counts, WireBytes};
use crate::http2::Http2Error;
use crate::tls::TlsFault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole Account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedAccount {
    /// Planned length of the offered window, in nanoseconds; `None` if it was not known before the run.
    pub window_ns: Option<u64>,
    /// The request classes, in the workload's order.
    pub classes: Vec<PackedClass>,
    /// Time from the start of a connection attempt to its establishment. This and all other times are `None` where
    /// nothing was timed.
    pub connect_time: Option<PackedTimes>,
    /// Time from the establishment of a connection to the end of its TLS handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_time: Option<PackedTimes>,
    /// Calls that failed because of TLS, by fault.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls_faults: BTreeMap<TlsFault, u64>,
    /// HTTP/2 error codes that the server sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http2_errors: Vec<Http2Error>,
    /// Counts and response times by server address, where the server has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<PackedClass>,
    /// Calls that were completed within the window.
    pub completed_in_window: u64,
    /// Calls that this host lacked the resources for.
    pub limited: Limited,
    /// Length of an interval in seconds, a power of two from 1/32 on.
    pub interval_s: f64,
    /// The intervals of the run, up to the last that has an event.
    pub intervals: Vec<PackedInterval>,
    /// Calls completed in each five seconds of the window, up to the last completed call.
    pub replies: Vec<u64>,
    /// Length of a batch in nanoseconds, a power of two.
    pub batch_ns: u64,
    /// Batches of response times, by the time at which their calls ended, up to the last batch that is not empty.
    pub batches: Vec<PackedBatch>,
    /// The sessions, if the workload has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<PackedSessions>,
    /// Outcomes of redirects, if the run follows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<PackedRedirects>,
}

/// Outcomes of redirects, as in `Redirects`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedRedirects {
    /// The calls that followed a redirect.
    pub followed: PackedClass,
    /// The redirects that were not followed.
    pub not_followed: NotFollowed,
}

/// Redirects that were not followed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotFollowed {
    /// The redirect leads to another server, or to this one by another scheme or port.
    pub elsewhere: u64,
    /// The limit of redirects in a row was reached.
    pub too_many: u64,
    /// Following the redirect would have required sending the request's content again.
    pub content: u64,
    /// The redirect names no target, or its target is not a URL.
    pub nowhere: u64,
}

/// Outcomes of the sessions of a run, as in `SessionFigures`. Distributions of counts are stored as if the counts were
/// nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedSessions {
    /// Sessions whose last call was completed.
    pub completed: u64,
    /// Sessions that a failed call ended.
    pub failed: u64,
    /// Sessions that had not ended when the run did.
    pub in_progress: u64,
    /// Calls of a session.
    pub calls: Option<PackedTimes>,
    /// Bursts of a session.
    pub bursts: Option<PackedTimes>,
    /// Time from the due time of a session's first call to its last answer.
    pub lifetime: Option<PackedTimes>,
    /// Connections that were established for a session.
    pub connections: Option<PackedTimes>,
    /// Calls of a failed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_calls: Option<PackedTimes>,
    /// Bursts of a failed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_bursts: Option<PackedTimes>,
    /// Time from the due time of a failed session's first call to the end of its last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_lifetime: Option<PackedTimes>,
    /// Connections that were established for a failed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_connections: Option<PackedTimes>,
}

/// Counts and times of the calls of one class, with the fields of `ClassRecord`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedClass {
    /// Name of the class.
    pub name: String,
    /// Calls by outcome.
    pub counts: Counts,
    /// Time from when a call was due to its last byte.
    pub response_time: Option<PackedTimes>,
    /// Time from the first byte sent to the last byte received.
    pub service_time: Option<PackedTimes>,
    /// Time from the first byte sent to the first byte received.
    pub first_byte: Option<PackedTimes>,
    /// Time from when a call was due to when the generator began it.
    pub lateness: Option<PackedTimes>,
    /// Bytes on the wire, including heads.
    pub bytes: WireBytes,
    /// Whole responses by status code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// `response_time` and `service_time` by status class, and the times of unexpected responses. Left out if all
    /// responses were expected and of one status class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_times: Vec<PackedStatusTimes>,
}

/// Times of the whole responses of one status class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedStatusTimes {
    /// `1xx`, `2xx`, `3xx`, `4xx` (all but 429), `429` or `5xx`.
    pub status: String,
    /// Whether these responses were expected: they are then completed calls, and their times are in the class's
    /// `response_time` as well.
    pub expected: bool,
    /// Time from when a call was due to its last byte.
    pub response_time: Option<PackedTimes>,
    /// Time from the first byte sent to the last byte received.
    pub service_time: Option<PackedTimes>,
}

/// A distribution of at least one time, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedTimes {
    /// Histogram from 1 ns to an hour, with three significant digits.
    pub histogram: String,
    /// Sum of the times.
    pub sum: Whole,
    /// Sum of the squares of the times.
    pub sum_of_squares: Whole,
    /// The shortest time.
    pub min: u64,
    /// The longest time.
    pub max: u64,
}

/// One interval of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedInterval {
    /// Calls due in the interval.
    pub offered: u64,
    /// Calls first sent in the interval.
    pub sent: u64,
    /// Calls completed in the interval.
    pub completed: u64,
    /// Calls that failed in the interval.
    pub errors: u64,
    /// Histogram of the response times of the completed calls, if there were any: from 1 µs to a minute, in
    /// microseconds, with two significant digits.
    pub response_us: Option<String>,
}

/// The response times of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedBatch {
    /// Number of response times.
    pub count: u64,
    /// Sum of the response times, in nanoseconds.
    pub sum: Whole,
}

/// Calls that the generator's host lacked the resources for, by resource. Their sum is `Counts::client_limited`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limited {
    /// Calls that got no file descriptor.
    pub descriptors: u64,
    /// Calls that got no local port.
    pub ports: u64,
    /// Calls that got no socket memory.
    pub memory: u64,
    /// Calls whose request body could not be read from its file.
    #[serde(default)]
    pub bodies: u64,
}

/// A whole number that may be too large for a JSON number; it is serialised as a string of decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Whole(pub u128);

impl From<Whole> for String {
    fn from(whole: Whole) -> String {
        whole.0.to_string()
    }
}

impl TryFrom<String> for Whole {
    type Error = std::num::ParseIntError;

    fn try_from(digits: String) -> Result<Whole, std::num::ParseIntError> {
        digits.parse().map(Whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_survives_json_and_others_are_refused() {
        let text = serde_json::to_string(&Whole(u128::MAX)).unwrap();
        assert_eq!(serde_json::from_str::<Whole>(&text).unwrap(), Whole(u128::MAX));
        for text in ["1", "\"\"", "\"-1\"", "\"1e3\"", "\"340282366920938463463374607431768211456\""] {
            assert!(serde_json::from_str::<Whole>(text).is_err(), "{text}");
        }
    }
}
