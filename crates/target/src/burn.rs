//! Draws service demands from their distribution, and burns them as CPU time. A burn is measured by the thread's own
//! CPU clock (`CLOCK_THREAD_CPUTIME_ID`), so that preemption does not shorten it.
//!
//! Reading that clock needs a system call (0.5–1.5 µs), so a burn spins between two readings for a number of rounds
//! that follows from a calibration. It spins for at most three quarters of the remaining time, so that it does not
//! overshoot when the CPU is slower than in the calibration. The readings themselves count as burned time.

use crate::service::Distribution;
use brimful_core::Nanos;
use brimful_os::clock::thread_cpu;
use rand::RngExt;
use rand_distr::{Distribution as _, Exp1};
use rand_pcg::Pcg64;
use std::hint::black_box;

/// Share of the remaining time to spin before the next reading of the clock.
const SPIN_SHARE: f64 = 0.75;

/// Burns a given amount of CPU time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spinner {
    rounds_per_ns: f64,
    /// CPU time of one reading of the clock. Half of it passes before the instant that the reading reports, half after
    /// it.
    reading_ns: f64,
}

impl Spinner {
    /// Measures the speed of this thread's CPU, in about 3 ms. Uses medians, so that a few interrupts do not matter.
    pub(crate) fn measure() -> Spinner {
        const SAMPLES: usize = 15;
        const READINGS: u64 = 100;
        const ROUNDS: u64 = 100_000;
        let median = |sample: &dyn Fn()| {
            let mut samples = [0; SAMPLES].map(|_: u64| {
                let start = thread_cpu();
                sample();
                (thread_cpu() - start).0
            });
            samples.sort_unstable();
            samples[SAMPLES / 2] as f64
        };
        // The two readings around a sample add the time of one reading to it.
        let reading_ns = median(&|| (0..READINGS).for_each(|_| _ = black_box(thread_cpu()))) / (READINGS + 1) as f64;
        let spin_ns = median(&|| spin(ROUNDS)) - reading_ns;
        Spinner { rounds_per_ns: ROUNDS as f64 / spin_ns.max(1.0), reading_ns }
    }

    /// Returns when the thread has used `demand` of CPU time since the call.
    pub(crate) fn burn(&self, demand: Nanos) {
        let mut left = demand.0 as f64;
        // The clock is read only during longer burns. For shorter ones, the measured speed alone is as accurate as the
        // clock.
        if left > 3.0 * self.reading_ns {
            let end = thread_cpu().0 as f64 - self.reading_ns / 2.0 + left;
            left = end - self.reading_ns / 2.0 - thread_cpu().0 as f64;
            while left > 3.0 * self.reading_ns {
                self.spin_for(SPIN_SHARE * (left - self.reading_ns));
                left = end - self.reading_ns / 2.0 - thread_cpu().0 as f64;
            }
        }
        self.spin_for(left);
    }

    fn spin_for(&self, ns: f64) {
        spin((ns * self.rounds_per_ns) as u64);
    }
}

/// Computes for this number of rounds, without memory accesses and in a way that no optimiser can shorten.
fn spin(rounds: u64) {
    let mut x = rounds;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Draws service demands, and random positions in a file or buffer.
#[derive(Debug)]
pub(crate) struct Sampler {
    distribution: Distribution,
    random: Pcg64,
}

impl Sampler {
    /// The sampler of one worker. Workers with the same seed draw from independent streams.
    pub(crate) fn new(distribution: Distribution, seed: u64, worker: usize) -> Sampler {
        Sampler { distribution, random: Pcg64::new(u128::from(seed), worker as u128) }
    }

    /// A uniform position between 0 and 1.
    pub(crate) fn position(&mut self) -> f64 {
        self.random.random()
    }

    /// Draws a demand from the distribution, with this mean.
    pub(crate) fn draw(&mut self, mean: Nanos) -> Nanos {
        match self.distribution {
            Distribution::Deterministic => mean,
            Distribution::Exponential => {
                let unit: f64 = Exp1.sample(&mut self.random);
                Nanos((unit * mean.0 as f64).round() as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::moments::Moments;

    /// Other work on the host slows down burns and calibrations at times. In at least one of a hundred attempts, the
    /// burns must match their demands.
    #[test]
    fn a_burn_takes_its_demand() {
        for micros in [50, 200, 2_000] {
            let mut attempts = (0..100).map(|_| burnt(Nanos::from_micros(micros)));
            let mut seen = Vec::new();
            let calm = attempts.any(|(least, typical, slack)| {
                let demand = 1e3 * micros as f64;
                seen.push((least, typical));
                least > demand - slack && typical < demand + slack
            });
            assert!(calm, "{micros} us: the shortest burns and their lower quartiles took {seen:?} ns");
        }
    }

    /// The shortest of 41 burns, their lower quartile, and the allowed deviation from the demand, all in ns. The
    /// deviation is allowed because a reading of the clock may cost more or less than in the calibration.
    fn burnt(demand: Nanos) -> (f64, f64, f64) {
        let spinner = Spinner::measure();
        let mut taken: Vec<f64> = (0..41)
            .map(|_| {
                let start = thread_cpu();
                spinner.burn(demand);
                // The two readings around the burn add the time of one reading to it.
                (thread_cpu() - start).0 as f64 - spinner.reading_ns
            })
            .collect();
        taken.sort_by(f64::total_cmp);
        (taken[0], taken[10], 0.01 * demand.0 as f64 + spinner.reading_ns)
    }

    #[test]
    fn exponential_demands_have_their_mean_and_variation() {
        const N: usize = 200_000;
        let mean = Nanos::from_micros(500);
        let mut sampler = Sampler::new(Distribution::Exponential, 7, 0);
        let demands: Vec<f64> = (0..N).map(|_| sampler.draw(mean).0 as f64).collect();
        let moments = Moments::from_values(&demands).unwrap();
        let average = moments.mean();
        let variance = moments.population_variance();
        // The tolerances are six standard errors: 1/√N for the mean, √(8/N) for the squared coefficient of
        // variation.
        assert!((average / mean.0 as f64 - 1.0).abs() < 6.0 / (N as f64).sqrt(), "mean {average}");
        assert!((variance / average.powi(2) - 1.0).abs() < 6.0 * (8.0 / N as f64).sqrt(), "variance {variance}");
    }

    #[test]
    fn draws_follow_the_seed_and_the_worker() {
        let draws = |seed, worker| {
            let mut sampler = Sampler::new(Distribution::Exponential, seed, worker);
            [0; 8].map(|_| sampler.draw(Nanos::from_millis(1)))
        };
        assert_eq!(draws(1, 0), draws(1, 0));
        assert_ne!(draws(1, 0), draws(2, 0));
        assert_ne!(draws(1, 0), draws(1, 1));
        let mut fixed = Sampler::new(Distribution::Deterministic, 1, 0);
        assert_eq!(fixed.draw(Nanos::from_millis(1)), Nanos::from_millis(1));
    }
}
