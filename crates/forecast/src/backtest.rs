//! Back-tests forecasting methods. Each candidate (a fitted method) forecasts from several earlier times in the
//! history, called origins. These forecasts are compared with the actual values (rolling origin; Hyndman &
//! Athanasopoulos, *Forecasting: Principles and Practice*, 2021, §5.10).
//!
//! The candidate with the smallest error is chosen, with two exceptions. Errors on a single history are random, so the
//! candidate that fits the whole history best is kept if its error is at most 5 % larger. A back-test looks less far
//! ahead than the forecast, so a candidate is rejected if its forecast far exceeds all past rates. If all candidates
//! would be rejected, the candidate with the lowest forecast is chosen.

use crate::fit::{Candidates, FitSettings, Fitted, naive_error};
use crate::result::{Backtest, Tried};
use crate::series::MIN_VALUES;

/// Maximum number of origins: times in the history from which a back-test makes forecasts.
const MAX_ORIGINS: usize = 10;

/// Upper bound of the factor by which prediction intervals are widened. Errors that require a larger factor are caused
/// by a sudden change in the history, and say little about the future.
pub(crate) const MAX_WIDENING: f64 = 2.0;

/// The candidate that fits the whole history best is kept if its back-test error is at most the smallest error of all
/// candidates times this factor.
const MAX_ERROR_RATIO: f64 = 1.05;

/// A forecast is not credible if the upper end of its 95 % interval exceeds the highest past rate times this factor.
pub(crate) const MAX_CREDIBLE_RATIO: f64 = 10.0;

/// Absolute errors below this share of the rates count as rounding errors.
const ROUNDING: f64 = 1e-12;

/// Errors of a forecast step up to this share of the highest rate count as rounding errors of the fit and the forecast.
const MAX_STEP_ROUNDING: f64 = 1e-9;

/// The candidate that the back-test has chosen, and the results of the back-test.
pub(crate) struct BacktestChoice {
    /// Index of the chosen candidate.
    pub chosen: usize,
    /// Whether the best candidate was rejected because its forecast would have far exceeded all past rates.
    pub better_model_was_rejected: bool,
    /// Results for the forecast document; `None` if the history is too short for a back-test.
    pub report: Option<Backtest>,
    /// The factor, from 1 to [`MAX_WIDENING`], by which the prediction intervals must be widened so that 80 % intervals
    /// contain 80 % of the actual values.
    pub widening: f64,
}

/// Chooses a candidate by its forecasts from up to ten origins in the second half of the history. If the history is too
/// short for a back-test, chooses the first candidate: a fit of the rates, not of their logarithms. A fit of logarithms
/// implies proportional growth, for which a short history is no evidence.
pub(crate) fn choose(
    candidates: &Candidates,
    rates: &[f64],
    settings: FitSettings<'_>,
    horizon: usize,
) -> BacktestChoice {
    let Some(trial) = Trial::run(candidates, rates, settings, horizon) else {
        return BacktestChoice { chosen: 0, better_model_was_rejected: false, report: None, widening: 1.0 };
    };
    let (chosen, better_model_was_rejected) = trial.choose(candidates, rates, settings, horizon);
    let tally = &trial.tallies[chosen];
    let naive = &trial.tallies[candidates.all.len() - 1];
    let mase = |tally: &Tally| (trial.naive > 0.0).then(|| tally.absolute / trial.naive);
    let tried =
        |(fitted, tally): (&Fitted, &Tally)| Tried { scale: fitted.scale, trend: fitted.trend.kind, mase: mase(tally) };
    BacktestChoice {
        chosen,
        better_model_was_rejected,
        widening: tally.widening(),
        report: Some(Backtest {
            origins: trial.origins,
            horizon_steps: trial.horizon,
            coverage80: tally.share(tally.within80),
            coverage95: tally.share(tally.within95),
            mase: mase(tally),
            naive_mase: mase(naive),
            tried: candidates.all.iter().zip(&trial.tallies).map(tried).collect(),
        }),
    }
}

/// The results of a back-test: the forecast errors of all candidates.
struct Trial {
    origins: usize,
    horizon: usize,
    /// Errors of each candidate, in the order of the candidates.
    tallies: Vec<Tally>,
    /// Denominator of the mean absolute scaled error (MASE). It is the sum over all origins of this product: the mean
    /// absolute error of the seasonal naive method before the origin, times the number of forecast steps.
    naive: f64,
    /// Sums of absolute errors below this value, in arrivals per second, count as rounding errors.
    rounding: f64,
}

