//! Parses HTTP/1 requests (RFC 9112): the boundaries of requests, and the properties that the server needs. The parser
//! does no I/O, and discards request bodies.

use crate::chunked::{BadBody, Chunked, MAX_BODY};
use crate::pages::{Page, Pages};
use httparse::{Error, Header, Status};
use std::mem::MaybeUninit;

/// Maximum length of a request's head (request line and header fields), in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Maximum number of header fields in a request.
const MAX_FIELDS: usize = 64;

/// One complete request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The response to the request.
    pub(crate) page: Page,
    /// Whether the server closes the connection after the response.
    pub(crate) close: bool,
    /// Whether the response has no body.
    pub(crate) head_only: bool,
    /// Number of the HTTP/2 stream; 0 with HTTP/1.
    pub(crate) stream: u32,
}

/// The result of parsing some bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseStep {
    /// The request is incomplete: more bytes are needed.
    More,
    /// The head is complete, and the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    Proceed,
    /// A request is complete.
    Whole(Request),
    /// The request is rejected with this response. Nothing that follows on the connection can be parsed.
    Refused(Page),
    /// An error of HTTP/2 has ended the connection. The output contains a frame with the reason.
    Broken,
}

/// The parser for the requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The request whose body is being received; `None` while a head is being received.
    body: Option<(Request, Body)>,
}

#[derive(Debug)]
enum Body {
    /// The number of bytes of the body that have not arrived yet.
    Length(u64),
    Chunked(Chunked),
}

/// A parsed head, and the length or encoding of the body that follows.
struct Head {
    request: Request,
    body: Body,
    expects: bool,
}

impl Reader {
    /// Parses bytes. Returns how many of them were processed, and the result. After [`ParseStep::More`], the bytes that
    /// were not processed are the beginning of a head: the caller must pass them again, together with further bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], pages: &Pages) -> (usize, ParseStep) {
        if self.body.is_some() {
            return self.feed_body(bytes);
        }
        let (length, head) = match parse(bytes, pages) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return (0, ParseStep::More),
            Err(page) => return (bytes.len(), ParseStep::Refused(page)),
        };
        self.body = Some((head.request, head.body));
        let (used, step) = self.feed_body(&bytes[length..]);
        // A client that has already sent a part of the body does not wait for `100 Continue`.
        let waits = head.expects && step == ParseStep::More && used == 0;
        (length + used, if waits { ParseStep::Proceed } else { step })
    }

    fn feed_body(&mut self, bytes: &[u8]) -> (usize, ParseStep) {
        let Some((request, body)) = &mut self.body else {
            return (0, ParseStep::More);
        };
        let (used, over) = match body {
            Body::Length(left) => {
                let n = (*left).min(bytes.len() as u64);
                *left -= n;
                (n as usize, *left == 0)
            }
            Body::Chunked(chunked) => match chunked.feed(bytes) {
                Ok(progress) => progress,
                Err(BadBody::Malformed) => return (bytes.len(), ParseStep::Refused(Page::BadRequest)),
                Err(BadBody::TooLarge) => return (bytes.len(), ParseStep::Refused(Page::BodyTooLarge)),
            },
        };
        if !over {
            return (used, ParseStep::More);
        }
        let request = *request;
        self.body = None;
        (used, ParseStep::Whole(request))
    }
}

/// Parses a head. Returns its length and the head, `None` if the head is incomplete, or the response if the request is
/// rejected.
fn parse(bytes: &[u8], pages: &Pages) -> Result<Option<(usize, Head)>, Page> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => return Ok(None),
        Ok(_) | Err(Error::TooManyHeaders) => return Err(Page::HeadTooLarge),
        Err(_) => return Err(Page::BadRequest),
    };
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(Page::BadRequest);
    };
    let used = UsedFields::parse(request.headers, minor)?;
    let request = Request {
        page: pages.find(method, target),
        close: used.close || (minor == 0 && !used.keep_alive),
        head_only: method == "HEAD",
        stream: 0,
    };
    let body = if used.chunked { Body::Chunked(Chunked::default()) } else { Body::Length(used.length.unwrap_or(0)) };
    Ok(Some((length, Head { request, body, expects: used.expects && minor == 1 })))
}

/// The header fields that affect how a request is processed.
#[derive(Default)]
struct UsedFields {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects: bool,
}

impl UsedFields {
    fn parse(fields: &[Header<'_>], minor: u8) -> Result<UsedFields, Page> {
        let mut used = UsedFields::default();
        let mut hosts = 0;
        for field in fields {
            let value = field.value.trim_ascii();
            if field.name.eq_ignore_ascii_case("Connection") {
                for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                    used.close |= option.eq_ignore_ascii_case(b"close");
                    used.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if field.name.eq_ignore_ascii_case("Host") {
                hosts += 1;
            } else if field.name.eq_ignore_ascii_case("Content-Length") {
                // Reject a second `Content-Length`: if a proxy used the other length, a client could hide a request
                // from the proxy in the body of another (request smuggling, RFC 9112 §6.3).
                if used.length.replace(content_length(value)?).is_some() {
                    return Err(Page::BadRequest);
                }
            } else if field.name.eq_ignore_ascii_case("Transfer-Encoding") {
                if used.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Page::BadRequest);
                }
                used.chunked = true;
            } else if field.name.eq_ignore_ascii_case("Expect") {
                used.expects = value.eq_ignore_ascii_case(b"100-continue");
            }
        }
        let ambiguous = used.chunked && (used.length.is_some() || minor == 0);
        if ambiguous || hosts > 1 || (hosts == 0 && minor == 1) {
            return Err(Page::BadRequest);
        }
        if used.length.is_some_and(|length| length > MAX_BODY) {
            return Err(Page::BodyTooLarge);
        }
        Ok(used)
    }
}

