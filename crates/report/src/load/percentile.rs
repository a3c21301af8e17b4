//! Percentiles of times in the text report of a run.

use super::layout::{time, time_or_dash};
use brimful_core::percentile::MIN_SLOWER_CALLS;
pub use brimful_core::percentile::{P50, P90, P95, P99, P999, Percentile};
use brimful_core::quantity::count;
use brimful_core::record::Summary;

/// Formats a percentile for a table; a dash if there are too few slower calls to estimate it.
pub fn cell(percentile: Percentile, summary: Option<&Summary>) -> String {
    time_or_dash(summary.and_then(|summary| percentile.value(summary)))
}

/// Describes the median and the 95th and 99th percentiles of times. With few calls, leaves out the percentiles that
/// cannot be estimated, and adds the mean or the maximum.
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
        0 => format!("{} takes {} calls", p.name, count(p.min_calls())),
        _ => format!("{} {}", p.name, count(p.min_calls())),
    };
    let unknown: Vec<String> = unknown.iter().enumerate().map(takes).collect();
    format!("{}; {}", known.join(", "), unknown.join(", "))
}

/// A note on why percentiles are shown as a dash; `None` if all are shown.
pub fn note(summary: &Summary) -> Option<String> {
    P999.value(summary)
        .is_none()
        .then(|| format!("A percentile is shown where at least {MIN_SLOWER_CALLS} calls are slower."))
}

#[cfg(test)]
mod tests {
    use super::*;

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
