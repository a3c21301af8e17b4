//! The protocol of a connection: HTTP/2 if the connection begins with the HTTP/2 preface, otherwise HTTP/1. A client
//! sends the preface if it knows in advance that the server supports HTTP/2, or if a TLS handshake has negotiated it.

use crate::pages::{Page, Pages};
use crate::request::{ParseStep, Reader, Request};
use brimful_http::{Http2Server, ServerEvent, is_http2_preface};

/// The protocol of a connection, with the state of its parser.
#[derive(Debug)]
pub(crate) enum Protocol {
    /// Too few bytes were received to detect the protocol.
    Unknown,
    Http1(Reader),
    Http2(Box<Http2Server<Request>>),
}

impl Protocol {
    /// Parses received bytes, like [`Reader::feed`].
    pub(crate) fn feed(&mut self, bytes: &[u8], pages: &Pages) -> (usize, ParseStep) {
        if matches!(self, Protocol::Unknown) {
            match is_http2_preface(bytes) {
                None => return (0, ParseStep::More),
                Some(true) => *self = Protocol::Http2(Box::default()),
                Some(false) => *self = Protocol::Http1(Reader::default()),
            }
        }
        match self {
            Protocol::Http1(reader) => reader.feed(bytes, pages),
            Protocol::Http2(http2) => feed_http2(http2, bytes, pages),
            Protocol::Unknown => (0, ParseStep::More),
        }
    }

    /// The state of HTTP/2; `None` if the connection does not use HTTP/2.
    pub(crate) fn http2(&mut self) -> Option<&mut Http2Server<Request>> {
        if let Protocol::Http2(http2) = self { Some(http2) } else { None }
    }
}

fn feed_http2(http2: &mut Http2Server<Request>, bytes: &[u8], pages: &Pages) -> (usize, ParseStep) {
    let find_page = |method: &[u8], path: &[u8]| {
        let page = match (std::str::from_utf8(method), std::str::from_utf8(path)) {
            (Ok(method), Ok(path)) => pages.find(method, path),
            _ => Page::BadRequest,
        };
        Request { page, close: false, head_only: method == b"HEAD", stream: 0 }
    };
    let (used, asked) = http2.feed(bytes, find_page);
    let step = match asked {
        ServerEvent::NeedMore => ParseStep::More,
        ServerEvent::Request(stream, request) => ParseStep::Whole(Request { stream, ..request }),
        ServerEvent::Broken(_) => ParseStep::Broken,
    };
    (used, step)
}
