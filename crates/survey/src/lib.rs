//! The methodology: check the client, calibrate at light load, fit, predict, and only then measure what was predicted
//! (Menascé et al. 1999, with the client's own limit from Banga & Druschel 1997, §4.3).
//!
//! [`survey`] is the whole loop, as a `Survey`. The method (`method.rs`) asks a `Bench` for all that it needs to know
//! of the world; the tests put a simulated server on it.
#![forbid(unsafe_code)]

mod bench;
mod calibration;
mod connections;
mod document;
mod error;
mod first_look;
mod foreseen;
mod found;
mod guardian;
mod handshakes;
mod inflicted;
mod judge;
mod level;
mod method;
mod predictions;
mod server;
mod server_bench;
#[cfg(test)]
mod simulated;
mod survey;
mod what_if;

pub use connections::ConnectionLimit;
pub use error::SurveyError;
pub use guardian::{GUARDIAN, put_back_at_the_end};
pub use method::Step;
pub use predictions::{Predicted, Predictions};
pub use survey::{MAX_DELAY, MAX_LOAD, Subject, SurveyPlan, demo_classes, survey};
pub use what_if::Change;
