//! What arrivals will be: trend, seasons and prediction intervals from a history, and when a rate is reached.
//!
//! The history is brought to one scale (rates, or their logarithms where growth and swings are in proportion), its daily
//! and weekly patterns are taken off, what is left, without its outliers, is extrapolated by exponential smoothing. Several
//! forms of that, on both scales, and the repetition of the last season are then tried on beginnings of the history: the
//! best is used, and intervals that prove too narrow are widened by as much as that shows. Rates are per second; an interval is that of a single step to come, and a rate within it as good as
//! any other before.
//!
//! Hours cannot tell what happens in months: for more than [`HOURS_TELL_S`] days are forecast instead, and the ratio of
//! their peak to their mean is learnt from the hours, because a server must hold the peak.
//!
//! Of 40 synthetic histories each (a line, a week and noise; 120 days and 60 ahead), the 80 and 95 % intervals held 81 and
//! 95 %; with the deviations of a day persisting to 0.7, 81 and 95 %; growing and swinging in proportion, 82 and 96 %; a
//! random walk of 400 days, 90 ahead, 82 and 94 %. Seasonal decomposition with an automatic ETS (augurs 0.10) had 75 and 91,
//! 95 and 99, 67 and 84, 74 and 94 %.

mod backtest;
mod crossing;
mod fit;
mod history;
mod notes;
mod options;
mod outliers;
mod season;
mod series;
mod time;
mod trend;
mod zone;

pub use crossing::{Crossing, crossing};
pub use history::{Peak, PeakBasis};
pub use options::{ForecastMethod, ForecastOptions};
pub use series::{BRIDGE, Daily, Gap, Series, Unit};
pub use time::{MONTH_S, ParseTimestampError, Timestamp};
pub use trend::TrendKind;
pub use zone::{ParseZoneError, Zone};

use crate::ModelError;
use crate::csv;
use backtest::Judged;
use fit::Candidates;
use history::History;
use schemars::JsonSchema;
use serde::Serialize;
use time::DAY_S;

/// Values that there must be.
pub const MINIMUM: usize = 8;

/// Beyond this many seconds, two weeks, a history finer than days is forecast by days.
pub const HOURS_TELL_S: f64 = 14.0 * DAY_S as f64;

/// Growth in a month is told of histories that last at least this many seconds, two months: so that there is a month to
/// compare with the one before.
pub const GROWTH_TELLS_S: f64 = 2.0 * MONTH_S;

/// Steps of a forecast, at most.
const HORIZON: usize = 100_000;

/// The scale on which trend and seasons add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Rates: swings stay the same as the rate grows.
    Linear,
    /// Logarithms of rates: swings and growth are in proportion to the rate.
    Log,
}

/// Arrivals to come.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Forecast {
    /// What it is made from: the history given, or its days.
    pub history: Series,
    /// Mean arrivals per second over the last week.
    pub present_rate: f64,
    /// The highest rate of the last week: that of its highest step times `peak.factor`.
    pub present_peak_rate: f64,
    /// From the mean of a step to its peak.
    pub peak: Peak,
    /// The scale on which trend and seasons add up.
    pub scale: Scale,
    /// Lengths of the seasons found or given, in steps.
    pub seasons: Vec<usize>,
    /// The form of the trend.
    pub trend: TrendKind,
    /// Relative growth of the trend in a month, on average over the horizon; 0.05 is 5 %. Absent if nothing arrives now,
    /// if the last season is repeated, or if the history lasts less than [`GROWTH_TELLS_S`].
    pub growth_per_month: Option<f64>,
    /// How well one step ahead was foretold within the history.
    pub in_sample: InSample,
    /// How good such forecasts were before; absent if the history is too short to try.
    pub backtest: Option<Backtest>,
    /// By how much the intervals were widened for the back-test's sake; 1 if they were not.
    pub widening: f64,
    /// The forecast, by step.
    pub points: Vec<ForecastPoint>,
    /// What a reader should know, in sentences.
    pub notes: Vec<String>,
}

/// Errors one step ahead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InSample {
    /// Mean absolute error over that of repeating the last season; absent if that makes none.
    pub mase: Option<f64>,
    /// Mean of |error|/rate; absent if a rate is 0.
    pub mape: Option<f64>,
}

/// Forecasts from earlier origins, compared with what came.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Backtest {
    /// How many.
    pub origins: usize,
    /// How far each looked ahead, in steps.
    pub horizon_steps: usize,
    /// Share of the values that fell into the 80 % interval, before any widening.
    pub coverage80: f64,
    /// Share of the values that fell into the 95 % interval, before any widening.
    pub coverage95: f64,
    /// Mean absolute error over that of repeating the last season, one season ahead; absent if that makes none.
    pub mase: Option<f64>,
    /// The same of repeating the last season (or value, without a season) as far as the others looked ahead.
    pub naive_mase: Option<f64>,
    /// All that were compared; the trend that fits best, on each scale, is that of the whole history.
    pub tried: Vec<Tried>,
}

