//! Compares configurations of a server: their costs, the rates that they sustain, and the time for which their capacity
//! suffices. The comparison of cost and performance is the last step of Menascé & Almeida's method.
//!
//! The capacity of a configuration is the highest rate, in requests per second, at which it meets the performance
//! objective. The caller computes it by applying the configuration's changes to a queueing model. Prices may be in any
//! currency. The capacity must suffice for peaks, but the cost per request depends on the mean rate. A cost per million
//! is the monthly price divided by the millions of requests in a month at the mean rate.

mod table;

pub use table::parse_configurations;

use crate::ForecastError;
use crate::crossing::{Crossing, crossing};
use crate::result::Forecast;
use crate::time::{MONTH_S, Timestamp};
use brimful_core::JsonSchema;
use brimful_core::number::{check_non_negative, check_positive};
use serde::{Deserialize, Serialize};

/// A configuration of the server, with its price.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Name of the configuration.
    pub name: String,
    /// Price of the configuration per month, in any currency.
    #[serde(alias = "price")]
    pub price_per_month: f64,
    /// Changes that this configuration makes to the queueing model, in the notation of `--set`, such as
    /// `cpu.servers=4`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A configuration and its capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct SizedConfiguration {
    /// The configuration.
    pub configuration: Configuration,
    /// The highest rate, per second, at which the configuration meets the performance objective; absent if there is no
    /// such rate.
    pub capacity: Option<f64>,
}

/// A comparison of configurations, the cheapest first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CostTable {
    /// The time for which the configuration should suffice, in months from the end of the history.
    pub months: f64,
    /// Mean arrivals per second over the last week of the history.
    pub present_rate: f64,
    /// The highest rate of the last week of the history, per second.
    pub present_peak_rate: f64,
    /// Length of the forecast in months. If a capacity suffices for longer than this, its headroom in months is
    /// unknown.
    pub horizon_months: f64,
    /// The cheapest configuration whose capacity is likely to suffice for `months`; absent if there is none.
    pub cheapest: Option<String>,
    /// The cheapest configuration whose capacity suffices for `months` even at the upper end of the forecast's 95 %
    /// interval; absent if there is none.
    pub cheapest_safe: Option<String>,
    /// The configurations in increasing order of price; if prices are equal, the larger capacity is first.
    pub rows: Vec<CostRow>,
}

/// The costs of one configuration, and the time for which its capacity suffices.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CostRow {
    /// The configuration.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// The highest rate, per second, at which the configuration meets the performance objective; absent if there is no
    /// such rate.
    pub capacity: Option<f64>,
    /// Price of a million requests at the present mean rate, even if the capacity is too small for this rate; absent if
    /// nothing arrives.
    pub cost_per_million_now: Option<f64>,
    /// Price of a million requests when peaks reach the capacity, for the present ratio of mean to peak; absent if
    /// there is no capacity or if nothing arrives.
    pub cost_per_million_at_capacity: Option<f64>,
    /// Capacity divided by the present peak rate, minus 1: 0.5 means 50 % more than needed; negative means that the
    /// capacity is already too small. Absent if nothing arrives, or if there is no capacity.
    pub headroom: Option<f64>,
    /// The dates when arrivals reach the capacity; absent if there is no capacity.
    pub crossing: Option<Crossing>,
    /// Months from the end of the history to the likely date when arrivals reach the capacity. 0 if the capacity is
    /// already too small; absent if the date is beyond the horizon or there is no capacity.
    pub months_of_headroom: Option<f64>,
    /// Whether the capacity is likely to suffice for the requested months.
    pub lasts: bool,
    /// Whether the capacity suffices for the requested months even at the upper end of the forecast's 95 % interval.
    pub lasts_safely: bool,
}

/// Compares configurations under a forecast. `months` is the time for which a configuration should suffice.
///
/// # Errors
/// Returns an error if there is no configuration, if two have the same name, if a price or capacity is out of range, or
/// if the forecast ends before `months` have passed.
pub fn cost_table(sized: &[SizedConfiguration], forecast: &Forecast, months: f64) -> Result<CostTable, ForecastError> {
    check_positive(months, || "the number of months".into())?;
    let horizon_months = forecast.points.len() as f64 * f64::from(forecast.history.step_s) / MONTH_S;
    // A forecast of exactly `months` may appear shorter, because of a rounding error.
    if horizon_months < months * (1.0 - 1e-9) {
        let shape =
            format!("the forecast looks {horizon_months:.1} months ahead and not {months}: give it a longer horizon");
        return Err(ForecastError::Inconsistent(shape));
    }
    table::check(sized.iter().map(|s| &s.configuration))?;
    let mut rows = sized.iter().map(|s| CostRow::new(s, forecast, months)).collect::<Result<Vec<_>, _>>()?;
    rows.sort_by(|a, b| {
        let price = a.configuration.price_per_month.total_cmp(&b.configuration.price_per_month);
        price.then(b.capacity.unwrap_or(0.0).total_cmp(&a.capacity.unwrap_or(0.0)))
    });
    let cheapest = |lasts: fn(&CostRow) -> bool| rows.iter().find(|r| lasts(r)).map(|r| r.configuration.name.clone());
    Ok(CostTable {
        months,
        present_rate: forecast.present_rate,
        present_peak_rate: forecast.present_peak_rate,
        horizon_months,
        cheapest: cheapest(|r| r.lasts),
        cheapest_safe: cheapest(|r| r.lasts_safely),
        rows,
    })
}

impl CostRow {
    fn new(sized: &SizedConfiguration, forecast: &Forecast, months: f64) -> Result<Self, ForecastError> {
        let SizedConfiguration { configuration, capacity } = sized;
        let name = &configuration.name;
        if let Some(capacity) = *capacity {
            check_non_negative(capacity, || format!("the capacity of `{name}`"))?;
        }
        let capacity = capacity.filter(|c| *c > 0.0);
        let crossing = capacity.map(|c| crossing(forecast, c)).transpose()?;
        let per_million = |rate: f64| (rate > 0.0).then(|| configuration.price_per_month / (rate * MONTH_S / 1e6));
        let end = forecast.start().plus_seconds((months * MONTH_S) as i64);
        let holds = |date: Option<Timestamp>| date.is_none_or(|date| date >= end);
        let until = |date: Timestamp| ((date.unix() - forecast.start().unix()) as f64 / MONTH_S).max(0.0);
        let mean_at_capacity = |capacity: f64| capacity * forecast.present_rate / forecast.present_peak_rate;
        Ok(Self {
            configuration: configuration.clone(),
            capacity,
            cost_per_million_now: per_million(forecast.present_rate),
            cost_per_million_at_capacity: capacity.map(mean_at_capacity).and_then(per_million),
            headroom: capacity
                .filter(|_| forecast.present_peak_rate > 0.0)
                .map(|c| c / forecast.present_peak_rate - 1.0),
            crossing,
            months_of_headroom: crossing.and_then(|c| c.likely).map(until),
            lasts: crossing.is_some_and(|c| holds(c.likely)),
            lasts_safely: crossing.is_some_and(|c| holds(c.earliest)),
        })
    }
}
