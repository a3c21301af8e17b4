//! Tests the statistics of generated schedules. Seeds are fixed, so each test either always passes or always fails. The
//! tolerances allow for the random deviation of a correct process from theory.
#![allow(clippy::unwrap_used)] // Helpers of tests may panic, like the tests.

mod mean_rate;
mod mmpp;
mod self_similar;
mod sessions;
mod statistics;
