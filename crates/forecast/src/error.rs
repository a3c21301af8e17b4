//! Errors of forecasts, each with advice.

use brimful_core::number::NumberError;

/// An error of this crate: invalid input or options.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ForecastError {
    /// Inputs that contradict each other.
    #[error("the input does not fit together: {0}")]
    Inconsistent(String),
    /// A number out of range.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// A text that cannot be parsed.
    #[error("{place}: {problem}")]
    Input {
        /// Position in the text: the number of the line or entry, counted from 1.
        place: String,
        /// What is wrong, and what is expected.
        problem: String,
    },
    /// A gap in the history that is too long to interpolate.
    #[error(
        "the history has no value for {steps} steps from {from} on: up to {bridged} in a row are bridged, so fill them in, or use \
         only what begins at {before}"
    )]
    Gap {
        /// Start of the first missing step.
        from: String,
        /// Number of missing steps in the gap.
        steps: usize,
        /// Time of the first value after the gap.
        before: String,
        /// Maximum number of consecutive missing steps that can be interpolated.
        bridged: usize,
    },
    /// Too many short gaps in the history.
    #[error(
        "{missing} of the {steps} steps of the history are missing, more than one in ten: fill them in, or use a longer step"
    )]
    Gaps {
        /// Number of missing steps.
        missing: usize,
        /// Number of steps in the history, including the missing ones.
        steps: usize,
    },
    /// A history too short for a forecast.
    #[error("{given} values are too few for a forecast: at least {} more are needed", needed.saturating_sub(*given))]
    SeriesTooShort {
        /// Number of values in the history.
        given: usize,
        /// Minimum number of values.
        needed: usize,
    },
    /// The name of an unknown forecasting method.
    #[error("there is no forecast `{0}`: use `auto`, `line`, `smoothing:ALPHA` (0 to 1) or `moving-average:STEPS`")]
    UnknownForecast(String),
}
