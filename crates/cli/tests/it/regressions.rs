//! Tests for bugs that users of other load generators, log analysers and monitors reported, and that brimful once had,
//! too.
//!
//! Each test is named after the symptom.

mod certificates;
mod closing;
mod connecting;
mod forecasts;
mod histograms;
mod installing;
mod logs;
mod objectives;
mod requests;
mod surveys;
mod watching;
