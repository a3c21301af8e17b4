//! Errors of estimation. Each message says what to do about it.

use brimful_core::number::NumberError;
use brimful_model::ModelError;

/// An error of estimation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EstimateError {
    /// Parts of the input that contradict one another.
    #[error("the input does not fit together: {0}")]
    Inconsistent(String),
    /// An invalid number.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// Fewer observations than unknowns.
    #[error(
        "{given} observations cannot settle this: at least {needed} (of positive weight) are needed, so measure more load levels"
    )]
    TooFewObservations {
        /// Minimum number of observations.
        needed: usize,
        /// Number of observations in the input.
        given: usize,
    },
    /// A class without completions.
    #[error(
        "class {class} (counted from 0) never completed a request, so nothing can be said about it: send some, or leave it out"
    )]
    Unobserved {
        /// Index of the class.
        class: usize,
    },
    /// Unknowns that vary together in all observations.
    #[error(
        "the observations cannot tell the unknowns apart (condition number {condition_number:.1e}): vary the load over a \
         wider range, and measure the background while the server is idle instead of fitting it"
    )]
    Indistinct {
        /// Condition number of the column-scaled design matrix.
        condition_number: f64,
    },
    /// A cost that neither a measurement nor a fit determines.
    #[error(
        "the steps do not show what an answer without a body costs, because requests and bytes came in nearly constant \
         proportion: measure that class alone"
    )]
    NoIntercept,
    /// Known demands that require more time than the resource was busy.
    #[error(
        "the known demands require {known_s:.3} s of busy time, but the resource was busy with requests for {busy_s:.3} s: \
         check their units, and that they are of this server"
    )]
    KnownExceedBusy {
        /// Busy time that the known demands account for, in seconds.
        known_s: f64,
        /// Busy time of the resource in seconds.
        busy_s: f64,
    },
    /// Input that cannot be parsed or is impossible.
    #[error("{place}: {problem}")]
    Input {
        /// Number of the line or entry, from 1.
        place: String,
        /// The problem, and how to correct it.
        problem: String,
    },
    /// The estimated model cannot be solved.
    #[error(transparent)]
    Model(#[from] ModelError),
}
