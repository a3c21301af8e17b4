//! Parses a whole response head: its status, how its body is delimited (RFC 9112 §6.3), and whether the connection
//! persists after the response (§9.3).

use std::mem::MaybeUninit;

use crate::error::ParseError;

/// Maximum length of a response head in bytes, including its final empty line.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Maximum number of fields in a response head.
pub const MAX_FIELDS: usize = 256;

/// Caches the head that was parsed last. Most responses of a server have the same head for up to a second, because only
/// its Date field changes. An identical head is not parsed again. All connections to one server should share one cache.
#[derive(Clone, Debug, Default)]
pub struct RecentHead {
    bytes: Vec<u8>,
    parsed: Option<(bool, Head)>,
}

impl RecentHead {
    /// If `bytes` begin with the cached head, returns the length of that head and the result of [`parse`]. This is
    /// correct because later bytes do not affect where a head ends.
    pub(crate) fn find(&self, bytes: &[u8], head_request: bool) -> Option<(usize, Head)> {
        let (cached_head_request, head) = self.parsed?;
        (cached_head_request == head_request && bytes.starts_with(&self.bytes)).then_some((self.bytes.len(), head))
    }

    /// Replaces the cached head by `bytes`, whose parsed form is `head`.
    pub(crate) fn remember(&mut self, bytes: &[u8], head_request: bool, head: Head) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.parsed = Some((head_request, head));
    }
}

/// The properties of a response that its head determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The HTTP status code of the response.
    pub(crate) status: u16,
    /// Whether the connection persists after the response.
    pub(crate) keep_alive: bool,
    /// How the end of the body is determined.
    pub(crate) framing: Framing,
}

/// How the end of a response's body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The body has this length in bytes, which is 0 if there is no body.
    Length(u64),
    /// The body has the chunked transfer coding.
    Chunked,
    /// The body ends when the server closes the connection.
    Close,
}

/// Returns the offset in `bytes` of the end of the head, which is the end of its first empty line. `before` is the part
/// of the head that arrived before `bytes`. A line ends in LF or CRLF, as in `httparse`.
pub(crate) fn find_head_end(before: &[u8], bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes)
        .find(|&lf| match bytes[..lf] {
            [] => before.ends_with(b"\n") || before.ends_with(b"\n\r"),
            [b'\r'] => before.ends_with(b"\n"),
            [.., b'\n'] | [.., b'\n', b'\r'] => true,
            _ => false,
        })
        .map(|lf| lf + 1)
}

/// The value of the first field with this name, in a head or in the beginning of a message. The case of the name is
/// ignored. Returns `None` if there is no such field, or if its line is incomplete.
pub fn field_value<'a>(message: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let lines =
        message.split_inclusive(|byte| *byte == b'\n').take_while(|line| !matches!(*line, [b'\n'] | [b'\r', b'\n']));
    lines.filter(|line| line.ends_with(b"\n")).find_map(|line| {
        let (before, value) = line.split_at_checked(name.len() + 1)?;
        let has_name = before.strip_suffix(b":")?.eq_ignore_ascii_case(name.as_bytes());
        has_name.then(|| value.trim_ascii())
    })
}

/// Parses one whole head. `head_request` is true if the head responds to a HEAD request.
pub(crate) fn parse(head: &[u8], head_request: bool) -> Result<Head, ParseError> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true) // a user agent must accept them (§5.2)
        .parse_response_with_uninit_headers(&mut response, head, &mut fields);
    let (Some(status), Some(minor_version)) = (response.code, response.version) else {
        return Err(ParseError::BadHead("its status line is not `HTTP/1.1 NNN reason`"));
    };
    match parsed {
        Ok(httparse::Status::Complete(n)) if n == head.len() => {}
        Ok(_) => return Err(ParseError::BadHead("it ends within a line")),
        Err(error) => return Err(from_httparse(error)),
    }
    if status < 100 {
        return Err(ParseError::BadHead("its status code is below 100"));
    }

    let mut seen = Fields::default();
    for field in response.headers.iter() {
        seen.note(field.name, field.value);
    }
    let framing = seen.framing(status, head_request)?;
    Ok(Head {
        status,
        keep_alive: seen.keep_alive(minor_version) && framing != Framing::Close && status != 101,
        framing,
    })
}

/// The header fields that determine where the body ends and whether the connection persists. Lines with the same name
/// are combined.
#[derive(Default)]
struct Fields {
    close: bool,
    keep_alive: bool,
    content_length: Option<Result<u64, ParseError>>,
    /// Whether the last transfer coding is `chunked`. `None` if there is no transfer coding.
    last_coding_is_chunked: Option<bool>,
}

