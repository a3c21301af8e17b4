//! Histogram of response times. Each factor of 2 (octave) is divided into 128 buckets, so the relative error of a
//! quantile is at most 0.8 %. The lowest and the highest bucket also count all times outside the range.

/// log₂ of the number of buckets for each factor of 2 (octave).
const LOG2_BUCKETS_PER_OCTAVE: u32 = 7;
const OCTAVES: i32 = 48;
/// Number of octaves (factors of 2) from the lower end of the histogram to the typical time for which it is created.
const OCTAVES_BELOW: i32 = 20;
/// Total number of buckets.
pub(super) const BUCKETS: usize = (OCTAVES as usize) << LOG2_BUCKETS_PER_OCTAVE;

/// A histogram of positive times.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    /// Number of the lowest bucket. A bucket's number consists of the leading bits of the `f64` values that it counts.
    lowest: i64,
}

/// Indices and counts of the buckets that are not empty, in ascending order.
pub(super) type Buckets = Vec<(u16, u32)>;

impl Histogram {
    /// Creates a histogram for times from about 10⁻⁶ to 10⁸ times `time`, the typical time in seconds.
    pub(super) fn around(time: f64) -> Histogram {
        let lowest = number(time) - (i64::from(OCTAVES_BELOW) << LOG2_BUCKETS_PER_OCTAVE);
        Histogram { counts: vec![0; BUCKETS], lowest }
    }

    #[inline]
    pub(super) fn record(&mut self, time: f64) {
        let bucket = (number(time) - self.lowest).clamp(0, BUCKETS as i64 - 1);
        self.counts[bucket as usize] += 1;
    }

    /// Removes and returns the counts that were recorded since the last call.
    pub(super) fn take(&mut self) -> Buckets {
        let filled = self.counts.iter_mut().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (bucket as u16, std::mem::take(count))).collect()
    }

    /// The smallest time that a bucket counts, in seconds.
    pub(super) fn lower_edge(&self, bucket: usize) -> f64 {
        let number = (self.lowest + bucket as i64).clamp(0, i64::from(u32::MAX));
        f64::from_bits((number as u64) << (52 - LOG2_BUCKETS_PER_OCTAVE))
    }
}

/// The number of the bucket of a non-negative time: the leading bits of its `f64`. A longer time has the same or a
/// larger number.
#[inline]
fn number(time: f64) -> i64 {
    (time.max(0.0).to_bits() >> (52 - LOG2_BUCKETS_PER_OCTAVE)) as i64
}
