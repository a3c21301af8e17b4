//! How far a counter has come between two readings.

use brimful_core::Nanos;

/// Readings of counters this far apart in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over(pub Nanos);

impl Over {
    /// Growth per second; `None` if the counter began anew in between, or no time has passed.
    pub fn per_s(self, from: u64, to: u64) -> Option<f64> {
        let seconds = self.0.as_secs_f64();
        (seconds > 0.0).then_some(growth(from, to)? as f64 / seconds)
    }

    /// The same of counters that the kernel may not have.
    pub fn per_s_of(self, from: Option<u64>, to: Option<u64>) -> Option<f64> {
        self.per_s(from?, to?)
    }

    /// Growth of a counter in nanoseconds as a share of the time.
    pub fn share(self, from: Nanos, to: Nanos) -> Option<f64> {
        self.per_s(from.0, to.0).map(|ns_per_s| ns_per_s / 1e9)
    }
}

/// How much a counter grew. Many of the kernel's have 32 bits, some only on 32-bit machines: one that falls from the
/// upper half of those to the lower has wrapped; one that falls otherwise has begun anew, and nobody knows how far it
/// had come.
pub(crate) fn growth(from: u64, to: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    match to.checked_sub(from) {
        None if (WRAP / 2..WRAP).contains(&from) && to < WRAP / 2 => Some(to + WRAP - from),
        grown => grown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_grows_wraps_or_begins_anew() {
        assert_eq!(growth(5, 8), Some(3));
        assert_eq!(growth(u64::from(u32::MAX) - 1, 3), Some(5), "wrapped at 32 bits");
        assert_eq!(growth(1000, 3), None, "began anew");
        assert_eq!(growth(1 << 40, 3), None);
        assert_eq!(growth(u64::MAX, 0), None);
        let over = Over(Nanos::from_millis(500));
        assert_eq!((over.per_s(5, 8), over.per_s_of(Some(5), None), over.per_s(8, 5)), (Some(6.0), None, None));
        assert_eq!(over.share(Nanos::ZERO, Nanos::from_millis(250)), Some(0.5));
        assert_eq!(Over(Nanos::ZERO).per_s(5, 8), None);
    }
}
