//! What arrivals will be: trend, seasons and prediction intervals from a history, and when a rate is reached.
//!
//! The history is brought to one scale (rates, or their logarithms where growth and swings are in proportion), its daily
//! and weekly patterns are taken off ([`season`]), what is left is extrapolated by exponential smoothing ([`trend`]). The method
//! is then tried on beginnings of the history ([`backtest`]), and intervals that prove too narrow are widened by as much
//! as that shows. Rates are per second; every interval is of single steps to come, not of their mean.
//!
//! Hours cannot tell what happens in months: for more than [`HOURS_TELL_S`] days are forecast instead, and the ratio of
//! their peak to their mean is learnt from the hours, because a server must hold the peak.

mod backtest;
mod crossing;
mod fit;
mod season;
mod series;
mod time;
mod trend;

pub use crossing::{Crossing, crossing};
pub use series::{BRIDGE, Daily, Gap, Series, Unit};
pub use time::{MONTH_S, ParseTimestampError, Timestamp};
pub use trend::TrendKind;

use crate::ModelError;
use crate::error::positive;
use fit::Fitted;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use time::DAY_S;

/// Values that there must be.
pub const MINIMUM: usize = 8;

/// Beyond this many seconds, two weeks, a history finer than days is forecast by days.
pub const HOURS_TELL_S: f64 = 14.0 * DAY_S as f64;

/// Days that a history must have to be forecast by days.
const DAYS: usize = 14;

/// Steps of a forecast, at most.
const HORIZON: usize = 100_000;

/// What to forecast, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastOptions {
    /// How far, in seconds from the end of the history.
    pub horizon_s: f64,
    /// Lengths of the seasons in steps, none if empty; detected if absent.
    pub seasons: Option<Vec<usize>>,
    /// How.
    pub method: ForecastMethod,
    /// The highest rate within a step over its mean, if it is known; else 1, or learnt where days are made from hours.
    pub peak_to_mean: Option<f64>,
}

/// How to extrapolate what is left without seasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForecastMethod {
    /// The form of exponential smoothing, and the scale, that fit best.
    #[default]
    Auto,
    /// The least-squares line.
    Line,
    /// Simple exponential smoothing that begins with the first value.
    Smoothing {
        /// α: how much of each error moves the level, 0 to 1.
        alpha: f64,
    },
    /// The mean of the last steps.
    MovingAverage {
        /// How many.
        window: usize,
    },
}

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
    /// Relative growth of the trend in a month, on average over the horizon; 0.05 is 5 %. Absent if nothing arrives now.
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

/// From the mean of a step to its peak.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Peak {
    /// The highest rate within a step over the step's mean.
    pub factor: f64,
    /// Where it comes from.
    pub basis: PeakBasis,
}

/// Where a ratio of peak to mean comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeakBasis {
    /// It was given.
    Given,
    /// From the finer history: exceeded on one day in twenty.
    Learnt,
    /// Nothing is known of what happens within a step, so the mean is taken for the peak.
    Unknown,
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
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
/// Errors: fewer than [`MINIMUM`] values, rates that are negative or not finite, options that cannot be.
pub fn forecast(series: &Series, options: &ForecastOptions) -> Result<Forecast, ModelError> {
    let mut notes = Vec::new();
    let (history, peak) = at_step(series, options, &mut notes)?;
    let rates = &history.rates;
    if rates.len() < MINIMUM {
        return Err(ModelError::SeriesTooShort { given: rates.len(), needed: MINIMUM });
    }
    let horizon = history.steps(options.horizon_s).min(HORIZON);
    let fitted = Fitted::new(rates, history.step_s, options);
    let judged = backtest::backtest(rates, history.step_s, options, horizon);
    let widening = judged.as_ref().map_or(1.0, |j| j.widening);
    let (t80, t95) = fitted.quantiles();
    let points = fitted.predict(horizon).into_iter().enumerate().map(|(h, (location, sd))| {
        let at = |t: f64| fitted.scale.back(location + t * widening * sd);
        ForecastPoint {
            time: history.time(rates.len() + h),
            likely: at(0.0),
            lower80: at(-t80),
            upper80: at(t80),
            lower95: at(-t95),
            upper95: at(t95),
        }
    });
    let mut forecast = Forecast {
        present_rate: 0.0,
        present_peak_rate: 0.0,
        peak,
        scale: fitted.scale,
        seasons: fitted.seasons.iter().map(|s| s.pattern.len()).collect(),
        trend: fitted.trend.kind,
        growth_per_month: growth(&fitted, horizon, history.step_s),
        in_sample: in_sample(&fitted, rates),
        backtest: judged.map(|j| j.report),
        widening,
        points: points.collect(),
        notes,
        history,
    };
    forecast.say_what_is_missing(options, horizon);
    let week = &forecast.history.rates[forecast.history.rates.len() - forecast.week()..];
    forecast.present_rate = week.iter().sum::<f64>() / week.len() as f64;
    forecast.present_peak_rate = week.iter().fold(0.0, |a: f64, b| a.max(*b)) * peak.factor;
    Ok(forecast)
}

