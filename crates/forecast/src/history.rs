//! Prepares the history for the forecast, which uses the whole history, only its last weeks, or its daily means. Also
//! determines the ratio of the peak rate within a step to the step's mean rate.

use crate::ForecastError;
use crate::options::ForecastOptions;
use crate::series::{DailySeries, Series};
use crate::time::DAY_S;
use brimful_core::JsonSchema;
use serde::Serialize;

/// Longest horizon, in seconds, that is forecast in steps shorter than a day.
const MAX_HORIZON_BY_STEP_S: f64 = 14.0 * DAY_S as f64;

/// Minimum length of a history, in days, for a forecast in daily steps.
const MIN_DAYS: usize = 14;

/// Number of most recent days that are used for a forecast in steps shorter than a day.
const RECENT_DAYS: f64 = 56.0;

/// The ratio of the peak rate within a step to the step's mean rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Peak {
    /// The highest rate within a step, divided by the step's mean rate.
    pub factor: f64,
    /// How the ratio was determined: given by the user, measured, or assumed.
    pub basis: PeakBasis,
}

/// How the ratio of the peak rate within a step to the step's mean rate was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeakBasis {
    /// The user specified the ratio.
    Given,
    /// The ratio was measured in a history with steps shorter than a day: the 95th percentile over the days of the
    /// ratio of a day's peak to its mean.
    Learnt,
    /// The rates within a step are unknown, so the peak is assumed to equal the mean.
    Unknown,
}

/// A history that was prepared for a forecast.
pub(crate) struct History {
    /// The rates of the history, in the steps that the forecast uses.
    pub series: Series,
    /// The ratio of the peak rate within a step to the step's mean rate.
    pub peak: Peak,
    /// Lengths of the seasons that the user requested, in steps of the series; `None` to detect seasons.
    pub seasons: Option<Vec<usize>>,
    /// A note to the user about how the given history was changed; `None` if it was not changed.
    pub note: Option<String>,
}

impl History {
    /// Selects the recent part of a history, or combines its steps into days, as the horizon of the forecast requires.
    pub(crate) fn new(given: &Series, options: &ForecastOptions) -> Result<Self, ForecastError> {
        // The caller may have constructed the series, so it is checked like a series parsed from text.
        given.check()?;
        let peak = options.peak_to_mean.map(|factor| Peak { factor, basis: PeakBasis::Given });
        let unknown = Peak { factor: 1.0, basis: PeakBasis::Unknown };
        let mut seasons = options.seasons.clone();
        seasons.iter_mut().for_each(|s| {
            s.sort_unstable();
            s.dedup();
        });
        let far = options.horizon_s > MAX_HORIZON_BY_STEP_S;
        if let Some(days) = given.daily().filter(|days| far && days.series.rates.len() >= MIN_DAYS) {
            return Ok(Self::from_days(days, given.step_s, peak, seasons));
        }
        let mut series = given.clone();
        let recent = given.steps(RECENT_DAYS * DAY_S as f64);
        let older = series.rates.len().saturating_sub(recent);
        let trimmed = !far && i64::from(given.step_s) < DAY_S && older > 0;
        if trimmed {
            series.start = series.time(older);
            series.rates.drain(..older);
        }
        let note = trimmed.then(|| {
            format!("Only the last {RECENT_DAYS} days are used: older data do not help to forecast so short a time.")
        });
        Ok(Self { series, peak: peak.unwrap_or(unknown), seasons, note })
    }

    fn from_days(days: DailySeries, step_s: u32, peak: Option<Peak>, seasons: Option<Vec<usize>>) -> Self {
        let peak = peak.unwrap_or(Peak { factor: days.peak_to_mean, basis: PeakBasis::Learnt });
        let per_day = (DAY_S / i64::from(step_s)) as usize;
        // A series of daily steps has no seasons of a day or less.
        let in_days = |periods: Vec<usize>| periods.into_iter().map(|p| p / per_day).filter(|p| *p > 1).collect();
        let note = format!(
            "More than two weeks ahead days are forecast, not steps of {step_s} s; a day's peak is taken as {:.2} times its mean.",
            peak.factor
        );
        Self { series: days.series, peak, seasons: seasons.map(in_days), note: Some(note) }
    }
}
