//! Throughput in samples of five seconds, as in httperf (Mosberger & Jin 1998, §3.2). A sample is the rate of completed
//! calls in one period of five seconds. The samples show changes that the mean over a run hides, and their variation
//! yields a confidence interval.
//!
//! Only whole periods inside the window, in which load is offered, are samples. An incomplete last period does not
//! count, nor does the time after the window in which the last calls end. There is one counter of 8 bytes per period,
//! for the planned window and at most [`CAPACITY`] periods.

use crate::error::StatsError;
use crate::histogram::MAX_COUNT;
use crate::student::ci95_half_width;
use brimful_core::Nanos;
use brimful_core::moments::Moments;
use brimful_core::record::ReplyRate;

/// Length of the period of one sample.
const PERIOD: Nanos = Nanos::from_secs(5);

/// Maximum number of periods: 24 hours (138 KB).
const CAPACITY: u64 = 24 * 3600 / 5;

/// Counts completed calls (or sessions) in periods of five seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplySampler {
    /// Number of completed calls (or sessions) in each period.
    periods: Vec<u64>,
}

impl ReplySampler {
    /// Creates counters for a window of at most the length `window`. All memory is allocated and written to here.
    pub fn new(window: Nanos) -> ReplySampler {
        let periods = (window.0 / PERIOD.0).min(CAPACITY) as usize;
        // Collecting the iterator writes to the memory. `vec![0; n]` would only reserve zero pages, and the run would
        // cause page faults.
        ReplySampler { periods: (0..periods).map(|_| std::hint::black_box(0)).collect() }
    }

    /// Counts a call (or session) that was completed at `at`.
    #[inline]
    pub fn record(&mut self, at: Nanos) {
        if let Some(period) = self.periods.get_mut((at.0 / PERIOD.0) as usize) {
            *period += 1;
        }
    }

    /// Adds the counts of `other`, which must have the same window.
    pub fn merge(&mut self, other: &ReplySampler) {
        for (period, theirs) in self.periods.iter_mut().zip(&other.periods) {
            *period += theirs;
        }
    }

    /// Clears all counts.
    pub(crate) fn clear(&mut self) {
        self.periods.fill(0);
    }

    /// Throughput in samples of five seconds: statistics of the samples within the actual window. The window is shorter
    /// than planned if the run was interrupted.
    pub fn summary(&self, window: Nanos) -> ReplyRate {
        let whole_periods = ((window.0 / PERIOD.0) as usize).min(self.periods.len());
        let rates: Vec<f64> =
            self.periods[..whole_periods].iter().map(|&replies| replies as f64 / PERIOD.as_secs_f64()).collect();
        let Some(moments) = Moments::from_values(&rates) else { return ReplyRate::default() };
        ReplyRate {
            samples: rates.len() as u64,
            min: rates.iter().copied().reduce(f64::min),
            mean: Some(moments.mean()),
            max: rates.iter().copied().reduce(f64::max),
            stddev: moments.standard_deviation(),
            ci95_half_width: ci95_half_width(&moments),
        }
    }

    /// The serialised form: number of completed calls in each period, up to the last period with a completed call.
    pub fn pack(&self) -> Vec<u64> {
        let used = self.periods.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
        self.periods[..used].to_vec()
    }

    /// Restores exactly the sampler of a run with this window from the output of [`ReplySampler::pack`].
    ///
    /// # Errors
    /// [`StatsError`] if `periods` is not output of `pack`.
    pub fn unpack(window: Nanos, periods: &[u64]) -> Result<ReplySampler, StatsError> {
        let mut sampler = ReplySampler::new(window);
        match sampler.periods.get_mut(..periods.len()) {
            Some(kept) if periods.iter().all(|n| *n <= MAX_COUNT) => kept.copy_from_slice(periods),
            _ => return Err(StatsError::Damaged("replies that its window has no room for".to_owned())),
        }
        Ok(sampler)
    }

    /// Number of allocated bytes. A test checks that this number does not change during a run.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> usize {
        self.periods.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(window_s: u64, per_period: &[u64]) -> ReplySampler {
        let mut sampler = ReplySampler::new(Nanos::from_secs(window_s));
        for (i, &n) in per_period.iter().enumerate() {
            (0..n).for_each(|_| sampler.record(Nanos::from_secs(5 * i as u64 + 4)));
        }
        sampler
    }

    #[test]
    fn only_whole_periods_of_the_window_are_samples() {
        let rate = sampler(19, &[50, 60, 70, 1_000]).summary(Nanos::from_secs(19));
        assert_eq!((rate.samples, rate.min, rate.mean, rate.max), (3, Some(10.0), Some(12.0), Some(14.0)));
        assert_eq!(rate.stddev, Some(2.0));
        let half_width = rate.ci95_half_width.unwrap();
        assert!((half_width - 4.303 * 2.0 / 3_f64.sqrt()).abs() < 0.001, "{half_width}");
    }

    #[test]
    fn too_few_samples_make_no_statistics() {
        assert_eq!(sampler(4, &[9]).summary(Nanos::from_secs(4)), ReplyRate::default());
        let one = sampler(60, &[50, 60]).summary(Nanos::from_secs(7));
        assert_eq!((one.samples, one.mean, one.stddev, one.ci95_half_width), (1, Some(10.0), None, None));
    }

    #[test]
    fn a_window_without_end_is_sampled_for_a_day() {
        assert_eq!(ReplySampler::new(Nanos::MAX).footprint(), 17_280 * 8);
    }
}
