//! Estimates the threshold rate of an objective: the highest rate of calls at which the server meets the objective. The
//! data are slices, which are short runs at several rates.
//!
//! An objective such as `p99<50ms` permits 1 % of the calls to take longer than 50 ms, in the long run. Over a long
//! run, the speed of the host varies, so a single slice is not representative. The search maintains a posterior
//! distribution of the threshold rate and chooses the rate of the next slice from it. The width of the distribution is
//! the uncertainty of the estimate. The method is that of Watson & Pelli 1983 (QUEST), with an unknown slope and
//! dispersion as in Kontsevich & Tyler 1999 and Schütt et al. 2016.
//!
//! - **The curve**: s is the share of calls beyond the limit at some rate, p the permitted share, and θ the threshold
//!   rate. Near θ, the log odds of s are linear in the logarithm of the rate: ln(s / (1 − s)) = ln(p / (1 − p)) + b
//!   ln(rate / θ).
//! - **A slice** has k of n calls beyond the limit. Its calls are correlated, because the host has the same speed for
//!   all of them. So k has a beta-binomial distribution with an unknown correlation ρ.
//! - **A disturbance** of the host may last as long as a slice. Any share of the calls may then be beyond the limit, at
//!   any rate, so the slice has no information about θ. Up to one slice in ten may be disturbed. The distribution of k
//!   is therefore a mixture (contamination: Tukey 1960). Without the mixture, a single slice with half of its calls
//!   beyond the limit lowered the estimate by a third.
//! - **An objective for the mean response time** has the curve ln(mean / limit) = b ln(rate / θ). The mean of a slice
//!   has a gamma distribution with an unknown variance. The mean of a disturbed slice may have any magnitude.
//!
//! The prior of ln θ is uniform. The result does not depend on the model's prediction of θ, so it can be compared with
//! the prediction.

use statrs::function::beta::ln_beta;
use statrs::function::gamma::ln_gamma;

/// Number of candidates for the threshold rate θ, the highest rate that meets the objective. The posterior distribution
/// is computed on a grid of such candidates.
const RATES: usize = 400;
/// Bounds of the slope b of the curve: the increase of the log odds of a slow call per unit of ln(rate). At the lower
/// bound, the share of slow calls grows gradually with the rate. At the upper bound, it jumps at one rate.
const SLOPES: [f64; 2] = [4.0, 100.0];
/// Number of candidates for the slope b of the curve (the share of slow calls as a function of the rate) in the grid.
const SLOPE_STEPS: usize = 12;
/// Bounds of the correlation ρ between the calls of one slice (a short run).
const CORRELATIONS: [f64; 2] = [5e-4, 0.1];
/// Bounds of the squared coefficient of variation of the mean response times of slices (short runs) at the same rate.
const VARIATIONS: [f64; 2] = [1e-3, 1.0];
/// Number of candidates in the grid for the dispersion: the correlation ρ between the calls of a slice (a short run),
/// or the squared coefficient of variation of its mean response time.
const DISPERSION_STEPS: usize = 8;
/// Candidates for the share of slices (short runs) that the host disturbs.
const DISTURBED_SHARES: [f64; 3] = [0.02, 0.05, 0.1];
/// Natural logarithm of the ratio of the largest to the smallest possible mean response time of a disturbed slice: the
/// ratio is 1.2 million.
const DISTURBED_MAGNITUDES: f64 = 14.0;
/// Quantiles of the posterior of the threshold rate at which slices are measured, in turn. Slices on both sides of the
/// threshold rate determine the slope of the curve.
const SLICE_QUANTILES: [f64; 4] = [0.5, 0.8, 0.35, 0.65];

/// The quantity that an objective limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LimitedMeasure {
    /// The share of calls that exceed the objective's response time limit. The field is the permitted share, above 0
    /// and below 1.
    Share(f64),
    /// The mean response time of the calls.
    Mean,
}

/// The result of one slice, a short run at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slice {
    /// For a limit on the share of slow calls: the number of calls that exceeded the response time limit.
    Calls {
        /// Number of calls that exceeded the response time limit or failed.
        beyond: u64,
        /// Number of all calls.
        calls: u64,
    },
    /// For a limit on the mean response time: the slice's mean response time divided by the limit.
    Mean(f64),
}

