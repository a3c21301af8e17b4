//! Integration tests: reference cases, and laws that are valid for every model.
#![allow(clippy::unwrap_used)] // Helpers of tests may panic, like the tests.

mod cases;
mod closed;
mod interruptions;
mod laws;
mod networks;
mod ordered;
mod paper;
mod percentile;
mod reference;
mod simulate;
mod states;
mod waking;
mod what_if;
