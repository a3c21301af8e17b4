//! Rate limit for work that is too expensive for every sample, such as a walk over all processes.

use crate::sys;
use brimful_core::Nanos;

/// Limits how often a search runs. The pause after a search is 400 times the CPU time of the search, so each kind of
/// search uses at most 1/400 of one CPU. On a busy machine a search takes longer, but does not use more CPU time.
#[derive(Debug, Default)]
pub(crate) struct SearchLimiter {
    /// The earliest time of the next search, by `CLOCK_MONOTONIC`.
    pub not_before: Nanos,
    rest: Nanos,
}

/// The CPU time of this thread when a search began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchStart(Nanos);

impl SearchLimiter {
    const PAUSE_FACTOR: u64 = 400;

    /// Whether the pause after the last search is over.
    pub fn is_due(&self) -> bool {
        sys::now() >= self.not_before
    }

    /// Begins a search: reads the CPU time of this thread.
    pub fn begin() -> SearchStart {
        SearchStart(sys::thread_cpu())
    }

    /// Ends the search that began at `begun`, and begins the pause after it.
    pub fn end(&mut self, begun: SearchStart) {
        self.rest = Nanos((sys::thread_cpu() - begun.0).0.saturating_mul(SearchLimiter::PAUSE_FACTOR));
        self.not_before = sys::now() + self.rest;
    }

    /// The length of the current pause, or of the last one.
    pub fn interval(&self) -> Nanos {
        self.rest
    }
}
