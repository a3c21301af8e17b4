//! Histogram of response times. A bucket is 1/128 of its octave wide, so the relative error of a quantile is at most
//! 0.8 %. The lowest and the highest bucket also count all times outside of the range.

/// Number of buckets per octave, as a power of 2.
const FINENESS: u32 = 7;
const OCTAVES: i32 = 48;
/// Number of octaves below the time around which the histogram is made.
const OCTAVES_BELOW: i32 = 20;
/// Number of buckets.
pub(super) const BUCKETS: usize = (OCTAVES as usize) << FINENESS;

/// A histogram of positive times.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    /// Number of the lowest bucket. Buckets are numbered by the leading bits of a float.
    lowest: i64,
}

/// Indices and counts of the buckets that are not empty, in ascending order.
pub(super) type Buckets = Vec<(u16, u32)>;

impl Histogram {
    /// Creates a histogram for times from a millionth of this time to 10⁸ times this time.
    pub(super) fn around(time: f64) -> Histogram {
        let lowest = number(time) - (i64::from(OCTAVES_BELOW) << FINENESS);
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

    /// The smallest time in a bucket.
    pub(super) fn lower_edge(&self, bucket: usize) -> f64 {
        let number = (self.lowest + bucket as i64).clamp(0, i64::from(u32::MAX));
        f64::from_bits((number as u64) << (52 - FINENESS))
    }
}

/// The leading bits of a non-negative number. They increase with the number.
#[inline]
fn number(time: f64) -> i64 {
    (time.max(0.0).to_bits() >> (52 - FINENESS)) as i64
}
