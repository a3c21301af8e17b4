//! Sans-I/O client codecs of HTTP/1 and HTTP/2: the bytes of a request out, the bytes of a response in.
//!
//! - [`Request`]: rendered once, sent as it stands for every call of a class.
//! - [`ResponseParser`]: finds where each response of HTTP/1 ends and what it says, under any fragmentation.
//! - [`Http2`]: the same for all the streams of a connection of HTTP/2. [`Protocol`] is either.
//! - [`Http2Server`]: the other side of such a connection, for the reference server.
//! - [`Redirection`]: where an answer leads that is a redirect.
//! - [`Jar`]: the cookies of one user, from the heads of responses to the requests that follow.
//!
//! It opens no socket and reads no clock. It keeps nothing of a body and, of a head, only what has arrived while the
//! rest has not; once its buffer has grown to the largest such part, parsing allocates nothing.
//!
//! Source: RFC 9112 (HTTP/1.1), Fielding, Nottingham & Reschke 2022; section numbers in comments are its own, but in
//! `http2` those of RFC 9113 (HTTP/2), Thomson & Benfield 2022.
//!
//! ```
//! use brimful_http::{Progress, Request, ResponseParser, Version};
//!
//! let request = Request::new("GET", "localhost:8080", "/", &[], b"", Version::Http11, false)?;
//! assert!(request.bytes().starts_with(b"GET / HTTP/1.1\r\nHost: localhost:8080\r\n"));
//!
//! let mut parser = ResponseParser::new();
//! parser.start(request.is_head());
//! let fed = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")?;
//! let Progress::Complete(response) = fed.state else { panic!("the response is whole") };
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
pub use cookies::Jar;
pub use error::ParseError;
pub use head::{MAX_FIELDS, MAX_HEAD_BYTES, RecentHead};
pub use http2::{Asked, ClosedStream, Ended, Heard, Http2, Http2Server, Listener, MAX_DEBUG_TEXT, MAX_IDLE_FRAMES};
pub use http2::{REFUSED_STREAM, RecentBlock, Wanted};
pub use http2::{answer_block, begins_http2};
pub use protocol::Protocol;
pub use redirect::Redirection;
pub use request::{Request, RequestError, Version};
pub use response::{Fed, MAX_EMPTY_LINES, Progress, Response, ResponseParser};
