//! Forecasts arrivals from their history, finds when they exceed a server's capacity, and compares costs. All functions
//! are pure and do no I/O; rates are per second.
//!
//! - [`mod@forecast`]: trend, seasons and prediction intervals. [`Series`]: a history of arrivals, read from CSV or
//!   JSON.
//! - [`crossing`]: the date at which a rate is reached. [`cost`]: which configurations suffice, and which is cheapest.
//!
//! No input makes this crate panic; invalid input is a [`ForecastError`].
#![forbid(unsafe_code)]

mod backtest;
mod closed;
pub mod cost;
mod crossing;
mod error;
mod fit;
pub mod forecast;
mod history;
pub mod line;
mod notes;
mod options;
mod outliers;
mod result;
mod season;
mod series;
mod spikes;
mod time;
mod trend;
mod zone;

pub use cost::{Configuration, CostRow, CostTable, SizedConfiguration, cost_table, parse_configurations};
pub use crossing::{Crossing, crossing};
pub use error::ForecastError;
pub use forecast::forecast;
pub use history::{Peak, PeakBasis};
pub use options::{ForecastMethod, ForecastOptions};
pub use result::{Backtest, Forecast, ForecastPoint, InSample, Scale, Tried};
pub use series::{DailySeries, Gap, MAX_INTERPOLATED_STEPS, Series, Unit};
pub use time::{MONTH_S, ParseTimestampError, Timestamp};
pub use trend::TrendKind;
pub use zone::{ParseZoneError, Zone};
