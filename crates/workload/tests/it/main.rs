//! The statistics of generated schedules. Seeds are fixed, so each of these either always passes or never does; the
//! tolerances say how far a right process may be from its theory by chance.
#![allow(clippy::unwrap_used)] // A helper of a test may fail as the test does.

mod mean_rate;
mod mmpp;
mod self_similar;
mod sessions;
mod statistics;
