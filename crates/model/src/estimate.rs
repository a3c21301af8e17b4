//! A number and how well it is known.

use schemars::JsonSchema;
use serde::Serialize;

/// A number that was fitted or simulated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Its value.
    pub value: f64,
    /// Half width of its 95 % confidence interval; `None` where the data leave no freedom to judge it by.
    pub ci95_half_width: Option<f64>,
}
