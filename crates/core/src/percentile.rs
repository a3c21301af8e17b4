//! Percentiles of response times, and the minimum number of calls from which each percentile is meaningful.
//!
//! The rule is n(1 − p) ≥ 10: at least ten calls must be slower than the percentile p of n calls. It is the "large
//! counts" condition for proportions (Moore, McCabe & Craig, *Introduction to the Practice of Statistics*). With ten
//! slower calls, the standard error of their number is about a third of it (1/√10). Documents contain all percentiles
//! together with the number of calls; reports show only meaningful percentiles.

use crate::record::Summary;

/// Minimum number of calls that must be slower than a percentile for the percentile to be meaningful.
pub const MIN_SLOWER_CALLS: u64 = 10;

/// One of the percentiles that a [`Summary`] (the statistics of a distribution of times) contains.
#[derive(Clone, Copy)]
pub struct Percentile {
    /// Name of the percentile, like `p95`.
    pub name: &'static str,
    /// Number of calls per thousand that are slower than the percentile.
    slower_per_mille: u64,
    figure: fn(&Summary) -> f64,
}

/// The median: half of the calls are slower.
pub const P50: Percentile = Percentile { name: "p50", slower_per_mille: 500, figure: |s| s.p50 };
/// The 90th percentile: 10 % of the calls are slower.
pub const P90: Percentile = Percentile { name: "p90", slower_per_mille: 100, figure: |s| s.p90 };
/// The 95th percentile: 5 % of the calls are slower.
pub const P95: Percentile = Percentile { name: "p95", slower_per_mille: 50, figure: |s| s.p95 };
/// The 99th percentile: 1 % of the calls are slower.
pub const P99: Percentile = Percentile { name: "p99", slower_per_mille: 10, figure: |s| s.p99 };
/// The 99.9th percentile: 0.1 % of the calls are slower.
pub const P999: Percentile = Percentile { name: "p99.9", slower_per_mille: 1, figure: |s| s.p999 };

impl Percentile {
    /// Returns this percentile of a distribution; `None` if the distribution has too few values.
    pub fn value(self, summary: &Summary) -> Option<f64> {
        (summary.count >= self.min_calls()).then(|| (self.figure)(summary))
    }

    /// Minimum number of calls, or of other values, from which the percentile is meaningful.
    pub fn min_calls(self) -> u64 {
        MIN_SLOWER_CALLS * 1_000 / self.slower_per_mille
    }

    /// The percentile as a fraction, such as 0.95 for p95.
    pub fn share(self) -> f64 {
        1.0 - self.slower_per_mille as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_takes_ten_calls_that_are_slower() {
        let shown = |count| {
            let summary = Summary { count, p50: 1.0, p90: 2.0, p95: 3.0, p99: 4.0, p999: 5.0, ..Summary::default() };
            [P50, P90, P95, P99, P999].map(|p| p.value(&summary).is_some())
        };
        assert_eq!(shown(19), [false; 5]);
        assert_eq!(shown(20), [true, false, false, false, false]);
        assert_eq!([shown(100)[1], shown(199)[2], shown(200)[2]], [true, false, true]);
        assert_eq!([shown(999)[3], shown(1_000)[3], shown(9_999)[4], shown(10_000)[4]], [false, true, false, true]);
        assert_eq!((P50.share(), P99.share()), (0.5, 0.99));
    }
}
