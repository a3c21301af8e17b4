//! How long users of a closed load wait before they call again because a call failed at once.
//!
//! A user who calls again as soon as a call has ended makes a busy loop of a server that is away: each refusal takes
//! some microseconds. So a user whose connection attempt failed waits, from 10 ms on and twice as long after each further
//! failure, up to a second. A user whose established connection was lost waits likewise from the fourth loss in a row
//! on, and only while nothing is answered: a server that answers some of its calls is never loaded less.
//!
//! Each wait is drawn from the upper half of its length, so that users do not come back in step.

use crate::{Shard, rng};
use brimful_core::{End, Nanos, Outcome};
use rand::RngExt;
use rand_pcg::Pcg64;

/// Wait after the first failure.
const SHORTEST: Nanos = Nanos::from_millis(10);
/// Longest wait.
const LONGEST: Nanos = Nanos::from_secs(1);
/// Lost connections in a row after which the next call is still made at once.
const FREE_LOSSES: u8 = 3;
/// Stream of random numbers of the waits; the others of a seed are the arrivals', the mix's and the sessions'.
const STREAM: u64 = 1 << 32;

/// Waits of the users of one shard.
#[derive(Clone, Debug)]
pub(crate) struct BackOff {
    rng: Pcg64,
    /// When a call of this shard was last answered.
    answered_at: Option<Nanos>,
    waits: bool,
}

impl BackOff {
    pub fn new(seed: u64, shard: Shard) -> BackOff {
        BackOff { rng: rng(seed, STREAM + shard.index), answered_at: None, waits: true }
    }

    /// For users who do not wait.
    pub fn none() -> BackOff {
        BackOff { waits: false, ..BackOff::new(0, Shard::WHOLE) }
    }

    /// How long a user waits after this outcome of a call, and how many failures in a row it then has, having had
    /// `failures` before.
    #[inline]
    pub fn after(&mut self, outcome: &Outcome, failures: u8) -> (Nanos, u8) {
        match outcome.end {
            End::Completed { .. } | End::Unexpected { .. } => {
                self.answered_at = Some(outcome.at);
                (Nanos::ZERO, 0)
            }
            // They last as long as their timeout, or the run.
            End::Abandoned | End::TimedOut | End::Unfinished { .. } => (Nanos::ZERO, failures),
            End::Refused | End::ClientLimited(_) | End::TlsFailed { sent: false, .. } => self.fail(failures, 0),
            _ if self.answered_at.is_some_and(|at| at >= outcome.due) => (Nanos::ZERO, 0),
            _ => self.fail(failures, FREE_LOSSES),
        }
    }

    #[cold]
    fn fail(&mut self, failures: u8, free: u8) -> (Nanos, u8) {
        let failures = failures.saturating_add(1);
        let Some(doublings) = failures.checked_sub(free + 1).filter(|_| self.waits) else {
            return (Nanos::ZERO, failures);
        };
        let longest = LONGEST.0.min(SHORTEST.0 << doublings.min(16));
        (Nanos(self.rng.random_range(longest / 2..=longest)), failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{CallSpec, ClassId, Limit, TlsFault};

    fn outcome(end: End, due_ms: u64, at_ms: u64) -> Outcome {
        let (due, at) = (Nanos::from_millis(due_ms), Nanos::from_millis(at_ms));
        Outcome { call: CallSpec::of_class(ClassId(0)), due, at, end, bytes_sent: 0, bytes_received: 0 }
    }

    #[test]
    fn waits_double_from_ten_milliseconds_to_a_second_and_start_again_after_an_answer() {
        for end in [
            End::Refused,
            End::ClientLimited(Limit::Descriptors),
            End::TlsFailed { sent: false, why: TlsFault::Protocol },
        ] {
            let mut back_off = BackOff::new(1, Shard::WHOLE);
            let mut failures = 0;
            for longest_ms in [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000] {
                let (wait, next) = back_off.after(&outcome(end, 5, 5), failures);
                let longest = Nanos::from_millis(longest_ms);
                assert!(Nanos(longest.0 / 2) <= wait && wait <= longest, "{end:?}: {wait} of {longest}");
                failures = next;
            }
            assert_eq!(back_off.after(&outcome(End::Completed { status: 503 }, 5, 6), failures), (Nanos::ZERO, 0));
        }
        let mut back_off = BackOff::new(1, Shard::WHOLE);
        assert!(back_off.after(&outcome(End::Refused, 0, 0), u8::MAX).0 <= LONGEST);
    }

    #[test]
    fn a_server_that_resets_some_connections_is_called_again_at_once() {
        let mut back_off = BackOff::new(1, Shard::WHOLE);
        let reset = |due, at| outcome(End::Reset { sent: true }, due, at);
        back_off.after(&outcome(End::Completed { status: 200 }, 0, 10), 0);
        assert_eq!(back_off.after(&reset(9, 11), 7), (Nanos::ZERO, 0), "another call was answered meanwhile");
        let mut failures = 0;
        for due in 11..14 {
            let (wait, next) = back_off.after(&reset(due, due), failures);
            assert_eq!(wait, Nanos::ZERO, "loss {next}");
            failures = next;
        }
        let (wait, _) = back_off.after(&reset(14, 14), failures);
        assert!(wait >= Nanos(SHORTEST.0 / 2), "{wait}");
    }

    #[test]
    fn waits_follow_from_the_seed_and_differ_between_shards() {
        let waits = |seed, index| {
            let mut back_off = BackOff::new(seed, Shard { index, count: 2 });
            [0, 1, 2].map(|failures| back_off.after(&outcome(End::Refused, 0, 0), failures).0)
        };
        assert_eq!(waits(1, 0), waits(1, 0));
        assert_ne!(waits(1, 0), waits(1, 1));
        assert_ne!(waits(1, 0), waits(2, 0));
    }
}
