//! Why nothing can be estimated, and what to do about it.

use brimful_core::number::NumberError;
use brimful_model::ModelError;

/// The error of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EstimateError {
    /// Parts of the input do not fit together.
    #[error("the input does not fit together: {0}")]
    Shape(String),
    /// A number that cannot be.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// Fewer observations than unknowns.
    #[error(
        "{given} observations cannot settle this: at least {needed} (of positive weight) are needed, so measure more load levels"
    )]
    TooFewObservations {
        /// How many there must be.
        needed: usize,
        /// How many there were.
        given: usize,
    },
    /// A class without a single completion.
    #[error(
        "class {class} (counted from 0) never completed a request, so nothing can be said about it: send some, or leave it out"
    )]
    Unobserved {
        /// Its index.
        class: usize,
    },
    /// Unknowns that moved together in every observation.
    #[error(
        "the observations cannot tell the unknowns apart (condition number {condition_number:.1e}): vary the load over a \
         wider range, and measure the background while the server is idle instead of fitting it"
    )]
    Indistinct {
        /// Of the column-scaled design matrix.
        condition_number: f64,
    },
    /// A text that cannot be read.
    #[error("{place}: {problem}")]
    Input {
        /// Where: the number of a line or of an entry, from 1.
        place: String,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// What was estimated makes no model that can be solved.
    #[error(transparent)]
    Model(#[from] ModelError),
}
