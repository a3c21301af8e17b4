//! An `Account`, all that the shards of a run saw of its calls, as its Record holds it: enough to have it back exactly,
//! so that Records of shards can be merged and derived anew. Histograms are base64 of compressed HdrHistogram V2; those of
//! earlier versions were not compressed, and are read as well.

use crate::counts::{Counts, Traffic};
use crate::http2::Http2Error;
use crate::record::NotFollowed;
use crate::tls::TlsFault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole Account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedAccount {
    /// For how long load was to be offered, in nanoseconds; `None` when that was not known beforehand.
    pub window_ns: Option<u64>,
    /// In the workload's order.
    pub classes: Vec<PackedClass>,
    /// From the start of an attempt to its establishment; `None` where there is none, like all times.
    pub connect_time: Option<PackedTimes>,
    /// From the establishment of a connection to the end of its TLS handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_time: Option<PackedTimes>,
    /// Calls that TLS failed, by why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls_faults: BTreeMap<TlsFault, u64>,
    /// The error codes that a server of HTTP/2 sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http2_errors: Vec<Http2Error>,
    /// Calls by the server's addresses, where these are told apart: their counts and response times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<PackedClass>,
    /// Calls that were completed within the window.
    pub completed_in_window: u64,
    /// What this host had no means for.
    pub limited: Limited,
    /// Length of an interval in seconds, a power of two from 1/32 on.
    pub interval_s: f64,
    /// The course of the run, up to its last event.
    pub intervals: Vec<PackedInterval>,
    /// Calls completed in each five seconds of the window, up to the last that has one.
    pub replies: Vec<u64>,
    /// Length of a batch in nanoseconds, a power of two.
    pub batch_ns: u64,
    /// Response times by when their calls ended, up to the last batch that has one.
    pub batches: Vec<PackedBatch>,
    /// Its sessions, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<PackedSessions>,
    /// What became of redirects, where they are followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<PackedRedirects>,
}

/// What became of redirects, as in `Redirects`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedRedirects {
    /// The calls that followed one.
    pub followed: PackedClass,
    /// The redirects that none followed.
    pub not_followed: NotFollowed,
}

/// What became of the sessions of a run, as in `SessionFigures`. Whole numbers are distributed as if they were
/// nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedSessions {
    /// Sessions whose last call was completed.
    pub completed: u64,
    /// Sessions that a failed call ended.
    pub failed: u64,
    /// Sessions that had not ended when the run did.
    pub in_progress: u64,
    /// Calls of one session.
    pub calls: Option<PackedTimes>,
    /// Bursts of one session.
    pub bursts: Option<PackedTimes>,
    /// From a session's first due time to its last answer.
    pub lifetime: Option<PackedTimes>,
    /// Connections that were established for one session.
    pub connections: Option<PackedTimes>,
    /// Calls of one session that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_calls: Option<PackedTimes>,
    /// Bursts of such a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_bursts: Option<PackedTimes>,
    /// From such a session's first due time to the end of its last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_lifetime: Option<PackedTimes>,
    /// Connections that were established for such a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_connections: Option<PackedTimes>,
}

/// What became of the calls of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedClass {
    /// The class.
    pub name: String,
    /// As in `ClassRecord`, as are the others.
    pub counts: Counts,
    /// From due to the last byte.
    pub response_time: Option<PackedTimes>,
    /// From the first byte sent to the last byte received.
    pub service_time: Option<PackedTimes>,
    /// From the first byte sent to the first byte received.
    pub first_byte: Option<PackedTimes>,
    /// From due to the moment the generator acted.
    pub lateness: Option<PackedTimes>,
    /// Bytes on the wire, heads included.
    pub bytes: Traffic,
    /// Whole responses by status code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<String, u64>,
    /// `response_time` and `service_time` by status class, and the times of unexpected responses. Left out where all
    /// responses were expected and of one class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_times: Vec<PackedStatusTimes>,
}

/// Times of the whole responses of one status class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedStatusTimes {
    /// `1xx`, `2xx`, `3xx`, `4xx` (all but 429), `429` or `5xx`.
    pub status: String,
    /// Whether they are completed calls, and in `response_time`; false for unexpected responses.
    pub expected: bool,
    /// As in `PackedClass`.
    pub response_time: Option<PackedTimes>,
    /// As in `PackedClass`.
    pub service_time: Option<PackedTimes>,
}

/// A distribution of at least one time, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedTimes {
    /// From 1 ns to an hour, three digits.
    pub histogram: String,
    /// Of all times.
    pub sum: Whole,
    /// Of the squares of all times.
    pub sum_of_squares: Whole,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
}

/// One interval of the course of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedInterval {
    /// Calls due in it.
    pub offered: u64,
    /// Calls first sent in it.
    pub sent: u64,
    /// Calls completed in it.
    pub completed: u64,
    /// Calls that failed in it.
    pub errors: u64,
    /// Response times of those completed, if there were any: in microseconds, from 1 to a minute, two digits.
    pub response_us: Option<String>,
}

/// The response times of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackedBatch {
    /// How many.
    pub count: u64,
    /// In nanoseconds.
    pub sum: Whole,
}

/// Calls that the generator's host had no means for, by what was lacking. Together they are `Counts::client_limited`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limited {
    /// For want of a file descriptor.
    pub descriptors: u64,
    /// For want of a local port.
    pub ports: u64,
    /// For want of socket memory.
    pub memory: u64,
    /// The file with the request's body could not be read.
    #[serde(default)]
    pub bodies: u64,
}

/// A whole number that may be too large for a number of JSON: its decimal digits in a string.
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
