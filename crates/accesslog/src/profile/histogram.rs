//! A histogram of whole numbers, mostly of nanoseconds, in 60 kB. Mean and variance are exact.
//!
//! Numbers are counted in logarithmic bins, called steps. Each number below 128 is a separate step. From 128 on, each
//! octave (from a power of two to the next) has 64 steps, so the width of a step is at most 1/64 of its numbers. A
//! percentile is the mean of the numbers in its step. It is exact below 128; otherwise, its relative error is at most
//! 1/64.

use brimful_core::profile::Times;

/// Binary logarithm of the number of steps (bins) in an octave.
const BITS: u32 = 6;

/// Number of steps (bins) that cover all numbers of 64 bits.
pub(super) const STEPS: usize = ((64 - BITS as usize) + 1) << BITS;

/// The percentiles in a profile: the name of each, and the fraction of the values below it.
pub(super) const PERCENTILES: [(&str, f64); 4] = [("50", 0.5), ("90", 0.9), ("95", 0.95), ("99", 0.99)];

/// Counts of numbers by step (logarithmic bin), with their mean and variance.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// Count and sum of the numbers in each step (logarithmic bin); empty if no number was added.
    steps: Vec<(u64, f64)>,
    samples: u64,
    sum: u128,
    squares: f64,
    most: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { steps: Vec::new(), samples: 0, sum: 0, squares: 0.0, most: 0 }
    }
}

impl Histogram {
    /// Adds a number.
    pub fn add(&mut self, value: u64) {
        if self.steps.is_empty() {
            self.steps = vec![(0, 0.0); STEPS];
        }
        if let Some((count, sum)) = self.steps.get_mut(step(value)) {
            *count += 1;
            *sum += value as f64;
        }
        self.samples += 1;
        self.sum += u128::from(value);
        self.squares += (value as f64).powi(2);
        self.most = self.most.max(value);
    }

    /// Whether no number was added.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Summarizes the distribution. All values are divided by `unit`, which is 10⁹ to convert nanoseconds to seconds.
    pub fn to_times(&self, unit: f64) -> Times {
        if self.is_empty() {
            return Times::default();
        }
        let percentiles = PERCENTILES.map(|(name, share)| (name.to_owned(), self.percentile(share) / unit));
        Times {
            samples: self.samples,
            mean: self.mean() / unit,
            scv: self.scv(),
            percentiles: percentiles.into(),
            max: self.most as f64 / unit,
        }
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.samples as f64
    }

    /// Squared coefficient of variation, from the variance with divisor n − 1; 0 for a single number, or if all numbers
    /// are 0.
    fn scv(&self) -> f64 {
        let n = self.samples as f64;
        let mean = self.mean();
        if self.samples < 2 || mean == 0.0 {
            return 0.0;
        }
        ((self.squares / n - mean * mean) * n / (n - 1.0) / (mean * mean)).max(0.0)
    }

    /// The percentile at `share` (0 to 1): the mean of the numbers in the step (logarithmic bin) that contains it.
    fn percentile(&self, share: f64) -> f64 {
        let rank = ((share * self.samples as f64).ceil() as u64).clamp(1, self.samples);
        let mut below = 0;
        let found = self.steps.iter().find(|(count, _)| {
            below += count;
            below >= rank
        });
        found.map_or(self.most as f64, |(count, sum)| sum / *count as f64)
    }
}

/// The index of the step (logarithmic bin) to which a number belongs.
pub(super) fn step(value: u64) -> usize {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    ((octave as usize) << BITS) + (value >> octave) as usize
}

/// The smallest and the largest number of a step (logarithmic bin).
#[cfg(test)]
pub(super) fn bounds(step: usize) -> (u64, u64) {
    let octave = (step >> BITS).saturating_sub(1) as u32;
    let mantissa = (step - ((octave as usize) << BITS)) as u64;
    let least = mantissa << octave;
    (least, least + ((1 << octave) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.add(*value));
        histogram
    }

    #[test]
    fn steps_follow_one_another_without_gaps() {
        let mut next = 0;
        for index in 0..STEPS {
            let (least, most) = bounds(index);
            assert_eq!(least, next, "step {index}");
            assert_eq!((step(least), step(most)), (index, index));
            next = most.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last step must end with the largest number");
    }

    #[test]
    fn of_nothing_there_is_nothing() {
        assert_eq!(Histogram::default().to_times(1.0), Times::default());
        let one = histogram(&[3_000_000_000]).to_times(1e9);
        assert_eq!((one.samples, one.mean, one.scv, one.max), (1, 3.0, 0.0, 3.0));
        assert!(one.percentiles.values().all(|p| *p == 3.0), "{one:?}");
        let whole = histogram(&[1_000_000_000, 2_000_000_000, 2_000_000_000]).to_times(1e9);
        assert!(whole.percentiles.values().all(|p| *p == 2.0), "whole seconds must stay whole: {whole:?}");
        assert_eq!(histogram(&[u64::MAX; 3]).to_times(1.0).max, u64::MAX as f64);
    }

    proptest! {
        #[test]
        fn a_step_is_narrow(value: u64) {
            let (least, most) = bounds(step(value));
            prop_assert!((least..=most).contains(&value));
            prop_assert!(most - least <= least / 64);
        }

        #[test]
        fn it_says_what_the_sorted_numbers_say(values in prop::collection::vec(0..10_000_000_000u64, 2..300)) {
            let times = histogram(&values).to_times(1.0);
            let n = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / n;
            let variance = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!((times.mean / mean - 1.0).abs() < 1e-9);
            prop_assert!((times.scv - variance / mean / mean).abs() < 1e-6);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for (name, share) in PERCENTILES {
                let exact = sorted[(share * n).ceil() as usize - 1] as f64;
                let close = (times.percentiles[name] - exact).abs() <= exact / 64.0;
                prop_assert!(close, "{name} %: {} not {exact}", times.percentiles[name]);
            }
        }
    }
}
