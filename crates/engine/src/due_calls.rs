//! The calls that a shard must send next, and the time at which the shard asks the workload for further calls.
//!
//! Calls that are sent again come first, then calls that follow redirects, then the workload's calls.

use crate::Config;
use crate::call::Call;
use crate::connections::Connections;
use crate::density::CallDensity;
use brimful_core::{CallSpec, Nanos};
use std::collections::VecDeque;

/// Interval at which a shard checks for a free connection while all are busy. A connection can also close without the
/// end of a call, so waiting for such an end is not enough.
const RECHECK: Nanos = Nanos::from_millis(1);

/// A call that follows a redirect. Its latency counts from the due time of the redirected call, because a user would
/// have waited since then.
#[derive(Clone, Copy, Debug)]
pub struct RedirectedCall {
    /// The request to send to the redirect's target.
    pub spec: CallSpec,
    /// The due time of the call that was redirected.
    pub due: Nanos,
    /// The time at which the response with the redirect was complete. The call cannot begin earlier.
    pub ready: Nanos,
}

/// The calls of a shard that have not begun yet, and the number of its calls that have not ended.
#[derive(Debug)]
pub struct DueCalls<P> {
    /// Time at which the shard asks the workload for its next calls.
    ask_at: Nanos,
    /// The mean gap between due times.
    density: CallDensity,
    /// Whether the workload has no further calls.
    is_exhausted: bool,
    /// Whether more calls are due than the shard begins in one iteration of its event loop.
    is_behind: bool,
    ticks: Option<Ticks>,
    limit: ConnectionLimit,
    redirected: VecDeque<RedirectedCall>,
    retries: VecDeque<Call<P>>,
    /// Number of calls that have not ended, including calls that follow a redirect and have not begun.
    in_flight: usize,
}

/// The times at which calls may begin in a run with a fixed interval between them ([`Config::tick`]).
#[derive(Clone, Copy, Debug)]
struct Ticks {
    interval: Nanos,
    next: Nanos,
}

/// The maximum number of connections of a shard ([`ConnectionPolicy::max_per_shard`]). Calls wait while this many
/// connections are open and busy.
///
/// [`ConnectionPolicy::max_per_shard`]: crate::ConnectionPolicy::max_per_shard
#[derive(Clone, Copy, Debug)]
struct ConnectionLimit {
    max: u64,
    is_reached: bool,
    /// The latest time at which a connection became free after all were busy.
    had_room: Nanos,
}

impl<P> DueCalls<P> {
    /// Creates an empty queue of calls with the limits of `config`.
    pub fn new(config: &Config) -> DueCalls<P> {
        let max = config.connections.max_per_shard.unwrap_or(u64::MAX);
        DueCalls {
            ask_at: Nanos::ZERO,
            density: CallDensity::default(),
            is_exhausted: false,
            is_behind: false,
            ticks: config.tick.map(|interval| Ticks { interval, next: Nanos::ZERO }),
            limit: ConnectionLimit { max, is_reached: false, had_room: Nanos::ZERO },
            redirected: VecDeque::new(),
            retries: VecDeque::new(),
            in_flight: 0,
        }
    }

    /// Makes the shard ask the workload for its next calls as soon as possible.
    #[inline]
    pub fn ask_workload_now(&mut self) {
        self.ask_at = Nanos::ZERO;
    }

    /// Makes the shard ask the workload for its next calls at this time.
    pub fn ask_workload_at(&mut self, at: Nanos) {
        self.ask_at = at;
    }

    /// Notes that the workload has no further calls.
    pub fn note_exhausted(&mut self) {
        self.is_exhausted = true;
        self.ask_at = Nanos::MAX;
    }

    /// Whether the workload has no further calls.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Whether the shard must ask the workload for its next calls now.
    #[inline]
    pub fn must_ask_workload(&self, now: Nanos) -> bool {
        self.ask_at <= now
    }

