//! Checks that the parts of a request are valid, so that every server reads them as one request.

/// The reason why a request cannot be sent.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum RequestError {
    /// The method is not a token.
    #[error("{0:?} is not an HTTP method: write one word, such as GET")]
    Method(String),
    /// The method is CONNECT, which opens a tunnel. The bytes that come from a tunnel are not responses.
    #[error("CONNECT opens a tunnel and cannot be measured as a request: use another method")]
    Connect,
    /// The authority is not `host` or `host:port`.
    #[error("{0:?} is not an authority: write host or host:port, with an internationalised name in its xn-- form")]
    Authority(String),
    /// The path is not a request target.
    #[error("{0:?} is not a path: begin it with / and percent-encode its spaces and control characters")]
    Path(String),
    /// The name of a header is not a token.
    #[error("{0:?} is not a header name: use letters, digits and hyphens, as in X-Request-Id")]
    HeaderName(String),
    /// The value of a header contains a control character, which could end the header's line.
    #[error("the value {value:?} of header {name} has a line break or another control character: remove it")]
    HeaderValue {
        /// Name of the header with the invalid value.
        name: String,
        /// The invalid value of the header.
        value: String,
    },
    /// A Content-Length header differs from the length of the body.
    #[error("header Content-Length says {given:?} but the body has {actual} bytes: leave the header out, it is added")]
    ContentLength {
        /// Value of the Content-Length header.
        given: String,
        /// Actual length of the body in bytes.
        actual: u64,
    },
    /// A Transfer-Encoding header is set, but bodies are sent without a transfer coding.
    #[error("header Transfer-Encoding cannot be sent, because bodies have a Content-Length: leave the header out")]
    TransferEncoding,
}

/// Whether the header is Content-Length.
pub(super) fn is_content_length(name: &str) -> bool {
    name.eq_ignore_ascii_case("Content-Length")
}

/// Whether this header suppresses a default header. It then has the name of a default header and an empty value, as in
/// curl's option `-H`.
pub(super) fn suppresses_default(name: &str, value: &str) -> bool {
    const ADDED: [&str; 5] = ["Host", "User-Agent", "Accept", "Connection", "Content-Length"];
    value.trim().is_empty() && ADDED.iter().any(|added| added.eq_ignore_ascii_case(name))
}

/// Checks that all servers parse the same request line and the same Host header from these parts.
pub(super) fn check_line(method: &str, authority: &str, path: &str) -> Result<(), RequestError> {
    if !is_token(method) {
        return Err(RequestError::Method(method.to_owned()));
    }
    if method == "CONNECT" {
        return Err(RequestError::Connect);
    }
    if authority.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@\\".contains(&byte)) {
        return Err(RequestError::Authority(authority.to_owned()));
    }
    // Valid forms are a path, `*` (for OPTIONS) and a whole URL (for a proxy). Non-ASCII bytes are accepted, because
    // servers parse them alike and some clients send them.
    let has_form = path.starts_with('/') || path == "*" || path.contains("://");
    if !has_form || path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(RequestError::Path(path.to_owned()));
    }
    Ok(())
}

/// Checks that a header can be sent with a body of `body_bytes`.
pub(super) fn check_header(name: &str, value: &str, body_bytes: u64) -> Result<(), RequestError> {
    if !is_token(name) {
        return Err(RequestError::HeaderName(name.to_owned()));
    }
    if value.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        return Err(RequestError::HeaderValue { name: name.to_owned(), value: value.to_owned() });
    }
    if name.eq_ignore_ascii_case("Transfer-Encoding") {
        return Err(RequestError::TransferEncoding);
    }
    if is_content_length(name) && value != body_bytes.to_string() && !suppresses_default(name, value) {
        return Err(RequestError::ContentLength { given: value.to_owned(), actual: body_bytes });
    }
    Ok(())
}

/// Whether a text is a token (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Request, Version};
    use Version::Http11;

    /// Renders a request for `/x?y` with this header, if any, and this body.
    fn with(method: &str, header: Option<(&str, &str)>, body: &str) -> Result<Request, RequestError> {
        let headers: Vec<_> = header.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        Request::new(method, "a.example:81", "/x?y", &headers, body.as_bytes(), Http11, false)
    }

    #[test]
    fn splitting_is_refused() {
        for method in ["", "GET ", "GE T", "GET\r\n", "G\u{e9}T", "GET:"] {
            assert_eq!(with(method, None, ""), Err(RequestError::Method(method.to_owned())));
        }
        assert_eq!(with("CONNECT", None, ""), Err(RequestError::Connect));
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
            assert_eq!(with("GET", Some((name, "x")), ""), Err(RequestError::HeaderName(name.to_owned())));
        }
        for value in ["a\r\nB: c", "a\nb", "a\rb", "\0", "\x7f"] {
            let error = with("GET", Some(("A", value)), "").expect_err("a refusal");
            assert!(matches!(error, RequestError::HeaderValue { .. }), "{value:?}: {error}");
            assert!(!error.to_string().contains(['\r', '\n', '\0']), "the message has no control character");
        }
    }

    #[test]
    fn framing_is_ours() {
        assert_eq!(with("POST", Some(("transfer-encoding", "chunked")), ""), Err(RequestError::TransferEncoding));
        for given in ["4", "05", "x", "5, 5"] {
            let error = RequestError::ContentLength { given: given.to_owned(), actual: 5 };
            assert_eq!(with("POST", Some(("Content-Length", given)), "hello"), Err(error));
        }
    }
}
