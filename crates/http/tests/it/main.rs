//! Laws of the codec, over generated responses, requests and noise.

mod requests;
mod responses;
