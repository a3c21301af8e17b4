//! Properties of the codec, over generated responses, requests and noise.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http2;
mod reference;
mod requests;
mod responses;
