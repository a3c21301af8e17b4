//! How good forecasts would have been: every candidate applied to beginnings of the history, judged by what followed
//! (rolling origin; Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, 2021, §5.10), and the choice that
//! follows from it.
//!
//! The candidate with the least error is taken. The preferred one stays if it is about as good, because the error of
//! one history is itself a random number. What would exceed all that was ever seen by far within the horizon is not
//! taken, for no back-test reaches that far; where all would, those that exceed it least are left.

use crate::fit::{Candidates, Fitted, How, naive_error};
use crate::result::{Backtest, Tried};
use crate::series::MINIMUM;

/// Origins, at most.
const ORIGINS: usize = 10;

/// Intervals are not widened more than this: what is worse comes from a break in the history and says little of what
/// followed it.
pub(crate) const WIDEST: f64 = 2.0;

/// The preferred candidate stays if its error is at most so many times the least.
const ABOUT_AS_GOOD: f64 = 1.05;

/// An interval that reaches this many times the highest rate of the history says nothing of what will be.
pub(crate) const UNHEARD_OF: f64 = 10.0;

/// Errors below this share of the rates are rounding.
const ROUNDING: f64 = 1e-12;

/// The same of a single step, whose interval may have no width: the fit's own rounding is in it.
const ROUNDING_OF_STEP: f64 = 1e-9;

/// What a back-test found, and the candidate to use.
pub(crate) struct Judged {
    pub chosen: usize,
    /// A better candidate was left out because it would have exceeded all that was seen.
    pub restrained: bool,
    pub report: Option<Backtest>,
    /// By how much intervals must be wider for those of 80 % to hold 80 %, 1 to [`WIDEST`].
    pub widening: f64,
}

/// Chooses among candidates by forecasts from up to ten origins in the second half of the history. If that is too
/// short, rates are extrapolated on their own scale: nothing then vouches for growth in proportion.
pub(crate) fn choose(candidates: &Candidates, rates: &[f64], how: How<'_>, horizon: usize) -> Judged {
    let Some(trial) = Trial::run(candidates, rates, how, horizon) else {
        return Judged { chosen: 0, restrained: false, report: None, widening: 1.0 };
    };
    let (chosen, restrained) = trial.choose(candidates, rates, how, horizon);
    let (tally, naive) = (&trial.tallies[chosen], &trial.tallies[candidates.all.len() - 1]);
    let mase = |tally: &Tally| (trial.naive > 0.0).then(|| tally.absolute / trial.naive);
    let tried =
        |(fitted, tally): (&Fitted, &Tally)| Tried { scale: fitted.scale, trend: fitted.trend.kind, mase: mase(tally) };
    Judged {
        chosen,
        restrained,
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

/// Forecasts from earlier origins by all candidates.
struct Trial {
    origins: usize,
    horizon: usize,
    /// By candidate.
    tallies: Vec<Tally>,
    /// The sum of errors that repeating the last season makes one season ahead, within what came before the origins.
    naive: f64,
    /// Sums of errors below this are rounding.
    rounding: f64,
}

impl Trial {
    /// Nothing if the history is too short.
    fn run(candidates: &Candidates, rates: &[f64], how: How<'_>, horizon: usize) -> Option<Self> {
        let n = rates.len();
        let horizon = horizon.min(n / 4);
        let (first, last) = ((n / 2).max(MINIMUM), n - horizon);
        if horizon == 0 || first > last {
            return None;
        }
        let origins = ORIGINS.min(last - first + 1);
        let mut tallies: Vec<Tally> = candidates.all.iter().map(|_| Tally::default()).collect();
        let (mut naive, mut rounding) = (0.0, 0.0);
        for i in 0..origins {
            let origin = if origins == 1 { last } else { first + i * (last - first) / (origins - 1) };
            let (past, future) = (&rates[..origin], &rates[origin..origin + horizon]);
            naive += naive_error(past, candidates.period) * horizon as f64;
            rounding += ROUNDING * future.iter().sum::<f64>();
            let fitted = Candidates::fit(past, how, Some(candidates.period)).all;
            for (tally, fitted) in tallies.iter_mut().zip(&fitted) {
                tally.count(fitted, future, rounding_of(future), |h| how.closed.at(origin + h));
            }
        }
        Some(Self { origins, horizon, tallies, naive, rounding })
    }

    /// The candidate to use, and whether a better one was left out.
    fn choose(&self, candidates: &Candidates, rates: &[f64], how: How<'_>, horizon: usize) -> (usize, bool) {
        let Some(naive) = candidates.all.len().checked_sub(1) else { return (0, false) };
        if how.method != crate::options::ForecastMethod::Auto {
            return (0, false);
        }
        let reach = |i: usize| candidates.all[i].highest(horizon, self.tallies[i].widening());
        let reach: Vec<f64> = (0..=naive).map(reach).collect();
        let least = reach.iter().copied().fold(f64::INFINITY, f64::min);
        let bound = least.max(UNHEARD_OF * rates.iter().copied().fold(0.0, f64::max));
        let every: Vec<usize> = (0..=naive).collect();
        let within: Vec<usize> = every.iter().copied().filter(|i| reach[*i] <= bound).collect();
        let wanted = self.best_of(&every, candidates.preferred, naive);
        let chosen = self.best_of(&within, candidates.preferred, naive);
        (chosen, chosen != wanted)
    }

    /// The candidate with the least error; of equals, the first.
    fn best_of(&self, among: &[usize], preferred: usize, naive: usize) -> usize {
        let error = |i: usize| self.tallies[i].absolute.max(self.rounding);
        let best = among.iter().copied().min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(naive);
        let stays = among.contains(&preferred) && best != naive && error(preferred) <= ABOUT_AS_GOOD * error(best);
        if stays { preferred } else { best }
    }
}

/// An error below this is rounding in one step of these rates.
fn rounding_of(rates: &[f64]) -> f64 {
    ROUNDING_OF_STEP * rates.iter().copied().fold(0.0, f64::max)
}

/// What came of a candidate's forecasts.
#[derive(Default)]
struct Tally {
    /// Errors over half the width of the 80 % interval.
    ratios: Vec<f64>,
    within80: usize,
    within95: usize,
    /// The sum of absolute errors.
    absolute: f64,
}

impl Tally {
    /// Counts forecasts of the steps that are not closed; errors in rates below `rounding` are none.
    fn count(&mut self, fitted: &Fitted, future: &[f64], rounding: f64, is_closed: impl Fn(usize) -> bool) {
        let (t80, t95) = fitted.quantiles();
        let predicted = fitted.predict(future.len()).into_iter().zip(future).enumerate();
        for (_, ((location, sd), &actual)) in predicted.filter(|(h, _)| !is_closed(*h)) {
            let error = (fitted.scale.back(location) - actual).abs();
            let off = if error <= rounding { 0.0 } else { (fitted.scale.of(actual) - location).abs() };
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
        at_80.map_or(1.0, |place| ratios[place].clamp(1.0, WIDEST))
    }
}