/// The history to forecast, its days if the horizon is far, and the peak within its steps.
fn at_step(series: &Series, options: &ForecastOptions, notes: &mut Vec<String>) -> Result<(Series, Peak), ModelError> {
    positive(options.horizon_s, || "the horizon".into())?;
    // What a caller put together by hand is checked as well.
    Series::new(series.start, series.step_s, series.rates.clone())?;
    let given = options.peak_to_mean.map(|factor| {
        let sound = factor.is_finite() && factor >= 1.0;
        let wrong = ModelError::Number { what: "the ratio of peak to mean".into(), value: factor, need: "1 or more" };
        if sound { Ok(Peak { factor, basis: PeakBasis::Given }) } else { Err(wrong) }
    });
    let given = given.transpose()?;
    if let ForecastMethod::Smoothing { alpha } = options.method
        && !(0.0..=1.0).contains(&alpha)
    {
        return Err(ModelError::Number { what: "α".into(), value: alpha, need: "between 0 and 1" });
    }
    let days = series.daily().filter(|days| days.series.rates.len() >= DAYS && options.horizon_s > HOURS_TELL_S);
    let Some(days) = days else {
        return Ok((series.clone(), given.unwrap_or(Peak { factor: 1.0, basis: PeakBasis::Unknown })));
    };
    notes.push(format!(
        "More than two weeks ahead days are forecast, not steps of {} s; a day's peak is taken as {:.2} times its mean.",
        series.step_s,
        given.map_or(days.peak_to_mean, |p| p.factor)
    ));
    Ok((days.series, given.unwrap_or(Peak { factor: days.peak_to_mean, basis: PeakBasis::Learnt })))
}

impl Forecast {
    /// Steps of the last week of the history.
    pub(crate) fn week(&self) -> usize {
        self.history.steps(7.0 * DAY_S as f64).clamp(1, self.history.rates.len())
    }

    /// When the history ends and the forecast begins.
    pub fn begins(&self) -> Timestamp {
        self.history.time(self.history.rates.len())
    }

    fn say_what_is_missing(&mut self, options: &ForecastOptions, horizon: usize) {
        let n = self.history.rates.len();
        let wanted = options.seasons.clone().unwrap_or_else(|| season::usual(self.history.step_s));
        for period in wanted.into_iter().filter(|p| !self.seasons.contains(p)) {
            let why = if n / 2 < period {
                format!("the history has {n} steps and must have {}", period.saturating_mul(2))
            } else {
                "none stands out from the noise".into()
            };
            self.notes.push(format!("No season of {period} steps: {why}."));
        }
        if horizon > n {
            self.notes
                .push(format!("The horizon of {horizon} steps is longer than the history of {n}: expect surprises."));
        }
        match &self.backtest {
            None => self.notes.push("The history is too short to try the forecast on its past.".into()),
            Some(b) if b.horizon_steps < horizon => self.notes.push(format!(
                "The intervals were tried {} steps ahead; beyond that they rest on the model alone.",
                b.horizon_steps
            )),
            Some(_) => {}
        }
    }
}

/// Relative growth of the trend per month.
fn growth(fitted: &Fitted, horizon: usize, step_s: u32) -> Option<f64> {
    let (now, then) =
        (fitted.scale.back(fitted.trend.level), fitted.scale.back(fitted.trend.predict(horizon).last()?.0));
    let months = horizon as f64 * f64::from(step_s) / MONTH_S;
    let growth = (then / now).powf(1.0 / months) - 1.0;
    (now > 0.0 && growth.is_finite()).then_some(growth)
}

fn in_sample(fitted: &Fitted, rates: &[f64]) -> InSample {
    let errors = &fitted.trend.errors;
    let offset = rates.len() - errors.len();
    let off = |i: usize| {
        let rate = rates[offset + i];
        (rate - fitted.scale.back(fitted.scale.of(rate) - errors[i])).abs()
    };
    let mean = |of: &dyn Fn(usize) -> f64| (0..errors.len()).map(of).sum::<f64>() / errors.len() as f64;
    let naive = fitted.naive_error(rates);
    InSample {
        mase: (naive > 0.0).then(|| mean(&off) / naive),
        mape: rates.iter().all(|r| *r > 0.0).then(|| mean(&|i| off(i) / rates[offset + i])),
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
            Self::Linear => place.max(0.0),
            Self::Log => place.exp().min(f64::MAX),
        }
    }
}

impl fmt::Display for ForecastMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Line => f.pad("line"),
            Self::Smoothing { alpha } => f.pad(&format!("smoothing:{alpha}")),
            Self::MovingAverage { window } => f.pad(&format!("moving-average:{window}")),
        }
    }
}

impl FromStr for ForecastMethod {
    type Err = ModelError;
    fn from_str(text: &str) -> Result<Self, ModelError> {
        let unknown = || ModelError::UnknownForecast(text.chars().take(40).collect());
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "line" => Ok(Self::Line),
            Some(("smoothing", alpha)) => {
                let alpha = alpha.parse().ok().filter(|a| (0.0..=1.0).contains(a)).ok_or_else(unknown)?;
                Ok(Self::Smoothing { alpha })
            }
            Some(("moving-average", window)) => {
                let window = window.parse().ok().filter(|w| *w > 0).ok_or_else(unknown)?;
                Ok(Self::MovingAverage { window })
            }
            _ => Err(unknown()),
        }
    }
}
