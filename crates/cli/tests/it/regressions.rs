//! Faults that users of other load generators, log analysers and monitors reported, and that once happened here too.
//!
//! Each test is named after what the user met.

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
