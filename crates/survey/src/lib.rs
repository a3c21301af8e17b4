//! The methodology: check the client, calibrate at light load, fit, freeze, predict, and only then measure what was
//! predicted (Menascé et al. 1999, with the client's own limit from Banga & Druschel 1997, §4.3).
//!
//! [`survey`] is the whole loop, as a `Survey`.
#![forbid(unsafe_code)]

mod document;
mod error;
mod guardian;
mod level;
mod server;
mod survey;

pub use error::SurveyError;
pub use guardian::{GUARDIAN, put_back_at_the_end};
pub use survey::{Step, Subject, SurveyPlan, demo_classes, survey};
