//! The deadlines of a shard's connections and calls.

use crate::ConnectionPolicy;
use crate::connection::Phase;
use crate::connections::Connections;
use crate::deadlines::{Deadlines, TimerKey};
use brimful_core::Nanos;

/// Timeout for the server to close a connection after its last response. At 1,000 connections per second, a server that
/// never closes would therefore occupy 1,000 descriptors.
const CLOSE_TIMEOUT: Nanos = Nanos::from_secs(1);

/// The deadlines of a shard, in one queue for each kind of timeout.
#[derive(Debug)]
pub struct Timers {
    /// Deadlines of connection attempts; `None` if only the kernel ends an attempt.
    attempts: Option<Deadlines>,
    handshakes: Deadlines,
    /// Deadlines by which the response to each call must be complete.
    responses: Deadlines,
    /// Deadlines by which the server must have closed a connection after the last response.
    closes: Deadlines,
}

/// A timeout that has passed.
#[derive(Clone, Copy, Debug)]
pub enum PassedDeadline {
    /// The connection in this slot was not established in time.
    Attempt(u32),
    /// The TLS handshake of the connection in this slot was not complete in time.
    Handshake(u32),
    /// The server did not close the connection in this slot in time.
    Close(u32),
    /// The response to this call was not complete in time.
    Response(TimerKey),
}

impl Timers {
    /// Creates empty queues with the timeouts of a policy.
    pub fn new(policy: &ConnectionPolicy) -> Timers {
        Timers {
            attempts: policy.connect_timeout.map(Deadlines::new),
            handshakes: Deadlines::new(policy.response_timeout),
            responses: Deadlines::new(policy.response_timeout),
            closes: Deadlines::new(CLOSE_TIMEOUT.min(policy.response_timeout)),
        }
    }

    /// Starts the timer of a connection attempt, if attempts have a timeout.
    pub fn start_attempt(&mut self, now: Nanos, slot: u32, stamp: u32) {
        if let Some(attempts) = &mut self.attempts {
            attempts.arm(now, TimerKey { slot, stamp, stream: 0 });
        }
    }

    /// Starts the timer of a TLS handshake.
    pub fn start_handshake(&mut self, now: Nanos, slot: u32, stamp: u32) {
        self.handshakes.arm(now, TimerKey { slot, stamp, stream: 0 });
    }

    /// Starts the timer of a call's response.
    #[inline]
    pub fn start_response(&mut self, now: Nanos, call: TimerKey) {
        self.responses.arm(now, call);
    }

    /// Starts the timer of a connection that the server is expected to close.
    pub fn start_close(&mut self, now: Nanos, slot: u32, stamp: u32) {
        self.closes.arm(now, TimerKey { slot, stamp, stream: 0 });
    }

    /// The earliest deadline; [`Nanos::MAX`] if there is none.
    pub fn next_deadline(&self) -> Nanos {
        let attempts = self.attempts.as_ref().and_then(Deadlines::next_deadline);
        let all =
            [attempts, self.handshakes.next_deadline(), self.responses.next_deadline(), self.closes.next_deadline()];
        all.into_iter().flatten().fold(Nanos::MAX, Nanos::min)
    }

    /// Postpones the deadlines of all operations that began at or after `since`. The thread was stopped, so their
    /// requests may have been sent as late as `until`.
    pub fn postpone(&mut self, since: Nanos, until: Nanos) {
        let all = [&mut self.handshakes, &mut self.responses, &mut self.closes];
        self.attempts.iter_mut().chain(all).for_each(|deadlines| deadlines.postpone(since, until));
    }

    /// Removes and returns a deadline that is not later than `now` and still valid: the connection is in the state for
    /// which the deadline was set.
    pub fn pop_overdue<P>(&mut self, now: Nanos, connections: &Connections<P>) -> Option<PassedDeadline> {
        let in_phase = |phase: Phase| {
            move |key: TimerKey| connections.get(key.slot).is_some_and(|c| c.phase == phase && c.stamp == key.stamp)
        };
        let awaits_response = |key: TimerKey| {
            connections.get(key.slot).is_some_and(|c| c.phase == Phase::Open && c.is_call_under_way(key))
        };
        if let Some(attempts) = &mut self.attempts
            && let Some(key) = attempts.pop_expired(now, in_phase(Phase::Connecting))
        {
            Some(PassedDeadline::Attempt(key.slot))
        } else if let Some(key) = self.handshakes.pop_expired(now, in_phase(Phase::Securing)) {
            Some(PassedDeadline::Handshake(key.slot))
        } else if let Some(key) = self.closes.pop_expired(now, in_phase(Phase::Closing)) {
            Some(PassedDeadline::Close(key.slot))
        } else {
            self.responses.pop_expired(now, awaits_response).map(PassedDeadline::Response)
        }
    }
}
