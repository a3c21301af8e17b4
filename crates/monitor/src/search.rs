//! What costs more than a sample may, like a walk over all processes or all connections, is done now and then.

use crate::sys;
use brimful_core::Nanos;

/// When a search may be made again: after 400 times the CPU time that the last one took, so that each kind of search
/// takes at most 1/400 of one CPU. On a busy machine a search takes longer, but costs no more.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// `CLOCK_MONOTONIC`.
    pub not_before: Nanos,
    rest: Nanos,
}

/// The CPU time of this thread when a search began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchStart(Nanos);

impl Search {
    const REST: u64 = 400;

    pub fn due(&self) -> bool {
        sys::now() >= self.not_before
    }

    pub fn begin() -> SearchStart {
        SearchStart(sys::thread_cpu())
    }

    /// The search that began then has ended.
    pub fn rest(&mut self, begun: SearchStart) {
        self.rest = Nanos((sys::thread_cpu() - begun.0).0.saturating_mul(Search::REST));
        self.not_before = sys::now() + self.rest;
    }

    /// How long it rests.
    pub fn every(&self) -> Nanos {
        self.rest
    }
}
