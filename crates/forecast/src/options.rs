//! Options of a forecast.

use crate::ForecastError;
use brimful_core::JsonSchema;
use brimful_core::number::{NumberError, check_positive};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Options of a forecast.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastOptions {
    /// The horizon, in seconds from the end of the history.
    pub horizon_s: f64,
    /// Lengths of the seasons in steps. If empty, there are no seasons; if absent, seasons are detected.
    pub seasons: Option<Vec<usize>>,
    /// The forecasting method.
    pub method: ForecastMethod,
    /// The ratio of the highest rate within a step to the step's mean rate, if known. If absent, it is measured when
    /// hours are combined into days, and is 1 otherwise.
    pub peak_to_mean: Option<f64>,
}

/// The method that extrapolates the history after its seasons were subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForecastMethod {
    /// Chooses the form of exponential smoothing, and the scale (rates or logarithms), that fit best.
    #[default]
    Auto,
    /// The least-squares line.
    Line,
    /// Simple exponential smoothing, starting with the first value.
    Smoothing {
        /// Smoothing parameter α, 0 to 1: the share of each error by which the level changes.
        alpha: f64,
    },
    /// The mean of the last `window` steps.
    MovingAverage {
        /// Number of steps in the mean.
        window: usize,
    },
}

impl ForecastOptions {
    /// Returns an error if an option is out of range.
    pub(crate) fn check(&self) -> Result<(), ForecastError> {
        check_positive(self.horizon_s, || "the horizon".into())?;
        let wrong = |what: &str, value: f64, requirement| {
            Err(ForecastError::Number(NumberError { what: what.into(), value, requirement }))
        };
        if let Some(factor) = self.peak_to_mean.filter(|factor| !(1.0..=1e6).contains(factor)) {
            return wrong("the ratio of peak to mean", factor, "1 or more (up to a million)");
        }
        if let Some(period) = self.seasons.iter().flatten().find(|period| **period < 2) {
            return wrong("the length of a season", *period as f64, "at least 2 steps");
        }
        match self.method {
            ForecastMethod::Smoothing { alpha } if !(0.0..=1.0).contains(&alpha) => {
                wrong("α", alpha, "between 0 and 1")
            }
            ForecastMethod::MovingAverage { window: 0 } => wrong("the window", 0.0, "at least 1 step"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ForecastMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Line => f.pad("line"),
            Self::Smoothing { alpha } => f.pad(&format!("smoothing:{alpha}")),
            Self::MovingAverage { window } => f.pad(&format!("moving-average:{window}")),
        }
    }
}

impl FromStr for ForecastMethod {
    type Err = ForecastError;
    fn from_str(text: &str) -> Result<Self, ForecastError> {
        let unknown = || ForecastError::UnknownForecast(text.chars().take(40).collect());
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "line" => Ok(Self::Line),
            Some(("smoothing", alpha)) => {
                let alpha = alpha.parse().ok().filter(|a| (0.0..=1.0).contains(a)).ok_or_else(unknown)?;
                Ok(Self::Smoothing { alpha })
            }
            Some(("moving-average", window)) => {
                let window = window.parse().ok().filter(|w| *w > 0).ok_or_else(unknown)?;
                Ok(Self::MovingAverage { window })
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_read_as_they_are_written() {
        let methods = [
            ForecastMethod::Auto,
            ForecastMethod::Line,
            ForecastMethod::Smoothing { alpha: 0.3 },
            ForecastMethod::MovingAverage { window: 3 },
        ];
        for method in methods {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        for text in
            ["", "smoothing", "smoothing:2", "smoothing:nan", "moving-average:0", "moving-average:-1", "prophet"]
        {
            let error = text.parse::<ForecastMethod>().expect_err(text).to_string();
            assert!(error.contains("moving-average:STEPS"), "{error}");
        }
    }
}
