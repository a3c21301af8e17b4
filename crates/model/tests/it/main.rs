//! The crate against the world: the reference cases, and the laws that hold for every model.
#![allow(clippy::unwrap_used)] // A helper of a test may fail as the test does.

mod burstiness;
mod calibrate;
mod cases;
mod closed;
mod cost;
mod demand;
mod forecast;
mod laws;
mod networks;
mod ordered;
mod paper;
mod percentile;
mod simulate;
mod states;
mod usl;
mod what_if;
