//! Calls that are sent again, with their due times kept: those whose streams a server of HTTP/2 refused, and those that
//! met a connection which the server had closed while it was idle.
//!
//! - A refused stream (`REFUSED_STREAM`, or a GOAWAY that leaves it out) has not been processed, so any request may be
//!   sent again (RFC 9113 §8.7).
//! - Whether a request on a closed connection was processed is not known. With `--retry-closed` it is sent again as
//!   browsers do, whatever its method: the connection had answered before or been idle, and no byte of the response
//!   came.
//! - Each call is sent again a bounded number of times, so that a server that refuses everything ends it.
//! - A call that waits to be sent again has not ended. The shard begins it before all others.

use crate::Requests;
use crate::connection::Call;
use crate::io::Io;
use crate::shard::Shard;
use brimful_core::{End, Event, Nanos, Observer, Retry, Workload};

/// Times that one call is sent again after its stream was refused.
const MAX_REFUSALS: u8 = 3;
/// Times that one call is sent again after its connection was closed.
const MAX_CLOSES: u8 = 2;

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Ends a call whose connection is gone, or has it sent again.
    pub(crate) fn end_or_retry(&mut self, mut call: Call<O::PerCall>, end: End, bytes_sent: u64) {
        let policy = &self.config.connections;
        let may_retry = policy.retry_closed && call.earlier.tries < MAX_CLOSES && self.may_be_elsewhere(&call);
        if may_retry && matches!(end, End::ClosedOnReuse { .. }) {
            // The others that are open may have been closed as well.
            call.earlier.wants_fresh = policy.pipeline == 1;
            self.send_again(call, Retry::ClosedOnReuse, bytes_sent);
        } else {
            self.end(&mut call, end, bytes_sent);
        }
    }

    /// Sends a call again whose stream was refused, or ends it.
    pub(crate) fn retry_refused(&mut self, mut call: Call<O::PerCall>, end: End, bytes_sent: u64) {
        if self.config.connections.retry_refused && call.earlier.tries < MAX_REFUSALS && self.may_be_elsewhere(&call) {
            self.send_again(call, Retry::RefusedStream, bytes_sent);
        } else {
            self.end(&mut call, end, bytes_sent);
        }
    }

    /// Gives a call that has not been sent to another connection, or ends it.
    pub(crate) fn move_elsewhere(&mut self, mut call: Call<O::PerCall>, end: End) {
        if self.config.connections.retry_refused && call.earlier.tries < MAX_REFUSALS && self.may_be_elsewhere(&call) {
            call.earlier.tries += 1;
            self.begin_again(call);
        } else {
            self.end(&mut call, end, 0);
        }
    }

    /// Moves calls that wait for a stream beyond those that the server allows to other connections.
    pub(crate) fn move_surplus(&mut self, slot: u32) {
        let most = self.config.connections.max_per_shard;
        if most.is_some_and(|most| self.connections.open() >= most) {
            return;
        }
        let mut surplus = Vec::new();
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(limit) = connection.protocol.http2().and_then(|http2| http2.max_streams()) else { return };
        // One call waits, so that no server has connections opened without end.
        while connection.under_way() > (limit as usize).max(1)
            && connection.calls.back().is_some_and(|call| !call.earlier.moved)
            && let Some(call) = connection.calls.pop_back()
        {
            connection.begun -= 1;
            surplus.push(call);
        }
        for mut call in surplus.into_iter().rev() {
            call.earlier.moved = true;
            self.begin_again(call);
        }
    }

    /// Begins the call that has waited longest to be sent again. Returns whether there was one.
    pub(crate) fn begin_retry(&mut self, now: Nanos) -> bool {
        let Some(mut call) = self.retries.pop_front() else { return false };
        call.stamp = self.connections.fresh_stamp();
        let policy = &self.config.connections;
        let may_open = policy.max_per_shard.is_none_or(|most| self.connections.open() < most);
        let fresh = call.earlier.wants_fresh && may_open && !self.has_had_its_connections(call.spec);
        self.place(call, fresh, now);
        true
    }

    /// Ends the calls that wait to be sent again, as the run is over.
    pub(crate) fn drop_retries(&mut self) {
        while let Some(mut call) = self.retries.pop_front() {
            self.end(&mut call, End::Unfinished { sent: false }, 0);
        }
    }

    /// Whether another connection may bear the call.
    fn may_be_elsewhere(&self, call: &Call<O::PerCall>) -> bool {
        !self.has_had_its_connections(call.spec)
    }

    fn send_again(&mut self, mut call: Call<O::PerCall>, why: Retry, bytes_sent: u64) {
        call.earlier.tries += 1;
        call.earlier.bytes_sent += bytes_sent;
        self.observer.on(&mut call.observed, &Event::Retried { why });
        self.begin_again(call);
    }

    fn begin_again(&mut self, call: Call<O::PerCall>) {
        let Call { spec, due, observed, earlier, .. } = call;
        self.retries.push_back(Call { earlier, ..Call::new(spec, due, 0, observed) });
        self.next_due = Nanos::ZERO;
    }
}