/// Estimate of the threshold rate, the highest rate that meets the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEstimate {
    /// Median of the posterior distribution, in calls per second.
    pub rate: f64,
    /// The 5 % and 95 % quantiles of the posterior distribution, in calls per second.
    pub interval90: [f64; 2],
}

impl RateEstimate {
    /// Half the width of `interval90`, divided by the rate.
    pub fn relative_half_width(&self) -> f64 {
        (self.interval90[1] - self.interval90[0]) / 2.0 / self.rate
    }
}

/// Parameters of the random differences between slices (short runs) at the same rate.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    /// The correlation ρ between the calls of a slice, or the squared coefficient of variation of its mean response
    /// time.
    dispersion: f64,
    /// The share of slices that the host disturbs.
    disturbed: f64,
}

/// The search for the threshold rate of one objective, the highest rate that meets it.
#[derive(Clone, Debug)]
pub struct RateSearch {
    limited: LimitedMeasure,
    /// Natural logarithms of the candidates for the threshold rate.
    log_rates: Vec<f64>,
    slopes: Vec<f64>,
    scatters: Vec<Scatter>,
    /// Natural logarithm of the posterior, up to a constant, for each combination of threshold rate, slope and scatter
    /// (the random differences between slices at the same rate).
    log_posterior: Vec<f64>,
    slices: usize,
}

impl RateSearch {
    /// Begins a search for the threshold rate between two rates, in calls per second. `low` must be positive, and
    /// `high` greater than `low`.
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

    /// Updates the posterior with the result of a slice at this offered rate, in calls per second. A slice without
    /// calls does not change the posterior.
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

    /// Number of slices in the posterior.
    pub fn slices(&self) -> usize {
        self.slices
    }

    /// The current estimate of the threshold rate.
    pub fn estimate(&self) -> RateEstimate {
        let marginal = self.marginal();
        let quantile = |share| self.quantile(&marginal, share);
        // Extend the interval by half a step of the grid of rates on each side, because the grid cannot resolve smaller
        // differences.
        let step = self.half_step().exp();
        RateEstimate { rate: quantile(0.5), interval90: [quantile(0.05) / step, quantile(0.95) * step] }
    }

    /// Half the distance between neighbouring rates of the grid, as a natural logarithm.
    fn half_step(&self) -> f64 {
        (self.log_rates[1] - self.log_rates[0]) / 2.0
    }

    /// The rate at which the next slice should be measured, in calls per second.
    pub fn next_rate(&self) -> f64 {
        self.quantile(&self.marginal(), SLICE_QUANTILES[self.slices % SLICE_QUANTILES.len()])
    }

    /// The posterior probability of each candidate for the threshold rate.
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

/// Table of the log likelihood of one slice (a short run), for one candidate of the differences between slices, as a
/// function of b ln(rate / θ). b is the slope and θ the threshold rate. The grid has far more combinations than the
/// table has entries, so interpolation in the table saves time.
struct Likelihood {
    logs: Vec<f64>,
}

impl Likelihood {
    /// The table is for arguments b ln(rate / θ) from `-FARTHEST` to `FARTHEST`. Outside of this range, the likelihood
    /// is almost constant.
    const FARTHEST: f64 = 12.0;
    /// Number of entries of the table per unit of its argument b ln(rate / θ).
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

/// Natural logarithm of the likelihood of a slice, up to a constant. `distance` is b ln(rate / θ), where b is the slope
/// and θ the threshold rate.
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
            // In a disturbed slice, all numbers of calls beyond the limit are equally likely.
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

/// ln(eᵃ + eᵇ), computed without overflow.
fn log_sum(a: f64, b: f64) -> f64 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

/// `count` values in geometric progression, from `low` to `high`.
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

    /// A simulated server whose threshold rate is known.
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

        /// Simulates a slice on a host that disturbs 5 % of the slices.
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

    /// Estimates the threshold rates of 100 random servers from 20 slices each. Returns the median relative error, and
    /// the share of the servers whose 90 % interval contains the true rate.
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

    /// If 5 % of the slices are disturbed, the median error of the estimates increases only a little.
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
        // The coverage has no upper bound in this test: the intervals are wider than necessary, because the steps of
        // the grid of rates are larger than the uncertainty.
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
