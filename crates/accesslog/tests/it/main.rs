//! Tests the crate's public functions with lines and with whole logs.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests may panic, like the tests.

mod formats;
mod merging;
mod profiles;
mod reading;
