//! A compact histogram of times, for many keys such as URLs, hours and sizes. It needs memory only for the bins that
//! occur.
//!
//! Times are counted in logarithmic bins, called steps. Each number of nanoseconds below 32 is a separate step, and
//! each octave above (from a power of two to the next) has 16 steps. A percentile is the mean of the times in its step,
//! so its relative error is at most 1/16. Mean, variance and maximum are exact.

use super::histogram::PERCENTILES;
use brimful_core::profile::Times;

/// Binary logarithm of the number of steps (bins) in an octave.
const BITS: u32 = 4;

/// Counts of times by step (logarithmic bin), with their sum, sum of squares and maximum. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseTimes {
    /// For each step (logarithmic bin) that occurs, in ascending order: its index, and the count and sum of its times.
    steps: Vec<(u16, u32, f64)>,
    samples: u64,
    sum: f64,
    squares: f64,
    most: u64,
}

impl SparseTimes {
    /// Adds a time, in nanoseconds.
    pub fn add(&mut self, time_ns: u64) {
        let step = coarse_step(time_ns);
        match self.steps.binary_search_by_key(&step, |(step, ..)| *step) {
            Ok(place) => {
                let (_, count, sum) = &mut self.steps[place];
                *count = count.saturating_add(1);
                *sum += time_ns as f64;
            }
            Err(place) => self.steps.insert(place, (step, 1, time_ns as f64)),
        }
        self.samples += 1;
        self.sum += time_ns as f64;
        self.squares += (time_ns as f64).powi(2);
        self.most = self.most.max(time_ns);
    }

    /// Adds all times of another histogram.
    pub fn add_all(&mut self, other: &SparseTimes) {
        for (step, count, sum) in &other.steps {
            match self.steps.binary_search_by_key(step, |(step, ..)| *step) {
                Ok(place) => {
                    let (_, own_count, own_sum) = &mut self.steps[place];
                    *own_count = own_count.saturating_add(*count);
                    *own_sum += sum;
                }
                Err(place) => self.steps.insert(place, (*step, *count, *sum)),
            }
        }
        self.samples += other.samples;
        self.sum += other.sum;
        self.squares += other.squares;
        self.most = self.most.max(other.most);
    }

    /// Removes all times, but keeps the memory.
    pub fn clear(&mut self) {
        self.steps.clear();
        (self.samples, self.sum, self.squares, self.most) = (0, 0.0, 0.0, 0);
    }

    /// Number of times.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Sum of all times, in nanoseconds.
    pub fn sum_ns(&self) -> f64 {
        self.sum
    }

    /// The percentile at `share` (0 to 1), in nanoseconds; 0 if no time was added.
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = ((share * self.samples as f64).ceil() as u64).clamp(1, self.samples.max(1));
        let mut below = 0;
        let found = self.steps.iter().find(|(_, count, _)| {
            below += u64::from(*count);
            below >= rank
        });
        found.map_or(self.most as f64, |(_, count, sum)| sum / f64::from(*count))
    }

    /// Summarizes the distribution in seconds; `None` if no time was added.
    pub fn to_times(&self) -> Option<Times> {
        if self.samples == 0 {
            return None;
        }
        let n = self.samples as f64;
        let mean = self.sum / n;
        let scv = if self.samples < 2 || mean == 0.0 {
            0.0
        } else {
            ((self.squares / n - mean * mean) * n / (n - 1.0) / (mean * mean)).max(0.0)
        };
        let percentiles = PERCENTILES.map(|(name, share)| (name.to_owned(), self.percentile(share) / 1e9));
        Some(Times {
            samples: self.samples,
            mean: mean / 1e9,
            scv,
            percentiles: percentiles.into(),
            max: self.most as f64 / 1e9,
        })
    }
}

/// The index of the step (logarithmic bin) to which a number belongs.
pub(crate) fn coarse_step(value: u64) -> u16 {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    // The largest index is below 2¹⁰, so it fits into 16 bits.
    (((octave as usize) << BITS) + (value >> octave) as usize) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(values: &[u64]) -> SparseTimes {
        let mut times = SparseTimes::default();
        values.iter().for_each(|value| times.add(*value));
        times
    }

    #[test]
    fn without_times_there_is_no_distribution() {
        assert_eq!(SparseTimes::default().to_times(), None);
        let one = times(&[3_000_000_000]).to_times().unwrap();
        assert_eq!((one.samples, one.mean, one.scv, one.max, one.percentiles["99"]), (1, 3.0, 0.0, 3.0, 3.0));
        assert!(coarse_step(u64::MAX) < 1 << 10);
    }

    proptest! {
        #[test]
        fn percentiles_are_accurate_to_one_sixteenth(values in prop::collection::vec(0..10_000_000_000u64, 2..300)) {
            let half = values.len() / 2;
            let mut found = times(&values[..half]);
            found.add_all(&times(&values[half..]));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for share in [0.5, 0.95] {
                let exact = sorted[(share * sorted.len() as f64).ceil() as usize - 1] as f64;
                prop_assert!((found.percentile(share) - exact).abs() <= exact / 16.0);
            }
            let mean = values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64;
            let whole = found.to_times().unwrap();
            prop_assert!((whole.mean * 1e9 / mean.max(1.0) - mean / mean.max(1.0)).abs() < 1e-9);
            prop_assert_eq!(whole.samples, values.len() as u64);
        }
    }
}
