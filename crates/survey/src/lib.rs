//! Surveys a server: measures the maximum rate of this client, calibrates the server, fits a queueing model, and
//! predicts load levels that are measured only afterwards (Menascé et al. 1999; the client's limit as in Banga &
//! Druschel 1997, §4.3).
//!
//! [`survey`] is the entry point. `method.rs` has the sequence of the survey's phases. The method accesses servers only
//! through the trait `Bench`, which the tests implement with a simulated server.
#![forbid(unsafe_code)]

mod anchor;
mod baseline;
mod bench;
mod calibration;
mod connections;
mod design;
mod document;
mod duration;
mod error;
mod first_look;
mod hold_out;
mod impact;
mod judge;
mod level;
mod method;
mod objective;
mod overload;
mod predicted;
mod predictions;
mod runner;
mod saturation;
mod server;
mod server_bench;
mod setup;
#[cfg(test)]
mod simulated;
mod survey;
mod trial;
mod warm_server_up;
mod what_if;

pub use error::SurveyError;
pub use predicted::{PredictedLevel, PredictedObjective, Predictions};
pub use runner::SurveyEvent;
pub use setup::{Change, ConnectionLimit};
pub use survey::{Subject, SurveyPlan, demo_classes, survey};
