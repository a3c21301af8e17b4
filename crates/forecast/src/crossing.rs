//! The dates when a forecast reaches a rate.

use crate::ForecastError;
use crate::result::{Forecast, ForecastPoint};
use crate::time::Timestamp;
use brimful_core::JsonSchema;
use brimful_core::number::check_positive;
use serde::Serialize;

/// The dates when arrivals reach a rate, according to a forecast. A date that is beyond the forecast's horizon is
/// absent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Crossing {
    /// The arrival rate that is reached, per second.
    pub limit_rate: f64,
    /// Whether the rate was already reached within the last week of the history. All three dates are then the date when
    /// it was first reached in that week.
    pub already: bool,
    /// Date when the upper end of the forecast's 95 % interval reaches the rate. An earlier date is unlikely.
    pub earliest: Option<Timestamp>,
    /// Date when the median of the forecast reaches the rate.
    pub likely: Option<Timestamp>,
    /// Date when the lower end of the forecast's 95 % interval reaches the rate. A later date is unlikely.
    pub latest: Option<Timestamp>,
}

/// Dates when the peak rate of a step reaches `limit_rate`: in the last week of the history, or in the forecast.
pub fn crossing(forecast: &Forecast, limit_rate: f64) -> Result<Crossing, ForecastError> {
    check_positive(limit_rate, || "the rate to be reached".into())?;
    let limit = limit_rate / forecast.peak.factor;
    let history = &forecast.history;
    let week = history.rates.len() - history.last_week()..history.rates.len();
    if let Some(reached) = week.into_iter().find(|i| history.rates[*i] >= limit) {
        let when = Some(history.time(reached));
        return Ok(Crossing { limit_rate, already: true, earliest: when, likely: when, latest: when });
    }
    let first = |rate: fn(&ForecastPoint) -> f64| forecast.points.iter().find(|p| rate(p) >= limit).map(|p| p.time);
    Ok(Crossing {
        limit_rate,
        already: false,
        earliest: first(|p| p.upper95),
        likely: first(|p| p.likely),
        latest: first(|p| p.lower95),
    })
}
