//! Why there is no forecast, and what to do about it.

use brimful_core::number::NumberError;

/// The error of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ForecastError {
    /// Parts of the input do not fit together.
    #[error("the input does not fit together: {0}")]
    Shape(String),
    /// A number that cannot be.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// A text that cannot be read.
    #[error("{place}: {problem}")]
    Input {
        /// Where: the number of a line or of an entry, from 1.
        place: String,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// A history with a hole that is too long to bridge.
    #[error(
        "the history has no value for {steps} steps from {from} on: up to {bridged} in a row are bridged, so fill them in, or use \
         only what begins at {before}"
    )]
    Gap {
        /// When the first missing step begins.
        from: String,
        /// How many are missing.
        steps: usize,
        /// When the history goes on.
        before: String,
        /// How many in a row are bridged.
        bridged: usize,
    },
    /// A history with too many holes, short as they are.
    #[error(
        "{missing} of the {steps} steps of the history are missing, more than one in ten: fill them in, or use a longer step"
    )]
    Gaps {
        /// How many are missing.
        missing: usize,
        /// How many there should be.
        steps: usize,
    },
    /// A history that says nothing about the future.
    #[error("{given} values are too few for a forecast: at least {} more are needed", needed.saturating_sub(*given))]
    SeriesTooShort {
        /// How many there were.
        given: usize,
        /// How many there must be.
        needed: usize,
    },
    /// A method of forecasting that does not exist.
    #[error("there is no forecast `{0}`: use `auto`, `line`, `smoothing:ALPHA` (0 to 1) or `moving-average:STEPS`")]
    UnknownForecast(String),
}
