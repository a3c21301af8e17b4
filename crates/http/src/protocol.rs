//! The protocol of a connection. In HTTP/1, responses arrive in the order of the requests, so a response belongs to the
//! oldest call without a response. In HTTP/2, each response names its stream, and each call is stored with its stream.

use crate::{Http2, ParseError, Response, ResponseParser};

/// The protocol of one connection, without I/O. A value `T` is stored with each HTTP/2 stream; HTTP/1 stores none.
#[derive(Debug)]
pub enum Protocol<T> {
    /// HTTP/1.0 or HTTP/1.1, with the parser of its responses.
    Http1(ResponseParser),
    /// HTTP/2, with its open streams.
    Http2(Box<Http2<T>>),
}

impl<T> Protocol<T> {
    /// The protocol state of a new connection.
    pub fn new(http2: bool) -> Protocol<T> {
        if http2 { Protocol::Http2(Box::default()) } else { Protocol::Http1(ResponseParser::new()) }
    }

    /// HTTP/1: prepares for the next response. `head_request` is true if this response answers a HEAD request. HTTP/2:
    /// does nothing.
    pub fn start(&mut self, head_request: bool) {
        if let Protocol::Http1(parser) = self {
            parser.start(head_request);
        }
    }

    /// HTTP/1: returns the length in bytes of the empty lines at the start of `bytes`, which arrived while no response
    /// was expected. HTTP/2: returns 0.
    pub fn skip_empty_lines(&mut self, bytes: &[u8]) -> usize {
        match self {
            Protocol::Http1(parser) => parser.skip_empty_lines(bytes),
            Protocol::Http2(_) => 0,
        }
    }

    /// HTTP/1: the number of empty lines before the latest response. HTTP/2: 0.
    pub fn empty_lines(&self) -> u32 {
        match self {
            Protocol::Http1(parser) => parser.empty_lines(),
            Protocol::Http2(_) => 0,
        }
    }

    /// Handles the end of the connection. An HTTP/1 response that is delimited by the end of the connection is then
    /// complete.
    ///
    /// # Errors
    /// [`ParseError`] if the response is incomplete.
    pub fn finish(&mut self) -> Result<Response, ParseError> {
        match self {
            Protocol::Http1(parser) => parser.finish(),
            Protocol::Http2(_) => Err(ParseError::Truncated { received: 0 }),
        }
    }

    /// The HTTP/2 connection; `None` for HTTP/1.
    pub fn http2(&self) -> Option<&Http2<T>> {
        match self {
            Protocol::Http1(_) => None,
            Protocol::Http2(http2) => Some(http2),
        }
    }

    /// The HTTP/2 connection, to be modified; `None` for HTTP/1.
    pub fn http2_mut(&mut self) -> Option<&mut Http2<T>> {
        match self {
            Protocol::Http1(_) => None,
            Protocol::Http2(http2) => Some(http2),
        }
    }
}
