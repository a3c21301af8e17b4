//! Arrival processes: endless, reproducible sequences of due times, in [`Nanos`] from the start of the run.

use crate::rng;
use brimful_core::{Nanos, Rate};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;

/// The arrival processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Calls at equal distances, the first at zero.
    Constant,
    /// Independent exponential gaps: what many independent users make together.
    Poisson,
}

/// Due times without end, never decreasing.
#[derive(Clone, Debug)]
pub struct Arrivals {
    process: Process,
    per_second: f64,
    index: u64,
    seconds: f64,
    rng: Pcg64,
}

impl Arrivals {
    /// `rate` must be finite and above zero.
    pub fn new(process: Process, rate: Rate, seed: u64) -> Arrivals {
        Arrivals { process, per_second: rate.0, index: 0, seconds: 0.0, rng: rng(seed, 1) }
    }
}

impl Iterator for Arrivals {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        match self.process {
            // From the index, not by adding gaps up: rounding must not drift over a long run.
            Process::Constant => self.seconds = self.index as f64 / self.per_second,
            Process::Poisson => {
                let gap: f64 = Exp1.sample(&mut self.rng);
                self.seconds += gap / self.per_second;
            }
        }
        self.index += 1;
        Some(Nanos::from_secs_f64(self.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_times(process: Process, rate: f64, n: usize, seed: u64) -> Vec<Nanos> {
        Arrivals::new(process, Rate(rate), seed).take(n).collect()
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let due = due_times(Process::Constant, 3.0, 3_000_001, 0);
        assert_eq!(due[0], Nanos::ZERO);
        assert_eq!(due[1], Nanos(333_333_333));
        assert_eq!(due[3_000_000], Nanos::from_secs(1_000_000));
    }

    #[test]
    fn poisson_gaps_are_exponential_and_independent() {
        let n = 200_000;
        let due = due_times(Process::Poisson, 1000.0, n, 7);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let covariance =
            gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / gaps.len() as f64;
        // Five standard errors: of a mean of exponentials 1/√n, of its scv √8/√n, of an autocorrelation 1/√n.
        let five = 5.0 / (n as f64).sqrt();
        assert!((mean * 1000.0 - 1.0).abs() < five, "mean gap {mean}");
        assert!((variance / mean.powi(2) - 1.0).abs() < five * 8f64.sqrt(), "variance {variance}");
        assert!((covariance / variance).abs() < five, "lag-1 autocorrelation {}", covariance / variance);
        // The index of dispersion of counts is 1 at every time scale.
        for window_ms in [1u64, 10, 100] {
            let mut counts = vec![0f64; (due[n - 1].0 / 1_000_000 / window_ms) as usize];
            for d in &due {
                if let Some(count) = counts.get_mut((d.0 / 1_000_000 / window_ms) as usize) {
                    *count += 1.0;
                }
            }
            let m = counts.iter().sum::<f64>() / counts.len() as f64;
            let v = counts.iter().map(|c| (c - m).powi(2)).sum::<f64>() / counts.len() as f64;
            let tolerance = 5.0 * (2.0 / counts.len() as f64).sqrt();
            assert!((v / m - 1.0).abs() < tolerance, "dispersion {} over {window_ms} ms", v / m);
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(due_times(Process::Poisson, 10.0, 100, 1), due_times(Process::Poisson, 10.0, 100, 1));
        assert_ne!(due_times(Process::Poisson, 10.0, 100, 1), due_times(Process::Poisson, 10.0, 100, 2));
    }
}
