//! How late packets leave the router: a histogram, within 0.1 %.

use brimful_core::Nanos;
use brimful_core::record::Summary;
use hdrhistogram::Histogram;

/// Later than this is as late as this.
const MOST: u64 = 60_000_000_000;

/// The latenesses of the packets so far.
#[derive(Debug)]
pub struct Late {
    /// `None` if the bounds were no bounds, which they are.
    histogram: Option<Histogram<u64>>,
}

impl Late {
    /// Of no packet yet.
    pub fn new() -> Late {
        Late { histogram: Histogram::new_with_bounds(1, MOST, 3).ok() }
    }

    /// One more packet.
    pub fn record(&mut self, late: Nanos) {
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(late.0);
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// In microseconds; `None` of no packet.
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
    fn latenesses_are_told_in_microseconds() {
        let mut late = Late::new();
        assert_eq!(late.summary(), None);
        (1..=100).for_each(|us| late.record(Nanos::from_micros(us)));
        late.record(Nanos::MAX);
        let summary = late.summary().unwrap();
        assert_eq!((summary.count, late.count()), (101, 101));
        assert!((summary.p50 - 51.0).abs() < 0.1 && (summary.p99 - 100.0).abs() < 0.2, "{summary:?}");
        assert!((summary.max / 6e7 - 1.0).abs() < 0.001, "{summary:?}");
    }
}
