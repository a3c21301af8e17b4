//! Tests of the crate with reference cases and with histories whose future is known.
#![allow(clippy::unwrap_used)] // A helper of a test may fail as the test does.

mod cases;
mod cost;
mod forecast;
#[path = "../../../model/tests/it/reference.rs"]
mod reference;
mod spikes;
