//! Laws of the codec, over generated responses, requests and noise.

mod http2;
mod reference;
mod requests;
mod responses;
