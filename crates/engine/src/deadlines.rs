//! Deadlines that all lie equally far ahead when they are set, so that a queue keeps them in order: no heap, no kernel
//! timer per connection (which costs a third of the rate of abandoned attempts).

use brimful_core::Nanos;
use std::collections::VecDeque;

/// Identifies one use of one connection: a deadline whose `stamp` the connection no longer bears is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// Slot of the connection.
    pub slot: u32,
    /// The connection's stamp when the deadline was set.
    pub stamp: u32,
}

/// A queue of deadlines `after` a moment that never goes backwards.
#[derive(Debug)]
pub struct Deadlines {
    after: Nanos,
    queue: VecDeque<(Nanos, Armed)>,
}

impl Deadlines {
    pub fn new(after: Nanos) -> Deadlines {
        Deadlines { after, queue: VecDeque::new() }
    }

    /// Sets a deadline for what began at `now`.
    pub fn arm(&mut self, now: Nanos, armed: Armed) {
        self.queue.push_back((now + self.after, armed));
    }

    /// The next deadline that has passed and is still `live`, dropping void ones on the way: what has ended does not stay
    /// in memory until its time.
    pub fn expired(&mut self, now: Nanos, live: impl Fn(Armed) -> bool) -> Option<Armed> {
        while let Some(&(deadline, armed)) = self.queue.front() {
            let is_live = live(armed);
            if is_live && deadline > now {
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

    #[test]
    fn live_deadlines_expire_in_order_and_void_ones_vanish() {
        let mut deadlines = Deadlines::new(Nanos(10));
        let armed = |stamp| Armed { slot: 0, stamp };
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
}
