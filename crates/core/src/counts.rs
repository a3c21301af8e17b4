//! Calls and responses of a run, counted by outcome.

use crate::number::is_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Calls by outcome. `scheduled = sent + client_limited + abandoned + refused + reset_before_sending +
/// tls_failed_before_sending + unsent_at_end`, and `sent = completed + unexpected + timed_out + (reset −
/// reset_before_sending) + malformed + stream_reset + gone_away + (tls_failed − tls_failed_before_sending) +
/// in_flight_at_end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Number of calls that the schedule made due.
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
    /// Part of `reset`: calls that ended before any byte of the response, on a connection that had been used or idle
    /// before. Usually, the server closed the connection while the request was on its way. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed_on_reuse: u64,
    /// Number of retries of calls that ended as in `closed_on_reuse` (`--retry-closed`). A call whose retry was
    /// answered does not count as `reset`. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retried_closed: u64,
    /// Calls without a complete response within the response timeout.
    pub timed_out: u64,
    /// Responses that are not HTTP.
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
    /// TLS handshakes that succeeded. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handshakes: u64,
    /// Part of `handshakes`: handshakes that resumed an earlier TLS session. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handshakes_resumed: u64,
    /// Calls for which the generator's host had no file descriptor, port or memory, or could not read the request body.
    pub client_limited: u64,
    /// Calls in flight when the run ended.
    pub in_flight_at_end: u64,
    /// Calls not yet sent when the run ended.
    pub unsent_at_end: u64,
    /// Number of empty lines before complete responses, where HTTP allows none: the server ends a body with a line
    /// break that the body's length does not include. The generator skips these lines. Left out if zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub empty_lines: u64,
    /// Complete responses by status class, including unexpected ones.
    pub status: StatusCounts,
}

/// Complete responses by status class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusCounts {
    /// Responses that switch the protocol (101), after which the connection carries no more calls. Other informational
    /// responses are not counted. Left out if zero.
    #[serde(rename = "1xx", default, skip_serializing_if = "is_default")]
    pub s1xx: u64,
    /// Responses that report success.
    #[serde(rename = "2xx")]
    pub s2xx: u64,
    /// Responses that redirect the client.
    #[serde(rename = "3xx")]
    pub s3xx: u64,
    /// Responses that report an error of the client.
    #[serde(rename = "4xx")]
    pub s4xx: u64,
    /// Part of `4xx`: responses with status 429, "too many requests": the server limits the rate of its clients. Left
    /// out if zero.
    #[serde(rename = "429", default, skip_serializing_if = "is_default")]
    pub s429: u64,
    /// Responses that report an error of the server, including invalid codes from 600 on (RFC 9110 §15).
    #[serde(rename = "5xx")]
    pub s5xx: u64,
}

/// Bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireBytes {
    /// Number of bytes of responses.
    pub received: u64,
    /// Number of bytes of requests.
    pub sent: u64,
}

impl Counts {
    /// The residuals of the two conservation laws: `scheduled` minus its outcomes, and `sent` minus its outcomes. Both
    /// are zero if no call was lost or counted twice.
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

    /// Calls that failed for a reason other than the end of the run.
    pub fn errors(&self) -> u64 {
        let before_sending = self.abandoned + self.refused + self.client_limited;
        let http2 = self.stream_reset + self.gone_away;
        before_sending + self.reset + self.timed_out + self.malformed + self.unexpected + http2 + self.tls_failed
    }

    /// Errors as a share of the scheduled calls; `None` if no call was scheduled.
    pub fn error_share(&self) -> Option<f64> {
        self.share_of_calls(self.errors())
    }

    /// `calls` as a share of the scheduled calls; `None` if no call was scheduled.
    pub fn share_of_calls(&self, calls: u64) -> Option<f64> {
        (self.scheduled > 0).then(|| calls as f64 / self.scheduled as f64)
    }
}
