//! Tests for bugs that users of other load generators, log analysers and monitors have reported, and that brimful also
//! had once.
//!
//! The name of each test describes the correct behaviour.

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
