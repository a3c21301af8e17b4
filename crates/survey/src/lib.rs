//! The methodology: check the client, calibrate at light load, fit, freeze, predict, and only then measure what was
//! predicted (Menascé et al. 1999, with the client's own limit from Banga & Druschel 1997, §4.3).
//!
//! - [`Endpoint`]: a URL, understood and resolved.
//! - [`calibrate`]: what this client can offer.
//! - [`run`]: one load with the monitor beside it, as a `Record`.
//! - [`survey`]: the whole loop, as a `Survey`.
#![forbid(unsafe_code)]

mod client;
mod document;
mod endpoint;
mod error;
mod fit;
mod guardian;
mod level;
mod reach;
mod run;
mod server;
mod survey;

pub use client::{LASTS as CALIBRATION_LASTS, START as LOWEST_LOAD, calibrate, response_size};
pub use endpoint::Endpoint;
pub use error::SurveyError;
pub use guardian::{GUARDIAN, put_back_at_the_end};
pub use run::{Pace, RunPlan, Watched, file_timestamp, run};
pub use survey::{Step, Subject, SurveyPlan, demo_classes, survey};
