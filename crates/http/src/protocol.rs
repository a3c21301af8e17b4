//! What a connection speaks: HTTP/1, where answers come in the order of the requests, or HTTP/2, where each names its
//! stream. Whoever holds calls finds the one that an answer belongs to accordingly: the oldest, or the one that is kept
//! with the stream.

use crate::{Http2, ParseError, Response, ResponseParser};

/// One connection's protocol, without I/O. `T` is what is kept with a stream of HTTP/2; that of HTTP/1 is the user's own.
#[derive(Debug)]
pub enum Protocol<T> {
    /// HTTP/1.0 or 1.1.
    Http1(ResponseParser),
    /// HTTP/2.
    Http2(Box<Http2<T>>),
}

impl<T> Protocol<T> {
    /// Of a new connection.
    pub fn new(http2: bool) -> Protocol<T> {
        if http2 { Protocol::Http2(Box::default()) } else { Protocol::Http1(ResponseParser::new()) }
    }

    /// HTTP/1: expects a response, to a HEAD request or another. Nothing to HTTP/2, where every stream expects its own.
    pub fn start(&mut self, head_request: bool) {
        if let Protocol::Http1(parser) = self {
            parser.start(head_request);
        }
    }

    /// HTTP/1: how many of these bytes, which come where no response is expected, are empty lines. HTTP/2 has none.
    pub fn skip_empty_lines(&mut self, bytes: &[u8]) -> usize {
        match self {
            Protocol::Http1(parser) => parser.skip_empty_lines(bytes),
            Protocol::Http2(_) => 0,
        }
    }

    /// HTTP/1: empty lines before the latest response.
    pub fn empty_lines(&self) -> u32 {
        match self {
            Protocol::Http1(parser) => parser.empty_lines(),
            Protocol::Http2(_) => 0,
        }
    }

    /// The peer has closed the connection, which completes a response that nothing else delimits: there is none in HTTP/2.
    ///
    /// # Errors
    /// [`ParseError`] when it has cut a response short.
    pub fn finish(&mut self) -> Result<Response, ParseError> {
        match self {
            Protocol::Http1(parser) => parser.finish(),
            Protocol::Http2(_) => Err(ParseError::Truncated { received: 0 }),
        }
    }

    /// HTTP/2, if it is that.
    pub fn http2(&self) -> Option<&Http2<T>> {
        match self {
            Protocol::Http1(_) => None,
            Protocol::Http2(http2) => Some(http2),
        }
    }

    /// The same to change it.
    pub fn http2_mut(&mut self) -> Option<&mut Http2<T>> {
        match self {
            Protocol::Http1(_) => None,
            Protocol::Http2(http2) => Some(http2),
        }
    }
}
