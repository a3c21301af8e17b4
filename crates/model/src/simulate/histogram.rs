//! How often which response time: counts in buckets whose widths are 1/128 of their octave, so that a quantile is known
//! to 0.8 % of itself. The lowest and the highest bucket also take what is below and above them.

/// Buckets per octave, as a power of 2.
const FINENESS: u32 = 7;
const OCTAVES: i32 = 48;
/// How many octaves lie below the time around which the histogram is made.
const BELOW: i32 = 20;
/// How many there are.
pub(super) const BUCKETS: usize = (OCTAVES as usize) << FINENESS;

/// A histogram of positive times.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    /// The number of the lowest bucket, when buckets are numbered by the leading bits of a float.
    lowest: i64,
}

/// Buckets that are not empty, and how many they hold, in rising order.
pub(super) type Buckets = Vec<(u16, u32)>;

impl Histogram {
    /// For times of this magnitude, from a millionth of it to 10⁸ times as much.
    pub(super) fn around(time: f64) -> Histogram {
        let lowest = number(time) - (i64::from(BELOW) << FINENESS);
        Histogram { counts: vec![0; BUCKETS], lowest }
    }

    #[inline]
    pub(super) fn record(&mut self, time: f64) {
        let bucket = (number(time) - self.lowest).clamp(0, BUCKETS as i64 - 1);
        self.counts[bucket as usize] += 1;
    }

    /// What was recorded since it was last taken.
    pub(super) fn take(&mut self) -> Buckets {
        let filled = self.counts.iter_mut().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (bucket as u16, std::mem::take(count))).collect()
    }

    /// Where a bucket begins.
    pub(super) fn lower_edge(&self, bucket: usize) -> f64 {
        let number = (self.lowest + bucket as i64).clamp(0, i64::from(u32::MAX));
        f64::from_bits((number as u64) << (52 - FINENESS))
    }
}

/// The leading bits of a positive number rise with it; 0 is first.
#[inline]
fn number(time: f64) -> i64 {
    (time.max(0.0).to_bits() >> (52 - FINENESS)) as i64
}
