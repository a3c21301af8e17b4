//! How closely calls come due, and what patience that asks for.
//!
//! To sleep until an instant and to be woken costs more than a call. Where calls are due every few hundred microseconds
//! or less often, that is the price of being on time. Where they are due more closely than sleeps are short, the answers
//! to earlier calls wake the generator about as often as calls come due: it waits a moment beyond each due time for one
//! of them to do so, sleeps only if none does, and never spins. The delay is part of the lateness that is reported.

use brimful_core::Nanos;

/// Calls that are due more closely than this on average come densely.
const DENSE: Nanos = Nanos::from_micros(64);
/// How long beyond a due time an answer may take to wake the generator.
const PATIENCE: Nanos = Nanos::from_micros(50);
/// The average is over about so many calls.
const CALLS: u64 = 32;

/// The mean gap between due times, exponentially weighted.
#[derive(Clone, Copy, Debug)]
pub struct Density {
    latest: Nanos,
    gap_ns: u64,
}

impl Default for Density {
    /// Sparse until calls have shown otherwise.
    fn default() -> Density {
        Density { latest: Nanos::ZERO, gap_ns: 4 * DENSE.0 }
    }
}

impl Density {
    /// A call was due then.
    pub fn note(&mut self, due: Nanos) {
        // A long pause is forgotten after about as many calls as a short one.
        let gap = due.0.saturating_sub(self.latest.0).min(4 * DENSE.0);
        self.latest = self.latest.max(due);
        self.gap_ns = (self.gap_ns * (CALLS - 1) + gap) / CALLS;
    }

    /// Whether calls come densely.
    pub fn is_dense(self) -> bool {
        self.gap_ns < DENSE.0
    }

    /// Until when to wait for a call that is due then; one that is due at once, or never, waits for nothing.
    pub fn wake_at(self, due: Nanos) -> Nanos {
        if self.is_dense() && due != Nanos::MAX && due != Nanos::ZERO { due + PATIENCE } else { due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(calls: u64, gap: Nanos) -> Density {
        let mut density = Density::default();
        (1..=calls).for_each(|n| density.note(Nanos(n * gap.0)));
        density
    }

    #[test]
    fn only_who_has_many_calls_has_patience() {
        let due = Nanos::from_secs(1);
        for (gap_us, dense) in [(1, true), (25, true), (50, true), (70, false), (100, false), (1_000, false)] {
            let density = after(1_000, Nanos::from_micros(gap_us));
            assert_eq!(density.is_dense(), dense, "{gap_us} µs");
            assert_eq!(density.wake_at(due) - due, if dense { PATIENCE } else { Nanos::ZERO });
        }
        assert!(!after(8, Nanos::from_micros(1)).is_dense(), "a few calls at once are no high rate");
        let dense = after(1_000, Nanos::from_micros(10));
        assert_eq!([Nanos::ZERO, Nanos::MAX].map(|due| dense.wake_at(due)), [Nanos::ZERO, Nanos::MAX]);
    }

    #[test]
    fn a_pause_is_noticed_and_forgotten_soon() {
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
