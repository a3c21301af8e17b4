//! The scale on which rates are fitted: rates or their logarithms.

use brimful_core::JsonSchema;
use serde::Serialize;

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
