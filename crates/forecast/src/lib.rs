//! What arrivals will be, from their history; when they are more than a server can take, and what that costs. Pure
//! functions, no I/O; rates are per second.
//!
//! - [`mod@forecast`]: trend, seasons and prediction intervals. [`Series`]: a history, read from CSV.
//! - [`crossing`]: when a rate is reached. [`cost`]: which configuration lasts, and is cheapest.
//!
//! Nothing here panics on any input: what makes no sense is a [`ForecastError`].
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
mod scale;
mod season;
mod series;
mod spikes;
mod time;
mod trend;
mod zone;

pub use cost::{Configuration, CostRow, CostTable, Sized, cost_table, parse_configurations};
pub use crossing::{Crossing, crossing};
pub use error::ForecastError;
pub use forecast::forecast;
pub use history::{Peak, PeakBasis};
pub use options::{ForecastMethod, ForecastOptions};
pub use result::{Backtest, Forecast, ForecastPoint, InSample, Tried};
pub use scale::Scale;
pub use series::{BRIDGE, Daily, Gap, Series, Unit};
pub use time::{MONTH_S, ParseTimestampError, Timestamp};
pub use trend::TrendKind;
pub use zone::{ParseZoneError, Zone};
