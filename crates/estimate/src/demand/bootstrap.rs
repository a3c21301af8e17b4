//! Confidence intervals from time series, whose observations may depend on each other: the moving-block bootstrap.
//!
//! Künsch, *The jackknife and the bootstrap for general stationary observations*, Annals of Statistics 17 (1989), §2.3.
//! A resampled series is a sequence of blocks of ℓ consecutive observations, which begin at random positions of the
//! original series. It has the length of the original. Blocks preserve the dependence between neighbouring
//! observations. The block length of a series of n observations is ℓ = ⌈n^⅓⌉; this order minimizes the mean squared
//! error of the bootstrap's variance estimate (Hall, Horowitz & Jing, Biometrika 82, 1995). If there are several
//! series, such as runs at different loads, each is resampled separately, so every draw has the same loads as the
//! measurement. Intervals are the 2.5 and 97.5 % percentiles of the draws. The seed determines the result.

use crate::EstimateError;
use brimful_core::JsonSchema;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;

/// Minimum number of observations in all time series together. With fewer, the bootstrap underestimates the variance.
const MIN_OBSERVATIONS: usize = 8;

/// Number of draws (resampled data sets) of the bootstrap, and their seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resampling {
    /// Number of draws, each of which is a resampled data set.
    pub draws: usize,
    /// Seed of the random draws.
    pub seed: u64,
}

impl Default for Resampling {
    /// The default is 1000 draws. With more draws, the ends of a confidence interval would change by at most about 5 %
    /// of its width.
    fn default() -> Self {
        Self { draws: 1000, seed: 1 }
    }
}

/// The values of a statistic in many resampled data sets (draws). Their distribution yields confidence intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    /// The values of the statistic in each draw, draws × values. A draw is left out if the statistic could not be
    /// computed.
    pub draws: Vec<Vec<f64>>,
    /// Number of draws for which the statistic could not be computed.
    pub failed: usize,
    /// Number of consecutive observations in a block, for each series.
    pub block_lengths: Vec<usize>,
}

/// A 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Bootstrap {
    /// 95 % confidence interval of the statistic's value with the index `value`.
    pub fn interval(&self, value: usize) -> Interval {
        self.interval_of(|draw| draw.get(value).copied())
    }

    /// 95 % confidence interval of a function of the statistic's values. The function is evaluated for each draw.
    pub fn interval_of(&self, function: impl Fn(&[f64]) -> Option<f64>) -> Interval {
        let mut sorted: Vec<f64> = self.draws.iter().filter_map(|draw| function(draw)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Interval { low: quantile(&sorted, 0.025), high: quantile(&sorted, 0.975) }
    }
}

/// Resamples the time series many times (moving-block bootstrap), and computes the statistic for each draw.
///
/// The statistic may return `None` for a draw from which it cannot be computed, and may return several values.
///
/// # Errors
/// If there are too few observations, or if the statistic cannot be computed for more than half of the draws.
pub fn moving_blocks<S>(
    series: &[Vec<S>],
    resampling: Resampling,
    mut statistic: impl FnMut(&[Vec<&S>]) -> Option<Vec<f64>>,
) -> Result<Bootstrap, EstimateError> {
    let given = series.iter().map(Vec::len).sum();
    if given < MIN_OBSERVATIONS {
        return Err(EstimateError::TooFewObservations { needed: MIN_OBSERVATIONS, given });
    }
    if resampling.draws == 0 {
        return Err(EstimateError::Inconsistent("0 draws yield no interval: ask for 1000".into()));
    }
    let block_lengths: Vec<usize> = series.iter().map(|s| (s.len() as f64).cbrt().ceil() as usize).collect();
    let mut rng = Pcg64::seed_from_u64(resampling.seed);
    let draws: Vec<Vec<f64>> = (0..resampling.draws)
        .filter_map(|_| {
            let drawn: Vec<Vec<&S>> =
                series.iter().zip(&block_lengths).map(|(s, length)| draw(s, *length, &mut rng)).collect();
            statistic(&drawn).filter(|values| values.iter().all(|v| v.is_finite()))
        })
        .collect();
    let failed = resampling.draws - draws.len();
    if failed > draws.len() {
        return Err(EstimateError::Indistinct { condition_number: f64::INFINITY });
    }
    Ok(Bootstrap { draws, failed, block_lengths })
}

fn draw<'a, S>(series: &'a [S], length: usize, rng: &mut Pcg64) -> Vec<&'a S> {
    let mut drawn = Vec::with_capacity(series.len() + length);
    while drawn.len() < series.len() {
        let start = rng.random_range(0..=series.len() - length);
        drawn.extend(&series[start..start + length]);
    }
    drawn.truncate(series.len());
    drawn
}

/// Quantile `p` of sorted values, interpolated linearly; NaN if there are no values.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = p * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    sorted[low] + part * (sorted[(low + 1).min(last)] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESAMPLING: Resampling = Resampling { draws: 200, seed: 7 };

    fn mean(drawn: &[Vec<&f64>]) -> Option<Vec<f64>> {
        let n = drawn.iter().map(Vec::len).sum::<usize>() as f64;
        Some(vec![drawn.iter().flatten().copied().sum::<f64>() / n])
    }

    #[test]
    fn blocks_stay_together_and_each_series_is_drawn_from_itself() {
        let series = [(0..27).map(f64::from).collect::<Vec<_>>(), (100..108).map(f64::from).collect()];
        let bootstrap = moving_blocks(&series, RESAMPLING, |drawn| {
            assert_eq!((drawn[0].len(), drawn[1].len()), (27, 8));
            for (block, within) in [(3, 0.0..27.0), (2, 100.0..108.0)].into_iter().zip(drawn).map(|((l, r), d)| {
                assert!(d.iter().all(|v| r.contains(*v)), "{d:?}");
                (l, d)
            }) {
                assert!(within.chunks(block).all(|b| b.windows(2).all(|w| *w[1] == *w[0] + 1.0)), "{within:?}");
            }
            mean(drawn)
        })
        .unwrap();
        assert_eq!((bootstrap.block_lengths, bootstrap.failed), (vec![3, 2], 0));
    }

    #[test]
    fn one_seed_one_answer() {
        let series = [(0..40).map(|i| f64::from(i % 7)).collect::<Vec<_>>()];
        let one = moving_blocks(&series, RESAMPLING, mean).unwrap();
        assert_eq!(one, moving_blocks(&series, RESAMPLING, mean).unwrap());
        assert_ne!(one, moving_blocks(&series, Resampling { seed: 8, ..RESAMPLING }, mean).unwrap());
    }

    #[test]
    fn what_cannot_be_computed_is_left_out_until_it_is_most() {
        let series = [vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]];
        let mut turn = 0;
        let mut every = |n: usize| {
            moving_blocks(&series, RESAMPLING, |drawn| {
                turn += 1;
                if turn % n == 0 { Some(vec![f64::NAN]) } else { mean(drawn) }
            })
        };
        assert_eq!(every(4).unwrap().failed, 50);
        assert!(matches!(every(1), Err(EstimateError::Indistinct { .. })));
        let few = moving_blocks(&[vec![1.0; 7]], RESAMPLING, mean);
        assert_eq!(few, Err(EstimateError::TooFewObservations { needed: 8, given: 7 }));
        assert!(moving_blocks(&series, Resampling { draws: 0, seed: 1 }, mean).is_err());
    }

    #[test]
    fn quantiles() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[5.0], 0.975), 5.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
