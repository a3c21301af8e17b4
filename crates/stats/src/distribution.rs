//! A distribution of times: a histogram in nanoseconds for the quantiles, and whole-number moments for what must be exact.
//!
//! Recording costs a few nanoseconds and never allocates. Times above [`LONGEST`] count as [`LONGEST`]. Quantiles are
//! the smallest recorded value that at least that share of the values does not exceed (the inverted empirical
//! distribution function), within 0.1 %; count, mean, minimum and maximum are exact.
//!
//! Source of the histogram and its encoding: G. Tene, HdrHistogram, V2 format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brimful_core::Nanos;
use brimful_core::record::Summary;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use hdrhistogram::{Counter, Histogram};
use std::hint::black_box;

/// The longest time that is told apart from longer ones: an hour.
pub const LONGEST: Nanos = Nanos::from_secs(3600);

/// Significant decimal digits of the quantiles.
const DIGITS: u8 = 3;

/// More values than any run records; a document that claims more is damaged.
const MOST_VALUES: u64 = 1 << 40;

/// A distribution of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    histogram: Histogram<u64>,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

/// Why a distribution could not be read from a document.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StatsError {
    /// Not base64.
    #[error("a histogram is not base64 ({0}): the Record is damaged, take it from its source again")]
    NotBase64(String),
    /// Not a histogram.
    #[error("a histogram cannot be decoded ({0}): the Record is damaged, take it from its source again")]
    NotAHistogram(String),
    /// A histogram of other bounds or precision.
    #[error(
        "a histogram is not in nanoseconds up to an hour with three digits: only Records that brimful wrote can be read"
    )]
    Foreign,
    /// The histogram and the summary beside it count different numbers of values.
    #[error("a histogram holds {histogram} values and its summary {summary}: they are not of the same run")]
    NotItsSummary {
        /// Values in the histogram.
        histogram: u64,
        /// Values in the summary.
        summary: u64,
    },
}

impl Distribution {
    /// Nothing recorded yet. All memory is taken and touched here.
    pub fn new() -> Distribution {
        Distribution { histogram: touched(LONGEST.0, DIGITS), sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0 }
    }

    /// One more time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        let ns = time.0.min(LONGEST.0);
        self.histogram.saturating_record(ns);
        self.sum += u128::from(ns);
        self.sum_of_squares += u128::from(ns) * u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Everything the other has recorded.
    pub fn merge(&mut self, other: &Distribution) {
        self.histogram += &other.histogram;
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// In microseconds; none while nothing is recorded.
    pub fn summary(&self) -> Option<Summary> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let mean = self.sum as f64 / count as f64;
        // In f64 the difference loses about 1e-16 of mean²: some nanoseconds of deviation beside a mean of a second.
        let squares = (self.sum_of_squares as f64 - self.sum as f64 * mean).max(0.0);
        let stddev = (squares / count.saturating_sub(1).max(1) as f64).sqrt();
        let quantile = |q: f64| self.histogram.value_at_quantile(q).clamp(self.min, self.max) as f64 / 1e3;
        Some(Summary {
            count,
            mean: mean / 1e3,
            min: self.min as f64 / 1e3,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: self.max as f64 / 1e3,
            stddev: stddev / 1e3,
        })
    }

    /// The histogram as HdrHistogram V2 (not compressed) in standard base64. The moments travel in the summary.
    #[allow(
        clippy::expect_used,
        reason = "writing to memory, with counts that new, record and from_base64 keep in range"
    )]
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.histogram, &mut bytes).expect("a histogram in memory can be encoded");
        STANDARD.encode(bytes)
    }

    /// Reads what [`Distribution::to_base64`] wrote. With the summary from the same document, the moments are as exact
    /// as they were; without, they are the histogram's, within 0.1 %.
    ///
    /// # Errors
    /// When the text is anything else, or the summary is of other values.
    pub fn from_base64(text: &str, summary: Option<&Summary>) -> Result<Distribution, StatsError> {
        let bytes = STANDARD.decode(text).map_err(|e| StatsError::NotBase64(e.to_string()))?;
        let histogram = decode(&bytes)?;
        let fresh = Distribution::new();
        let same = |f: fn(&Histogram<u64>) -> u64| f(&histogram) == f(&fresh.histogram);
        if !(same(Histogram::low) && same(Histogram::high) && histogram.sigfig() == DIGITS) {
            return Err(StatsError::Foreign);
        }
        let count = histogram.len();
        if count > MOST_VALUES {
            return Err(StatsError::NotAHistogram(format!("{count} values are more than any run records")));
        }
        if count == 0 {
            return Ok(fresh);
        }
        // Nanoseconds, kept to what can have been recorded, so that a damaged summary cannot overflow a sum.
        let ns = |us: f64| (us * 1e3).clamp(0.0, LONGEST.0 as f64);
        let n = count as f64;
        let (mean, deviations, min, max) = match summary {
            Some(s) if s.count != count => {
                return Err(StatsError::NotItsSummary { histogram: count, summary: s.count });
            }
            Some(s) => (ns(s.mean), ns(s.stddev).powi(2) * (n - 1.0), ns(s.min), ns(s.max)),
            // The histogram's own deviation divides by n.
            None => {
                let (min, max) = (histogram.min() as f64, histogram.max() as f64);
                (histogram.mean(), histogram.stdev().powi(2) * n, min, max.min(LONGEST.0 as f64))
            }
        };
        let max = max.round() as u64;
        Ok(Distribution {
            sum: (mean * n).round() as u128,
            sum_of_squares: (deviations + mean * mean * n).round() as u128,
            min: (min.round() as u64).min(max),
            max,
            histogram,
        })
    }
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution::new()
    }
}