    /// Whether more calls were due than the shard begins in one iteration of its event loop.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Sets whether more calls were due than the shard begins in one iteration of its event loop.
    pub fn set_behind(&mut self, is_behind: bool) {
        self.is_behind = is_behind;
    }

    /// Number of calls that have not ended.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The time at which the wait for the next due call ends.
    pub fn wake_at(&self) -> Nanos {
        if self.ticks.is_some() { self.ask_at } else { self.density.wake_at(self.ask_at) }
    }

    /// Whether the wait for the next due call must end exactly on time. Otherwise, it may end late to save CPU time.
    pub fn wants_exact_waits(&self) -> bool {
        self.ticks.is_none() && !self.density.is_dense()
    }

    /// Whether no call may begin before the next tick ([`Config::tick`]). If so, the shard asks the workload for calls
    /// at that tick.
    pub fn is_between_ticks(&mut self, now: Nanos) -> bool {
        let Some(ticks) = self.ticks.filter(|ticks| now < ticks.next) else { return false };
        self.ask_at = ticks.next;
        true
    }

    /// Ends the current tick ([`Config::tick`]): no call begins before the next one.
    pub fn end_tick(&mut self, now: Nanos) {
        if let Some(ticks) = &mut self.ticks {
            ticks.next = next_tick(now, ticks.interval);
            self.ask_at = self.ask_at.max(ticks.next);
        }
    }

    /// Whether another connection may be opened, given the number of `open` connections.
    pub fn may_open(&self, open: u64) -> bool {
        open < self.limit.max
    }

    /// Whether due calls must wait because all allowed connections are open and busy. If so, the connections are
    /// checked again when a call ends, or after [`RECHECK`].
    pub fn must_wait_for_connection(&mut self, now: Nanos, connections: &Connections<P>) -> bool {
        if self.limit.max == u64::MAX {
            return false;
        }
        let is_reached = !self.may_open(connections.open_count()) && !connections.may_have_room();
        if is_reached {
            self.ask_at = now + RECHECK;
        } else if self.limit.is_reached {
            self.limit.had_room = now;
        }
        self.limit.is_reached = is_reached;
        is_reached
    }

    /// The earliest time at which a call could begin: `ready`, or later if the call had to wait for a free connection.
    #[inline]
    pub fn earliest_begin(&self, ready: Nanos) -> Nanos {
        ready.max(self.limit.had_room)
    }

    /// Records that a call with this due time begins.
    #[inline]
    pub fn note_begun(&mut self, due: Nanos) {
        self.in_flight += 1;
        self.density.note(due);
    }

    /// Records the end of a call, and makes the shard ask the workload for calls, because this end may make another
    /// call due.
    #[inline]
    pub fn note_ended(&mut self) {
        self.in_flight -= 1;
        self.ask_workload_now();
    }

    /// Adds a call that follows a redirect. The redirected call has ended, but still counts as in flight until the
    /// added call begins.
    pub fn push_redirected(&mut self, call: RedirectedCall) {
        self.redirected.push_back(call);
        self.ask_workload_now();
    }

    /// Removes and returns the oldest call that follows a redirect. The caller begins this call at once.
    pub fn pop_redirected(&mut self) -> Option<RedirectedCall> {
        let call = self.redirected.pop_front()?;
        self.in_flight -= 1;
        Some(call)
    }

    /// Queues a call to be sent again. All data about the earlier attempt is reset, except [`Call::earlier`].
    pub fn push_retry(&mut self, call: Call<P>) {
        let Call { spec, due, observer_data, earlier, .. } = call;
        self.retries.push_back(Call { earlier, ..Call::new(spec, due, 0, observer_data) });
        self.ask_workload_now();
    }

    /// Removes and returns the call that has waited longest to be sent again.
    #[inline]
    pub fn pop_retry(&mut self) -> Option<Call<P>> {
        self.retries.pop_front()
    }
}

/// The first whole multiple of `interval` after `now`.
fn next_tick(now: Nanos, interval: Nanos) -> Nanos {
    let interval = interval.0.max(1);
    Nanos((now.0 / interval + 1).saturating_mul(interval))
}
