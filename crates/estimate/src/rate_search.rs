//! Estimates the rate at which an objective is just met, from short slices of load at several rates.
//!
//! An objective of a percentile limits the share of calls, in the long run, that take longer than a limit: `p99<50ms`
//! permits 1 %. The speed of the host varies over time, and the long run includes all of its speeds, so a single slice
//! says little. Rare disturbances are treated separately (below). The search keeps a posterior distribution of the
//! rate, proposes the rate of the next slice from it, and says how precisely the rate is known: Watson & Pelli 1983
//! (QUEST), with an unknown slope and dispersion as in Kontsevich & Tyler 1999 and Schütt et al. 2016.
//!
//! - **The curve**: near the rate θ at which the permitted share p is reached, the log odds of the share grow in
//!   proportion to the logarithm of the rate: ln(s / (1 − s)) = ln(p / (1 − p)) + b ln(rate / θ).
//! - **A slice** has k of n calls beyond the limit. The calls of a slice are correlated by the host's speed at the
//!   time, so k has a beta-binomial distribution with an unknown correlation ρ.
//! - **A disturbance** of the host, which may last as long as a slice, can put any share of its calls beyond the limit,
//!   whatever the rate. Up to one slice in ten may be disturbed; such a slice has no information about the rate. The
//!   shares of slices are a mixture of the two distributions (contamination: Tukey 1960). Without the mixture, a single
//!   slice with half of its calls beyond the limit lowered the rate by a third.
//! - **An objective of the mean** is treated alike: ln(mean / limit) = b ln(rate / θ), and the mean of a slice has a
//!   gamma distribution with an unknown variance. The mean of a disturbed slice may have any magnitude.
//!
//! The prior of θ is flat in its logarithm. A prediction of the rate may place the first slice, but has no other effect
//! on the result, so that the result can judge the prediction.

use statrs::function::beta::ln_beta;
use statrs::function::gamma::ln_gamma;

/// Number of rates in the grid.
const RATES: usize = 400;
/// The bounds of the slope b. At the lower bound, response times hardly depend on the rate; at the upper bound, they
/// rise abruptly at one rate.
const SLOPES: [f64; 2] = [4.0, 100.0];
const SLOPE_STEPS: usize = 12;
/// The bounds of the correlation ρ of the calls of a slice, or of the squared coefficient of variation of its mean.
const CORRELATIONS: [f64; 2] = [5e-4, 0.1];
const VARIATIONS: [f64; 2] = [1e-3, 1.0];
const DISPERSION_STEPS: usize = 8;
/// Candidates for the share of slices that are disturbed.
const DISTURBED_SHARES: [f64; 3] = [0.02, 0.05, 0.1];
/// Logarithm of the ratio of the largest to the smallest mean that a disturbed slice may have.
const DISTURBED_MAGNITUDES: f64 = 14.0;
/// Quantiles of the posterior at which the next slices are placed, in turn. Slices on both sides of the rate show the
/// slope of the curve.
const SLICE_QUANTILES: [f64; 4] = [0.5, 0.8, 0.35, 0.65];

/// The quantity that an objective limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LimitedMeasure {
    /// The share of calls beyond a limit. The field is the permitted share, above 0 and below 1.
    Share(f64),
    /// The mean response time.
    Mean,
}

/// The result of one slice of load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slice {
    /// `beyond` of `calls` calls were beyond the limit.
    Calls {
        /// Number of calls that took longer than the limit, or failed.
        beyond: u64,
        /// Number of all calls.
        calls: u64,
    },
    /// Mean response time divided by its limit.
    Mean(f64),
}

/// The rate at which the objective is just met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEstimate {
    /// The median of the posterior, in calls per second.
    pub rate: f64,
    /// The 5th and the 95th percentile of the posterior.
    pub interval90: [f64; 2],
}

impl RateEstimate {
    /// Half the width of the interval, relative to the rate.
    pub fn relative_half_width(&self) -> f64 {
        (self.interval90[1] - self.interval90[0]) / 2.0 / self.rate
    }
}

/// How slices at the same rate differ from one another.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    /// The correlation of the calls of a slice, or the squared coefficient of variation of its mean.
    dispersion: f64,
    /// The share of slices that are disturbed.
    disturbed: f64,
}

