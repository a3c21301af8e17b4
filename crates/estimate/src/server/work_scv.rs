//! Variability of the CPU time of a call, estimated from the number of calls in short intervals of the same load.
//!
//! In an interval with the CPU time w, n calls are completed. If the CPU times of calls are independent with mean c,
//! the variance of n − w/c is n·scv, where scv is their squared coefficient of variation (renewal theory: Smith 1959).
//! The CPU time of a call at the boundary of two intervals is divided between them, which causes a negative covariance
//! between neighbouring intervals. The variance without this effect is γ₀ + 2·γ₁, where γ₀ is the variance and γ₁ the
//! covariance of neighbours (Roll 1984). The mean c is computed separately for each measurement, so that a slow change
//! of the host's speed has no effect.

use crate::window::RunStretch;

/// Minimum number of short intervals in a measurement. Shorter measurements are not used.
const MIN_STRETCHES: usize = 4;
/// Minimum degrees of freedom of an estimate (about the number of short intervals), summed over all measurements.
const MIN_ALL_STRETCHES: f64 = 24.0;

/// An estimate of the squared coefficient of variation of the CPU time of a call, over all classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WorkScv {
    /// The squared coefficient of variation of the CPU time of a call.
    pub scv: f64,
    /// Degrees of freedom of the estimate: about the number of short intervals.
    pub degrees_of_freedom: f64,
}

impl WorkScv {
    /// Estimates the variability from all measurements of one load. Each measurement is given by its short intervals
    /// after the warm-up in which the server used CPU time. `None` if there are too few intervals.
    pub fn new<'a>(measurements: impl Iterator<Item = Vec<&'a RunStretch>>) -> Option<WorkScv> {
        let mut variance = 0.0;
        let mut calls = 0.0;
        let mut freedom = 0.0;
        for stretches in measurements {
            if stretches.len() < MIN_STRETCHES {
                continue;
            }
            let all_calls: f64 = stretches.iter().map(|it| it.calls).sum();
            let per_work = all_calls / stretches.iter().map(|it| it.work).sum::<f64>();
            let excess: Vec<f64> = stretches.iter().map(|it| it.calls - it.work * per_work).collect();
            let squares: f64 = excess.iter().map(|it| it * it).sum();
            let products: f64 = excess.windows(2).map(|pair| pair[0] * pair[1]).sum();
            let n = stretches.len() as f64;
            // Correct the bias: the mean CPU time is estimated from the same intervals, so each mean product is too
            // small by the variance divided by n.
            variance += squares * n / (n - 1.0) + 2.0 * (products * n / (n - 1.0) + squares / (n - 1.0));
            calls += all_calls;
            freedom += n - 1.0;
        }
        let scv = (variance / calls).max(0.0);
        (freedom >= MIN_ALL_STRETCHES).then_some(WorkScv { scv, degrees_of_freedom: freedom })
    }

    /// The mean of several estimates, weighted by their degrees of freedom.
    pub fn mean(estimates: impl Iterator<Item = WorkScv>) -> Option<WorkScv> {
        let (weighted, degrees_of_freedom) = estimates
            .fold((0.0, 0.0), |(sum, n), it| (sum + it.scv * it.degrees_of_freedom, n + it.degrees_of_freedom));
        (degrees_of_freedom > 0.0).then(|| WorkScv { scv: weighted / degrees_of_freedom, degrees_of_freedom })
    }

    /// Standard error of `scv`. It is larger than that of an ordinary variance, because the estimate includes an
    /// autocovariance.
    pub fn standard_error(&self) -> f64 {
        (self.scv + MIN_VARIANCE) * (6.0 / self.degrees_of_freedom).sqrt()
    }
}

/// Variance that calls at the boundaries of intervals cause even if CPU times are constant. It is added to `scv` in the
/// standard error.
const MIN_VARIANCE: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Gamma};
    use rand_pcg::Pcg64Mcg;

    /// The short intervals of a server that is always busy. Its calls take 1 ms of CPU time on average.
    fn busy_server(scv: f64, seed: u64) -> Vec<RunStretch> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let service = Gamma::new(1.0 / scv, 0.001 * scv).unwrap();
        let mut ends = vec![0.0];
        while ends.last().is_some_and(|end| *end < 1.0) {
            ends.push(ends[ends.len() - 1] + service.sample(&mut rng));
        }
        let stretch = |index: usize| {
            let start_s = index as f64 / 32.0;
            let calls = ends.iter().filter(|end| (start_s..start_s + 1.0 / 32.0).contains(*end)).count() as f64;
            RunStretch { start_s, seconds: 1.0 / 32.0, work: 1.0 / 32.0, calls }
        };
        (0..32).map(stretch).collect()
    }

    #[test]
    fn the_variability_of_calls_is_recovered() {
        for scv in [0.05, 0.5, 1.0, 2.0] {
            let measurements: Vec<Vec<RunStretch>> = (0..100).map(|seed| busy_server(scv, seed)).collect();
            let found = WorkScv::new(measurements.iter().map(|stretches| stretches.iter().collect())).unwrap();
            assert!((found.scv - scv).abs() < 0.03 + 0.08 * scv, "{scv}: {found:?}");
        }
    }
}
