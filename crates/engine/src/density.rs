//! Measures the mean gap between the due times of calls, and decides how late a call may be sent to save CPU time.
//!
//! Sleeping until an exact time costs more CPU time than sending a call. If the mean gap is at least [`DENSE_GAP`], the
//! load generator pays this cost to send each call on time. If the gaps are shorter, the responses to earlier calls
//! wake the generator about as often as calls come due. The generator then waits up to [`MAX_DELAY`] beyond each due
//! time for such a response, and does not poll the clock. This delay is part of the reported lateness.

use brimful_core::Nanos;

/// Mean gap between due times below which calls are dense, that is, may be sent up to [`MAX_DELAY`] late.
const DENSE_GAP: Nanos = Nanos::from_micros(64);
/// Maximum time to wait for a response beyond the due time of the next call.
const MAX_DELAY: Nanos = Nanos::from_micros(50);
/// Number of recent calls over which the mean gap is approximately taken.
const AVERAGED_CALLS: u64 = 32;

/// The mean gap between due times, exponentially weighted.
#[derive(Clone, Copy, Debug)]
pub struct CallDensity {
    latest: Nanos,
    gap_ns: u64,
}

impl Default for CallDensity {
    /// Starts with a long gap: calls count as dense only after enough due times were noted.
    fn default() -> CallDensity {
        CallDensity { latest: Nanos::ZERO, gap_ns: 4 * DENSE_GAP.0 }
    }
}

impl CallDensity {
    /// Updates the mean gap with the due time of a call.
    pub fn note(&mut self, due: Nanos) {
        // A long pause counts as a gap of 4 × `DENSE_GAP`, so that the mean falls quickly when calls come due densely
        // again.
        let gap = due.0.saturating_sub(self.latest.0).min(4 * DENSE_GAP.0);
        self.latest = self.latest.max(due);
        self.gap_ns = (self.gap_ns * (AVERAGED_CALLS - 1) + gap) / AVERAGED_CALLS;
    }

    /// Whether the mean gap between due times is shorter than [`DENSE_GAP`].
    pub fn is_dense(self) -> bool {
        self.gap_ns < DENSE_GAP.0
    }

    /// The time at which to end the wait for responses before a call that is due at `due`: [`MAX_DELAY`] after `due` if
    /// calls are dense, otherwise `due`. [`Nanos::ZERO`] (at once) and [`Nanos::MAX`] (never) are returned unchanged.
    pub fn wake_at(self, due: Nanos) -> Nanos {
        if self.is_dense() && due != Nanos::MAX && due != Nanos::ZERO { due + MAX_DELAY } else { due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(calls: u64, gap: Nanos) -> CallDensity {
        let mut density = CallDensity::default();
        (1..=calls).for_each(|n| density.note(Nanos(n * gap.0)));
        density
    }

    #[test]
    fn only_dense_calls_are_delayed() {
        let due = Nanos::from_secs(1);
        for (gap_us, dense) in [(1, true), (25, true), (50, true), (70, false), (100, false), (1_000, false)] {
            let density = after(1_000, Nanos::from_micros(gap_us));
            assert_eq!(density.is_dense(), dense, "{gap_us} µs");
            assert_eq!(density.wake_at(due) - due, if dense { MAX_DELAY } else { Nanos::ZERO });
        }
        assert!(!after(8, Nanos::from_micros(1)).is_dense(), "a few simultaneous calls are not a high rate");
        let dense = after(1_000, Nanos::from_micros(10));
        assert_eq!([Nanos::ZERO, Nanos::MAX].map(|due| dense.wake_at(due)), [Nanos::ZERO, Nanos::MAX]);
    }

    #[test]
    fn the_mean_recovers_from_a_pause() {
        let mut density = after(1_000, Nanos::from_micros(10));
        let mut due = Nanos::from_millis(10);
        for _ in 0..40 {
            due += Nanos::from_secs(1);
            density.note(due);
        }
        assert!(!density.is_dense());
        for _ in 0..100 {
            due += Nanos::from_micros(10);
            density.note(due);
        }
        assert!(density.is_dense());
    }
}
