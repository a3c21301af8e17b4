//! Bursty arrivals: measures of burstiness. The submodule `inflation` describes how bursts increase service demands.
//!
//! Menascé & Almeida (*Capacity Planning for Web Performance*, 1998) divide time into epochs of equal length. Their
//! measure `b` is the share of epochs with more arrivals than the mean. Their measure `a` is the ratio of the mean rate
//! of these epochs to the mean rate of all epochs. Both depend on the length of an epoch, so only values for epochs of
//! the same length can be compared. Neither is 0 for Poisson arrivals. The index of dispersion ([`Dispersion`]) of
//! Poisson arrivals is 1 for epochs of any length. The input of the functions is the number of arrivals in each epoch,
//! in order of time, including epochs without arrivals.

mod dispersion;
mod inflation;

pub use dispersion::{Dispersion, dispersion, dispersion_curve};
pub use inflation::{BurstDemand, BurstEffect, BurstLevel, fit_burst_demand, with_burstiness};

use crate::EstimateError;
use brimful_core::JsonSchema;
use brimful_core::number::check_positive;
use serde::Serialize;

/// Burstiness of arrivals, measured by the numbers of arrivals in epochs (intervals of equal length).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BurstFactors {
    /// Number of epochs, which are intervals of equal length.
    pub epochs: usize,
    /// λ: arrivals per second over all epochs.
    pub rate: f64,
    /// Menascé and Almeida's measure b: the share of the epochs with more arrivals than the mean.
    pub b: f64,
    /// λ⁺: arrivals per second in the epochs with more arrivals than the mean; `None` if there are no such epochs.
    pub rate_above: Option<f64>,
    /// Menascé and Almeida's measure a: the ratio of `rate_above` to `rate`; `None` if no epoch is above the mean.
    pub a: Option<f64>,
    /// Index of dispersion: the sample variance (divisor n − 1) of the numbers of arrivals per epoch, divided by their
    /// mean.
    pub dispersion: f64,
    /// Ratio of the largest number of arrivals in an epoch to the mean.
    pub peak_to_mean: f64,
}

/// Computes measures of burstiness from `counts`, the numbers of arrivals in epochs of `epoch_s` seconds each.
pub fn burst_factors(counts: &[u64], epoch_s: f64) -> Result<BurstFactors, EstimateError> {
    let epoch_s = check_positive(epoch_s, || "the length of an epoch".into())?;
    let whole = dispersion(counts, 1)?;
    let n = counts.len();
    let mean = total(counts) / n as f64;
    let above: Vec<u64> = counts.iter().copied().filter(|c| *c as f64 > mean).collect();
    let rate_above = (!above.is_empty()).then(|| total(&above) / above.len() as f64 / epoch_s);
    let rate = mean / epoch_s;
    Ok(BurstFactors {
        epochs: n,
        rate,
        b: above.len() as f64 / n as f64,
        rate_above,
        a: rate_above.map(|above| above / rate),
        dispersion: whole.index,
        peak_to_mean: counts.iter().max().map_or(0.0, |peak| *peak as f64) / mean,
    })
}

fn total(counts: &[u64]) -> f64 {
    counts.iter().map(|c| *c as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_without_bursts_have_no_epoch_above_the_mean() {
        let even = burst_factors(&[5; 10], 2.0).unwrap();
        assert_eq!((even.rate, even.b, even.a, even.rate_above), (2.5, 0.0, None, None));
        assert_eq!((even.dispersion, even.peak_to_mean), (0.0, 1.0));
    }

    #[test]
    fn on_for_a_fifth_of_the_time() {
        let counts: Vec<u64> = (0..100).map(|i| if i % 5 == 0 { 50 } else { 0 }).collect();
        let f = burst_factors(&counts, 0.5).unwrap();
        assert_eq!((f.b, f.a, f.rate_above, f.peak_to_mean), (0.2, Some(5.0), Some(100.0), 5.0));
        assert!((f.dispersion - 40.0 * 100.0 / 99.0).abs() < 1e-12);
    }

    #[test]
    fn counts_without_bursts_are_rejected() {
        assert!(burst_factors(&[0, 0, 0], 1.0).unwrap_err().to_string().contains("no arrivals"));
        assert_eq!(burst_factors(&[3], 1.0), Err(EstimateError::TooFewObservations { needed: 2, given: 1 }));
        assert!(burst_factors(&[3, 4], 0.0).is_err() && burst_factors(&[3, 4], f64::NAN).is_err());
    }
}
