//! A distribution of times. It has a histogram in nanoseconds, for quantiles, and the exact sums of the times and of
//! their squares.
//!
//! Recording a time takes a few nanoseconds and never allocates memory. Times above [`MAX_RECORDED_TIME`] count as
//! [`MAX_RECORDED_TIME`]. The q-quantile is the smallest recorded value that at least the share q of all values does
//! not exceed (the inverse of the empirical distribution function). Quantiles are accurate to 0.1 %. Count, mean,
//! minimum and maximum are exact.

use crate::error::StatsError;
use crate::histogram::{self, empty, encode, touched};
use brimful_core::Nanos;
use brimful_core::account::{DecimalInteger, PackedTimes};
use brimful_core::record::Summary;
use hdrhistogram::Histogram;

/// The longest time that can be recorded: an hour. Longer times are recorded as this time.
pub const MAX_RECORDED_TIME: Nanos = Nanos::from_secs(3600);

/// Number of significant decimal digits of the quantiles.
const DIGITS: u8 = 3;

/// A distribution of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    histogram: Histogram<u64>,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Distribution {
    /// Creates an empty distribution. All its memory is allocated and written to.
    pub fn new() -> Distribution {
        Distribution::from_empty_histogram(touched(MAX_RECORDED_TIME.0, DIGITS))
    }

    /// Creates an empty distribution into which others are merged. Its memory is not written to in advance.
    pub(crate) fn none() -> Distribution {
        Distribution::from_empty_histogram(empty(MAX_RECORDED_TIME.0, DIGITS))
    }

    /// Creates an empty histogram. All distributions have histograms with the same bounds.
    pub(crate) fn empty_histogram() -> Histogram<u64> {
        empty(MAX_RECORDED_TIME.0, DIGITS)
    }

    fn from_empty_histogram(histogram: Histogram<u64>) -> Distribution {
        Distribution { histogram, sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0 }
    }

    /// Records a time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        let ns = time.0.min(MAX_RECORDED_TIME.0);
        self.histogram.saturating_record(ns);
        self.sum += u128::from(ns);
        self.sum_of_squares += u128::from(ns) * u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Adds the recorded times of `other`.
    pub fn merge(&mut self, other: &Distribution) {
        self.histogram += &other.histogram;
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Removes all recorded times.
    pub(crate) fn clear(&mut self) {
        if self.count() > 0 {
            self.histogram.reset();
            self.sum = 0;
            self.sum_of_squares = 0;
            self.min = u64::MAX;
            self.max = 0;
        }
    }

    /// Number of recorded times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Mean, extremes and quantiles of the recorded times, in microseconds; `None` if no time was recorded.
    pub fn summary(&self) -> Option<Summary> {
        self.summary_in(1e3)
    }

    /// Mean, extremes and quantiles of the recorded times, in units of `unit_ns` nanoseconds; `None` if no time was
    /// recorded.
    pub(crate) fn summary_in(&self, unit_ns: f64) -> Option<Summary> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let mean = self.sum as f64 / count as f64;
        // Rounding in `f64` causes an error of about 1e-16·mean². With a mean of one second, the error of the standard
        // deviation is about ten nanoseconds.
        let squares = (self.sum_of_squares as f64 - self.sum as f64 * mean).max(0.0);
        let stddev = (squares / count.saturating_sub(1).max(1) as f64).sqrt();
        let quantile = |q: f64| self.histogram.value_at_quantile(q).clamp(self.min, self.max) as f64 / unit_ns;
        Some(Summary {
            count,
            mean: mean / unit_ns,
            min: self.min as f64 / unit_ns,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: self.max as f64 / unit_ns,
            stddev: stddev / unit_ns,
        })
    }

    /// The q-quantile of the recorded times; `None` if no time was recorded.
    pub(crate) fn quantile(&self, q: f64) -> Option<Nanos> {
        (self.count() > 0).then(|| Nanos(self.histogram.value_at_quantile(q).clamp(self.min, self.max)))
    }

    /// Number of recorded times above `limit`, accurate to 0.1 % of `limit`.
    pub(crate) fn count_above(&self, limit: Nanos) -> u64 {
        self.count() - self.histogram.count_between(0, limit.0.min(MAX_RECORDED_TIME.0))
    }

    /// The histogram as base64.
    pub fn to_base64(&self) -> String {
        encode(&self.histogram)
    }

    /// The serialised form; `None` if no time was recorded.
    pub fn pack(&self) -> Option<PackedTimes> {
        (self.count() > 0).then(|| PackedTimes {
            histogram: self.to_base64(),
            sum: DecimalInteger(self.sum),
            sum_of_squares: DecimalInteger(self.sum_of_squares),
            min: self.min,
            max: self.max,
        })
    }

    /// Restores exactly the distribution that [`Distribution::pack`] serialised.
    ///
    /// # Errors
    /// [`StatsError`] if `packed` is not output of `pack`.
    pub fn unpack(packed: Option<&PackedTimes>) -> Result<Distribution, StatsError> {
        let mut read = Distribution::none();
        read.add(packed)?;
        Ok(read)
    }

    /// Adds the output of [`Distribution::pack`].
    ///
    /// # Errors
    /// [`StatsError`] if `packed` is not output of `pack`. Part of `packed` may have been added.
    pub(crate) fn add(&mut self, packed: Option<&PackedTimes>) -> Result<(), StatsError> {
        let Some(packed) = packed else { return Ok(()) };
        let PackedTimes {
            ref histogram,
            sum: DecimalInteger(sum),
            sum_of_squares: DecimalInteger(sum_of_squares),
            min,
            max,
        } = *packed;
        let count = u128::from(histogram::add(&mut self.histogram, histogram)?);
        let longest = u128::from(MAX_RECORDED_TIME.0);
        let possible = count > 0
            && (min..=MAX_RECORDED_TIME.0).contains(&max)
            && (count * u128::from(min)..=count * u128::from(max)).contains(&sum)
            && sum_of_squares <= count * longest * longest;
        if !possible {
            return Err(StatsError::Damaged("the moments of a histogram do not match it".to_owned()));
        }
        self.sum += sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(sum_of_squares);
        self.min = self.min.min(min);
        self.max = self.max.max(max);
        Ok(())
    }
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> Distribution {
        let mut d = Distribution::new();
        times.iter().for_each(|&t| d.record(Nanos(t)));
        d
    }

    #[test]
    fn nothing_recorded_has_no_summary() {
        assert_eq!(Distribution::new().summary(), None);
    }

    #[test]
    fn moments_are_exact() {
        let s = of(&[1_000, 2_000, 3_000, 4_001]).summary().unwrap();
        assert_eq!((s.count, s.mean, s.min, s.max), (4, 2.500_25, 1.0, 4.001));
        assert!((s.stddev - 1.291_382).abs() < 1e-6, "{}", s.stddev);
        assert_eq!(of(&[7_000]).summary().unwrap().stddev, 0.0);
    }

    #[test]
    fn a_time_beyond_the_bound_counts_as_the_bound() {
        let s = of(&[0, u64::MAX]).summary().unwrap();
        assert_eq!((s.count, s.min, s.max, s.p999), (2, 0.0, 3.6e9, 3.6e9));
    }

    #[test]
    fn moments_that_no_such_times_have_are_refused() {
        let written = of(&[1_000, 2_000]).pack().unwrap();
        assert_eq!(Distribution::unpack(Some(&written)), Ok(of(&[1_000, 2_000])));
        assert_eq!(Distribution::unpack(None), Ok(Distribution::new()));
        let zero = PackedTimes { histogram: Distribution::new().to_base64(), ..PackedTimes::default() };
        for damaged in [
            PackedTimes { sum: DecimalInteger(u128::MAX), ..written.clone() },
            PackedTimes { sum: DecimalInteger(1_999), ..written.clone() },
            PackedTimes { sum_of_squares: DecimalInteger(u128::MAX), ..written.clone() },
            PackedTimes { min: 2_001, ..written.clone() },
            PackedTimes { max: u64::MAX, ..written },
            zero,
        ] {
            assert!(Distribution::unpack(Some(&damaged)).is_err(), "{damaged:?}");
        }
    }
}
