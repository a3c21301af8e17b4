//! Codecs of HTTP/1 and HTTP/2 for clients, without I/O: they render the bytes of requests and parse the bytes of
//! responses.
//!
//! - [`Request`]: rendered once and sent unchanged for every call of its class.
//! - [`ResponseParser`]: parses HTTP/1 responses, however their bytes are split.
//! - [`Http2`]: renders requests and parses responses on all streams of an HTTP/2 connection. [`Protocol`] is either a
//!   [`ResponseParser`] or an [`Http2`].
//! - [`Http2Server`]: the server side of HTTP/2, for the reference server.
//! - [`Redirection`]: the target of a redirect.
//! - [`CookieJar`]: the cookies of one user.
//!
//! This crate opens no socket and reads no clock. Bodies are not stored. An incomplete head is stored until the rest
//! arrives. Parsing HTTP/1 allocates memory only when the buffers for heads grow.
//!
//! Source: RFC 9112 (HTTP/1.1), Fielding, Nottingham & Reschke 2022. Section numbers in comments refer to RFC 9112. In
//! `http2`, section numbers refer to RFC 9113 (HTTP/2), Thomson & Benfield 2022.
//!
//! ```
//! use brimful_http::{ParseStep, Request, ResponseParser, Version};
//!
//! let request = Request::new("GET", "localhost:8080", "/", &[], b"", Version::Http11, false)?;
//! assert!(request.bytes().starts_with(b"GET / HTTP/1.1\r\nHost: localhost:8080\r\n"));
//!
//! let mut parser = ResponseParser::new();
//! parser.start(request.is_head());
//! let fed = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")?;
//! let ParseStep::Complete(response) = fed.step else { panic!("the response is whole") };
//! assert_eq!((response.status, response.body_bytes, response.keep_alive), (200, 2, true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod chunked;
mod cookies;
mod error;
mod head;
mod http2;
mod protocol;
mod redirect;
mod request;
mod response;

pub use chunked::MAX_CHUNK_LINE_BYTES;
pub use cookies::CookieJar;
pub use error::ParseError;
pub use head::{MAX_FIELDS, MAX_HEAD_BYTES, RecentHead, field_value};
pub use http2::{
    ClosedStream, Http2, Http2FeedResult, Http2Server, MAX_DEBUG_TEXT, MAX_IDLE_FRAMES, ServerEvent, StreamEnd,
    StreamObserver,
};
pub use http2::{REFUSED_STREAM, RecentBlock, SendableBody};
pub use http2::{is_http2_preface, response_header_block};
pub use protocol::Protocol;
pub use redirect::Redirection;
pub use request::{Request, RequestError, Version};
pub use response::{FeedResult, MAX_EMPTY_LINES, ParseStep, Response, ResponseParser};