impl Fields {
    fn note(&mut self, name: &str, value: &[u8]) {
        // The length of the name rules out most fields without a comparison.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                for option in list(value) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                for text in list(value) {
                    let length = decimal(text).ok_or(ParseError::BadContentLength);
                    self.content_length = match self.content_length {
                        Some(earlier) if earlier != length => Some(Err(ParseError::BadContentLength)),
                        _ => Some(length),
                    };
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                for coding in list(value).filter(|coding| !coding.is_empty()) {
                    self.last_coding_is_chunked = Some(coding.eq_ignore_ascii_case(b"chunked"));
                }
            }
            _ => {}
        }
    }

    /// Determines the end of the body by the rules of §6.3, in their order.
    fn framing(&self, status: u16, head_request: bool) -> Result<Framing, ParseError> {
        if head_request || matches!(status, 100..=199 | 204 | 304) {
            return Ok(Framing::Length(0));
        }
        match (self.last_coding_is_chunked, self.content_length) {
            (Some(true), _) => Ok(Framing::Chunked),
            (Some(false), _) | (None, None) => Ok(Framing::Close),
            (None, Some(length)) => length.map(Framing::Length),
        }
    }

    /// Whether the connection persists after the response (§9.3). It does not persist after an HTTP/1.0 response with a
    /// transfer coding (§6.1).
    fn keep_alive(&self, minor_version: u8) -> bool {
        let persistent = minor_version >= 1 || (self.keep_alive && self.last_coding_is_chunked.is_none());
        persistent && !self.close
    }
}

