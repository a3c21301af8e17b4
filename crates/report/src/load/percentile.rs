//! Percentiles, and the number of calls for which they are meaningful.
//!
//! The p-quantile of n calls is shown if n(1 − p) ≥ 10. This is a usual rule for shares of a sample (the "large counts"
//! condition of Moore, McCabe & Craig, *Introduction to the Practice of Statistics*): the number of slower calls then
//! varies by about a third (1/√10). With fewer slower calls, the percentile depends on a few single calls. Documents
//! contain all percentiles, and the number of calls.

use super::layout::{time, time_or_dash};
use brimful_core::quantity::count;
use brimful_core::record::Summary;

/// The report shows a percentile only if at least this many calls are slower.
const MIN_SLOWER: u64 = 10;

/// A percentile of the report.
#[derive(Clone, Copy)]
pub struct Percentile {
    /// Name of the percentile, like `p95`.
    pub name: &'static str,
    /// Share of the calls that are slower, per thousand.
    slower_per_mille: u64,
    figure: fn(&Summary) -> f64,
}

pub const P50: Percentile = Percentile { name: "p50", slower_per_mille: 500, figure: |s| s.p50 };
pub const P90: Percentile = Percentile { name: "p90", slower_per_mille: 100, figure: |s| s.p90 };
pub const P95: Percentile = Percentile { name: "p95", slower_per_mille: 50, figure: |s| s.p95 };
pub const P99: Percentile = Percentile { name: "p99", slower_per_mille: 10, figure: |s| s.p99 };
pub const P999: Percentile = Percentile { name: "p99.9", slower_per_mille: 1, figure: |s| s.p999 };

impl Percentile {
    /// The percentile of a distribution, if enough calls are slower.
    pub fn value(self, summary: &Summary) -> Option<f64> {
        (summary.count >= self.calls()).then(|| (self.figure)(summary))
    }

    /// Minimum number of calls, or of other values, for the percentile to be meaningful.
    pub fn calls(self) -> u64 {
        MIN_SLOWER * 1_000 / self.slower_per_mille
    }

    /// Formats the percentile for a table cell; a dash if too few calls are slower.
    pub fn cell(self, summary: Option<&Summary>) -> String {
        time_or_dash(summary.and_then(|summary| self.value(summary)))
    }
}

/// Describes median, 95th and 99th percentile. If there are few calls, the text contains only the meaningful
/// percentiles, and the mean or the maximum.
pub fn describe(summary: &Summary) -> String {
    let main = [P50, P95, P99];
    let mut known: Vec<String> =
        main.iter().filter_map(|p| Some(format!("{} {}", p.name, time(p.value(summary)?)))).collect();
    let unknown: Vec<Percentile> = main.into_iter().filter(|p| p.value(summary).is_none()).collect();
    if known.is_empty() {
        known.push(format!("mean {}", time(summary.mean)));
    }
    if unknown.is_empty() {
        return known.join(", ");
    }
    known.push(format!("max {}", time(summary.max)));
    let takes = |(nth, p): (usize, &Percentile)| match nth {
        0 => format!("{} takes {} calls", p.name, count(p.calls())),
        _ => format!("{} {}", p.name, count(p.calls())),
    };
    let unknown: Vec<String> = unknown.iter().enumerate().map(takes).collect();
    format!("{}; {}", known.join(", "), unknown.join(", "))
}

/// A note that explains the dash in place of a percentile; `None` if all percentiles are shown.
pub fn note(summary: &Summary) -> Option<String> {
    P999.value(summary)
        .is_none()
        .then(|| format!("A percentile is shown where at least {MIN_SLOWER} calls are slower."))
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
    }

    #[test]
    fn few_calls_say_little() {
        let said = |count| {
            let (p50, p95, p99) = (900.0, 1_500.0, 2_000.0);
            describe(&Summary { count, mean: 1_000.0, p50, p95, p99, max: 2_500.0, ..Summary::default() })
        };
        assert_eq!(said(1_000), "p50 900 µs, p95 1.50 ms, p99 2.00 ms");
        assert_eq!(said(200), "p50 900 µs, p95 1.50 ms, max 2.50 ms; p99 takes 1,000 calls");
        assert_eq!(said(1), "mean 1.00 ms, max 2.50 ms; p50 takes 20 calls, p95 200, p99 1,000");
    }
}