/// A way to forecast that was compared with others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Tried {
    /// The scale on which trend and seasons add up.
    pub scale: Scale,
    /// The form of the trend.
    pub trend: TrendKind,
    /// As [`Backtest::mase`].
    pub mase: Option<f64>,
}

/// Arrivals per second within one step to come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ForecastPoint {
    /// When the step begins.
    pub time: Timestamp,
    /// As likely to be exceeded as not.
    pub likely: f64,
    /// Lower end of the 80 % interval.
    pub lower80: f64,
    /// Upper end of the 80 % interval.
    pub upper80: f64,
    /// Lower end of the 95 % interval.
    pub lower95: f64,
    /// Upper end of the 95 % interval.
    pub upper95: f64,
}

/// Forecasts a history.
///
/// Errors: fewer than [`MINIMUM`] values, rates or options that cannot be, a horizon of more steps than anyone could read.
pub fn forecast(series: &Series, options: &ForecastOptions) -> Result<Forecast, ModelError> {
    options.check()?;
    let History { series, peak, seasons, note } = History::new(series, options)?;
    // Seasons follow the clocks: hours are fitted as clocks without a change would show them.
    let rates = &series.by_place();
    if rates.len() < MINIMUM {
        return Err(ModelError::SeriesTooShort { given: rates.len(), needed: MINIMUM });
    }
    let horizon = series.steps(options.horizon_s);
    if horizon > HORIZON {
        let need = "at most 100,000: shorten it, or give the history a longer step";
        return Err(ModelError::Number { what: "the horizon in steps".into(), value: horizon as f64, need });
    }
    let log = options.method == ForecastMethod::Auto && rates.iter().all(|r| *r > 0.0);
    let how = How { step_s: series.step_s, seasons: seasons.as_deref(), method: options.method, log };
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
        let at = |t: f64| fitted.scale.back(location + t * widening * sd);
        ForecastPoint {
            time: series.time(steps + h),
            likely: at(0.0),
            lower80: at(-t80),
            upper80: at(t80),
            lower95: at(-t95),
            upper95: at(t95),
        }
    };
    let week = &series.rates[steps - last_week(&series)..];
    let mut forecast = Forecast {
        present_rate: week.iter().sum::<f64>() / week.len() as f64,
        present_peak_rate: week.iter().fold(0.0, |a: f64, b| a.max(*b)) * peak.factor,
        peak,
        scale: fitted.scale,
        seasons: fitted.seasons.iter().map(|s| s.pattern.len()).collect(),
        trend: fitted.trend.kind,
        growth_per_month: fitted.growth(months, horizon).filter(|_| tells_growth),
        in_sample: fitted.in_sample(rates, candidates.period),
        backtest,
        widening,
        points: (0..horizon).map(point).collect(),
        notes: Vec::from_iter(note),
        history: series,
    };
    let notes = notes::notes(&forecast, fitted, seasons.as_deref(), restrained);
    forecast.notes.extend(notes);
    Ok(forecast)
}

/// How to fit a history.
#[derive(Clone, Copy)]
struct How<'a> {
    step_s: u32,
    seasons: Option<&'a [usize]>,
    method: ForecastMethod,
    /// Whether logarithms may be tried.
    log: bool,
}

/// Steps of the last week of a history.
fn last_week(series: &Series) -> usize {
    series.steps(7.0 * DAY_S as f64).clamp(1, series.rates.len().max(1))
}

impl Forecast {
    /// When the history ends and the forecast begins.
    pub fn begins(&self) -> Timestamp {
        self.history.time(self.history.rates.len())
    }

    /// History and forecast as CSV, a step on each line; what is absent is an empty field.
    pub fn to_csv(&self) -> String {
        let header = ["time", "observed", "likely", "lower80", "upper80", "lower95", "upper95"];
        let line = |time: Timestamp, figures: [Option<f64>; 6]| {
            let figures = figures.map(|x| x.map_or(String::new(), |x| x.to_string()));
            csv::line(std::iter::once(time.to_string().as_str()).chain(figures.iter().map(String::as_str)))
        };
        let past = self.history.rates.iter().enumerate();
        let past = past.map(|(i, x)| line(self.history.time(i), [Some(*x), None, None, None, None, None]));
        let to_come = self.points.iter().map(|p| {
            let [likely, lower80, upper80] = [p.likely, p.lower80, p.upper80].map(Some);
            line(p.time, [None, likely, lower80, upper80, Some(p.lower95), Some(p.upper95)])
        });
        std::iter::once(csv::line(header)).chain(past).chain(to_come).collect()
    }
}

impl Scale {
    /// A rate on this scale.
    fn of(self, rate: f64) -> f64 {
        match self {
            Self::Linear => rate,
            Self::Log => rate.ln(),
        }
    }

    /// The rate at a place of this scale: never negative, and finite.
    fn back(self, place: f64) -> f64 {
        match self {
            Self::Linear => place.clamp(0.0, f64::MAX),
            Self::Log => place.exp().min(f64::MAX),
        }
    }
}
