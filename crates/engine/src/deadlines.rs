//! Deadlines that all lie equally far ahead when they are set, so that a queue keeps them in order: no heap, no kernel
//! timer per connection (which costs a third of the rate of abandoned attempts).
//!
//! What has ended leaves its deadline behind, void. Void ones are dropped when they come to the front, and all of them whenever
//! they may be more than half: one stuck call does not keep those of all later calls in memory.

use brimful_core::Nanos;
use std::collections::VecDeque;

/// A queue shorter than this is not worth cleaning.
const FEW: usize = 1024;

/// Identifies one use of one connection: a deadline whose `stamp` the connection no longer bears is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// Slot of the connection.
    pub slot: u32,
    /// The connection's stamp when the deadline was set, or its call's.
    pub stamp: u32,
    /// The stream of HTTP/2 that the call is on, or 0.
    pub stream: u32,
}

/// A queue of deadlines `after` a moment that never goes backwards.
#[derive(Debug)]
pub struct Deadlines {
    after: Nanos,
    queue: VecDeque<(Nanos, Armed)>,
    /// Length at which the void ones are dropped: twice what was live the last time.
    many: usize,
}

impl Deadlines {
    pub fn new(after: Nanos) -> Deadlines {
        Deadlines { after, queue: VecDeque::new(), many: FEW }
    }

    /// Sets a deadline for what began at `now`.
    pub fn arm(&mut self, now: Nanos, armed: Armed) {
        self.queue.push_back((now + self.after, armed));
    }

    /// What began at or after `since` may really have begun just before `until` only. No further postponement that begins there
    /// moves it again: a deadline that receded with every long turn would never pass.
    pub fn postpone(&mut self, since: Nanos, until: Nanos) {
        let first = since + self.after;
        for (deadline, _) in self.queue.iter_mut().rev().take_while(|(deadline, _)| *deadline >= first) {
            *deadline = until + self.after - Nanos(1);
        }
    }

    /// The next deadline that has passed and is still `live`, dropping void ones on the way: what has ended does not stay
    /// in memory until its time.
    pub fn expired(&mut self, now: Nanos, live: impl Fn(Armed) -> bool) -> Option<Armed> {
        while let Some(&(deadline, armed)) = self.queue.front() {
            let is_live = live(armed);
            if is_live && deadline > now {
                // Where calls end about in the order in which they began, there are few void ones behind it.
                if self.queue.len() >= self.many {
                    self.queue.retain(|(_, armed)| live(*armed));
                    self.many = FEW.max(2 * self.queue.len());
                }
                return None;
            }
            self.queue.pop_front();
            if is_live {
                return Some(armed);
            }
        }
        None
    }

    /// When the next one falls, void or not.
    pub fn next(&self) -> Option<Nanos> {
        self.queue.front().map(|(deadline, _)| *deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed(stamp: u32) -> Armed {
        Armed { slot: 0, stamp, stream: 0 }
    }

    #[test]
    fn live_deadlines_expire_in_order_and_void_ones_vanish() {
        let mut deadlines = Deadlines::new(Nanos(10));
        for t in 0..4 {
            deadlines.arm(Nanos(u64::from(t)), armed(t));
        }
        let live = |a: Armed| a.stamp % 2 == 1;
        assert_eq!(deadlines.expired(Nanos(5), live), None);
        assert_eq!(deadlines.next(), Some(Nanos(11)), "the void one at the front is gone before its time");
        assert_eq!(deadlines.expired(Nanos(12), live), Some(armed(1)));
        assert_eq!(deadlines.expired(Nanos(12), live), None);
        assert_eq!(deadlines.expired(Nanos(13), live), Some(armed(3)));
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn one_stuck_call_does_not_keep_those_behind_it() {
        let mut deadlines = Deadlines::new(Nanos::from_secs(12));
        for stamp in 0..1_000_000 {
            deadlines.arm(Nanos(u64::from(stamp)), armed(stamp));
            let live = |a: Armed| a.stamp == 0 || a.stamp + 100 > stamp;
            assert_eq!(deadlines.expired(Nanos(u64::from(stamp)), live), None);
            assert!(deadlines.queue.len() <= FEW, "{} deadlines for 101 calls", deadlines.queue.len());
        }
        assert!(deadlines.queue.capacity() <= 4 * FEW);
        let live = |a: Armed| a.stamp == 0;
        assert_eq!(deadlines.expired(Nanos::from_secs(12), live), Some(armed(0)));
    }

    #[test]
    fn what_was_held_up_has_its_whole_time_from_then() {
        let mut deadlines = Deadlines::new(Nanos(10));
        (0..4).for_each(|t| deadlines.arm(Nanos(u64::from(t)), armed(t)));
        deadlines.postpone(Nanos(2), Nanos(102));
        // One long turn after another.
        deadlines.postpone(Nanos(102), Nanos(202));
        deadlines.postpone(Nanos(202), Nanos(302));
        let live = |_: Armed| true;
        let mut expired = |now| deadlines.expired(Nanos(now), live);
        assert_eq!([expired(50), expired(50), expired(50)], [Some(armed(0)), Some(armed(1)), None]);
        assert_eq!([expired(110), expired(111), expired(111)], [None, Some(armed(2)), Some(armed(3))]);
    }
}
