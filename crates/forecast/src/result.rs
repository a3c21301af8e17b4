//! The forecast document.

use crate::history::Peak;
use crate::scale::Scale;
use crate::series::Series;
use crate::time::Timestamp;
use crate::trend::TrendKind;
use brimful_core::csv;
use schemars::JsonSchema;
use serde::Serialize;

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
    /// if the last season is repeated, or if the history lasts less than two months.
    pub growth_per_month: Option<f64>,
    /// FitSettings well one step ahead was predicted within the history.
    pub in_sample: InSample,
    /// FitSettings good such forecasts were before; absent if the history is too short to try.
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
    /// FitSettings many.
    pub origins: usize,
    /// FitSettings far each looked ahead, in steps.
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

impl Forecast {
    /// The end of the history, where the forecast begins.
    pub fn begins(&self) -> Timestamp {
        self.history.time(self.history.rates.len())
    }

    /// History and forecast as CSV, one step per line; absent values are empty fields.
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
