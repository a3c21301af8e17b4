//! Measures the burstiness of the arrivals in the peak window, from the number of requests in each second.

use super::hurst;
use brimful_core::profile::{Burstiness, Dispersion, Hurst};
use brimful_estimate::{burst_factors, dispersion_curve};

/// Interval lengths (epochs) that are tried for the burst factors a and b of Menascé & Almeida, in seconds.
const EPOCHS_S: [usize; 8] = [1, 2, 5, 10, 20, 30, 60, 120];
/// Minimum mean number of requests per epoch (counting interval). With fewer requests, random variation would look like
/// bursts.
const MIN_REQUESTS_PER_EPOCH: f64 = 10.0;
/// Minimum number of epochs (counting intervals of equal length) in the peak window.
const MIN_EPOCHS: usize = 20;

/// The measures of burstiness in a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bursts {
    /// The index of dispersion of the counts per epoch, for each epoch length in [`EPOCHS_S`].
    pub dispersion: Vec<Dispersion>,
    /// The burst factors a and b of Menascé & Almeida; `None` if the window is too short.
    pub burstiness: Option<Burstiness>,
    /// The Hurst parameter; `None` if it cannot be estimated.
    pub hurst: Option<Hurst>,
    /// The reason why `hurst` is `None`.
    pub hurst_missing: Option<String>,
}

impl Bursts {
    /// Creates the result for a window whose counts per second are unknown.
    pub fn unknown() -> Bursts {
        let reason = "not enough data: the counts per second of the peak window are not all known";
        Bursts { hurst_missing: Some(reason.to_owned()), ..Bursts::default() }
    }
}

/// Computes the burstiness from counts per second.
pub(super) fn measure(seconds: &[u64]) -> Bursts {
    let (hurst, hurst_missing) = match hurst::estimate(seconds, 1.0) {
        Ok(hurst) => (Some(hurst), None),
        Err(reason) => (None, Some(reason)),
    };
    Bursts { dispersion: dispersion(seconds), burstiness: burstiness(seconds), hurst, hurst_missing }
}

/// The index of dispersion of the counts in intervals of 1, 2, 4, … seconds. Lengths with fewer than [`MIN_EPOCHS`]
/// intervals are left out.
fn dispersion(seconds: &[u64]) -> Vec<Dispersion> {
    let curve = dispersion_curve(seconds).unwrap_or_default();
    let enough = curve.into_iter().filter(|at| at.windows >= MIN_EPOCHS);
    enough
        .map(|at| Dispersion {
            epoch_s: at.window as f64,
            epochs: at.windows as u64,
            index: at.index,
            interval95: [at.ci95.low, at.ci95.high],
        })
        .collect()
}

/// The burst factors a and b of Menascé & Almeida. The epoch is the shortest one with a mean of at least
/// [`MIN_REQUESTS_PER_EPOCH`] requests, or the longest possible one if the rate is too low. An incomplete last epoch is
/// not used.
fn burstiness(seconds: &[u64]) -> Option<Burstiness> {
    let rate = seconds.iter().sum::<u64>() as f64 / seconds.len().max(1) as f64;
    let possible = || EPOCHS_S.into_iter().filter(|epoch| seconds.len() / epoch >= MIN_EPOCHS);
    let epoch = possible().find(|epoch| rate * *epoch as f64 >= MIN_REQUESTS_PER_EPOCH).or(possible().next_back())?;
    let counts: Vec<u64> = seconds.chunks_exact(epoch).map(|seconds| seconds.iter().sum()).collect();
    let factors = burst_factors(&counts, epoch as f64).ok()?;
    Some(Burstiness { epoch_s: epoch as f64, a: factors.a?, b: factors.b, peak_to_mean: factors.peak_to_mean })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Poisson};
    use rand_pcg::Pcg64;

    fn poisson(mean: f64, seconds: usize, seed: u64) -> Vec<u64> {
        let rng = Pcg64::seed_from_u64(seed);
        Poisson::new(mean).unwrap().sample_iter(rng).take(seconds).map(|count: f64| count as u64).collect()
    }

    #[test]
    fn poisson_arrivals_have_no_bursts() {
        let (mut held, seeds) = (0, 20);
        for seed in 0..seeds {
            let found = measure(&poisson(20.0, 3_600, seed));
            let epochs: Vec<f64> = found.dispersion.iter().map(|at| at.epoch_s).collect();
            assert_eq!(epochs, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]);
            let holds = |at: &&Dispersion| at.interval95[0] <= 1.0 && 1.0 <= at.interval95[1];
            held += found.dispersion.iter().filter(holds).count();
            let bursts = found.burstiness.unwrap();
            assert_eq!(bursts.epoch_s, 1.0);
            assert!((0.4..0.6).contains(&bursts.b) && bursts.a < 1.3, "{bursts:?}");
            assert_eq!(found.hurst.is_none(), found.hurst_missing.is_some());
        }
        assert!(held >= 8 * seeds as usize * 85 / 100, "{held} intervals contain 1");
    }

    #[test]
    fn epochs_are_long_enough_for_what_comes() {
        assert_eq!(burstiness(&poisson(0.7, 3_600, 1)).map(|bursts| bursts.epoch_s), Some(20.0));
        assert_eq!(burstiness(&poisson(0.01, 600, 1)).map(|bursts| bursts.epoch_s), Some(30.0));
        let on_off: Vec<u64> = (0..1_000).map(|i| if i % 100 < 20 { 80 } else { 5 }).collect();
        let bursts = burstiness(&on_off).unwrap();
        assert_eq!((bursts.epoch_s, bursts.a, bursts.b, bursts.peak_to_mean), (1.0, 4.0, 0.2, 4.0));
    }

    #[test]
    fn a_short_or_empty_window_says_nothing() {
        for seconds in [&[][..], &[5; 19], &[0; 4_000]] {
            let found = measure(seconds);
            assert!(found.dispersion.is_empty() && found.burstiness.is_none() && found.hurst.is_none());
            assert!(found.hurst_missing.is_some());
        }
    }
}
