//! A request, rendered once and sent unchanged for every call of its class.
//!
//! Invariant: the bytes are exactly one request, whatever the arguments contain. Arguments are refused if they could
//! end a line early or make the server read another length (request splitting; RFC 9112 §11.1 and §11.2).

mod rules;

use crate::http2::render;
pub use rules::RequestError;
use rules::{check_header, check_line, is_content_length, suppresses_default};
use std::borrow::Cow;
use std::sync::Arc;

/// A rendered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    bytes: Vec<u8>,
    is_head: bool,
    /// Length of the head at the start of `bytes`.
    head_bytes: usize,
    /// Length in bytes of the body that the caller sends after `bytes`.
    streamed: u64,
    expects_continue: bool,
    /// The body of an HTTP/2 request, which is sent in DATA frames. `bytes` is then the header block. `None` for
    /// HTTP/1.
    framed: Option<Arc<[u8]>>,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: one request per connection, unless the head contains `Connection: keep-alive`.
    Http10,
    /// HTTP/1.1: many requests per connection, unless the head contains `Connection: close`.
    Http11,
    /// HTTP/2: many concurrent requests per connection.
    Http2,
}

impl Request {
    /// Renders a request for `path` to `authority`, which is the default Host. Adds Host, User-Agent, Accept,
    /// Content-Length and Connection as needed, unless `headers` contain these fields in upper or lower case. If one of
    /// these fields in `headers` has an empty value, the field is not sent; but Content-Length is always sent for a
    /// non-empty body. If `close` is set, asks the server to close the connection after its response.
    ///
    /// # Errors
    /// [`RequestError`] if the arguments cannot be sent as one request.
    pub fn new(
        method: &str,
        authority: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
        version: Version,
        close: bool,
    ) -> Result<Request, RequestError> {
        if version == Version::Http2 {
            return Request::http2(method, "http", authority, path, headers, body);
        }
        let request = Request::streamed(method, authority, path, headers, body.len() as u64, version, close)?;
        Ok(request.with_body(body))
    }

