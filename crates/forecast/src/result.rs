//! The document of a forecast of arrivals.

use crate::history::Peak;
use crate::series::Series;
use crate::time::Timestamp;
use crate::trend::TrendKind;
use brimful_core::JsonSchema;
use brimful_core::csv;
use serde::Serialize;

/// A forecast of arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Forecast {
    /// The history that the forecast is based on: the given history, or its daily means.
    pub history: Series,
    /// Mean arrivals per second over the last week of the history.
    pub present_rate: f64,
    /// The highest rate of the last week of the history: the rate of its highest step, multiplied by `peak.factor`.
    pub present_peak_rate: f64,
    /// The ratio of the peak rate within a step to the step's mean rate.
    pub peak: Peak,
    /// The scale on which trend and seasons are added: rates or their logarithms.
    pub scale: Scale,
    /// Lengths of the detected or specified seasons, in steps.
    pub seasons: Vec<usize>,
    /// The form of the trend.
    pub trend: TrendKind,
    /// Relative growth of the trend per month, on average over the horizon; 0.05 is 5 %. Absent if nothing arrives now,
    /// if the forecast repeats the last season, or if the history is shorter than two months.
    pub growth_per_month: Option<f64>,
    /// Errors of predictions one step ahead within the history.
    pub in_sample: InSample,
    /// Results of the back-test: forecasts from earlier times in the history; absent if the history is too short.
    pub backtest: Option<Backtest>,
    /// The factor by which the intervals were widened because of the back-test; 1 if they were not widened.
    pub widening: f64,
    /// The forecast of each step.
    pub points: Vec<ForecastPoint>,
    /// Notes for the reader, one sentence each.
    pub notes: Vec<String>,
}

/// The scale on which trend and seasons are added: rates or their logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Rates. The size of the seasonal swings does not depend on the rate.
    Linear,
    /// Logarithms of rates. Swings and growth are proportional to the rate.
    Log,
}

impl Scale {
    /// Converts a rate to this scale.
    pub(crate) fn transform(self, rate: f64) -> f64 {
        match self {
            Self::Linear => rate,
            Self::Log => rate.ln(),
        }
    }

    /// Converts a value on this scale to a rate, which is never negative and always finite.
    pub(crate) fn inverse(self, value: f64) -> f64 {
        match self {
            Self::Linear => value.clamp(0.0, f64::MAX),
            Self::Log => value.exp().min(f64::MAX),
        }
    }
}

/// Errors of predictions one step ahead within the history.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InSample {
    /// Mean absolute error divided by the error of the seasonal naive method, which repeats the last season. Absent if
    /// the seasonal naive method makes no error.
    pub mase: Option<f64>,
    /// Mean absolute error relative to the actual rate (MAPE), as a share; absent if a rate is 0.
    pub mape: Option<f64>,
}

/// Results of a back-test: forecasts from earlier times in the history (origins), compared with the actual values.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Backtest {
    /// Number of origins from which forecasts were made.
    pub origins: usize,
    /// Number of steps that each forecast looked ahead.
    pub horizon_steps: usize,
    /// Share of the actual values inside the 80 % interval, before the intervals were widened.
    pub coverage80: f64,
    /// Share of the actual values inside the 95 % interval, before the intervals were widened.
    pub coverage95: f64,
    /// Mean absolute error, divided by that of the seasonal naive method on the values before each origin. Absent if
    /// the naive method makes no error.
    pub mase: Option<f64>,
    /// Error of the seasonal naive method over the same horizon, divided by the same value as `mase`. The method
    /// repeats the last season or, if there is no season, the last value.
    pub naive_mase: Option<f64>,
    /// All forecasting methods that were compared.
    pub tried: Vec<Tried>,
}

/// A forecasting method that was compared with others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Tried {
    /// The scale on which trend and seasons are added: rates or their logarithms.
    pub scale: Scale,
    /// The form of the trend.
    pub trend: TrendKind,
    /// Relative error of this method, defined like [`Backtest::mase`].
    pub mase: Option<f64>,
}

/// Predicted arrivals per second within one future step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ForecastPoint {
    /// Start of the step.
    pub time: Timestamp,
    /// The median: the actual rate is as likely to be higher as to be lower.
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

impl Forecast {
    /// Start of the forecast, which is the end of the history.
    pub fn start(&self) -> Timestamp {
        self.history.time(self.history.rates.len())
    }

    /// Writes history and forecast as CSV, one step per line; absent values are empty fields.
    pub fn to_csv(&self) -> String {
        let header = ["time", "observed", "likely", "lower80", "upper80", "lower95", "upper95"];
        let line = |time: Timestamp, figures: [Option<f64>; 6]| {
            let figures = figures.map(|x| x.map_or(String::new(), |x| x.to_string()));
            csv::format_row(std::iter::once(time.to_string().as_str()).chain(figures.iter().map(String::as_str)))
        };
        let past = self.history.rates.iter().enumerate();
        let past = past.map(|(i, x)| line(self.history.time(i), [Some(*x), None, None, None, None, None]));
        let to_come = self.points.iter().map(|p| {
            let [likely, lower80, upper80] = [p.likely, p.lower80, p.upper80].map(Some);
            line(p.time, [None, likely, lower80, upper80, Some(p.lower95), Some(p.upper95)])
        });
        std::iter::once(csv::format_row(header)).chain(past).chain(to_come).collect()
    }
}
