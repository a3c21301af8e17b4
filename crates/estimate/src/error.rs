//! Errors of estimation. Each message states what to do.

use brimful_core::number::NumberError;
use brimful_model::ModelError;

/// An error that prevents an estimate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EstimateError {
    /// Values of the input contradict each other, or an argument is out of range. The text explains it.
    #[error("the input does not fit together: {0}")]
    Inconsistent(String),
    /// A number of the input is invalid.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// There are fewer observations than unknown values.
    #[error(
        "{given} observations are too few: at least {needed} (of positive weight) are needed. Measure more load levels"
    )]
    TooFewObservations {
        /// Minimum number of observations.
        needed: usize,
        /// Number of observations in the input.
        given: usize,
    },
    /// A request class has no completed requests.
    #[error(
        "class {class} (counted from 0) never completed a request, so its demand is unknown: send requests of this class, or leave it out"
    )]
    Unobserved {
        /// Index of the request class, from 0.
        class: usize,
    },
    /// The values of some unknowns cannot be determined, because their effects vary together in all observations.
    #[error(
        "the observations cannot tell the unknowns apart (condition number {condition_number:.1e}): vary the load over a \
         wider range, and measure the background while the server is idle instead of fitting it"
    )]
    Indistinct {
        /// Condition number of the design matrix after scaling of its columns.
        condition_number: f64,
    },
    /// The cost of a response without a body cannot be determined, because the numbers of requests and of bytes are
    /// nearly proportional.
    #[error(
        "the log does not show what an answer without a body costs, because the numbers of requests and bytes have a nearly \
         constant ratio: measure that class alone"
    )]
    NoIntercept,
    /// The known demands of some classes require more time than the resource was busy.
    #[error(
        "the known demands require {known_s:.3} s of busy time, but the resource was busy with requests for {busy_s:.3} s: \
         check their units, and that they are of this server"
    )]
    KnownExceedBusy {
        /// Busy time that the known demands require, in seconds.
        known_s: f64,
        /// Busy time of the resource in seconds.
        busy_s: f64,
    },
    /// A part of the input cannot be parsed, or has an impossible value.
    #[error("{place}: {problem}")]
    Input {
        /// The place of the problem, such as a line number or the number of a Record, counted from 1.
        place: String,
        /// The problem, and what to do.
        problem: String,
    },
    /// The queueing model with the estimated values cannot be solved.
    #[error(transparent)]
    Model(#[from] ModelError),
}
