//! Tests the crate with reference cases and with histories whose future values are known.
#![allow(clippy::unwrap_used)] // Helpers of tests may panic, like the tests.

mod cases;
mod cost;
mod forecast;
#[path = "../../../model/tests/it/reference.rs"]
mod reference;
mod spikes;
