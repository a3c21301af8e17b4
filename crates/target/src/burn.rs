//! Draws service demands (CPU times of requests) from their distribution, and uses that much CPU time by a busy loop,
//! called a burn. The thread's own CPU clock (`CLOCK_THREAD_CPUTIME_ID`) measures the burn, so that preemption does not
//! shorten it.
//!
//! Reading that clock needs a system call (0.5–1.5 µs), so a burn does not read it all the time. Between two readings,
//! it executes a number of loop rounds, computed from a calibration of the CPU's speed, that take three quarters of the
//! remaining time. So it is not too long even if the CPU has become slower. The readings of the clock are part of the
//! burn.

use crate::service::Distribution;
use brimful_core::Nanos;
use brimful_os::clock::thread_cpu;
use rand::RngExt;
use rand_distr::{Distribution as _, Exp1};
use rand_pcg::Pcg64;
use std::hint::black_box;

/// Share of the remaining CPU time for which a busy loop spins before it reads the clock again.
const SPIN_SHARE: f64 = 0.75;

/// Uses a given amount of CPU time by a busy loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spinner {
    rounds_per_ns: f64,
    /// CPU time that one reading of the clock takes, in nanoseconds. About half of it passes before the instant that
    /// the reading returns, the rest after that instant.
    reading_ns: f64,
}

impl Spinner {
    /// Measures the speed of the CPU on which this thread runs, in about 3 ms. The results are medians, so that a few
    /// interrupts do not affect them.
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
        // The two readings around a sample add the CPU time of one reading to the sample.
        let reading_ns = median(&|| (0..READINGS).for_each(|_| _ = black_box(thread_cpu()))) / (READINGS + 1) as f64;
        let spin_ns = median(&|| spin(ROUNDS)) - reading_ns;
        Spinner { rounds_per_ns: ROUNDS as f64 / spin_ns.max(1.0), reading_ns }
    }

    /// Spins until the thread has used the CPU time `demand` since the call.
    pub(crate) fn burn(&self, demand: Nanos) {
        let mut left = demand.0 as f64;
        // A busy loop that is shorter than three readings of the clock does not read it: the calibrated speed alone is
        // as accurate.
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

/// Executes `rounds` rounds of a loop. The loop does not access memory, and the compiler cannot shorten it.
fn spin(rounds: u64) {
    let mut x = rounds;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Draws the random numbers of one worker: service demands, and positions in a file or buffer.
#[derive(Debug)]
pub(crate) struct Sampler {
    distribution: Distribution,
    random: Pcg64,
}

impl Sampler {
    /// Creates the sampler of one worker. Workers with the same seed have different random streams.
    pub(crate) fn new(distribution: Distribution, seed: u64, worker: usize) -> Sampler {
        Sampler { distribution, random: Pcg64::new(u128::from(seed), worker as u128) }
    }

    /// Draws a position between 0 and 1 from the uniform distribution.
    pub(crate) fn position(&mut self) -> f64 {
        self.random.random()
    }

    /// Draws a service demand from the distribution with the mean `mean`.
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

    /// Other programs sometimes slow down busy loops and calibrations. So up to 100 attempts are made. In at least one
    /// of them, each busy loop must use the CPU time that was demanded.
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

    /// Runs 41 busy loops. Returns the shortest CPU time, the lower quartile, and the tolerance, all in nanoseconds.
    /// There is a tolerance because reading the clock may take more or less time than in the calibration.
    fn burnt(demand: Nanos) -> (f64, f64, f64) {
        let spinner = Spinner::measure();
        let mut taken: Vec<f64> = (0..41)
            .map(|_| {
                let start = thread_cpu();
                spinner.burn(demand);
                // The two readings around the busy loop add the CPU time of one reading to the measured time.
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
        // The tolerances are six standard errors: 1/√N is the standard error of the mean, and √(8/N) that of the
        // squared coefficient of variation.
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
