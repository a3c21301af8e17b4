//! Throughput in samples of five seconds, as httperf takes it (Mosberger & Jin 1998, §3.2): one average over a run hides
//! its course, and the spread of the samples gives a confidence interval.
//!
//! Only whole periods inside the window are samples, so neither the drain at the end nor a cut-off period counts.
//! Completions are counted per period, 8 bytes each, for the planned window and at most for [`CAPACITY`] periods.

use crate::error::StatsError;
use crate::histogram::MOST;
use crate::student::t_95;
use brimful_core::Nanos;
use brimful_core::record::ReplyRate;

/// Length of a period.
const PERIOD: Nanos = Nanos::from_secs(5);

/// The most periods that are sampled: the first 24 hours (138 KB).
const CAPACITY: u64 = 24 * 3600 / 5;

/// Counts completions in periods of five seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplySampler {
    /// Completions per period; never empty, so that a short window is touched too.
    periods: Vec<u64>,
}

impl ReplySampler {
    /// For a window of at most this length. All memory is taken and touched here.
    pub fn new(window: Nanos) -> ReplySampler {
        let periods = (window.0 / PERIOD.0).min(CAPACITY) as usize;
        // Built from an iterator, because `vec![0; n]` only reserves zero pages and leaves touching them to the run.
        ReplySampler { periods: (0..periods).map(|_| std::hint::black_box(0)).collect() }
    }

    /// A whole response arrived.
    #[inline]
    pub fn record(&mut self, at: Nanos) {
        if let Some(period) = self.periods.get_mut((at.0 / PERIOD.0) as usize) {
            *period += 1;
        }
    }

    /// Everything the other has counted, of a run with the same window.
    pub fn merge(&mut self, other: &ReplySampler) {
        for (period, theirs) in self.periods.iter_mut().zip(&other.periods) {
            *period += theirs;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.periods.fill(0);
    }

    /// The samples of the window in which load was offered in the end (an interrupted run's is shorter than planned).
    pub fn summary(&self, window: Nanos) -> ReplyRate {
        let whole = ((window.0 / PERIOD.0) as usize).min(self.periods.len());
        let rates = || self.periods[..whole].iter().map(|&n| n as f64 / PERIOD.as_secs_f64());
        let n = whole as f64;
        if whole == 0 {
            return ReplyRate::default();
        }
        let mean = rates().sum::<f64>() / n;
        let stddev = (whole > 1).then(|| (rates().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt());
        ReplyRate {
            samples: whole as u64,
            min: rates().reduce(f64::min),
            mean: Some(mean),
            max: rates().reduce(f64::max),
            stddev,
            ci95_half_width: stddev.and_then(|sd| Some(t_95(whole as u64 - 1)? * sd / n.sqrt())),
        }
    }

    /// As documents hold it: completions per period, up to the last that has one.
    pub fn pack(&self) -> Vec<u64> {
        let used = self.periods.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
        self.periods[..used].to_vec()
    }

    /// Reads what [`ReplySampler::pack`] wrote of a run with this window, exactly.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn unpack(window: Nanos, periods: &[u64]) -> Result<ReplySampler, StatsError> {
        let mut sampler = ReplySampler::new(window);
        match sampler.periods.get_mut(..periods.len()) {
            Some(kept) if periods.iter().all(|n| *n <= MOST) => kept.copy_from_slice(periods),
            _ => return Err(StatsError::Damaged("replies that its window has no room for".to_owned())),
        }
        Ok(sampler)
    }

    /// Bytes held, for the test that they never change.
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