fn content_length(value: &[u8]) -> Result<u64, Page> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(Page::BadRequest);
    }
    // The value consists of digits. If it cannot be parsed, it exceeds 64 bits.
    std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()).ok_or(Page::BodyTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ServiceClass;
    use proptest::prelude::*;

    fn pages() -> Pages {
        Pages::new(&ServiceClass::parse_list("light=1ms,heavy=2ms").unwrap())
    }

    fn feed(text: &str) -> (usize, ParseStep) {
        Reader::default().feed(text.as_bytes(), &pages())
    }

    #[track_caller]
    fn whole(text: &str) -> Request {
        let (used, step) = feed(text);
        assert_eq!(used, text.len());
        match step {
            ParseStep::Whole(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_version_and_connection_fields_determine_who_closes() {
        let close = |head: &str| whole(&format!("{head}\r\n\r\n")).close;
        assert!(!close("GET / HTTP/1.1\r\nHost: a"));
        assert!(close("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close"));
        assert!(close("GET / HTTP/1.0"));
        assert!(!close("GET / HTTP/1.0\r\nConnection: Keep-Alive"));
    }

    #[test]
    fn method_and_target_determine_the_page() {
        let request = whole("HEAD /heavy?q HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(request, Request { page: Page::Class(1), close: false, head_only: true, stream: 0 });
        assert_eq!(whole("GET /none HTTP/1.1\r\nHost: a\r\n\r\n").page, Page::NotFound);
        assert_eq!(whole("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n").page, Page::MethodNotAllowed);
    }

    #[test]
    fn bodies_belong_to_their_requests() {
        whole("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
        whole("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        let (used, step) = feed(&format!("{post}GET / HTTP/1.1\r\n"));
        assert!(used == post.len() && matches!(step, ParseStep::Whole(_)));
    }

    #[test]
    fn a_waiting_client_gets_100_continue() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(feed(head), (head.len(), ParseStep::Proceed));
        assert_eq!(feed(&format!("{head}a")).1, ParseStep::More);
        whole(&format!("{head}abc"));
    }

    #[test]
    fn invalid_requests_are_rejected() {
        let refusal = |head: &str| match feed(&format!("{head}\r\n\r\n")).1 {
            ParseStep::Refused(page) => page,
            other => panic!("{head:?}: {other:?}"),
        };
        for head in [
            "GET / HTTP/1.1",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b",
            "GET / HTTP/2.0\r\nHost: a",
            "GET /\r\nHost: a",
            "G\0T / HTTP/1.1",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz",
        ] {
            assert_eq!(refusal(head), Page::BadRequest, "{head:?}");
        }
        for length in ["67108865", "99999999999999999999999"] {
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}");
            assert_eq!(refusal(&head), Page::BodyTooLarge);
        }
        assert_eq!(refusal(&format!("GET /{} HTTP/1.1\r\nHost: a", "x".repeat(MAX_HEAD))), Page::HeadTooLarge);
        assert_eq!(refusal(&format!("GET / HTTP/1.1\r\n{}Host: a", "A: b\r\n".repeat(MAX_FIELDS))), Page::HeadTooLarge);
        assert_eq!(feed(&"x".repeat(MAX_HEAD)).1, ParseStep::Refused(Page::HeadTooLarge));
        assert_eq!(feed(&"x".repeat(MAX_HEAD - 1)), (0, ParseStep::More));
    }

    proptest! {
        #[test]
        fn requests_are_the_same_however_they_are_split(cuts in prop::collection::vec(1usize..60, 0..12)) {
            let text: &[u8] = b"GET /heavy HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody\
                PUT /heavy HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
            let (mut reader, pages, mut input, mut found, mut rest) = (Reader::default(), pages(), Vec::new(), Vec::new(), text);
            for cut in cuts.into_iter().chain([text.len()]) {
                let (piece, tail) = rest.split_at(cut.min(rest.len()));
                rest = tail;
                input.extend_from_slice(piece);
                loop {
                    let (used, step) = reader.feed(&input, &pages);
                    input.drain(..used);
                    match step {
                        ParseStep::Whole(request) => found.push(request.page),
                        ParseStep::More => break,
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
            }
            prop_assert_eq!(found, [Page::Class(1), Page::Class(0), Page::Class(1)]);
        }

        #[test]
        fn no_input_causes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Reader::default().feed(&bytes, &pages());
        }
    }
}
