//! What costs more than a sample may, like a walk over all processes or all connections, is done now and then.

use crate::sys;
use brimful_core::Nanos;

/// When a search may be made again.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// `CLOCK_MONOTONIC`.
    pub not_before: Nanos,
}

impl Search {
    /// A search may take 1/400 of one CPU.
    pub const REST: u64 = 400;

    pub fn due(&self) -> bool {
        sys::now() >= self.not_before
    }

    /// The search that began at that moment has ended.
    pub fn rest(&mut self, begun: Nanos) {
        let now = sys::now();
        self.not_before = now + Nanos((now - begun).0.saturating_mul(Search::REST));
    }
}
