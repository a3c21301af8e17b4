//! What a connection speaks: HTTP/1, or HTTP/2 if its first bytes say so, as those of a client do that knows it beforehand
//! or has agreed on it in a TLS handshake.

use crate::pages::{Page, Pages};
use crate::request::{Reader, Request, Step};
use brimful_http::{Http2Server, ServerEvent, begins_http2};

/// One connection's protocol, as far as its requests are concerned.
#[derive(Debug)]
pub(crate) enum Speaks {
    /// Nothing was read yet.
    Unknown,
    Http1(Reader),
    Http2(Box<Http2Server<Request>>),
}

impl Speaks {
    /// Reads on; as [`Reader::feed`].
    pub(crate) fn feed(&mut self, bytes: &[u8], pages: &Pages) -> (usize, Step) {
        if matches!(self, Speaks::Unknown) {
            match begins_http2(bytes) {
                None => return (0, Step::More),
                Some(true) => *self = Speaks::Http2(Box::default()),
                Some(false) => *self = Speaks::Http1(Reader::default()),
            }
        }
        match self {
            Speaks::Http1(reader) => reader.feed(bytes, pages),
            Speaks::Http2(http2) => feed(http2, bytes, pages),
            Speaks::Unknown => (0, Step::More),
        }
    }

    /// HTTP/2, if it is that.
    pub(crate) fn http2(&mut self) -> Option<&mut Http2Server<Request>> {
        if let Speaks::Http2(http2) = self { Some(http2) } else { None }
    }
}

fn feed(http2: &mut Http2Server<Request>, bytes: &[u8], pages: &Pages) -> (usize, Step) {
    let request = |method: &[u8], path: &[u8]| {
        let page = match (std::str::from_utf8(method), std::str::from_utf8(path)) {
            (Ok(method), Ok(path)) => pages.find(method, path),
            _ => Page::BadRequest,
        };
        Request { page, close: false, head_only: method == b"HEAD", stream: 0 }
    };
    let (used, asked) = http2.feed(bytes, request);
    let step = match asked {
        ServerEvent::Nothing => Step::More,
        ServerEvent::Request(stream, request) => Step::Whole(Request { stream, ..request }),
        ServerEvent::Broken(_) => Step::Broken,
    };
    (used, step)
}