/// An empty histogram from 1 to `high` whose counters have all been written, so that recording meets no page fault.
#[allow(clippy::expect_used, reason = "the bounds are constants of this crate")]
pub(crate) fn touched<C: Counter>(high: u64, digits: u8) -> Histogram<C> {
    let mut histogram = Histogram::new_with_bounds(1, high, digits).expect("1 and high are bounds");
    // The allocator hands out zeroed pages that do not exist yet; without the black box, writing zeros to them is
    // optimised away.
    black_box(&mut histogram).reset();
    histogram
}

/// Decodes after checking what the decoder trusts: that the payload is as long as the header says (it would allocate
/// up to 4 GiB first), and that no number takes nine bytes (it would overflow on the largest).
fn decode(bytes: &[u8]) -> Result<Histogram<u64>, StatsError> {
    const V2: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
    const HEADER: usize = 40;
    let damaged = |what: &str| StatsError::NotAHistogram(what.to_owned());
    let (header, payload) = bytes.split_at_checked(HEADER).ok_or_else(|| damaged("it is cut short"))?;
    if header[..4] != V2 {
        return Err(damaged("it is not HdrHistogram V2"));
    }
    let length = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    if usize::try_from(length) != Ok(payload.len()) {
        return Err(damaged("its length is wrong"));
    }
    if payload.windows(8).any(|w| w.iter().all(|byte| byte & 0x80 != 0)) {
        return Err(damaged("a count is too large"));
    }
    Deserializer::new().deserialize(&mut &bytes[..]).map_err(|e| damaged(&e.to_string()))
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
    fn damaged_text_is_an_error() {
        let good = of(&[5, 5_000]).to_base64();
        for bad in ["", "*", &good[..good.len() - 4], &STANDARD.encode([0; 64])] {
            assert!(Distribution::from_base64(bad, None).is_err(), "{bad}");
        }
        let mut huge = STANDARD.decode(&good).unwrap();
        huge.truncate(40);
        huge.extend([0xff; 9]);
        huge[4..8].copy_from_slice(&9_u32.to_be_bytes());
        let error = Distribution::from_base64(&STANDARD.encode(&huge), None).unwrap_err();
        assert_eq!(error, StatsError::NotAHistogram("a count is too large".to_owned()));
    }

    #[test]
    fn another_tools_histogram_is_refused() {
        let mut bytes = Vec::new();
        let foreign = Histogram::<u64>::new_with_bounds(1, 1_000_000, 2).unwrap();
        V2Serializer::new().serialize(&foreign, &mut bytes).unwrap();
        assert_eq!(Distribution::from_base64(&STANDARD.encode(bytes), None), Err(StatsError::Foreign));
    }

    #[test]
    fn a_damaged_summary_overflows_nothing() {
        let written = of(&[1, 2]);
        let damaged = Summary { mean: 1e300, stddev: f64::INFINITY, max: f64::NAN, ..written.summary().unwrap() };
        let mut read = Distribution::from_base64(&written.to_base64(), Some(&damaged)).unwrap();
        read.merge(&read.clone());
        assert_eq!(read.summary().unwrap().mean, 3.6e9);
    }

    #[test]
    fn a_summary_of_other_values_is_refused() {
        let other = of(&[1, 2, 3]).summary();
        let read = Distribution::from_base64(&of(&[1, 2]).to_base64(), other.as_ref());
        assert_eq!(read, Err(StatsError::NotItsSummary { histogram: 2, summary: 3 }));
    }
}
