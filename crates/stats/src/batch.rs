//! Confidence interval of the mean of autocorrelated values, by batch means.
//!
//! Successive response times are correlated, because the calls waited in the same queue. So `stddev/√n` of the single
//! values is far too small as a standard error. Sums over periods are nearly independent if the periods are much longer
//! than the time over which values are correlated (Law & Kelton, *Simulation Modeling and Analysis*, §9.5). Here, a
//! batch is a period of *time*, not a number of values. The periods are the same in every shard, so merging adds each
//! batch to the same batch of the other shard and is exact. Batches have different numbers of values, so the mean is a
//! ratio of sums, and its error is that of [`ratio_standard_error`].
//!
//! Any run longer than a tenth of a second has 32 to 64 batches. If a run needs more than 64, neighbouring batches are
//! merged in pairs and the batch length doubles. Memory: 2 KB.

use crate::error::StatsError;
use crate::estimate::ratio_standard_error;
use crate::histogram::MAX_COUNT;
use crate::student::t_95;
use brimful_core::Nanos;
use brimful_core::account::{DecimalInteger, PackedBatch};

const CAPACITY: usize = 64;

/// Log₂ of the initial batch length in nanoseconds: 2²⁰ ns are about a millisecond.
const SHORTEST: u32 = 20;

/// Sums of recorded times by batch (a period of the run). The mean and its confidence interval are computed from them.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchMeans {
    /// Log₂ of the length of a batch in nanoseconds.
    length: u32,
    batches: [Batch; CAPACITY],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Batch {
    count: u64,
    sum_ns: u128,
}

impl BatchMeans {
    /// Creates empty batches, each about a millisecond long.
    pub fn new() -> BatchMeans {
        BatchMeans { length: SHORTEST, batches: [Batch::default(); CAPACITY] }
    }

    /// Records a time in the batch that contains the instant `at` of the run.
    #[inline]
    pub fn record(&mut self, at: Nanos, time: Nanos) {
        while at.0 >> self.length >= CAPACITY as u64 {
            self.widen();
        }
        let batch = &mut self.batches[(at.0 >> self.length) as usize];
        batch.count += 1;
        batch.sum_ns += u128::from(time.0);
    }

    /// Adds the recorded times of `other`.
    pub fn merge(&mut self, mut other: BatchMeans) {
        while self.length < other.length {
            self.widen();
        }
        while other.length < self.length {
            other.widen();
        }
        for (batch, theirs) in self.batches.iter_mut().zip(other.batches) {
            batch.add(theirs);
        }
    }

    /// Clears all recorded times and keeps the batch length.
    pub(crate) fn clear(&mut self) {
        self.batches = [Batch::default(); CAPACITY];
    }

    /// The mean in microseconds; `None` if no time was recorded.
    pub fn mean_us(&self) -> Option<f64> {
        let (count, sum_ns) = self.batches.iter().fold((0, 0), |(n, s), b| (n + b.count, s + b.sum_ns));
        (count > 0).then(|| sum_ns as f64 / count as f64 / 1e3)
    }

    /// Half width of the mean's 95 % confidence interval in microseconds (Student's t); `None` with fewer than two
    /// non-empty batches.
    pub fn ci95_half_width_us(&self) -> Option<f64> {
        let full = self.batches.iter().filter(|batch| batch.count > 0);
        let pairs: Vec<(f64, f64)> = full.map(|batch| (batch.sum_ns as f64, batch.count as f64)).collect();
        let standard_error_ns = ratio_standard_error(&pairs)?;
        Some(t_95(pairs.len() as u64 - 1)? * standard_error_ns / 1e3)
    }

    /// For each batch within the window (the time in which load is offered): the number of recorded times, and the
    /// length of the batch in seconds.
    pub(crate) fn counts_by_time(&self, window_s: f64) -> Vec<(f64, f64)> {
        let length_s = Nanos(1 << self.length).as_secs_f64();
        let whole = (window_s / length_s) as usize;
        self.batches.iter().take(whole).map(|batch| (batch.count as f64, length_s)).collect()
    }

    /// For each non-empty batch: the sum of the recorded times in seconds, and their number.
    pub(crate) fn sums_s(&self) -> Vec<(f64, f64)> {
        let full = self.batches.iter().filter(|batch| batch.count > 0);
        full.map(|batch| (batch.sum_ns as f64 / 1e9, batch.count as f64)).collect()
    }

