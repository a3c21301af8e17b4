//! Integration tests of the estimates, with reference cases and with Records of simulated servers.
#![allow(clippy::unwrap_used)] // Helpers of tests may panic, like the tests.

mod burstiness;
mod calibrate;
mod cases;
mod demand;
mod laws;
#[path = "../../../model/tests/it/reference.rs"]
mod reference;
mod server;
mod usl;
