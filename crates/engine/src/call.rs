//! One call under way: its specification, the request that was sent and the response that was received. This module
//! also decides whether the call is sent again; its due time does not change then. A call may be sent again if the
//! HTTP/2 server has refused its stream, or if the server had closed the idle connection before the request arrived.
//!
//! - A refused stream (`REFUSED_STREAM`, or a GOAWAY whose last stream is an earlier one) has not been processed, so
//!   any request may be sent again (RFC 9113 §8.7).
//! - It is unknown whether a request on a closed connection was processed. With `--retry-closed`, the request is sent
//!   again as browsers do, whatever its method, provided that the connection had carried a response or was opened
//!   before the run, and that no byte of the response arrived.
//! - Each call is sent again a limited number of times, so that it ends even if the server refuses every request.
//! - A call that waits to be sent again has not ended. The shard begins it before all other calls.

use crate::expected::Digest;
use crate::{ConnectionPolicy, Redirect};
use brimful_core::{CallSpec, End, Nanos, OptionalNanos};

/// Maximum number of times that a call is sent again after the server refused its stream.
const MAX_REFUSALS: u8 = 3;
/// Maximum number of times that a call is sent again after its connection was closed.
const MAX_CLOSES: u8 = 2;

/// A call under way, with the data that the observer keeps for the call.
#[derive(Debug)]
pub struct Call<P> {
    /// The call's request class, request and session, as the workload specified them.
    pub spec: CallSpec,
    /// The time at which the workload scheduled the call. The latency is measured from this time.
    pub due: Nanos,
    /// The data that the observer keeps for the call until it ends.
    pub observer_data: P,
    /// A number that distinguishes the call from all other calls of its connection; see
    /// [`Connection::is_awaiting_response`].
    ///
    /// [`Connection::is_awaiting_response`]: crate::connection::Connection::is_awaiting_response
    pub stamp: u32,
    /// Whether the connection ends after this call.
    pub is_last: bool,
    /// Time at which the request was passed to the I/O layer; unset before that.
    pub sent_at: OptionalNanos,
    /// Length of the request in bytes; zero until the request is sent.
    pub request_bytes: usize,
    /// Whether the request's method is HEAD; false until the request is sent.
    pub is_head: bool,
    /// The time at which the first byte of the response was read.
    pub first_byte_at: OptionalNanos,
    /// Number of response bytes read so far.
    pub response_bytes: u64,
    /// Digest of the response's content so far; `None` if the workload does not check the content.
    pub digest: Option<Box<Digest>>,
    /// The redirect in the response, and whether it is followed. `None` unless the run follows redirects.
    pub redirect: Option<Box<Redirect>>,
    /// Number and effects of the earlier attempts to send this call.
    pub earlier: EarlierAttempts,
}

/// Number and effects of the earlier attempts to send a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlierAttempts {
    /// Number of earlier attempts.
    pub attempts: u8,
    /// Whether the call was moved to another connection, because its first connection had no free HTTP/2 stream.
    pub was_moved: bool,
    /// Whether the call must be sent on a new connection.
    pub needs_new_connection: bool,
    /// Number of request bytes sent by earlier attempts.
    pub bytes_sent: u64,
}

impl<P> Call<P> {
    /// A call that has not been sent.
    #[inline]
    pub fn new(spec: CallSpec, due: Nanos, stamp: u32, observer_data: P) -> Call<P> {
        Call {
            spec,
            due,
            observer_data,
            stamp,
            is_last: false,
            sent_at: OptionalNanos::NONE,
            request_bytes: 0,
            is_head: false,
            first_byte_at: OptionalNanos::NONE,
            response_bytes: 0,
            digest: None,
            redirect: None,
            earlier: EarlierAttempts::default(),
        }
    }

    /// Whether to send the call again after its connection has closed. `end` is the outcome of the latest attempt.
    pub fn may_retry_after_close(&self, end: End, policy: &ConnectionPolicy) -> bool {
        policy.retry_closed && self.earlier.attempts < MAX_CLOSES && matches!(end, End::ClosedOnReuse { .. })
    }

    /// Whether to send a call again although the server refused its stream. The server has not processed such a call.
    pub fn may_retry_unprocessed(&self, policy: &ConnectionPolicy) -> bool {
        policy.retry_refused && self.earlier.attempts < MAX_REFUSALS
    }
}