/// The search for the rate at which one objective is just met.
#[derive(Clone, Debug)]
pub struct RateSearch {
    limited: LimitedMeasure,
    /// Logarithms of the rates of the grid.
    log_rates: Vec<f64>,
    slopes: Vec<f64>,
    scatters: Vec<Scatter>,
    /// Logarithm of the posterior, up to a constant: rates × slopes × scatters.
    log_posterior: Vec<f64>,
    slices: usize,
}

impl RateSearch {
    /// Begins a search between two rates, in calls per second: `low` > 0, `high` > `low`.
    pub fn new(limited: LimitedMeasure, low: f64, high: f64) -> RateSearch {
        let [least, most] = if limited == LimitedMeasure::Mean { VARIATIONS } else { CORRELATIONS };
        let with_disturbances = |dispersion| DISTURBED_SHARES.map(|disturbed| Scatter { dispersion, disturbed });
        let scatters: Vec<Scatter> =
            geometric(least, most, DISPERSION_STEPS).into_iter().flat_map(with_disturbances).collect();
        RateSearch {
            limited,
            log_rates: geometric(low, high, RATES).into_iter().map(f64::ln).collect(),
            slopes: geometric(SLOPES[0], SLOPES[1], SLOPE_STEPS),
            log_posterior: vec![0.0; RATES * SLOPE_STEPS * scatters.len()],
            scatters,
            slices: 0,
        }
    }

    /// Adds a slice that was offered at this rate, in calls per second. A slice without calls changes nothing.
    pub fn add(&mut self, rate: f64, slice: Slice) {
        let log_rate = rate.ln();
        let likelihoods: Vec<Likelihood> =
            self.scatters.iter().map(|scatter| Likelihood::new(self.limited, *scatter, slice)).collect();
        let mut cells = self.log_posterior.iter_mut();
        for log_threshold in &self.log_rates {
            for slope in &self.slopes {
                let distance = slope * (log_rate - log_threshold);
                for (likelihood, cell) in likelihoods.iter().zip(&mut cells) {
                    *cell += likelihood.log_at(distance);
                }
            }
        }
        self.slices += 1;
    }

    /// Number of slices so far.
    pub fn slices(&self) -> usize {
        self.slices
    }

    /// The current estimate of the rate at which the objective is just met.
    pub fn estimate(&self) -> RateEstimate {
        let marginal = self.marginal();
        let quantile = |share| self.quantile(&marginal, share);
        // The grid cannot resolve differences smaller than its step.
        let step = self.half_step().exp();
        RateEstimate { rate: quantile(0.5), interval90: [quantile(0.05) / step, quantile(0.95) * step] }
    }

    /// Half the distance between neighbouring rates of the grid, in logarithms.
    fn half_step(&self) -> f64 {
        (self.log_rates[1] - self.log_rates[0]) / 2.0
    }

    /// The rate at which the next slice should be measured: a quantile of the posterior.
    pub fn next_rate(&self) -> f64 {
        self.quantile(&self.marginal(), SLICE_QUANTILES[self.slices % SLICE_QUANTILES.len()])
    }

    /// The posterior of the rates of the grid.
    fn marginal(&self) -> Vec<f64> {
        let highest = self.log_posterior.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let by_rate = self.log_posterior.chunks_exact(self.slopes.len() * self.scatters.len());
        let mut marginal: Vec<f64> =
            by_rate.map(|cells| cells.iter().map(|cell| (cell - highest).exp()).sum()).collect();
        let total: f64 = marginal.iter().sum();
        marginal.iter_mut().for_each(|probability| *probability /= total);
        marginal
    }

    fn quantile(&self, marginal: &[f64], share: f64) -> f64 {
        let half_step = self.half_step();
        let mut below = 0.0;
        for (log_rate, probability) in self.log_rates.iter().zip(marginal) {
            if below + probability >= share {
                let within = ((share - below) / probability).clamp(0.0, 1.0);
                return (log_rate + (2.0 * within - 1.0) * half_step).exp();
            }
            below += probability;
        }
        self.log_rates[self.log_rates.len() - 1].exp()
    }
}

/// Table of the logarithm of the likelihood of a slice for one scatter, as a function of the distance b ln(rate / θ).
/// The grid looks up far more distances than the table has.
struct Likelihood {
    logs: Vec<f64>,
}

