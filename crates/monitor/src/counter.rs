//! The growth of counters between two readings.

use brimful_core::Nanos;

/// The time between two readings of counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeSpan(pub Nanos);

impl TimeSpan {
    /// Growth of a counter per second; `None` if the counter was reset in between, or if no time has passed.
    pub fn per_s(self, from: u64, to: u64) -> Option<f64> {
        let seconds = self.0.as_secs_f64();
        (seconds > 0.0).then_some(growth(from, to)? as f64 / seconds)
    }

    /// Like [`TimeSpan::per_s`], but for counters that the kernel may not provide.
    pub fn optional_per_s(self, from: Option<u64>, to: Option<u64>) -> Option<f64> {
        self.per_s(from?, to?)
    }

    /// Growth of a time counter divided by the time span; `None` if the counter was reset, or if no time has passed.
    pub fn share(self, from: Nanos, to: Nanos) -> Option<f64> {
        self.per_s(from.0, to.0).map(|ns_per_s| ns_per_s / 1e9)
    }
}

/// The growth of a counter; `None` if the counter was reset. Many of the kernel's counters have 32 bits, some of them
/// only on 32-bit machines. Others are sums of 32-bit counters over CPUs. A counter that falls by nearly 2³² has
/// therefore wrapped around. A counter that falls by any other amount was reset, and its last value is unknown.
pub(crate) fn growth(from: u64, to: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    match from.checked_sub(to) {
        None | Some(0) => Some(to - from),
        Some(fall) if (WRAP / 2..WRAP).contains(&fall) => Some(WRAP - fall),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_counter_grows_wraps_or_begins_anew() {
        assert_eq!(growth(5, 8), Some(3));
        assert_eq!(growth(8, 8), Some(0));
        assert_eq!(growth(u64::from(u32::MAX) - 1, 3), Some(5), "the counter wrapped around at 32 bits");
        assert_eq!(growth(9_000_000_000, 9_000_000_700 - (1 << 32)), Some(700), "one of the summed counters wrapped");
        assert_eq!(growth(1000, 3), None, "the counter was reset");
        assert_eq!(growth((1 << 31) + 7, 1 << 31), None, "a small fall is a reset");
        assert_eq!(growth(1 << 40, 3), None);
        assert_eq!(growth(u64::MAX, 0), None);
        let over = TimeSpan(Nanos::from_millis(500));
        assert_eq!((over.per_s(5, 8), over.optional_per_s(Some(5), None), over.per_s(8, 5)), (Some(6.0), None, None));
        assert_eq!(over.share(Nanos::ZERO, Nanos::from_millis(250)), Some(0.5));
        assert_eq!(TimeSpan(Nanos::ZERO).per_s(5, 8), None);
    }

    proptest! {
        #[test]
        fn a_counter_of_32_bits_never_loses_a_count(from in any::<u32>(), grown in 0u32..1 << 31) {
            prop_assert_eq!(growth(from.into(), from.wrapping_add(grown).into()), Some(grown.into()));
        }
    }
}
