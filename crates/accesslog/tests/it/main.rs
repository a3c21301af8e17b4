//! Tests the crate with complete logs.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A helper of a test may fail as the test does.

mod formats;
mod merging;
mod profiles;
mod reading;