    /// Renders a request like [`Request::new`], but without its body. The caller sends the body of `body_bytes` bytes
    /// afterwards.
    ///
    /// # Errors
    /// [`RequestError`] if the arguments cannot be sent as one request.
    pub fn streamed(
        method: &str,
        authority: &str,
        path: &str,
        headers: &[(String, String)],
        body_bytes: u64,
        version: Version,
        close: bool,
    ) -> Result<Request, RequestError> {
        check_line(method, authority, path)?;
        for (name, value) in headers {
            check_header(name, value, body_bytes)?;
        }

        let mut head = match version {
            Version::Http10 => format!("{method} {path} HTTP/1.0\r\n"),
            Version::Http11 | Version::Http2 => format!("{method} {path} HTTP/1.1\r\n"),
        };
        let mut add = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                head.push_str(part);
            }
        };
        let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut add_default = |name: &str, value: &str| {
            if !is_given(name) {
                add(name, value);
            }
        };

        add_default("Host", authority);
        add_default("User-Agent", concat!("brimful/", env!("CARGO_PKG_VERSION")));
        add_default("Accept", "*/*");
        match (version, close) {
            (Version::Http11, true) => add_default("Connection", "close"),
            (Version::Http10, false) => add_default("Connection", "keep-alive"),
            (Version::Http11, false) | (Version::Http10, true) | (Version::Http2, _) => {}
        }
        // The length of a body is sent even if it is 0, if the method defines a meaning for a body (RFC 9110 §8.6).
        if body_bytes > 0 {
            let is_given =
                headers.iter().any(|(name, value)| is_content_length(name) && !suppresses_default(name, value));
            if !is_given {
                add("Content-Length", &body_bytes.to_string());
            }
        } else if matches!(method, "POST" | "PUT" | "PATCH") {
            add_default("Content-Length", "0");
        }
        for (name, value) in headers.iter().filter(|(name, value)| !suppresses_default(name, value)) {
            add(name, value);
        }

        head.push_str("\r\n");
        Ok(Request {
            is_head: method == "HEAD",
            head_bytes: head.len(),
            streamed: body_bytes,
            // HTTP/1.0 does not define `100-continue`, and a request without a body has no reason to wait.
            expects_continue: version == Version::Http11 && body_bytes > 0 && headers.iter().any(is_expectation),
            framed: None,
            bytes: head.into_bytes(),
        })
    }

    /// Renders an HTTP/2 request with this scheme, `http` or `https`. Connection-specific fields of HTTP/1 are not sent
    /// (RFC 9113 §8.2.2), and a Host header replaces the authority.
    ///
    /// # Errors
    /// [`RequestError`] if the arguments cannot be sent as one request.
    pub fn http2(
        method: &str,
        scheme: &str,
        authority: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Request, RequestError> {
        let request = Request::http2_streamed(method, scheme, authority, path, headers, body.len() as u64)?;
        Ok(request.with_body(body))
    }

    /// Renders a request like [`Request::http2`], but without its body. The caller supplies the body of `body_bytes`
    /// bytes in pieces as the server accepts them.
    ///
    /// # Errors
    /// [`RequestError`] if the arguments cannot be sent as one request.
    pub fn http2_streamed(
        method: &str,
        scheme: &str,
        authority: &str,
        path: &str,
        headers: &[(String, String)],
        body_bytes: u64,
    ) -> Result<Request, RequestError> {
        check_line(method, authority, path)?;
        for (name, value) in headers {
            check_header(name, value, body_bytes)?;
        }
        let find_header = |name: &str| headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        let host = find_header("Host").filter(|(name, value)| !suppresses_default(name, value));
        let authority = host.map_or(authority, |(_, value)| value.as_str());
        let length = body_bytes.to_string();
        let sends_length = body_bytes > 0 || matches!(method, "POST" | "PUT" | "PATCH");
        // Content-Length is sent for every non-empty body, even if the user's headers suppress it.
        let replaces_default = |(name, value): &(String, String)| {
            !(is_content_length(name) && suppresses_default(name, value)) || body_bytes == 0
        };
        let mut fields: Vec<(&str, &str)> = Vec::new();
        let mut add_default = |name, value| {
            if !find_header(name).is_some_and(replaces_default) {
                fields.push((name, value));
            }
        };
        add_default("User-Agent", concat!("brimful/", env!("CARGO_PKG_VERSION")));
        add_default("Accept", "*/*");
        if sends_length {
            add_default("Content-Length", &length);
        }
        let http1_only = ["Host", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade"];
        for (name, value) in headers.iter().filter(|(name, value)| !suppresses_default(name, value)) {
            if !http1_only.iter().any(|other| other.eq_ignore_ascii_case(name)) {
                fields.push((name, value.trim()));
            }
        }
        let bytes = render::block(method, scheme, authority, path, &fields);
        Ok(Request {
            is_head: method == "HEAD",
            head_bytes: bytes.len(),
            streamed: body_bytes,
            expects_continue: body_bytes > 0 && headers.iter().any(is_expectation),
            framed: Some(Arc::default()),
            bytes,
        })
    }

    /// Adds the body to a request that was rendered without it. The length must be the one for which it was rendered.
    #[must_use]
    pub fn with_body(mut self, body: &[u8]) -> Request {
        match &mut self.framed {
            Some(framed) => *framed = body.into(),
            None => self.bytes.extend_from_slice(body),
        }
        self.streamed = 0;
        self
    }

    /// Returns a copy of this HTTP/1 request with other bytes, of which the first `head_bytes` are the head. The caller
    /// must assemble `bytes` from the parts of this request, so that they are exactly one request.
    #[must_use]
    pub fn with_request_bytes(&self, bytes: Vec<u8>, head_bytes: usize) -> Request {
        let Request { is_head, streamed, expects_continue, .. } = *self;
        Request { bytes, is_head, head_bytes, streamed, expects_continue, framed: None }
    }

    /// The bytes to send. For HTTP/2, they are the header block.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes to send, in two parts: the head, and the body if it is part of the bytes.
    pub fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.head_bytes)
    }

    /// Length in bytes of the body that must be sent after [`Request::bytes`].
    pub fn streamed_bytes(&self) -> u64 {
        self.streamed
    }

    /// Whether the body must wait until the server requests it (`Expect: 100-continue`; RFC 9110 §10.1.1).
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// The body of an HTTP/2 request; `None` for HTTP/1.
    pub fn body(&self) -> Option<&Arc<[u8]>> {
        self.framed.as_ref()
    }

    /// Converts the request into the bytes to send.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The request as text: an HTTP/2 request is shown in the form of HTTP/1.
    pub fn text(&self) -> Cow<'_, [u8]> {
        match &self.framed {
            Some(body) => Cow::Owned([&render::text(&self.bytes)[..], body].concat()),
            None => Cow::Borrowed(&self.bytes),
        }
    }

    /// The method, such as `GET`.
    pub fn method(&self) -> &[u8] {
        match self.framed {
            Some(_) => render::method(&self.bytes),
            None => self.bytes.split(|byte| *byte == b' ').next().unwrap_or_default(),
        }
    }

    /// The request target: usually path and query.
    pub fn target(&self) -> &[u8] {
        match self.framed {
            Some(_) => render::path(&self.bytes),
            None => self.bytes.split(|byte| *byte == b' ').nth(1).unwrap_or_default(),
        }
    }

    /// Adds `cookies`, which are `name=value` pairs separated by `; `, after the cookies that the request already has.
    /// An HTTP/1 request has one Cookie field (RFC 6265 §5.4); an HTTP/2 request may have several (RFC 9113 §8.2.3). If
    /// `cookies` contain a control character, which could end a line early, none are added.
    #[must_use]
    pub fn with_cookies(&self, cookies: &[u8]) -> Request {
        let ends_lines = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
        if cookies.is_empty() || cookies.iter().any(ends_lines) {
            return self.clone();
        }
        let Request { is_head, streamed, expects_continue, .. } = *self;
        if self.framed.is_some() {
            let bytes = render::with_cookies(&self.bytes, cookies);
            let framed = self.framed.clone();
            return Request { is_head, head_bytes: bytes.len(), streamed, expects_continue, framed, bytes };
        }
        let head_end = self.head_bytes.saturating_sub(b"\r\n\r\n".len());
        // Appends the cookies to the existing Cookie field, or adds this field.
        let (at, before, after) = match cookie_line_end(&self.bytes[..head_end]) {
            Some(line_end) => (line_end, &b"; "[..], &b""[..]),
            None => (head_end + 2, &b"Cookie: "[..], &b"\r\n"[..]),
        };
        let mut bytes = Vec::with_capacity(self.bytes.len() + before.len() + cookies.len() + after.len());
        for part in [&self.bytes[..at], before, cookies, after, &self.bytes[at..]] {
            bytes.extend_from_slice(part);
        }
        let head_bytes = self.head_bytes + before.len() + cookies.len() + after.len();
        Request { bytes, is_head, head_bytes, streamed, expects_continue, framed: None }
    }

    /// Whether the method is HEAD. [`ResponseParser::start`](crate::ResponseParser::start) needs this information.
    pub fn is_head(&self) -> bool {
        self.is_head
    }
}

