//! One connection of a shard, with the calls under way on it.

use crate::call::Call;
use crate::deadlines::TimerKey;
use brimful_core::{Nanos, SessionId};
use brimful_http::Protocol;
use std::collections::VecDeque;

/// The state of a connection between its first attempt and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection is not established yet.
    Connecting,
    /// The connection is established, and its TLS handshake is under way.
    Securing,
    /// The connection can be used. Either calls are under way on it, or it is idle.
    Open,
    /// The server is expected to close the connection, but has not done so yet.
    Closing,
}

/// One connection.
#[derive(Debug)]
pub struct Connection<P> {
    /// The state of the connection.
    pub phase: Phase,
    /// The session that the connection belongs to, if any. The connection carries only calls of that session.
    pub session: Option<SessionId>,
    /// A number that identifies the current connection attempt, handshake or close. Timers that were started for an
    /// earlier one carry another number and are ignored.
    pub stamp: u32,
    /// Number of calls begun on the connection.
    pub calls_begun: u64,
    /// Number of complete responses received on the connection.
    pub responses: u32,
    /// Calls under way, the oldest first, which is the order of the responses. With HTTP/2, only the calls that wait
    /// for a free stream.
    pub calls: VecDeque<Call<P>>,
    /// State of HTTP/1 or HTTP/2. With HTTP/2, it contains the calls that have a stream.
    pub protocol: Protocol<Call<P>>,
    /// With HTTP/2: the time at which bytes were last received.
    pub last_received_at: Nanos,
    /// Whether no further call may begin on the connection.
    pub is_spent: bool,
    /// Whether the connection was opened before the run began.
    pub opened_before_run: bool,
    /// The time at which the current connection attempt began.
    pub attempted_at: Nanos,
    /// Index of the source address in the run's list.
    pub source: usize,
    /// Index of the server's address in the run's list.
    pub address: u16,
    /// Number of attempts to establish this connection so far. Each attempt uses another source address.
    pub attempts: usize,
    /// The list of available connections that contains this connection, and the position in that list.
    pub listed: Option<(Availability, u32)>,
}

/// Whether a connection with room for another call is idle or in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Open, with no call under way.
    Idle,
    /// Has calls under way, and room for more.
    Shared,
}

impl<P> Connection<P> {
    /// Creates a connection without calls. `depth` is the maximum number of calls under way at once.
    pub fn new(phase: Phase, depth: usize, session: Option<SessionId>) -> Connection<P> {
        Connection {
            phase,
            session,
            stamp: 0,
            calls_begun: 0,
            responses: 0,
            // Sessions allocate their queues on demand, because thousands of sessions may each have an idle connection
            // during their think times.
            calls: if session.is_some() { VecDeque::new() } else { VecDeque::with_capacity(depth.min(64)) },
            protocol: Protocol::new(false),
            last_received_at: Nanos::ZERO,
            is_spent: false,
            opened_before_run: false,
            attempted_at: Nanos::ZERO,
            source: 0,
            address: 0,
            attempts: 1,
            listed: None,
        }
    }

    /// Returns this connection with the state of HTTP/2 instead of HTTP/1 if `http2` is set.
    pub fn with_protocol(self, http2: bool) -> Connection<P> {
        if http2 { Connection { protocol: Protocol::new(true), ..self } } else { self }
    }

    /// Number of calls under way on the connection.
    pub fn calls_in_flight(&self) -> usize {
        self.calls.len() + self.protocol.http2().map_or(0, |http2| http2.streams())
    }

    /// Whether the next call would reuse the connection: it has received a response, or was opened before the run.
    pub fn is_reused(&self) -> bool {
        self.opened_before_run || self.responses > 0
    }

    /// Whether the connection accepts no further call. `lifetime` is the maximum number of calls per connection.
    pub fn has_begun_last_call(&self, lifetime: u64) -> bool {
        self.is_spent
            || self.calls_begun >= lifetime
            || self.protocol.http2().is_some_and(|http2| http2.refuses_new_streams())
    }

    /// Whether the call that this timer was started for is still under way.
    #[inline]
    pub fn is_call_under_way(&self, key: TimerKey) -> bool {
        if key.stream == 0 {
            return self.is_awaiting_response(key.stamp);
        }
        match self.protocol.http2() {
            Some(http2) => http2.get(key.stream).is_some_and(|call| call.stamp == key.stamp),
            None => self.is_awaiting_response(key.stamp),
        }
    }

    /// Whether a call with this stamp (its number) is in the queue. Stamps increase from the front of the queue to its
    /// end, apart from a wrap-around.
    #[inline]
    pub fn is_awaiting_response(&self, stamp: u32) -> bool {
        match (self.calls.front(), self.calls.back()) {
            (Some(first), Some(last)) => stamp.wrapping_sub(first.stamp) <= last.stamp.wrapping_sub(first.stamp),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{CallSpec, ClassId};

    fn call(stamp: u32) -> Call<()> {
        Call::new(CallSpec::for_class(ClassId(0)), Nanos::ZERO, stamp, ())
    }

    #[test]
    fn a_connection_knows_the_stamps_of_its_calls_when_they_wrap() {
        let mut connection: Connection<()> = Connection::new(Phase::Open, 4, None);
        assert!(!connection.is_awaiting_response(7));
        connection.calls.extend([u32::MAX - 1, u32::MAX, 0, 1].map(call));
        assert!([u32::MAX - 1, u32::MAX, 0, 1].into_iter().all(|stamp| connection.is_awaiting_response(stamp)));
        assert!(!connection.is_awaiting_response(2) && !connection.is_awaiting_response(u32::MAX - 2));
    }
}
