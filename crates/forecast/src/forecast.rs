//! What arrivals will be: trend, seasons and prediction intervals from a history, and when a rate is reached.
//!
//! Spikes are replaced by what was expected, and steps at which nothing ever arrives are left out: they are forecast as
//! zero. The history is brought to one scale (rates, or their logarithms where growth and swings are in proportion),
//! its daily and weekly patterns are taken off, what is left, without its outliers, is extrapolated by exponential
//! smoothing. Several forms of that, on both scales, and the repetition of the last season are then tried on beginnings
//! of the history: the best is used, and intervals that prove too narrow are widened by as much as that shows. Rates
//! are per second; an interval is that of a single step to come.
//!
//! Hours cannot tell what happens in months: for more than two weeks days are forecast instead, and the ratio of
//! their peak to their mean is learnt from the hours, because a server must hold the peak.
//!
//! Of 40 synthetic histories each (a line, a week and noise; 120 days and 60 ahead), the 80 and 95 % intervals held 81
//! and 95 %; with the deviations of a day persisting to 0.7, 81 and 95 %; growing and swinging in proportion, 82 and
//! 96 %; a random walk of 400 days, 90 ahead, 82 and 94 %. Seasonal decomposition with an automatic ETS (augurs 0.10)
//! had 75 and 91, 95 and 99, 67 and 84, 74 and 94 %.

use crate::ForecastError;
use crate::backtest::{self, Judged};
use crate::closed::Closed;
use crate::fit::{Candidates, Fitted, How};
use crate::history::History;
use crate::notes::{Found, GROWTH_TELLS_S, notes};
use crate::options::{ForecastMethod, ForecastOptions};
use crate::result::{Forecast, ForecastPoint};
use crate::series::{MINIMUM, Series};
use crate::time::MONTH_S;
use crate::{season, spikes};
use brimful_core::number::NumberError;
use std::collections::BTreeSet;

/// Steps of a forecast, at most.
const HORIZON: usize = 100_000;

/// Forecasts a history.
///
/// Errors: fewer than [`MINIMUM`] values, rates or options that cannot be, a horizon of more steps than anyone could
/// read.
pub fn forecast(series: &Series, options: &ForecastOptions) -> Result<Forecast, ForecastError> {
    options.check()?;
    let History { series, peak, seasons, note } = History::new(series, options)?;
    // Seasons follow the clocks: hours are fitted as clocks without a change would show them.
    let rates = &series.by_place();
    if rates.len() < MINIMUM {
        return Err(ForecastError::SeriesTooShort { given: rates.len(), needed: MINIMUM });
    }
    let horizon = series.steps(options.horizon_s);
    if horizon > HORIZON {
        let need = "at most 100,000: shorten it, or give the history a longer step";
        return Err(ForecastError::Number(NumberError {
            what: "the horizon in steps".into(),
            value: horizon as f64,
            need,
        }));
    }
    let Cleaned { rates, closed, spikes } = Cleaned::new(rates, &series, seasons.as_deref(), options.method);
    let rates = &rates;
    let log = options.method == ForecastMethod::Auto && rates.iter().all(|r| *r > 0.0);
    let how = How { step_s: series.step_s, seasons: seasons.as_deref(), method: options.method, log, closed: &closed };
    let candidates = Candidates::fit(rates, how, None);
    let Judged { chosen, restrained, report: backtest, widening } = backtest::choose(&candidates, rates, how, horizon);
    let fitted = &candidates.all[chosen];
    let tells_growth = rates.len() as f64 * f64::from(series.step_s) >= GROWTH_TELLS_S;
    let months = horizon as f64 * f64::from(series.step_s) / MONTH_S;
    let (t80, t95) = fitted.quantiles();
    let steps = series.rates.len();
    let place = |h: usize| series.place(steps + h).saturating_sub(rates.len());
    let predicted = fitted.predict((0..horizon).map(place).max().map_or(0, |last| last + 1));
    let point = |h: usize| {
        let (location, sd) = predicted[place(h)];
        let is_closed = closed.at(rates.len() + place(h));
        let at = |t: f64| if is_closed { 0.0 } else { fitted.scale.back(location + t * widening * sd) };
        ForecastPoint {
            time: series.time(steps + h),
            likely: at(0.0),
            lower80: at(-t80),
            upper80: at(t80),
            lower95: at(-t95),
            upper95: at(t95),
        }
    };
    let week = &series.rates[steps - series.last_week()..];
    let mut forecast = Forecast {
        present_rate: week.iter().sum::<f64>() / week.len() as f64,
        present_peak_rate: week.iter().fold(0.0, |a: f64, b| a.max(*b)) * peak.factor,
        peak,
        scale: fitted.scale,
        seasons: periods(fitted, &closed),
        trend: fitted.trend.kind,
        growth_per_month: fitted.growth(months, horizon).filter(|_| tells_growth),
        in_sample: fitted.in_sample(rates, candidates.period, &closed),
        backtest,
        widening,
        points: (0..horizon).map(point).collect(),
        notes: Vec::from_iter(note),
        history: series,
    };
    let outliers: BTreeSet<usize> = spikes.into_iter().chain(fitted.outliers.iter().copied()).collect();
    let fit = Found { fitted, outliers: &outliers, closed: &closed, rates, restrained };
    let notes = notes(&forecast, &fit, seasons.as_deref());
    forecast.notes.extend(notes);
    Ok(forecast)
}

/// A history as it is fitted.
struct Cleaned {
    /// Without spikes, and with closed steps filled in.
    rates: Vec<f64>,
    closed: Closed,
    /// Indices of the values that were replaced.
    spikes: Vec<usize>,
}

impl Cleaned {
    /// Cleans the rates for the method of our choice; the methods of textbooks get them as they are.
    fn new(rates: &[f64], series: &Series, seasons: Option<&[usize]>, method: ForecastMethod) -> Cleaned {
        if method != ForecastMethod::Auto {
            return Cleaned { rates: rates.to_vec(), closed: Closed::default(), spikes: Vec::new() };
        }
        let usual = season::usual(series.step_s);
        let periods = seasons.unwrap_or(&usual);
        let closed = Closed::find(rates, periods);
        let mut rates = closed.opened(rates);
        let mut spikes = spikes::replace(&mut rates, periods);
        spikes.retain(|i| !closed.at(*i));
        Cleaned { rates, closed, spikes }
    }
}

/// Lengths of the seasons, that of closed steps included.
fn periods(fitted: &Fitted, closed: &Closed) -> Vec<usize> {
    let fitted = fitted.seasons.iter().map(|season| season.pattern.len());
    fitted.chain(closed.share().map(|(period, _)| period)).collect::<BTreeSet<_>>().into_iter().collect()
}
