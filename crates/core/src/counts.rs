//! Numbers of calls and responses of a run, by outcome.

use crate::JsonSchema;
use crate::number::is_default;
use serde::{Deserialize, Serialize};

/// Number of calls by outcome. Two conservation laws apply:
///
/// `scheduled = sent + client_limited + abandoned + refused + reset_before_sending + tls_failed_before_sending +
/// unsent_at_end`
///
/// `sent = completed + unexpected + timed_out + (reset − reset_before_sending) + malformed + stream_reset + gone_away +
/// (tls_failed − tls_failed_before_sending) + in_flight_at_end`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Number of calls that became due according to the workload's schedule.
    pub scheduled: u64,
    /// Number of calls of which at least one byte was sent.
    pub sent: u64,
    /// Number of connection attempts.
    pub connect_attempts: u64,
    /// Number of connections that were established.
    pub established: u64,
    /// Complete responses that meet the workload's expectations. If the workload has no expectations, all complete
    /// responses are counted here.
    pub completed: u64,
    /// Complete responses that violate the workload's expectations. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unexpected: u64,
    /// Connection attempts abandoned after the connect timeout.
    pub abandoned: u64,
    /// Connection attempts that were refused.
    pub refused: u64,
    /// Calls whose connection was closed or reset before the response was complete.
    pub reset: u64,
    /// Part of `reset`: calls of which no byte had been sent.
    pub reset_before_sending: u64,
    /// Part of `reset`: calls on a reused or idle connection that was closed before any byte of the response arrived.
    /// Usually, the server closed the idle connection while the request was in transit. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed_on_reuse: u64,
    /// Number of calls that were retried because the server had closed a reused connection (`--retry-closed`). A call
    /// whose retry was answered does not count as `reset`. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retried_closed: u64,
    /// Calls without a complete response within the response timeout.
    pub timed_out: u64,
    /// Calls whose response violates the syntax of HTTP.
    pub malformed: u64,
    /// HTTP/2: calls whose streams the server reset (RST_STREAM). Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stream_reset: u64,
    /// HTTP/2: calls that the server did not process before it closed the connection (GOAWAY). Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gone_away: u64,
    /// HTTP/2: number of retries after the server refused a stream (REFUSED_STREAM, GOAWAY). A call whose retry was
    /// answered counts neither as `stream_reset` nor as `gone_away`. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refused_streams: u64,
    /// Calls whose TLS handshake failed, or whose TLS stream violated the protocol. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls_failed: u64,
    /// Part of `tls_failed`: calls of which no byte had been sent. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls_failed_before_sending: u64,
    /// Number of successful TLS handshakes. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handshakes: u64,
    /// Part of `handshakes`: handshakes that resumed an earlier TLS session. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handshakes_resumed: u64,
    /// Calls that failed because the generator's host had no file descriptor, port or memory, or could not
    /// read the request body.
    pub client_limited: u64,
    /// Calls that had been sent and were unanswered when the run ended.
    pub in_flight_at_end: u64,
    /// Calls that were due but not yet sent when the run ended.
    pub unsent_at_end: u64,
    /// Number of empty lines before complete responses, where HTTP allows none. They appear if a server ends a body
    /// with a line break that the `Content-Length` does not include. The generator skips these lines. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub empty_lines: u64,
    /// Complete responses by status class, including unexpected ones.
    pub status: StatusCounts,
}

/// Number of complete responses by status class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusCounts {
    /// Responses with status 101, which switches the protocol; the connection is not used for further calls. Other
    /// informational responses are not counted. Left out if zero.
    #[serde(rename = "1xx", default, skip_serializing_if = "is_default")]
    pub s1xx: u64,
    /// Responses that report success (status 200 to 299).
    #[serde(rename = "2xx")]
    pub s2xx: u64,
    /// Redirects (status 300 to 399).
    #[serde(rename = "3xx")]
    pub s3xx: u64,
    /// Responses that report an error of the client (status 400 to 499).
    #[serde(rename = "4xx")]
    pub s4xx: u64,
    /// Part of `4xx`: responses with status 429, "too many requests", by which a server limits the rate of its clients.
    /// Left out if zero.
    #[serde(rename = "429", default, skip_serializing_if = "is_default")]
    pub s429: u64,
    /// Responses that report an error of the server (status 500 to 599), and responses with an invalid status of 600 or
    /// more (RFC 9110 §15).
    #[serde(rename = "5xx")]
    pub s5xx: u64,
}

/// Number of bytes sent and received, including the heads of requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireBytes {
    /// Number of bytes received in responses.
    pub received: u64,
    /// Number of bytes sent in requests.
    pub sent: u64,
}

impl Counts {
    /// The errors of the two conservation laws of [`Counts`]: `scheduled` minus the sum of its outcomes, and `sent`
    /// minus the sum of its outcomes. Both are zero unless a call was lost or counted twice.
    pub fn imbalance(&self) -> (i64, i64) {
        let residual = |total: u64, outcomes: &[u64]| total as i64 - outcomes.iter().sum::<u64>() as i64;
        let outcomes_of_scheduled = [
            self.sent,
            self.client_limited,
            self.abandoned,
            self.refused,
            self.reset_before_sending,
            self.tls_failed_before_sending,
            self.unsent_at_end,
        ];
        let reset_after = self.reset.saturating_sub(self.reset_before_sending);
        let tls_failed_after = self.tls_failed.saturating_sub(self.tls_failed_before_sending);
        let outcomes_of_sent = [
            self.completed,
            self.unexpected,
            self.timed_out,
            reset_after,
            self.malformed,
            self.stream_reset,
            self.gone_away,
            tls_failed_after,
            self.in_flight_at_end,
        ];
        (residual(self.scheduled, &outcomes_of_scheduled), residual(self.sent, &outcomes_of_sent))
    }

    /// Number of calls that failed, except calls that were unfinished when the run ended.
    pub fn errors(&self) -> u64 {
        let before_sending = self.abandoned + self.refused + self.client_limited;
        let http2 = self.stream_reset + self.gone_away;
        before_sending + self.reset + self.timed_out + self.malformed + self.unexpected + http2 + self.tls_failed
    }

    /// Number of errors divided by the number of scheduled calls; `None` if no call was scheduled.
    pub fn error_share(&self) -> Option<f64> {
        self.share_of_calls(self.errors())
    }

    /// `calls` divided by the number of scheduled calls; `None` if no call was scheduled.
    pub fn share_of_calls(&self, calls: u64) -> Option<f64> {
        (self.scheduled > 0).then(|| calls as f64 / self.scheduled as f64)
    }
}
