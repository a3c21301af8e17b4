//! One request, rendered once and sent as it stands for every call of its class.
//!
//! Invariant: the bytes are exactly one request, whatever the arguments hold. What could end a line early, or make the
//! server see another length than ours, is refused (request splitting; RFC 9112 §11.1 and §11.2).

use crate::http2::render::block;
use std::sync::Arc;

/// A request, ready to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    bytes: Vec<u8>,
    is_head: bool,
    /// Of `bytes`, those before the content.
    head_bytes: usize,
    /// Bytes of content that are not among `bytes`.
    streamed: u64,
    expects_continue: bool,
    /// The content of a request of HTTP/2, which goes in frames of its own; `bytes` are then its header block.
    framed: Option<Arc<[u8]>>,
}

/// The version of HTTP that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One request per connection, unless `Connection: keep-alive` says otherwise.
    Http10,
    /// Many requests per connection, unless `Connection: close` says otherwise.
    Http11,
    /// Many requests at once on a connection.
    Http2,
}

/// Why a request cannot be sent.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum RequestError {
    /// The method is not a token.
    #[error("{0:?} is not an HTTP method: write one word, such as GET")]
    Method(String),
    /// CONNECT makes a tunnel, whose bytes are not responses.
    #[error("CONNECT opens a tunnel and cannot be measured as a request: use another method")]
    Connect,
    /// The authority is not `host` or `host:port`.
    #[error("{0:?} is not an authority: write host or host:port, an internationalised name in its xn-- form")]
    Authority(String),
    /// The path is not a request target.
    #[error("{0:?} is not a path: begin it with / and percent-encode its spaces and control characters")]
    Path(String),
    /// The name of a header is not a token.
    #[error("{0:?} is not a header name: use letters, digits and hyphens, as in X-Request-Id")]
    HeaderName(String),
    /// The value of a header has a control character, which could end its line.
    #[error("the value {value:?} of header {name} has a line break or another control character: remove it")]
    HeaderValue {
        /// The header.
        name: String,
        /// Its value.
        value: String,
    },
    /// A Content-Length was given that is not the body's.
    #[error("header Content-Length says {given:?} but the body has {actual} bytes: leave the header out, it is added")]
    ContentLength {
        /// What the header says.
        given: String,
        /// What the body has.
        actual: u64,
    },
    /// A Transfer-Encoding was given, but bodies are sent plain.
    #[error("header Transfer-Encoding cannot be sent, because bodies go with a Content-Length: leave the header out")]
    TransferEncoding,
}

impl Request {
    /// Renders a request to `authority` (what Host says) for `path`. Host, User-Agent, Accept, Content-Length and
    /// Connection are added where they are due and `headers` do not hold them already, in whatever case.
    /// `close` asks the server to close the connection after its response.
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
        let body_bytes = body.len() as u64;
        let mut request = Request::head(method, authority, path, headers, body_bytes, version, close)?;
        request.bytes.extend_from_slice(body);
        Ok(request)
    }

    /// The same for a body of so many bytes, which whoever sends the request sends behind it.
    pub fn streamed(
        method: &str,
        authority: &str,
        path: &str,
        headers: &[(String, String)],
        body_bytes: u64,
        version: Version,
        close: bool,
    ) -> Result<Request, RequestError> {
        let request = Request::head(method, authority, path, headers, body_bytes, version, close)?;
        Ok(Request { streamed: body_bytes, ..request })
    }

    /// A request of HTTP/2 by this scheme, `http` or `https`. What HTTP/1 says about its connections is left out (RFC
    /// 9113 §8.2.2); Host is what the authority is.
    pub fn http2(
        method: &str,
        scheme: &str,
        authority: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Request, RequestError> {
        check_line(method, authority, path)?;
        for (name, value) in headers {
            check_header(name, value, body.len() as u64)?;
        }
        let given = |name: &str| headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        let authority = given("Host").map_or(authority, |(_, value)| value.as_str());
        let length = body.len().to_string();
        let has_length = !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH");
        let agent = concat!("brimful/", env!("CARGO_PKG_VERSION"));
        let defaults = [("User-Agent", agent, true), ("Accept", "*/*", true), ("Content-Length", &length, has_length)];
        let defaults = defaults.into_iter().filter(|(name, _, due)| *due && given(name).is_none());
        let of_http1 = ["Host", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade"];
        let own = headers.iter().map(|(name, value)| (name.as_str(), value.trim()));
        let own = own.filter(|(name, _)| !of_http1.iter().any(|other| other.eq_ignore_ascii_case(name)));
        let fields: Vec<(&str, &str)> = defaults.map(|(name, value, _)| (name, value)).chain(own).collect();
        let bytes = block(method, scheme, authority, path, &fields);
        Ok(Request {
            is_head: method == "HEAD",
            head_bytes: bytes.len(),
            streamed: 0,
            expects_continue: false,
            framed: Some(body.into()),
            bytes,
        })
    }

    /// Renders all but the content.
    fn head(
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
        // Methods that mean something by their content say so when it is empty, too (RFC 9110 §8.6).
        if body_bytes > 0 || matches!(method, "POST" | "PUT" | "PATCH") {
            add_default("Content-Length", &body_bytes.to_string());
        }
        for (name, value) in headers {
            add(name, value);
        }

        head.push_str("\r\n");
        let is_expectation = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("Expect") && value.trim().eq_ignore_ascii_case("100-continue")
        };
        Ok(Request {
            is_head: method == "HEAD",
            head_bytes: head.len(),
            streamed: 0,
            // A server that speaks HTTP/1.0 knows of no such thing, and one without content has nothing to wait for.
            expects_continue: version == Version::Http11 && body_bytes > 0 && headers.iter().any(is_expectation),
            framed: None,
            bytes: head.into_bytes(),
        })
    }

    /// What to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What to send, in two parts: the head, and as much of the content as is not streamed.
    pub fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.head_bytes)
    }

    /// Bytes of content that are to be sent behind [`Request::bytes`].
    pub fn streamed_bytes(&self) -> u64 {
        self.streamed
    }

    /// Whether the content waits until the server asks for it (`Expect: 100-continue`; RFC 9110 §10.1.1).
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// The content of a request of HTTP/2, whose `bytes` are its header block.
    pub fn body(&self) -> Option<&Arc<[u8]>> {
        self.framed.as_ref()
    }

    /// What to send, handed over.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Whether the method is HEAD: what [`ResponseParser::start`](crate::ResponseParser::start) needs to know.
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// Whether the response to it may have a body.
    pub fn expects_body(&self) -> bool {
        !self.is_head
    }
}

