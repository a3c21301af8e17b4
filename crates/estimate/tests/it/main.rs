//! Integration tests: the reference cases, and Records of servers whose demands are known.
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
