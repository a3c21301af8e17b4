//! What became of the calls of a run, in whole numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of every call. `scheduled = sent + client_limited + abandoned + refused + reset_before_sending +
/// tls_failed_before_sending + unsent_at_end`, and `sent = completed + unexpected + timed_out + (reset −
/// reset_before_sending) + malformed + stream_reset + gone_away + (tls_failed − tls_failed_before_sending) +
/// in_flight_at_end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Calls the schedule brought.
    pub scheduled: u64,
    /// Calls of which a byte was sent.
    pub sent: u64,
    /// Connection attempts.
    pub connect_attempts: u64,
    /// Connections established.
    pub established: u64,
    /// Whole responses that are as expected, where something is.
    pub completed: u64,
    /// Whole responses that are not what was expected. Left out where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unexpected: u64,
    /// Attempts given up after the connect timeout.
    pub abandoned: u64,
    /// Attempts refused.
    pub refused: u64,
    /// Connections closed or reset before the response was whole.
    pub reset: u64,
    /// Those of `reset` that happened before anything was sent.
    pub reset_before_sending: u64,
    /// Those of `reset` that came before any byte of the response, on a connection that had answered before or had been
    /// idle: as a rule, the server had closed it while the request was on its way. Left out where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub closed_on_reuse: u64,
    /// Times that a call was sent again because it had met such a connection (`--retry-closed`); a call that was
    /// answered then is no `reset`. Left out where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retried_closed: u64,
    /// Calls without a whole response within the response timeout.
    pub timed_out: u64,
    /// Responses that are not HTTP.
    pub malformed: u64,
    /// HTTP/2: calls whose streams the server gave up (RST_STREAM). This and the next are left out where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stream_reset: u64,
    /// HTTP/2: calls that a server that goes away has not looked at (GOAWAY).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone_away: u64,
    /// HTTP/2: times that a call was sent again because the server had refused its stream (REFUSED_STREAM, GOAWAY); a
    /// call that was answered then is neither of the two before. Left out where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_streams: u64,
    /// Calls whose TLS handshake failed, or whose TLS stream broke its rules. This and the next three are left out
    /// where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tls_failed: u64,
    /// Those of `tls_failed` that happened before anything was sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tls_failed_before_sending: u64,
    /// TLS handshakes that succeeded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handshakes: u64,
    /// Those of `handshakes` that resumed an earlier session.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handshakes_resumed: u64,
    /// Calls that this host had no descriptor, port or memory for, or whose body it could not read.
    pub client_limited: u64,
    /// Calls in flight when the run ended.
    pub in_flight_at_end: u64,
    /// Calls not yet sent when the run ended.
    pub unsent_at_end: u64,
    /// Empty lines before whole responses, where none belongs: a server that ends a body with a line break which its
    /// length does not count. They are skipped. Left out where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub empty_lines: u64,
    /// Whole responses by status class, unexpected ones among them.
    pub status: StatusCounts,
}

/// Whole responses by status class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusCounts {
    /// The protocol was switched (101), which spends the connection. Other informational responses are passed over. Left
    /// out where there is none.
    #[serde(rename = "1xx", default, skip_serializing_if = "is_zero")]
    pub s1xx: u64,
    /// Success.
    #[serde(rename = "2xx")]
    pub s2xx: u64,
    /// Redirection.
    #[serde(rename = "3xx")]
    pub s3xx: u64,
    /// The client's error.
    #[serde(rename = "4xx")]
    pub s4xx: u64,
    /// Of those, "too many requests": the server limits the rate of its clients. Left out where there is none.
    #[serde(rename = "429", default, skip_serializing_if = "is_zero")]
    pub s429: u64,
    /// The server's error; invalid codes from 600 on are taken for such (RFC 9110 §15).
    #[serde(rename = "5xx")]
    pub s5xx: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Of responses.
    pub received: u64,
    /// Of requests.
    pub sent: u64,
}

impl Counts {
    /// What the two conservation laws leave over: `scheduled` less what became of it, and `sent` less what became of that.
    /// Both are zero in every whole account.
    pub fn imbalance(&self) -> (i64, i64) {
        let balance = |whole: u64, parts: &[u64]| whole as i64 - parts.iter().sum::<u64>() as i64;
        let before_sending = [
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
        let after_sending = [
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
        (balance(self.scheduled, &before_sending), balance(self.sent, &after_sending))
    }

    /// Calls that failed for a reason other than the end of the run.
    pub fn errors(&self) -> u64 {
        let of_http2 = self.stream_reset + self.gone_away;
        let answers = self.reset + self.timed_out + self.malformed + self.unexpected + of_http2 + self.tls_failed;
        self.abandoned + self.refused + answers + self.client_limited
    }

    /// The share of the scheduled calls that these are; `None` when there was no call.
    pub fn error_share(&self) -> Option<f64> {
        self.share_of_calls(self.errors())
    }

    /// This number over that of the scheduled calls; `None` when there was no call.
    pub fn share_of_calls(&self, calls: u64) -> Option<f64> {
        (self.scheduled > 0).then(|| calls as f64 / self.scheduled as f64)
    }
}