/// Whether the request line and Host would be what they look like.
fn check_line(method: &str, authority: &str, path: &str) -> Result<(), RequestError> {
    if !is_token(method) {
        return Err(RequestError::Method(method.to_owned()));
    }
    if method == "CONNECT" {
        return Err(RequestError::Connect);
    }
    if authority.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@\\".contains(&byte)) {
        return Err(RequestError::Authority(authority.to_owned()));
    }
    // A path, `*` (OPTIONS) or a whole URL (to a proxy). Bytes above ASCII cannot be mistaken for anything else, and
    // clients do send them.
    let has_form = path.starts_with('/') || path == "*" || path.contains("://");
    if !has_form || path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(RequestError::Path(path.to_owned()));
    }
    Ok(())
}

/// Whether a header can be sent along with a body of `body_bytes`.
fn check_header(name: &str, value: &str, body_bytes: u64) -> Result<(), RequestError> {
    if !is_token(name) {
        return Err(RequestError::HeaderName(name.to_owned()));
    }
    if value.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        return Err(RequestError::HeaderValue { name: name.to_owned(), value: value.to_owned() });
    }
    if name.eq_ignore_ascii_case("Transfer-Encoding") {
        return Err(RequestError::TransferEncoding);
    }
    if name.eq_ignore_ascii_case("Content-Length") && value != body_bytes.to_string() {
        return Err(RequestError::ContentLength { given: value.to_owned(), actual: body_bytes });
    }
    Ok(())
}

/// RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Version::{Http10, Http11};

    /// The text of a request, with given headers and body.
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
    fn http2_has_the_authority_once_and_nothing_about_connections() {
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
    fn head_expects_no_body() {
        let of = |method| Request::new(method, "a", "/", &[], b"", Http11, false).expect("a good request");
        assert!(of("HEAD").is_head() && !of("HEAD").expects_body());
        assert!(!of("GET").is_head() && of("GET").expects_body());
        assert!(!of("head").is_head(), "methods are case-sensitive");
    }

    #[test]
    fn a_streamed_body_is_announced_and_sent_by_others() {
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
    fn content_waits_where_the_server_is_asked_whether_it_wants_it() {
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

    #[test]
    fn splitting_is_refused() {
        for method in ["", "GET ", "GE T", "GET\r\n", "G\u{e9}T", "GET:"] {
            assert_eq!(render(method, &[], "", Http11, false), Err(RequestError::Method(method.to_owned())));
        }
        assert_eq!(render("CONNECT", &[], "", Http11, false), Err(RequestError::Connect));
        for authority in ["", "a b", "a\r\nX: y", "user@host", "http://a", "a/b", "\u{e9}.example"] {
            let error = Request::new("GET", authority, "/", &[], b"", Http11, false);
            assert_eq!(error, Err(RequestError::Authority(authority.to_owned())));
        }
        for path in ["", "x", "/a b", "/a\r\nX: y", "/\0", "/\x7f", "/a\tb", "*x"] {
            let error = Request::new("GET", "a", path, &[], b"", Http11, false);
            assert_eq!(error, Err(RequestError::Path(path.to_owned())));
        }
        for path in ["/", "*", "http://a/b", "/\u{e9}", "/%20?a=[b]|c"] {
            assert!(Request::new("OPTIONS", "a", path, &[], b"", Http11, false).is_ok(), "{path:?}");
        }
        for name in ["", "A B", "A:", "A\r\nB", " A", "\u{e9}"] {
            assert_eq!(
                render("GET", &[(name, "x")], "", Http11, false),
                Err(RequestError::HeaderName(name.to_owned()))
            );
        }
        for value in ["a\r\nB: c", "a\nb", "a\rb", "\0", "\x7f"] {
            let error = render("GET", &[("A", value)], "", Http11, false).expect_err("a refusal");
            assert!(matches!(error, RequestError::HeaderValue { .. }), "{value:?}: {error}");
            assert!(!error.to_string().contains(['\r', '\n', '\0']), "the message itself is one clean line");
        }
    }

    #[test]
    fn framing_is_ours() {
        assert_eq!(
            render("POST", &[("transfer-encoding", "chunked")], "", Http11, false),
            Err(RequestError::TransferEncoding)
        );
        for given in ["4", "05", "x", "5, 5", ""] {
            let error = RequestError::ContentLength { given: given.to_owned(), actual: 5 };
            assert_eq!(render("POST", &[("Content-Length", given)], "hello", Http11, false), Err(error));
        }
    }
}
