//! The engine against real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod accounting;
mod framing;
mod support;
mod timing;
