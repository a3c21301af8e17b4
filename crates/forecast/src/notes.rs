//! Writes the notes about a forecast: its limits, and how the history was changed.

use crate::backtest::{MAX_CREDIBLE_RATIO, MAX_WIDENING};
use crate::closed::ClosedSteps;
use crate::fit::Fitted;
use crate::history::PeakBasis;
use crate::outliers::MAD;
use crate::result::{Forecast, ForecastPoint};
use crate::season;
use crate::time::{DAY_S, MONTH_S};
use crate::trend::TrendKind;
use std::collections::BTreeSet;

/// Minimum length, in seconds, of a history whose growth per month is reported. In two months, one month can be
/// compared with the next.
pub(crate) const MIN_GROWTH_HISTORY_S: f64 = 2.0 * MONTH_S;

/// An error of the prediction one step ahead counts as a sudden change if it exceeds this many robust standard
/// deviations.
const JUMP_DEVIATIONS: f64 = 8.0;

/// Errors below this share of the history's range (maximum minus minimum) count as rounding errors.
const ROUNDING: f64 = 1e-6;

/// Properties of the fit that the notes describe.
pub(crate) struct FitSummary<'a> {
    /// The fit from which the forecast was computed.
    pub fitted: &'a Fitted,
    /// Indices of the values that were replaced before the fit: spikes and outliers.
    pub outliers: &'a BTreeSet<usize>,
    /// The steps in which nothing ever arrives.
    pub closed_steps: &'a ClosedSteps,
    /// The rates that were fitted.
    pub rates: &'a [f64],
    /// Whether a better fit was rejected because its forecast would have far exceeded all past rates.
    pub better_model_was_rejected: bool,
}

/// The notes about a forecast, one sentence each. `wanted` are the lengths of the seasons that the user requested.
pub(crate) fn notes(forecast: &Forecast, found: &FitSummary<'_>, wanted: Option<&[usize]>) -> Vec<String> {
    let FitSummary { fitted, outliers, closed_steps, rates, better_model_was_rejected } = *found;
    let n = forecast.history.rates.len();
    let horizon = forecast.points.len();
    let usual = season::usual_periods(forecast.history.step_s);
    let mut notes = Vec::new();
    let missing: usize = forecast.history.bridged.iter().map(|gap| gap.steps).sum();
    if missing > 0 {
        notes.push(format!("{missing} missing values of the history were interpolated."));
    }
    if forecast.history.out_of_order > 0 {
        notes.push("The history was not in the order of time and has been sorted.".into());
    }
    if forecast.history.mixed_offsets && i64::from(forecast.history.step_s) < DAY_S {
        notes.push(format!(
            "Times have more than one offset from UTC; days and hours of the day are those of {}: name the time zone to have \
             them follow its clocks.",
            forecast.history.zone
        ));
    }
    for period in wanted.unwrap_or(&usual).iter().filter(|p| !forecast.seasons.contains(p)) {
        notes.push(if n / 2 < *period {
            format!(
                "No season of {period} steps: it needs a history of {} and this one has {n}.",
                period.saturating_mul(2)
            )
        } else {
            format!("No season of {period} steps: none stands out from the noise.")
        });
    }
    if let Some((period, steps)) = closed_steps.period_and_closed_count() {
        notes.push(format!(
            "Nothing arrives at {steps} of the {period} steps of a season: these are taken for closed, and forecast as 0."
        ));
    }
    if let Some(first) = outliers.first() {
        notes.push(format!(
            "Values far from those around them ({}, the first at {}) were kept out of the trend: holidays, outages or sales \
             come on top of this forecast.",
            outliers.len(),
            forecast.history.time_of_clock_index(*first)
        ));
    }
    let places = rates.iter().map(|r| fitted.scale.transform(*r));
    let (low, high) = places.fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(p), high.max(p)));
    if let Some(at) = jump(&fitted.trend.errors, ROUNDING * (high - low)) {
        let time = forecast.history.time_of_clock_index(fitted.values - fitted.trend.errors.len() + at);
        notes.push(format!(
            "At {time} arrivals changed beyond all that came before; if that was a change for good, forecast only what follows."
        ));
    }
    if forecast.peak.basis == PeakBasis::Unknown && i64::from(forecast.history.step_s) >= DAY_S {
        notes.push("How far arrivals peak within a step is not known, so the mean is taken: give the ratio, or an hourly history.".into());
    }
    notes.extend(no_skill(forecast));
    let lasts_s = n as f64 * f64::from(forecast.history.step_s);
    if lasts_s < MIN_GROWTH_HISTORY_S {
        let days = lasts_s / DAY_S as f64;
        notes.push(format!(
            "No growth per month is reported: it needs a history of two months, and this one lasts {days:.0} days."
        ));
    }
    let highest = |rates: &mut dyn Iterator<Item = f64>| rates.fold(0.0, f64::max);
    let seen = highest(&mut forecast.history.rates.iter().copied());
    let upper = highest(&mut forecast.points.iter().map(|p: &ForecastPoint| p.upper95));
    if better_model_was_rejected {
        notes.push(format!(
            "What fits best reaches {MAX_CREDIBLE_RATIO} times the highest rate of the history within this horizon; it was left for \
             the next best: look less far ahead."
        ));
    }
    if upper > MAX_CREDIBLE_RATIO * seen {
        notes.push(format!(
            "The 95 % interval reaches {:.0} times the highest rate of the history: so far ahead nothing is known.",
            upper / seen
        ));
    }
    if horizon > n {
        notes.push(format!(
            "The horizon of {horizon} steps is longer than the history of {n}: the forecast is uncertain."
        ));
    }
    if forecast.widening >= MAX_WIDENING {
        notes.push(
            "Intervals that held little of the past were doubled, which still is too little: do not rely on them."
                .into(),
        );
    }
    match &forecast.backtest {
        None => notes.push("The history is too short to try the forecast on its past.".into()),
        Some(b) if b.horizon_steps < horizon => notes.push(format!(
            "The intervals were tried {} steps ahead; beyond that they rest on the model alone.",
            b.horizon_steps
        )),
        Some(_) => {}
    }
    notes
}

/// Returns a note if the forecast is made by the seasonal naive method (which repeats the last season), or is no better
/// than that method.
fn no_skill(forecast: &Forecast) -> Option<String> {
    let (tried, naive) = forecast.backtest.as_ref().and_then(|b| Some((b.mase?, b.naive_mase?)))?;
    let again = match forecast.seasons.iter().max() {
        Some(period) => format!("the last {period} steps"),
        None => "the last value".to_owned(),
    };
    if forecast.trend == TrendKind::SeasonalNaive {
        return Some(format!("No method was better on the past than repeating {again}, so that is what is forecast."));
    }
    (tried >= naive).then(|| format!("On the past, repeating {again} was no worse than this forecast."))
}

/// The index of the largest error, if this error is a sudden change: much larger than the usual error, and larger than
/// `rounding`.
fn jump(errors: &[f64], rounding: f64) -> Option<usize> {
    let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    let largest = (0..sizes.len()).max_by(|a, b| sizes[*a].total_cmp(&sizes[*b]))?;
    let size = sizes[largest];
    sizes.sort_by(f64::total_cmp);
    let median = sizes[sizes.len() / 2];
    (size > JUMP_DEVIATIONS * median / MAD && size > rounding).then_some(largest)
}