impl Likelihood {
    /// The table covers distances from `-FARTHEST` to `FARTHEST`; beyond them, the likelihood hardly changes.
    const FARTHEST: f64 = 12.0;
    const PER_UNIT: f64 = 20.0;

    fn new(limited: LimitedMeasure, scatter: Scatter, slice: Slice) -> Likelihood {
        let points = (2.0 * Likelihood::FARTHEST * Likelihood::PER_UNIT) as usize;
        let distance = |index: usize| index as f64 / Likelihood::PER_UNIT - Likelihood::FARTHEST;
        let logs = (0..=points).map(|index| log_likelihood(limited, distance(index), scatter, slice)).collect();
        Likelihood { logs }
    }

    fn log_at(&self, distance: f64) -> f64 {
        let last = self.logs.len() - 2;
        let position = ((distance + Likelihood::FARTHEST) * Likelihood::PER_UNIT).clamp(0.0, last as f64 + 1.0);
        let index = (position as usize).min(last);
        let within = position - index as f64;
        self.logs[index] + within * (self.logs[index + 1] - self.logs[index])
    }
}

/// Logarithm of the likelihood of a slice, up to a constant. `distance` is b ln(rate / θ).
fn log_likelihood(limited: LimitedMeasure, distance: f64, scatter: Scatter, slice: Slice) -> f64 {
    let Scatter { dispersion, disturbed } = scatter;
    let (regular, disturbance) = match (limited, slice) {
        (LimitedMeasure::Share(permitted), Slice::Calls { beyond, calls }) => {
            let log_odds = (permitted / (1.0 - permitted)).ln() + distance;
            let share = (1.0 / (1.0 + (-log_odds).exp())).clamp(1e-9, 1.0 - 1e-9);
            let weight = 1.0 / dispersion - 1.0;
            let (a, b) = (share * weight, (1.0 - share) * weight);
            let (beyond, calls) = (beyond as f64, calls as f64);
            let regular = ln_beta(beyond + a, calls - beyond + b) - ln_beta(a, b);
            // In a disturbed slice, all shares of calls beyond the limit are equally likely.
            (regular, ln_beta(beyond + 1.0, calls - beyond + 1.0))
        }
        (LimitedMeasure::Mean, Slice::Mean(ratio)) if ratio > 0.0 => {
            let shape = 1.0 / dispersion;
            let scaled = ratio / distance.exp();
            let regular = shape * (shape * scaled).ln() - shape * scaled - ln_gamma(shape);
            (regular, -DISTURBED_MAGNITUDES.ln())
        }
        _ => return 0.0,
    };
    log_sum((1.0 - disturbed).ln() + regular, disturbed.ln() + disturbance)
}

/// ln(eᵃ + eᵇ).
fn log_sum(a: f64, b: f64) -> f64 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

