//! Tests the statistics of generated schedules. Seeds are fixed, so each test always passes or always fails. The
//! tolerances allow for the random deviation of a correct process from its theory.
#![allow(clippy::unwrap_used)] // A helper of a test may fail as the test does.

mod mean_rate;
mod mmpp;
mod self_similar;
mod sessions;
mod statistics;
