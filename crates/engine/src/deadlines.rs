//! A queue of deadlines that all have the same timeout. Deadlines are set in the order of time, so the earliest is
//! always at the front. A heap or a kernel timer per connection is not needed; one kernel timer per connection reduced
//! the maximum rate of timed-out connection attempts by a third.
//!
//! When a call or connection ends, its deadline stays in the queue and is void. A void deadline is dropped when it
//! reaches the front. Once the queue is twice as long as after the last clean-up, all void deadlines are dropped.
//! Otherwise, one stuck call would keep the deadlines of all later calls in memory.

use brimful_core::Nanos;
use std::collections::VecDeque;

/// Minimum length of the queue for a search for void deadlines.
const MIN_CLEANED: usize = 1024;

/// The connection attempt, TLS handshake or call that a deadline belongs to. The deadline is void once the connection
/// or call in this slot has another stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerKey {
    /// Index (slot) of the connection in the shard's list.
    pub slot: u32,
    /// The number (stamp) that identified the connection attempt, handshake or call when the deadline was set.
    pub stamp: u32,
    /// The HTTP/2 stream of the call; 0 without a stream.
    pub stream: u32,
}

/// A queue of deadlines in the order of time. Each deadline is `after` later than the time at which it was set.
#[derive(Debug)]
pub struct Deadlines {
    after: Nanos,
    queue: VecDeque<(Nanos, TimerKey)>,
    /// Length of the queue at which all void deadlines are dropped: twice the length after the previous clean-up.
    cleaned_at: usize,
}

impl Deadlines {
    /// Creates an empty queue of deadlines, each `after` later than the time at which it is set.
    pub fn new(after: Nanos) -> Deadlines {
        Deadlines { after, queue: VecDeque::new(), cleaned_at: MIN_CLEANED }
    }

    /// Sets a deadline for an operation that began at `now`.
    #[inline]
    pub fn arm(&mut self, now: Nanos, key: TimerKey) {
        self.queue.push_back((now + self.after, key));
    }

    /// Postpones deadlines after the thread was stopped from `since` to `until` (a stall). An operation that began in
    /// this period may have been sent only at its end, so the new deadline is `until + after`. It is set 1 ns earlier,
    /// so that another stall that starts at `until` does not postpone the same deadlines again. Otherwise, a series of
    /// stalls could postpone them forever.
    pub fn postpone(&mut self, since: Nanos, until: Nanos) {
        let first = since + self.after;
        for (deadline, _) in self.queue.iter_mut().rev().take_while(|(deadline, _)| *deadline >= first) {
            *deadline = until + self.after - Nanos(1);
        }
    }

    /// Removes and returns the next valid deadline if it is not later than `now`. Drops the void deadlines (of ended
    /// operations) before it, even those that are later than `now`, so that they do not stay in memory.
    pub fn pop_expired(&mut self, now: Nanos, is_live: impl Fn(TimerKey) -> bool) -> Option<TimerKey> {
        while let Some(&(deadline, key)) = self.queue.front() {
            let front_is_live = is_live(key);
            if front_is_live && deadline > now {
                // The queue rarely reaches this length: calls end about in the order in which they began, so void
                // deadlines soon reach the front.
                if self.queue.len() >= self.cleaned_at {
                    self.queue.retain(|(_, key)| is_live(*key));
                    self.cleaned_at = MIN_CLEANED.max(2 * self.queue.len());
                }
                return None;
            }
            self.queue.pop_front();
            if front_is_live {
                return Some(key);
            }
        }
        None
    }

    /// The time of the deadline at the front of the queue, which may be void.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.queue.front().map(|(deadline, _)| *deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(stamp: u32) -> TimerKey {
        TimerKey { slot: 0, stamp, stream: 0 }
    }

    #[test]
    fn live_deadlines_expire_in_order_and_void_ones_vanish() {
        let mut deadlines = Deadlines::new(Nanos(10));
        for t in 0..4 {
            deadlines.arm(Nanos(u64::from(t)), key(t));
        }
        let live = |key: TimerKey| key.stamp % 2 == 1;
        assert_eq!(deadlines.pop_expired(Nanos(5), live), None);
        assert_eq!(
            deadlines.next_deadline(),
            Some(Nanos(11)),
            "the void deadline at the front is dropped before its time"
        );
        assert_eq!(deadlines.pop_expired(Nanos(12), live), Some(key(1)));
        assert_eq!(deadlines.pop_expired(Nanos(12), live), None);
        assert_eq!(deadlines.pop_expired(Nanos(13), live), Some(key(3)));
        assert_eq!(deadlines.next_deadline(), None);
    }

    #[test]
    fn one_stuck_call_does_not_keep_void_deadlines_in_memory() {
        let mut deadlines = Deadlines::new(Nanos::from_secs(12));
        for stamp in 0..1_000_000 {
            deadlines.arm(Nanos(u64::from(stamp)), key(stamp));
            let live = |key: TimerKey| key.stamp == 0 || key.stamp + 100 > stamp;
            assert_eq!(deadlines.pop_expired(Nanos(u64::from(stamp)), live), None);
            assert!(deadlines.queue.len() <= MIN_CLEANED, "{} deadlines for 101 calls", deadlines.queue.len());
        }
        assert!(deadlines.queue.capacity() <= 4 * MIN_CLEANED);
        let live = |key: TimerKey| key.stamp == 0;
        assert_eq!(deadlines.pop_expired(Nanos::from_secs(12), live), Some(key(0)));
    }

    #[test]
    fn a_stall_postpones_deadlines_once() {
        let mut deadlines = Deadlines::new(Nanos(10));
        (0..4).for_each(|t| deadlines.arm(Nanos(u64::from(t)), key(t)));
        deadlines.postpone(Nanos(2), Nanos(102));
        // Two more stalls follow directly. Expects that they do not postpone the deadlines again.
        deadlines.postpone(Nanos(102), Nanos(202));
        deadlines.postpone(Nanos(202), Nanos(302));
        let live = |_: TimerKey| true;
        let mut expired = |now| deadlines.pop_expired(Nanos(now), live);
        assert_eq!([expired(50), expired(50), expired(50)], [Some(key(0)), Some(key(1)), None]);
        assert_eq!([expired(110), expired(111), expired(111)], [None, Some(key(2)), Some(key(3))]);
    }
}