/// `count` values from `low` to `high`, each the same factor above the previous one.
fn geometric(low: f64, high: f64, count: usize) -> Vec<f64> {
    let step = (high / low).ln() / (count - 1) as f64;
    (0..count).map(|index| low * (step * index as f64).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Beta, Binomial, Distribution, Gamma};
    use rand_pcg::Pcg64Mcg;

    /// A server that is observed by slices, with a known rate at which its objective is just met.
    struct Server {
        rate: f64,
        slope: f64,
        correlation: f64,
    }

    impl Server {
        fn random(rng: &mut Pcg64Mcg) -> Server {
            Server {
                rate: 1000.0 * (0.4 + 0.55 * rng.random::<f64>()),
                slope: 5.0 * 10f64.powf(rng.random()),
                correlation: 10f64.powf(-3.0 + 2.0 * rng.random::<f64>()),
            }
        }

        /// Measures a slice; one slice in twenty is disturbed.
        fn disturbed_calls(&self, rate: f64, rng: &mut Pcg64Mcg) -> Slice {
            if rng.random::<f64>() < 0.05 {
                return Slice::Calls { beyond: rng.random_range(0..=2000), calls: 2000 };
            }
            self.calls(rate, rng)
        }

        fn calls(&self, rate: f64, rng: &mut Pcg64Mcg) -> Slice {
            let odds = (0.01 / 0.99) * (rate / self.rate).powf(self.slope);
            let share = odds / (1.0 + odds);
            let weight = 1.0 / self.correlation - 1.0;
            let of_slice = Beta::new(share * weight, (1.0 - share) * weight).unwrap().sample(rng);
            let beyond = Binomial::new(2000, of_slice).unwrap().sample(rng);
            Slice::Calls { beyond, calls: 2000 }
        }

        fn mean(&self, rate: f64, rng: &mut Pcg64Mcg) -> Slice {
            let shape = 1.0 / self.correlation;
            let mean = (rate / self.rate).powf(self.slope);
            Slice::Mean(Gamma::new(shape, mean / shape).unwrap().sample(rng))
        }
    }

    /// Searches the rates of 100 random servers. Returns the median relative error, and the share of servers whose
    /// interval contains the rate.
    fn search_all(limited: LimitedMeasure, slice: fn(&Server, f64, &mut Pcg64Mcg) -> Slice) -> (f64, f64) {
        const SERVERS: usize = 100;
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let mut errors = Vec::new();
        let mut covered = 0;
        for _ in 0..SERVERS {
            let server = Server::random(&mut rng);
            let mut search = RateSearch::new(limited, 30.0, 1100.0);
            for _ in 0..20 {
                let rate = search.next_rate();
                search.add(rate, slice(&server, rate, &mut rng));
            }
            let found = search.estimate();
            errors.push((found.rate / server.rate - 1.0).abs());
            covered += usize::from((found.interval90[0]..=found.interval90[1]).contains(&server.rate));
        }
        errors.sort_by(f64::total_cmp);
        (errors[SERVERS / 2], covered as f64 / SERVERS as f64)
    }

    #[test]
    fn the_rate_of_a_percentile_is_found_and_its_interval_covers_it() {
        let (error, coverage) = search_all(LimitedMeasure::Share(0.01), Server::calls);
        assert!(error < 0.03, "median error {error}");
        assert!((0.84..=0.97).contains(&coverage), "coverage {coverage}");
    }

    /// Expects that disturbed slices hardly change the estimates, because they say nothing about the server.
    #[test]
    fn rare_disturbances_hardly_change_the_rate() {
        let (error, coverage) = search_all(LimitedMeasure::Share(0.01), Server::disturbed_calls);
        assert!(error < 0.04, "median error {error}");
        assert!((0.84..=0.97).contains(&coverage), "coverage {coverage}");
    }

    #[test]
    fn one_slice_with_half_of_its_calls_beyond_the_limit_does_not_decide() {
        let mut search = RateSearch::new(LimitedMeasure::Share(0.01), 200.0, 20_000.0);
        search.add(15_600.0, Slice::Calls { beyond: 6_000, calls: 12_000 });
        for rate in [17_000.0, 18_700.0, 17_700.0, 16_000.0, 14_000.0, 17_000.0, 18_000.0] {
            search.add(rate, Slice::Calls { beyond: 30, calls: 12_000 });
        }
        assert!(search.estimate().rate > 16_000.0, "{:?}", search.estimate());
    }

    #[test]
    fn the_rate_of_a_mean_is_found_and_its_interval_covers_it() {
        let (error, coverage) = search_all(LimitedMeasure::Mean, Server::mean);
        assert!(error < 0.03, "median error {error}");
        // There is no upper bound: the means of these servers are known more precisely than the grid resolves, so the
        // intervals are wider than necessary.
        assert!(coverage >= 0.84, "coverage {coverage}");
    }

    #[test]
    fn without_slices_nothing_is_known() {
        let mut search = RateSearch::new(LimitedMeasure::Share(0.01), 10.0, 1000.0);
        assert!((search.estimate().rate / 100.0 - 1.0).abs() < 0.02, "{:?}", search.estimate());
        search.add(100.0, Slice::Calls { beyond: 0, calls: 0 });
        assert!(search.estimate().relative_half_width() > 1.0, "{:?}", search.estimate());
    }

    #[test]
    fn an_objective_that_is_never_missed_puts_the_rate_at_the_upper_bound() {
        let mut search = RateSearch::new(LimitedMeasure::Share(0.01), 10.0, 1000.0);
        for _ in 0..10 {
            search.add(search.next_rate(), Slice::Calls { beyond: 0, calls: 10_000 });
        }
        assert!(search.estimate().rate > 900.0, "{:?}", search.estimate());
    }
}
