//! Tests properties of the codecs with generated requests, generated responses and random bytes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http2;
mod reference;
mod requests;
mod responses;
