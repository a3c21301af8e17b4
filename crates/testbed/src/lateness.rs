//! A histogram, with a precision of 0.1 %, of how late packets leave the router relative to their due times.

use brimful_core::Nanos;
use brimful_core::record::Summary;
use hdrhistogram::Histogram;

/// Maximum lateness in the histogram, in nanoseconds. A packet with a greater lateness counts as this late.
const MAX_LATENESS: u64 = 60_000_000_000;

/// A histogram of the lateness of all packets of the router so far.
#[derive(Debug)]
pub struct Lateness {
    /// The histogram. `None` would mean that its constant bounds are invalid, which they are not.
    histogram: Option<Histogram<u64>>,
}

impl Lateness {
    /// Creates an empty histogram.
    pub fn new() -> Lateness {
        Lateness { histogram: Histogram::new_with_bounds(1, MAX_LATENESS, 3).ok() }
    }

    /// Adds the lateness of one packet.
    pub fn record(&mut self, late: Nanos) {
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(late.0);
        }
    }

    /// Number of recorded packets.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// Summary statistics of the lateness, in microseconds; `None` if no packet was recorded.
    pub fn summary(&self) -> Option<Summary> {
        let histogram = self.histogram.as_ref().filter(|histogram| !histogram.is_empty())?;
        let us = |ns: f64| ns / 1e3;
        let quantile = |q| us(histogram.value_at_quantile(q) as f64);
        Some(Summary {
            count: histogram.len(),
            mean: us(histogram.mean()),
            min: us(histogram.min() as f64),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: us(histogram.max() as f64),
            stddev: us(histogram.stdev()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_in_microseconds() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.summary(), None);
        (1..=100).for_each(|us| lateness.record(Nanos::from_micros(us)));
        lateness.record(Nanos::MAX);
        let summary = lateness.summary().unwrap();
        assert_eq!((summary.count, lateness.count()), (101, 101));
        assert!((summary.p50 - 51.0).abs() < 0.1 && (summary.p99 - 100.0).abs() < 0.2, "{summary:?}");
        assert!((summary.max / 6e7 - 1.0).abs() < 0.001, "{summary:?}");
    }
}