/// Returns the offset at which the line with the Cookie field ends, before its line break; `None` if there is no such
/// line. `head` does not include its last line break.
fn cookie_line_end(head: &[u8]) -> Option<usize> {
    let mut start = 0;
    for line in head.split(|byte| *byte == b'\n') {
        let end = start + line.len();
        if line.get(..7).is_some_and(|name| name.eq_ignore_ascii_case(b"cookie:")) {
            return Some(end - usize::from(line.ends_with(b"\r")));
        }
        start = end + 1;
    }
    None
}

/// Whether this header is `Expect: 100-continue`, which makes the body wait (RFC 9110 §10.1.1).
fn is_expectation((name, value): &(String, String)) -> bool {
    name.eq_ignore_ascii_case("Expect") && value.trim().eq_ignore_ascii_case("100-continue")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::render::block;
    use Version::{Http2, Http10, Http11};

    /// Renders a request of this version with these headers and this body, and returns it as text.
    fn render(
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
        version: Version,
        close: bool,
    ) -> Result<String, RequestError> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Request::new(method, "a.example:81", "/x?y", &headers, body.as_bytes(), version, close)
            .map(|request| String::from_utf8(request.bytes().to_vec()).expect("text"))
    }

    #[test]
    fn default_headers_can_be_left_out() {
        let without = [("accept", ""), ("User-Agent", " "), ("Connection", ""), ("X-Empty", "")];
        let text = render("GET", &without, "", Http10, false).unwrap();
        assert_eq!(text, "GET /x?y HTTP/1.0\r\nHost: a.example:81\r\nX-Empty: \r\n\r\n");
        let text = render("GET", &[("Host", ""), ("Accept", "a"), ("User-Agent", "b")], "", Http11, true).unwrap();
        assert_eq!(text, "GET /x?y HTTP/1.1\r\nConnection: close\r\nAccept: a\r\nUser-Agent: b\r\n\r\n");
        let post =
            |body| render("POST", &[("Content-Length", ""), ("Accept", ""), ("User-Agent", "")], body, Http11, false);
        assert_eq!(post("").unwrap(), "POST /x?y HTTP/1.1\r\nHost: a.example:81\r\n\r\n");
        assert_eq!(post("a").unwrap(), "POST /x?y HTTP/1.1\r\nHost: a.example:81\r\nContent-Length: 1\r\n\r\na");
    }

    #[test]
    fn defaults_are_added() {
        let agent = concat!("User-Agent: brimful/", env!("CARGO_PKG_VERSION"));
        assert_eq!(
            render("GET", &[], "", Http11, false).expect("a good request"),
            format!("GET /x?y HTTP/1.1\r\nHost: a.example:81\r\n{agent}\r\nAccept: */*\r\n\r\n")
        );
        assert_eq!(
            render("POST", &[("X-A", "b"), ("X-A", "c")], "hello", Http10, false).expect("a good request"),
            format!(
                "POST /x?y HTTP/1.0\r\nHost: a.example:81\r\n{agent}\r\nAccept: */*\r\nConnection: keep-alive\r\n\
                 Content-Length: 5\r\nX-A: b\r\nX-A: c\r\n\r\nhello"
            )
        );
        assert!(render("GET", &[], "", Http11, true).expect("a good request").contains("\r\nConnection: close\r\n"));
        assert!(!render("GET", &[], "", Http10, true).expect("a good request").contains("Connection"));
        assert!(render("PUT", &[], "", Http11, false).expect("a good request").contains("\r\nContent-Length: 0\r\n"));
    }

    #[test]
    fn given_headers_override_defaults() {
        let given = [
            ("host", "b"),
            ("USER-AGENT", "c"),
            ("accept", "d"),
            ("connection", "close"),
            ("content-length", "2"),
            ("X", "\u{e9}\tz"),
        ];
        assert_eq!(
            render("GET", &given, "hi", Http10, false).expect("a good request"),
            "GET /x?y HTTP/1.0\r\nhost: b\r\nUSER-AGENT: c\r\naccept: d\r\nconnection: close\r\ncontent-length: 2\r\n\
             X: \u{e9}\tz\r\n\r\nhi"
        );
    }

    #[test]
    fn http2_sends_the_authority_once_and_no_connection_fields() {
        let given = [("Host", "b"), ("connection", "close"), ("Upgrade", "x"), ("X-A", " b "), ("accept", "text/html")];
        let headers: Vec<_> = given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let agent = concat!("brimful/", env!("CARGO_PKG_VERSION"));
        let fields = [("User-Agent", agent), ("Content-Length", "2"), ("x-a", "b"), ("accept", "text/html")];
        let request = Request::http2("POST", "https", "a", "/x", &headers, b"hi").expect("a good request");
        assert_eq!(request.bytes(), block("POST", "https", "b", "/x", &fields));
        assert_eq!(request.body().map(|body| &body[..]), Some(&b"hi"[..]));
        let plain = Request::new("GET", "a", "/", &[], b"", Version::Http2, true).expect("a good request");
        let fields = [("user-agent", agent), ("accept", "*/*")];
        assert_eq!(plain.bytes(), block("GET", "http", "a", "/", &fields));
        for (name, value) in [("X\r\nY", "z"), ("X", "y\r\nz"), (":path", "/other")] {
            let headers = [(name.to_owned(), value.to_owned())];
            assert!(Request::http2("GET", "http", "a", "/", &headers, b"").is_err(), "{name:?}");
        }
        assert!(Request::http2("GET", "http", "a", "x", &[], b"").is_err());
    }

    #[test]
    fn cookies_share_one_line_at_the_end_of_the_head() {
        let with = |headers: &[(&str, &str)], body: &str, cookies: &str| {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let request = Request::new("POST", "a", "/x?y", &headers, body.as_bytes(), Http11, false).expect("valid");
            assert_eq!(request.target(), b"/x?y");
            let with = request.with_cookies(cookies.as_bytes());
            assert_eq!(with.target(), b"/x?y");
            assert_eq!((with.parts().1, with.expects_continue()), (body.as_bytes(), request.expects_continue()));
            (String::from_utf8(request.into_bytes()), String::from_utf8(with.into_bytes()))
        };
        let (Ok(plain), Ok(dressed)) = with(&[], "a\r\n\r\nb", "s=1; t=\"2\"") else { panic!("not text") };
        assert_eq!(dressed, plain.replacen("\r\n\r\n", "\r\nCookie: s=1; t=\"2\"\r\n\r\n", 1));
        for own in ["Cookie", "cookie"] {
            for headers in [&[(own, "a=b"), ("X", "y")][..], &[("X", "cookie: z"), (own, "a=b")]] {
                let (Ok(plain), Ok(dressed)) = with(headers, "", "s=1") else { panic!("not text") };
                assert_eq!(dressed, plain.replacen("a=b", "a=b; s=1", 1));
            }
        }
        for bad in ["", "a=b\r\nX: y", "a=b\n", "a=\0", "\x7f"] {
            let (plain, dressed) = with(&[], "body", bad);
            assert_eq!(dressed, plain, "{bad:?}");
        }
    }

    #[test]
    fn cookies_of_http2_are_a_field_of_their_own() {
        for path in ["/", "/index.html", "/x?y", &"/long".repeat(100)] {
            let request = Request::new("POST", "a", path, &[], b"body", Http2, false).expect("a good request");
            assert_eq!(request.target(), path.as_bytes());
            let with = request.with_cookies(b"s=1; t=\"\xe9\"");
            assert_eq!((with.target(), with.body(), with.is_head()), (path.as_bytes(), request.body(), false));
            let (before, cookie) = with.bytes().split_at(request.bytes().len());
            assert_eq!(before, request.bytes());
            // The name of the field is an index of the static table. The first byte forbids that any table stores the
            // field (RFC 7541 §6.2.3).
            assert_eq!(cookie, [&[0x1f, 32 - 15, 10][..], b"s=1; t=\"\xe9\""].concat());
            assert_eq!(request.with_cookies(b"a=b\r\nX: y"), request);
            let (text, dressed) = (request.text().into_owned(), with.text().into_owned());
            let start = format!("POST {path} HTTP/2\r\nhost: a\r\nuser-agent: ");
            assert!(text.starts_with(start.as_bytes()) && text.ends_with(b"\r\n\r\nbody"), "{text:?}");
            assert!(dressed.ends_with(b"\r\ncookie: s=1; t=\"\xe9\"\r\n\r\nbody"), "{dressed:?}");
        }
    }

    #[test]
    fn default_headers_of_http2_can_be_left_out() {
        let headers = [("Host", ""), ("accept", ""), ("User-Agent", " "), ("Content-Length", "")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let of = |body| Request::http2("POST", "http", "a", "/", &headers, body).expect("a good request").into_bytes();
        assert_eq!(of(b"hi"), block("POST", "http", "a", "/", &[("content-length", "2")]));
        assert_eq!(of(b""), block("POST", "http", "a", "/", &[]));
    }

    #[test]
    fn head_expects_no_body() {
        let of = |method| Request::new(method, "a", "/", &[], b"", Http11, false).expect("a good request");
        assert!(of("HEAD").is_head());
        assert!(!of("GET").is_head());
        assert!(!of("head").is_head(), "methods are case-sensitive");
    }

    #[test]
    fn a_streamed_body_is_announced_and_not_rendered() {
        let (headers, body) = ([("X".to_owned(), "y".to_owned())], b"hello");
        for close in [false, true] {
            let whole = Request::new("PUT", "a", "/", &headers, body, Http11, close).expect("a good request");
            let streamed = Request::streamed("PUT", "a", "/", &headers, 5, Http11, close).expect("a good request");
            assert_eq!(whole.parts(), (streamed.bytes(), &body[..]));
            assert_eq!(streamed.parts(), (streamed.bytes(), &b""[..]));
            assert_eq!((whole.streamed_bytes(), streamed.streamed_bytes()), (0, 5));
        }
        let given = [("Content-Length".to_owned(), "4".to_owned())];
        assert!(Request::streamed("PUT", "a", "/", &given, 1 << 40, Http11, false).is_err());
    }

    #[test]
    fn content_waits_with_expect_100_continue() {
        let expects = |value: &str, body: &str, version| {
            let headers = [("eXpect".to_owned(), value.to_owned())];
            let request = Request::new("POST", "a", "/", &headers, body.as_bytes(), version, false);
            request.expect("a good request").expects_continue()
        };
        assert!(expects("100-continue", "x", Http11) && expects(" 100-Continue ", "x", Http11));
        assert!(!expects("100-continue", "", Http11) && !expects("100-continue", "x", Http10));
        assert!(!expects("something", "x", Http11));
        assert!(
            Request::streamed("PUT", "a", "/", &[("Expect".into(), "100-continue".into())], 1, Http11, false)
                .is_ok_and(|request| request.expects_continue())
        );
    }
}