    /// The serialised form: the length of a batch in nanoseconds, and the batches up to the last non-empty one.
    pub fn pack(&self) -> (u64, Vec<PackedBatch>) {
        let used = self.batches.iter().rposition(|batch| batch.count > 0).map_or(0, |last| last + 1);
        let packed = |batch: &Batch| PackedBatch { count: batch.count, sum: DecimalInteger(batch.sum_ns) };
        (1 << self.length, self.batches[..used].iter().map(packed).collect())
    }

    /// Restores exactly the value that [`BatchMeans::pack`] serialised.
    ///
    /// # Errors
    /// [`StatsError`] if the arguments are not output of `pack`.
    pub fn unpack(batch_ns: u64, batches: &[PackedBatch]) -> Result<BatchMeans, StatsError> {
        let mut means = BatchMeans { length: batch_ns.checked_ilog2().unwrap_or(0), ..BatchMeans::new() };
        let possible = |batch: &PackedBatch| batch.count <= MAX_COUNT && batch.sum.0 <= u128::from(batch.count) << 64;
        if !batch_ns.is_power_of_two()
            || means.length < SHORTEST
            || batches.len() > CAPACITY
            || !batches.iter().all(possible)
        {
            return Err(StatsError::Damaged("batches that brimful never has".to_owned()));
        }
        for (batch, packed) in means.batches.iter_mut().zip(batches) {
            *batch = Batch { count: packed.count, sum_ns: packed.sum.0 };
        }
        Ok(means)
    }

    #[cold]
    fn widen(&mut self) {
        for i in 0..CAPACITY / 2 {
            let odd = self.batches[2 * i + 1];
            self.batches[i] = self.batches[2 * i];
            self.batches[i].add(odd);
        }
        self.batches[CAPACITY / 2..].fill(Batch::default());
        self.length += 1;
    }
}

impl Default for BatchMeans {
    fn default() -> BatchMeans {
        BatchMeans::new()
    }
}

impl Batch {
    fn add(&mut self, other: Batch) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_one_batch_have_no_interval() {
        let mut means = BatchMeans::new();
        assert_eq!((means.mean_us(), means.ci95_half_width_us()), (None, None));
        means.record(Nanos(5), Nanos(3_000));
        assert_eq!((means.mean_us(), means.ci95_half_width_us()), (Some(3.0), None));
    }

    #[test]
    fn equal_batches_give_the_textbook_interval() {
        let mut means = BatchMeans::new();
        // Three batches of two values each have means of 1, 2 and 3 µs. The standard deviation of these means is 1 µs,
        // and the standard error of the overall mean is 1/√3 µs.
        for (i, [a, b]) in [[500, 1_500], [1_900, 2_100], [2_000, 4_000]].into_iter().enumerate() {
            means.record(Nanos((i as u64) << SHORTEST), Nanos(a));
            means.record(Nanos((i as u64) << SHORTEST), Nanos(b));
        }
        assert_eq!(means.mean_us(), Some(2.0));
        let half_width = means.ci95_half_width_us().unwrap();
        assert!((half_width - 4.302_65 / 3_f64.sqrt()).abs() < 1e-4, "{half_width}");
    }

    #[test]
    fn a_long_run_keeps_32_to_64_batches() {
        let mut means = BatchMeans::new();
        for second in 0..100_000 {
            means.record(Nanos::from_secs(second), Nanos(second));
            let used = means.batches.iter().filter(|b| b.count > 0).count();
            assert!(second < 63 || (32..=64).contains(&used), "{used} batches after {second} s");
        }
        assert_eq!(means.mean_us(), Some(49.999_5));
    }

    #[test]
    fn values_that_resemble_their_neighbours_widen_the_interval() {
        let (mut alike, mut mixed) = (BatchMeans::new(), BatchMeans::new());
        for i in 0..10_000_u64 {
            // `alike` alternates between 2,500 short times and 2,500 long times. In `mixed`, single short and long
            // times alternate. The confidence interval of `alike` must be wider, because neighbouring times are equal.
            alike.record(Nanos::from_millis(i), Nanos(if i / 2_500 % 2 == 0 { 1_000 } else { 3_000 }));
            mixed.record(Nanos::from_millis(i), Nanos(if i % 2 == 0 { 1_000 } else { 3_000 }));
        }
        assert_eq!(alike.mean_us(), mixed.mean_us());
        assert!(alike.ci95_half_width_us() > mixed.ci95_half_width_us().map(|w| 20.0 * w));
    }
}