/// Splits a comma-separated list into its elements, including empty elements.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// Parses a number that consists of decimal digits only.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Converts an error of `httparse`.
fn from_httparse(error: httparse::Error) -> ParseError {
    use httparse::Error;
    match error {
        Error::TooManyHeaders => ParseError::HeadTooLarge,
        Error::HeaderName => ParseError::BadHead("the name of a field is not valid"),
        Error::HeaderValue => ParseError::BadHead("the value of a field has a control character"),
        Error::Status => ParseError::BadHead("its status line has a control character or no space after the code"),
        Error::NewLine | Error::Token | Error::Version => ParseError::BadHead("one of its lines is cut by a bare CR"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD_LENGTH: Result<Framing, ParseError> = Err(ParseError::BadContentLength);

    fn framing(status: u16, fields: &str) -> Result<Framing, ParseError> {
        parse(format!("HTTP/1.1 {status} X\r\n{fields}\r\n").as_bytes(), false).map(|head| head.framing)
    }

    #[test]
    fn framing_follows_rfc_9112_section_6_3() {
        use Framing::*;
        let table: &[(u16, &str, Result<Framing, ParseError>)] = &[
            (200, "", Ok(Close)),
            (200, "Content-Length: 0\r\n", Ok(Length(0))),
            (200, "content-LENGTH:615\r\n", Ok(Length(615))),
            (200, "Content-Length: 00615\r\n", Ok(Length(615))),
            (200, "Content-Length: 18446744073709551615\r\n", Ok(Length(u64::MAX))),
            (200, "Content-Length: 18446744073709551616\r\n", BAD_LENGTH),
            (200, "Content-Length: 5\r\nContent-Length: 5\r\n", Ok(Length(5))),
            (200, "Content-Length: 5, 5\r\n", Ok(Length(5))),
            (200, "Content-Length: 5\r\nContent-Length: 6\r\n", BAD_LENGTH),
            (200, "Content-Length: 5, 6\r\n", BAD_LENGTH),
            (200, "Content-Length: x\r\nContent-Length: 5\r\n", BAD_LENGTH),
            (200, "Content-Length: +5\r\n", BAD_LENGTH),
            (200, "Content-Length: -5\r\n", BAD_LENGTH),
            (200, "Content-Length: 5 5\r\n", BAD_LENGTH),
            (200, "Content-Length:\r\n", BAD_LENGTH),
            (200, "Content-Length: 0x5\r\n", BAD_LENGTH),
            (200, "Transfer-Encoding: chunked\r\n", Ok(Chunked)),
            (200, "transfer-encoding: CHUNKED\r\n", Ok(Chunked)),
            (200, "Transfer-Encoding: gzip, chunked\r\n", Ok(Chunked)),
            (200, "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", Ok(Chunked)),
            (200, "Transfer-Encoding: gzip,\r\n chunked\r\n", Ok(Chunked)),
            (200, "Transfer-Encoding: chunked,\r\n", Ok(Chunked)),
            (200, "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", Ok(Chunked)),
            (200, "Content-Length: nonsense\r\nTransfer-Encoding: chunked\r\n", Ok(Chunked)),
            (200, "Transfer-Encoding: gzip\r\n", Ok(Close)),
            (200, "Transfer-Encoding: chunked, gzip\r\n", Ok(Close)),
            (200, "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\nContent-Length: 5\r\n", Ok(Close)),
            (200, "Transfer-Encoding: xchunked\r\n", Ok(Close)),
            (204, "Content-Length: 5\r\n", Ok(Length(0))),
            (304, "Transfer-Encoding: chunked\r\n", Ok(Length(0))),
            (304, "Content-Length: x\r\n", Ok(Length(0))),
            (101, "", Ok(Length(0))),
            (205, "", Ok(Close)),
        ];
        for (status, fields, expected) in table {
            assert_eq!(&framing(*status, fields), expected, "{status} {fields:?}");
        }
    }

    #[test]
    fn the_response_to_head_has_no_body() {
        let head = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true).expect("a good head");
        assert_eq!((head.framing, head.keep_alive), (Framing::Length(0), true));
    }

    #[test]
    fn persistence_follows_rfc_9112_section_9_3() {
        let table = [
            ("1.1 200", "", true),
            ("1.1 200", "Connection: close\r\n", false),
            ("1.1 200", "connection: Upgrade , CLOSE\r\n", false),
            ("1.1 200", "Connection: keep-alive\r\nConnection: close\r\n", false),
            ("1.1 200", "Connection: closed\r\n", true),
            ("1.1 200", "Transfer-Encoding: gzip\r\n", false),
            ("1.1 101", "Connection: Upgrade\r\n", false),
            ("1.0 200", "", false),
            ("1.0 200", "Connection: Keep-Alive\r\n", true),
            ("1.0 200", "Connection: keep-alive, close\r\n", false),
            ("1.0 200", "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n", false),
        ];
        for (start, fields, expected) in table {
            let text = format!("HTTP/{start} X\r\nContent-Length: 0\r\n{fields}\r\n");
            assert_eq!(parse(text.as_bytes(), false).map(|head| head.keep_alive), Ok(expected), "{text:?}");
        }
        let by_close = parse(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", false).expect("a good head");
        assert_eq!((by_close.framing, by_close.keep_alive), (Framing::Close, false));
    }

    #[test]
    fn leniency_of_httparse_is_kept() {
        for text in
            ["HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\n\r\n", "HTTP/1.1 200 OK\n\n", "HTTP/1.1 200 \u{e9}\r\nA:\n\r\n"]
        {
            assert!(parse(text.as_bytes(), false).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn faults_are_named() {
        let table = [
            ("HTTP/1.2 200 OK\r\n\r\n", "status line"),
            ("HTTP/1.1 20 OK\r\n\r\n", "status line"),
            ("HTTP/1.1  200 OK\r\n\r\n", "status line"),
            ("HTTP/1.1\r\n\r\n", "status line"),
            ("HTTP/1.1 2000 OK\r\n\r\n", "after the code"),
            ("HTTP/1.1 200 O\0K\r\n\r\n", "control character"),
            ("HTTP/1.1 099 X\r\n\r\n", "below 100"),
            ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "name of a field"),
            ("HTTP/1.1 200 OK\r\n: x\r\n\r\n", "name of a field"),
            ("HTTP/1.1 200 OK\r\nA : x\r\n\r\n", "name of a field"),
            ("HTTP/1.1 200 OK\r\n folded: first\r\n\r\n", "name of a field"),
            ("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", "value of a field"),
            ("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", "value of a field"),
            ("HTTP/1.1 200 OK\r\n\rA: b\r\n\r\n", "bare CR"),
        ];
        for (text, reason) in table {
            let error = parse(text.as_bytes(), false).expect_err("a fault");
            assert!(error.to_string().contains(reason), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_end_is_found_across_a_cut() {
        for text in ["a\r\nb\r\n\r\n", "a\n\n", "a\r\n\n", "a\n\r\n"] {
            for cut in 0..text.len() {
                let (before, bytes) = text.as_bytes().split_at(cut);
                assert_eq!(find_head_end(before, bytes), Some(text.len() - cut), "{text:?} cut at {cut}");
                assert_eq!(
                    find_head_end(before, &bytes[..bytes.len() - 1]),
                    None,
                    "{text:?} cut at {cut}, one byte short"
                );
            }
        }
        assert_eq!(find_head_end(b"", b"a\r\r\nb\n\r\r\n\r"), None);
    }
}