impl Trial {
    /// Runs the back-test. Returns `None` if the history is too short.
    fn run(candidates: &Candidates, rates: &[f64], settings: FitSettings<'_>, horizon: usize) -> Option<Self> {
        let n = rates.len();
        let horizon = horizon.min(n / 4);
        let first = (n / 2).max(MIN_VALUES);
        let last = n - horizon;
        if horizon == 0 || first > last {
            return None;
        }
        let origins = MAX_ORIGINS.min(last - first + 1);
        let mut tallies: Vec<Tally> = candidates.all.iter().map(|_| Tally::default()).collect();
        let mut naive = 0.0;
        let mut rounding = 0.0;
        for i in 0..origins {
            let origin = if origins == 1 { last } else { first + i * (last - first) / (origins - 1) };
            let past = &rates[..origin];
            let future = &rates[origin..origin + horizon];
            naive += naive_error(past, candidates.period) * horizon as f64;
            rounding += ROUNDING * future.iter().sum::<f64>();
            let fitted = Candidates::fit(past, settings, Some(candidates.period)).all;
            for (tally, fitted) in tallies.iter_mut().zip(&fitted) {
                tally.count(fitted, future, rounding_of(future), |h| settings.closed_steps.contains(origin + h));
            }
        }
        Some(Self { origins, horizon, tallies, naive, rounding })
    }

    /// Returns the index of the chosen candidate, and whether a better candidate was rejected.
    fn choose(
        &self,
        candidates: &Candidates,
        rates: &[f64],
        settings: FitSettings<'_>,
        horizon: usize,
    ) -> (usize, bool) {
        let Some(naive) = candidates.all.len().checked_sub(1) else { return (0, false) };
        if settings.method != crate::options::ForecastMethod::Auto {
            return (0, false);
        }
        let reach = |i: usize| candidates.all[i].highest_upper_end(horizon, self.tallies[i].widening());
        let reach: Vec<f64> = (0..=naive).map(reach).collect();
        let least = reach.iter().copied().fold(f64::INFINITY, f64::min);
        let bound = least.max(MAX_CREDIBLE_RATIO * rates.iter().copied().fold(0.0, f64::max));
        let every: Vec<usize> = (0..=naive).collect();
        let within: Vec<usize> = every.iter().copied().filter(|i| reach[*i] <= bound).collect();
        let wanted = self.best_of(&every, candidates.preferred, naive);
        let chosen = self.best_of(&within, candidates.preferred, naive);
        (chosen, chosen != wanted)
    }

    /// Returns the index of the candidate in `among` with the smallest error; of several, the first. Returns
    /// `preferred` instead if its error is at most 5 % larger, unless the best candidate is `naive` (the seasonal naive
    /// method).
    fn best_of(&self, among: &[usize], preferred: usize, naive: usize) -> usize {
        let error = |i: usize| self.tallies[i].absolute.max(self.rounding);
        let best = among.iter().copied().min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(naive);
        let stays = among.contains(&preferred) && best != naive && error(preferred) <= MAX_ERROR_RATIO * error(best);
        if stays { preferred } else { best }
    }
}

/// Upper bound of the rounding error of a forecast step, in arrivals per second, for these actual rates.
fn rounding_of(rates: &[f64]) -> f64 {
    MAX_STEP_ROUNDING * rates.iter().copied().fold(0.0, f64::max)
}

/// The errors of all forecasts by one candidate (a fitted forecasting method).
#[derive(Default)]
struct Tally {
    /// For each forecast value: the error, divided by half the width of the 80 % interval.
    ratios: Vec<f64>,
    within80: usize,
    within95: usize,
    /// Sum of the absolute errors of the rates, in arrivals per second.
    absolute: f64,
}

impl Tally {
    /// Adds the errors of one forecast, except those of closed steps (in which nothing ever arrives). For the
    /// intervals, errors up to `rounding`, in arrivals per second, count as 0.
    fn count(&mut self, fitted: &Fitted, future: &[f64], rounding: f64, is_closed: impl Fn(usize) -> bool) {
        let (t80, t95) = fitted.quantiles();
        let predicted = fitted.predict(future.len()).into_iter().zip(future).enumerate();
        for (_, ((location, sd), &actual)) in predicted.filter(|(h, _)| !is_closed(*h)) {
            let error = (fitted.scale.inverse(location) - actual).abs();
            let off = if error <= rounding { 0.0 } else { (fitted.scale.transform(actual) - location).abs() };
            self.within80 += usize::from(off <= t80 * sd);
            self.within95 += usize::from(off <= t95 * sd);
            self.absolute += error;
            self.ratios.push(if off == 0.0 { 0.0 } else { off / (t80 * sd) });
        }
    }

    fn share(&self, count: usize) -> f64 {
        if self.ratios.is_empty() { 1.0 } else { count as f64 / self.ratios.len() as f64 }
    }

    fn widening(&self) -> f64 {
        let mut ratios = self.ratios.clone();
        ratios.sort_by(f64::total_cmp);
        let at_80 = (ratios.len() * 4).div_ceil(5).checked_sub(1);
        at_80.map_or(1.0, |place| ratios[place].clamp(1.0, MAX_WIDENING))
    }
}
