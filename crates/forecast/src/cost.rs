//! Compares configurations: what they cost, which rate they sustain, and for how long (cost beside performance, the last
//! step of Menascé & Almeida's method).
//!
//! A capacity is the highest rate, per second, at which a configuration meets the objective. The caller computes it by
//! applying the configuration's changes to a model. Prices are in any currency. Peaks must fit into the capacity, but
//! requests are paid for by their mean: a cost per million is the monthly price over a month's requests at the mean rate.

mod table;

pub use table::parse_configurations;

use crate::ForecastError;
use crate::crossing::{Crossing, crossing};
use crate::result::Forecast;
use crate::time::{MONTH_S, Timestamp};
use brimful_core::number::{non_negative, positive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to build the server, and its price.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Its name.
    pub name: String,
    /// Its price per month.
    #[serde(alias = "price")]
    pub price_per_month: f64,
    /// What it changes of the model, as `--set` takes it: `cpu.servers=4`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A configuration and its capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct SizedConfiguration {
    /// The configuration.
    pub configuration: Configuration,
    /// The rate per second up to which it meets the objective; absent if it does at no rate.
    pub capacity: Option<f64>,
}

/// Configurations compared, the cheapest first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CostTable {
    /// Months from the end of the history that a configuration should last.
    pub months: f64,
    /// Mean arrivals per second over the last week.
    pub present_rate: f64,
    /// The highest rate of the last week.
    pub present_peak_rate: f64,
    /// Months that the forecast looks ahead: more of headroom cannot be seen.
    pub horizon_months: f64,
    /// The cheapest that is likely to last; absent if none is.
    pub cheapest: Option<String>,
    /// The cheapest that lasts even at the upper end of the 95 % interval; absent if none does.
    pub cheapest_safe: Option<String>,
    /// By price; of equal price, the largest first.
    pub rows: Vec<CostRow>,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CostRow {
    /// It.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// The rate per second up to which it meets the objective; absent if it does at no rate.
    pub capacity: Option<f64>,
    /// Price of a million requests at the present mean rate, whether it can take it or not; absent if nothing arrives.
    pub cost_per_million_now: Option<f64>,
    /// Price of a million requests when peaks reach the capacity.
    pub cost_per_million_at_capacity: Option<f64>,
    /// Capacity over the present peak, less 1: 0.5 is half as much again; negative if it is too small already. Absent if nothing
    /// arrives, or without capacity.
    pub headroom: Option<f64>,
    /// When arrivals reach the capacity.
    pub crossing: Option<Crossing>,
    /// Months from the end of the history to the likely date; 0 if it is too small already, absent if the date lies beyond
    /// the horizon or there is no capacity.
    pub months_of_headroom: Option<f64>,
    /// It is likely to last as long as asked.
    pub lasts: bool,
    /// It lasts as long as asked even at the upper end of the 95 % interval.
    pub lasts_safely: bool,
}

/// Compares configurations under a forecast; `months` is how long a configuration should last.
///
/// # Errors
/// Returns an error if there is no configuration, if two have the same name, if a price or capacity is out of range, or
/// if the forecast ends before `months` have passed.
pub fn cost_table(sized: &[SizedConfiguration], forecast: &Forecast, months: f64) -> Result<CostTable, ForecastError> {
    positive(months, || "the number of months".into())?;
    let horizon_months = forecast.points.len() as f64 * f64::from(forecast.history.step_s) / MONTH_S;
    // A horizon of exactly that length may be short by a rounding error.
    if horizon_months < months * (1.0 - 1e-9) {
        let shape =
            format!("the forecast looks {horizon_months:.1} months ahead and not {months}: give it a longer horizon");
        return Err(ForecastError::Shape(shape));
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
            non_negative(capacity, || format!("the capacity of `{name}`"))?;
        }
        let capacity = capacity.filter(|c| *c > 0.0);
        let crossing = capacity.map(|c| crossing(forecast, c)).transpose()?;
        let per_million = |rate: f64| (rate > 0.0).then(|| configuration.price_per_month / (rate * MONTH_S / 1e6));
        let end = forecast.begins().after((months * MONTH_S) as i64);
        let holds = |date: Option<Timestamp>| date.is_none_or(|date| date >= end);
        let until = |date: Timestamp| ((date.unix() - forecast.begins().unix()) as f64 / MONTH_S).max(0.0);
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
