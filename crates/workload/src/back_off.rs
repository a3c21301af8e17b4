//! Determines how long the users of a closed load wait after failed calls.
//!
//! If a server is down, it refuses a connection within microseconds. A user that called again immediately would cause a
//! busy loop. So a user whose connection attempt failed waits: 10 ms after the first failure, and twice as long after
//! each further failure, up to a second. A user whose established connection was lost waits only from the fourth loss
//! in a row, and only if no call of its shard was answered in the meantime. So these waits do not reduce the load on a
//! server that answers some calls.
//!
//! Each wait is random, between half of its upper bound and its upper bound, so that users do not all call again at the
//! same time.

use crate::{Shard, rng};
use brimful_core::{End, Nanos, Outcome};
use rand::RngExt;
use rand_pcg::Pcg64;

/// Upper bound of the wait after a user's first failed call. The bound doubles with each further failure.
const FIRST_WAIT: Nanos = Nanos::from_millis(10);
/// Upper bound of a user's wait after any number of failures.
const MAX_WAIT: Nanos = Nanos::from_secs(1);
/// Number of connections in a row that a user may lose before it begins to wait between calls.
const FREE_LOSSES: u8 = 3;
/// Number of the random stream from which the first shard draws waits; each further shard uses the next stream.
/// Arrivals, mixes and sessions use streams with lower numbers.
const STREAM: u64 = 1 << 32;

/// Draws the waits of the users of one shard (part of the load) after failed calls.
#[derive(Clone, Debug)]
pub(crate) struct BackOff {
    rng: Pcg64,
    /// The time at which a call of this shard was last answered.
    answered_at: Option<Nanos>,
    waits: bool,
}

impl BackOff {
    /// Creates the source of waits of a shard. The waits are drawn from a random stream with this seed.
    pub fn new(seed: u64, shard: Shard) -> BackOff {
        BackOff { rng: rng(seed, STREAM + shard.index), answered_at: None, waits: true }
    }

    /// Creates a source of waits that are always 0.
    pub fn none() -> BackOff {
        BackOff { waits: false, ..BackOff::new(0, Shard::WHOLE) }
    }

    /// Returns how long a user waits after `outcome`, and the user's new number of failures in a row. `failures` is the
    /// number of failures in a row before `outcome`.
    #[inline]
    pub fn wait_after(&mut self, outcome: &Outcome, failures: u8) -> (Nanos, u8) {
        match outcome.end {
            End::Completed { .. } | End::Unexpected { .. } => {
                self.answered_at = Some(outcome.at);
                (Nanos::ZERO, 0)
            }
            // These calls lasted until their timeout or until the end of the run, so no further wait is needed.
            End::Abandoned | End::TimedOut | End::Unfinished { .. } => (Nanos::ZERO, failures),
            End::Refused | End::ClientLimited(_) | End::TlsFailed { sent: false, .. } => self.fail(failures, 0),
            _ if self.answered_at.is_some_and(|at| at >= outcome.due) => (Nanos::ZERO, 0),
            _ => self.fail(failures, FREE_LOSSES),
        }
    }

    #[cold]
    fn fail(&mut self, failures: u8, free_failures: u8) -> (Nanos, u8) {
        let failures = failures.saturating_add(1);
        let Some(doublings) = failures.checked_sub(free_failures + 1).filter(|_| self.waits) else {
            return (Nanos::ZERO, failures);
        };
        let longest = MAX_WAIT.0.min(FIRST_WAIT.0 << doublings.min(16));
        (Nanos(self.rng.random_range(longest / 2..=longest)), failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{CallSpec, ClassId, ExhaustedResource, TlsFault};

    fn outcome(end: End, due_ms: u64, at_ms: u64) -> Outcome {
        let (due, at) = (Nanos::from_millis(due_ms), Nanos::from_millis(at_ms));
        Outcome { call: CallSpec::for_class(ClassId(0)), due, at, end, bytes_sent: 0, bytes_received: 0 }
    }

    #[test]
    fn waits_double_from_ten_milliseconds_to_a_second_and_start_again_after_an_answer() {
        for end in [
            End::Refused,
            End::ClientLimited(ExhaustedResource::Descriptors),
            End::TlsFailed { sent: false, why: TlsFault::Protocol },
        ] {
            let mut back_off = BackOff::new(1, Shard::WHOLE);
            let mut failures = 0;
            for longest_ms in [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000] {
                let (wait, next) = back_off.wait_after(&outcome(end, 5, 5), failures);
                let longest = Nanos::from_millis(longest_ms);
                assert!(Nanos(longest.0 / 2) <= wait && wait <= longest, "{end:?}: {wait} of {longest}");
                failures = next;
            }
            assert_eq!(back_off.wait_after(&outcome(End::Completed { status: 503 }, 5, 6), failures), (Nanos::ZERO, 0));
        }
        let mut back_off = BackOff::new(1, Shard::WHOLE);
        assert!(back_off.wait_after(&outcome(End::Refused, 0, 0), u8::MAX).0 <= MAX_WAIT);
    }

    #[test]
    fn a_server_that_resets_some_connections_is_called_again_at_once() {
        let mut back_off = BackOff::new(1, Shard::WHOLE);
        let reset = |due, at| outcome(End::Reset { sent: true }, due, at);
        back_off.wait_after(&outcome(End::Completed { status: 200 }, 0, 10), 0);
        assert_eq!(
            back_off.wait_after(&reset(9, 11), 7),
            (Nanos::ZERO, 0),
            "no wait, because another call was answered in the meantime"
        );
        let mut failures = 0;
        for due in 11..14 {
            let (wait, next) = back_off.wait_after(&reset(due, due), failures);
            assert_eq!(wait, Nanos::ZERO, "loss {next}");
            failures = next;
        }
        let (wait, _) = back_off.wait_after(&reset(14, 14), failures);
        assert!(wait >= Nanos(FIRST_WAIT.0 / 2), "{wait}");
    }

    #[test]
    fn waits_follow_from_the_seed_and_differ_between_shards() {
        let waits = |seed, index| {
            let mut back_off = BackOff::new(seed, Shard { index, count: 2 });
            [0, 1, 2].map(|failures| back_off.wait_after(&outcome(End::Refused, 0, 0), failures).0)
        };
        assert_eq!(waits(1, 0), waits(1, 0));
        assert_ne!(waits(1, 0), waits(1, 1));
        assert_ne!(waits(1, 0), waits(2, 0));
    }
}
