//! The index of dispersion for counts: the variance of the number of arrivals in a window, divided by its mean.
//!
//! Cox & Lewis, *The Statistical Analysis of Series of Events*, 1966, §4.5; Gusella, IEEE JSAC 9 (1991). The index is 1
//! for Poisson arrivals in windows of any length. If arrivals are correlated, it grows with the length of the window
//! towards a limit. Under heavy load, this limit determines the mean queue length.
//!
//! Windows do not overlap; an incomplete window is not used. The estimate Î(k) from n windows of k epochs is biased,
//! because the variance is around the sample mean: E Î(k) = (n·I(k) − I(nk))/(n − 1). The estimate is therefore too
//! small by (I(nk) − I(k))/(n − 1), which is 0 for Poisson arrivals. The confidence interval is the interval of a
//! variance of independent normal counts (χ² with n − 1 degrees of freedom). It is accurate if windows are longer than
//! the bursts and have at least about 10 arrivals. Otherwise it is too narrow.

use super::total;
use crate::EstimateError;
use crate::demand::Interval;
use brimful_core::JsonSchema;
use brimful_core::moments::Moments;
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Minimum number of windows for each index of dispersion of a curve, except for the first. With 20 windows, the
/// standard error is a third of the index.
const MIN_WINDOWS: usize = 20;

/// The index of dispersion of the numbers of arrivals in windows of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Dispersion {
    /// Length of a window, in epochs (the intervals in which arrivals were counted).
    pub window: usize,
    /// Number of windows in which arrivals were counted.
    pub windows: usize,
    /// Index of dispersion: the sample variance (divisor n − 1) of the number of arrivals in a window, divided by its
    /// mean.
    pub index: f64,
    /// 95 % confidence interval of the index.
    pub ci95: Interval,
}

/// The index of dispersion in windows of `window` epochs each. `counts` has the number of arrivals of each epoch, and
/// must have at least two windows.
pub fn dispersion(counts: &[u64], window: usize) -> Result<Dispersion, EstimateError> {
    let windows = counts.len().checked_div(window).unwrap_or(0);
    if windows < 2 {
        return Err(EstimateError::TooFewObservations { needed: window.saturating_mul(2).max(2), given: counts.len() });
    }
    let sums: Vec<f64> = counts.chunks_exact(window).map(total).collect();
    let moments = Moments::from_values(&sums).filter(|moments| moments.mean() > 0.0);
    let Some((mean, variance)) = moments.and_then(|moments| Some((moments.mean(), moments.variance()?))) else {
        return Err(EstimateError::Inconsistent("there were no arrivals, so their burstiness is unknown".into()));
    };
    let index = variance / mean;
    let freedom = (windows - 1) as f64;
    let quantile = |p| ChiSquared::new(freedom).map_or(f64::NAN, |chi| chi.inverse_cdf(p));
    let ci95 = Interval { low: index * freedom / quantile(0.975), high: index * freedom / quantile(0.025) };
    Ok(Dispersion { window, windows, index, ci95 })
}

/// The index of dispersion in windows of 1, 2, 4, … epochs. The first value is always included, and the others if there
/// are at least 20 windows.
pub fn dispersion_curve(counts: &[u64]) -> Result<Vec<Dispersion>, EstimateError> {
    let first = dispersion(counts, 1)?;
    let longer = (1..usize::BITS).map(|k| 1usize << k).take_while(|window| counts.len() / window >= MIN_WINDOWS);
    [Ok(first)].into_iter().chain(longer.map(|window| dispersion(counts, window))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_counts_even_out_in_pairs() {
        let counts: Vec<u64> = (0..81).map(|i| 10 * (i % 2)).collect();
        let curve = dispersion_curve(&counts).unwrap();
        assert_eq!(curve.iter().map(|d| (d.window, d.windows)).collect::<Vec<_>>(), [(1, 81), (2, 40), (4, 20)]);
        assert!(curve[0].index > 5.0 && curve[1].index == 0.0, "{curve:?}");
    }

    #[test]
    fn the_interval_is_that_of_a_variance() {
        // The ends of the confidence interval are the index multiplied by 9/χ², with the 97.5 % and the 2.5 % quantile
        // of the χ² distribution. 10 windows have 9 degrees of freedom.
        let counts = [4, 6, 5, 9, 1, 5, 3, 7, 8, 2];
        let d = dispersion(&counts, 1).unwrap();
        assert!(
            (d.ci95.low / d.index - 9.0 / 19.0228).abs() < 1e-4 && (d.ci95.high / d.index - 9.0 / 2.70039).abs() < 1e-4
        );
    }

    #[test]
    fn a_window_longer_than_half_of_the_counts_is_rejected() {
        assert_eq!(dispersion(&[1; 9], 5), Err(EstimateError::TooFewObservations { needed: 10, given: 9 }));
        assert!(dispersion(&[1; 9], 0).is_err() && dispersion(&[], 1).is_err());
    }
}
