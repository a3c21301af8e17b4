//! Parses successive HTTP/1 responses of a connection, in pieces of any size.
//!
//! Invariants: the result does not depend on how the bytes are split. Bytes after the end of a response are not
//! consumed. Fewer than [`MAX_HEAD_BYTES`] of an incomplete head are stored; bodies are not stored. Only bytes that
//! have arrived are counted, so no 64-bit sum can overflow.
//!
//! Some servers send a line break after a body that the body's length does not include. The next status line then
//! follows an empty line, which may arrive before or after the next request is sent. The parser skips and counts up to
//! [`MAX_EMPTY_LINES`] empty lines before a response, as servers do before a request line (§2.2).

use crate::chunked::Chunked;
use crate::error::ParseError;
use crate::head::{self, Framing, Head, MAX_HEAD_BYTES, RecentHead};

/// Maximum number of empty lines that are skipped before one response.
pub const MAX_EMPTY_LINES: u32 = 4;

/// Finds the end of each response on one connection. The caller must call [`start`](Self::start) before every response.
#[derive(Debug, Default)]
pub struct ResponseParser {
    stage: Stage,
    head_request: bool,
    /// The empty lines that arrived after the previous response. They are counted with the next response.
    empty: EmptyLines,
    /// Number of empty lines before the current response, once its head is complete.
    empty_lines: u32,
    continued: bool,
    /// The first part of a head, stored until the rest arrives.
    partial_head: Vec<u8>,
    response: Response,
    /// Number of bytes of the response that were consumed. Informational responses count, and empty lines do not.
    received: u64,
}

/// The result of [`ResponseParser::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedResult {
    /// Number of bytes consumed. The remaining bytes belong to the next response.
    pub consumed: usize,
    /// The progress of the response: complete or not.
    pub step: ParseStep,
}

/// The progress of parsing one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseStep {
    /// The response needs more bytes, or needs the end of the connection.
    NeedMore,
    /// The response is complete.
    Complete(Response),
}

/// The properties of a complete response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code: 101, or 200 and above.
    pub status: u16,
    /// Whether the server leaves the connection open for another request.
    pub keep_alive: bool,
    /// Length of the head in bytes, including informational responses before it.
    pub head_bytes: u64,
    /// Length of the content in bytes. Chunk sizes, extensions and trailers are not counted.
    pub body_bytes: u64,
}

/// The part of a response to which the next byte belongs. `repr(u8)` gives the enum a separate discriminant. Otherwise,
/// the compiler may encode the variant in unused values of the fields, which takes longer to read.
#[derive(Clone, Copy, Debug, Default)]
#[repr(u8)]
enum Stage {
    #[default]
    Head,
    Length {
        left: u64,
    },
    Chunked(Chunked),
    UntilClose,
    Done,
    Failed(ParseError),
}

impl ResponseParser {
    /// Creates a parser that expects a response to a request other than HEAD.
    pub fn new() -> ResponseParser {
        ResponseParser::default()
    }

    /// Starts a new response. `head_request` is true if this response answers a HEAD request. Empty lines since the
    /// previous complete response are counted with the new response. The buffer for heads keeps its capacity.
    pub fn start(&mut self, head_request: bool) {
        let was_incomplete = match self.stage {
            Stage::Head => self.received > 0,
            Stage::Done => false,
            _ => true,
        };
        if was_incomplete {
            self.empty = EmptyLines::default();
        }
        self.empty_lines = 0;
        self.continued = false;
        self.stage = Stage::Head;
        self.head_request = head_request;
        self.partial_head.clear();
        self.response = Response::default();
        self.received = 0;
    }

    /// Consumes the bytes that belong to the response. Informational responses (1xx) are skipped, except 101: after
    /// 101, the connection uses another protocol. After the end of the response, or after an error, `feed` consumes
    /// nothing and returns the last result again.
    ///
    /// # Errors
    /// [`ParseError`] if the bytes are not a response.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<FeedResult, ParseError> {
        self.feed_with(&mut RecentHead::default(), bytes, |_| {})
    }

    /// Like [`feed`](Self::feed), but faster if the response begins with the head in `recent`. Calls `on_head` with
    /// each complete head, even of informational responses.
    ///
    /// # Errors
    /// The errors of [`feed`](Self::feed).
    pub fn feed_with(
        &mut self,
        recent: &mut RecentHead,
        bytes: &[u8],
        on_head: impl FnMut(&[u8]),
    ) -> Result<FeedResult, ParseError> {
        self.feed_with_content(recent, bytes, on_head, |_| {})
    }

    /// Like [`feed_with`](Self::feed_with), but also calls `on_content` with the content, without its framing.
    ///
    /// # Errors
    /// The errors of [`feed`](Self::feed).
    pub fn feed_with_content(
        &mut self,
        recent: &mut RecentHead,
        bytes: &[u8],
        mut on_head: impl FnMut(&[u8]),
        mut on_content: impl FnMut(&[u8]),
    ) -> Result<FeedResult, ParseError> {
        let mut consumed = 0;
        while consumed < bytes.len() && !matches!(self.stage, Stage::Done | Stage::Failed(_)) {
            match self.step(&bytes[consumed..], recent, &mut on_head, &mut on_content) {
                Ok((n, belongs_to_response)) => {
                    consumed += n;
                    self.received += if belongs_to_response { n as u64 } else { 0 };
                }
                Err(error) => self.stage = Stage::Failed(error),
            }
        }
        let step = match self.stage {
            Stage::Done => ParseStep::Complete(self.response),
            Stage::Failed(error) => return Err(error),
            _ => ParseStep::NeedMore,
        };
        Ok(FeedResult { consumed, step })
    }

    /// Returns the length in bytes of the empty lines at the start of `bytes`, which arrived while no response was
    /// expected. These lines are counted with the next response. The bytes after them belong to no response.
    pub fn skip_empty_lines(&mut self, bytes: &[u8]) -> usize {
        let before = self.empty;
        self.empty.skip(bytes).unwrap_or_else(|_| {
            // The error is dropped, because [`feed`](Self::feed) will return it for these bytes.
            self.empty = before;
            0
        })
    }

    /// Number of empty lines before the complete response. The response's counts of bytes exclude these lines.
    pub fn empty_lines(&self) -> u32 {
        self.empty_lines
    }

    /// Number of bytes of the response that were consumed so far. Informational responses count, and empty lines before
    /// the response do not.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the server has requested the body of the request (status 100; RFC 9110 §10.1.1).
    pub fn received_continue(&self) -> bool {
        self.continued
    }

    /// Handles the end of the connection. A response that is delimited by the end of the connection is then complete.
    /// Any other response is truncated.
    ///
    /// # Errors
    /// [`ParseError`] if the response is incomplete.
    pub fn finish(&mut self) -> Result<Response, ParseError> {
        match self.stage {
            Stage::UntilClose | Stage::Done => {
                self.stage = Stage::Done;
                Ok(self.response)
            }
            Stage::Failed(error) => Err(error),
            Stage::Head | Stage::Length { .. } | Stage::Chunked(_) => {
                let error = ParseError::Truncated { received: self.received };
                self.stage = Stage::Failed(error);
                Err(error)
            }
        }
    }

    /// Consumes those bytes at the start of `bytes` that the current stage can use. Returns their number, and whether
    /// they belong to the response. `bytes` must not be empty.
    fn step(
        &mut self,
        bytes: &[u8],
        recent: &mut RecentHead,
        on_head: &mut impl FnMut(&[u8]),
        on_content: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, bool), ParseError> {
        let consumed = match &mut self.stage {
            Stage::Head => {
                let may_be_empty = self.empty.cut || matches!(bytes.first(), Some(b'\r' | b'\n'));
                if may_be_empty && self.partial_head.is_empty() {
                    let empty = self.empty.skip(bytes)?;
                    if empty > 0 {
                        return Ok((empty, false));
                    }
                }
                self.step_head(bytes, recent, on_head)?
            }
            Stage::Length { left } => {
                let n = (bytes.len() as u64).min(*left);
                *left -= n;
                self.response.body_bytes += n;
                on_content(&bytes[..n as usize]);
                if *left == 0 {
                    self.stage = Stage::Done;
                }
                n as usize
            }
            Stage::Chunked(chunked) => {
                let n = chunked.feed_with(bytes, on_content)?;
                self.response.body_bytes = chunked.data_bytes();
                if chunked.is_done() {
                    self.stage = Stage::Done;
                }
                n
            }
            Stage::UntilClose => {
                self.response.body_bytes += bytes.len() as u64;
                on_content(bytes);
                bytes.len()
            }
            Stage::Done | Stage::Failed(_) => 0,
        };
        Ok((consumed, true))
    }

    /// Parses a head where it is, without a copy, if all of it has arrived. Otherwise, stores the part that has
    /// arrived.
    fn step_head(
        &mut self,
        bytes: &[u8],
        recent: &mut RecentHead,
        on_head: &mut impl FnMut(&[u8]),
    ) -> Result<usize, ParseError> {
        let kept = self.partial_head.len();
        if kept == 0
            && let Some((end, head)) = recent.find(bytes, self.head_request)
        {
            self.response.head_bytes += end as u64;
            on_head(&bytes[..end]);
            self.begin_body(head);
            return Ok(end);
        }
        if !continues(b"HTTP/1.", kept, bytes) {
            return Err(ParseError::NotHttp);
        }
        let bytes = &bytes[..bytes.len().min(MAX_HEAD_BYTES - kept)];
        let Some(end) = head::find_head_end(&self.partial_head, bytes) else {
            if kept + bytes.len() == MAX_HEAD_BYTES {
                return Err(ParseError::HeadTooLarge);
            }
            self.partial_head.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        let head = if kept == 0 {
            let head = head::parse(&bytes[..end], self.head_request)?;
            recent.remember(&bytes[..end], self.head_request, head);
            on_head(&bytes[..end]);
            head
        } else {
            self.partial_head.extend_from_slice(&bytes[..end]);
            let head = head::parse(&self.partial_head, self.head_request)?;
            on_head(&self.partial_head);
            self.partial_head.clear();
            head
        };
        self.response.head_bytes += (kept + end) as u64;
        self.begin_body(head);
        Ok(end)
    }

    /// Enters the stage after the head.
    fn begin_body(&mut self, head: Head) {
        if matches!(head.status, 100 | 102..=199) {
            self.continued |= head.status == 100;
            return; // the final response follows
        }
        self.empty_lines = std::mem::take(&mut self.empty).lines;
        self.response.status = head.status;
        self.response.keep_alive = head.keep_alive;
        self.stage = match head.framing {
            Framing::Length(0) => Stage::Done,
            Framing::Length(left) => Stage::Length { left },
            Framing::Chunked => Stage::Chunked(Chunked::new()),
            Framing::Close => Stage::UntilClose,
        };
    }
}

/// The empty lines before a status line.
#[derive(Clone, Copy, Debug, Default)]
struct EmptyLines {
    lines: u32,
    /// Whether the last byte was the CR of a line whose LF has not arrived.
    cut: bool,
}

impl EmptyLines {
    /// Returns the length in bytes of the empty lines at the start of `bytes`. A line ends in LF or CRLF. `bytes` must
    /// not be empty.
    fn skip(&mut self, bytes: &[u8]) -> Result<usize, ParseError> {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' => {
                    (self.lines, self.cut) = (self.lines + 1, false);
                    if self.lines > MAX_EMPTY_LINES {
                        return Err(ParseError::BadHead("more than four empty lines precede it"));
                    }
                }
                _ if self.cut => return Err(ParseError::NotHttp),
                b'\r' => self.cut = true,
                _ => return Ok(at),
            }
        }
        Ok(bytes.len())
    }
}

/// Whether `bytes` equal the part of `prefix` from offset `kept`, up to the end of the shorter of the two.
fn continues(prefix: &[u8], kept: usize, bytes: &[u8]) -> bool {
    prefix.iter().skip(kept).zip(bytes).all(|(expected, byte)| expected == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `bytes`, and closes the connection if the response is still incomplete. Returns the number of bytes
    /// consumed and the result.
    fn outcome(bytes: &[u8], head_request: bool) -> (usize, Result<Response, ParseError>) {
        let mut parser = ResponseParser::new();
        parser.start(head_request);
        match parser.feed(bytes) {
            Ok(FeedResult { consumed, step: ParseStep::Complete(response) }) => (consumed, Ok(response)),
            Ok(FeedResult { consumed, step: ParseStep::NeedMore }) => (consumed, parser.finish()),
            Err(error) => (0, Err(error)),
        }
    }

    fn response(status: u16, keep_alive: bool, head_bytes: u64, body_bytes: u64) -> Response {
        Response { status, keep_alive, head_bytes, body_bytes }
    }

    #[test]
    fn a_repeated_head_gives_the_same_result() {
        let texts = [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 404",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
            "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\nhi",
        ];
        let mut recent = RecentHead::default();
        for (first, second, head_request) in
            texts.iter().flat_map(|a| texts.iter().flat_map(move |b| [(a, b, false), (a, b, true)]))
        {
            for (text, head_request) in [(first, head_request), (second, false), (second, true), (second, true)] {
                let (mut plain, mut with) = (ResponseParser::new(), ResponseParser::new());
                plain.start(head_request);
                with.start(head_request);
                let mut heads = Vec::new();
                let fed = with.feed_with(&mut recent, text.as_bytes(), |head| heads.extend_from_slice(head));
                assert_eq!(fed, plain.feed(text.as_bytes()), "{text:?}");
                assert!(text.as_bytes().starts_with(&heads), "{text:?}");
                if let Ok(FeedResult { step: ParseStep::Complete(response), .. }) = fed {
                    assert_eq!(heads.len() as u64, response.head_bytes, "{text:?}");
                }
                assert_eq!(with.finish(), plain.finish(), "{text:?}");
            }
        }
    }

    #[test]
    fn content_is_passed_on_whole_however_it_is_framed_and_split() {
        for (text, content) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n3\r\n wo\r\n0\r\nA: b\r\n\r\n",
                "hello wo",
            ),
            ("HTTP/1.1 200 OK\r\n\r\nall the rest", "all the rest"),
            ("HTTP/1.1 103 X\r\n\r\nHTTP/1.1 204 X\r\n\r\n", ""),
        ] {
            for size in 1..=text.len() {
                let (mut parser, mut shown) = (ResponseParser::new(), Vec::new());
                parser.start(false);
                for piece in text.as_bytes().chunks(size) {
                    let recent = &mut RecentHead::default();
                    let fed =
                        parser.feed_with_content(recent, piece, |_| {}, |content| shown.extend_from_slice(content));
                    assert_eq!(fed.expect("a good response").consumed, piece.len());
                }
                assert_eq!(shown, content.as_bytes(), "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn each_framing_ends_where_it_should() {
        let table: &[(&str, &str, Response)] = &[
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 2", response(200, true, 38, 5)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "surplus", response(200, true, 38, 0)),
            ("HTTP/1.1 204 No Content\r\n\r\n", "surplus", response(204, true, 27, 0)),
            ("HTTP/1.1 304 X\r\nContent-Length: 5\r\n\r\n", "surplus", response(304, true, 37, 0)),
            ("HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n", "\0\x01", response(101, false, 30, 0)),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n",
                "HTTP/1.1 2",
                response(200, true, 47, 5),
            ),
            ("HTTP/1.1 200 OK\r\n\r\nall the rest", "", response(200, false, 19, 12)),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nall",
                "",
                response(200, false, 63, 3),
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "surplus", response(200, false, 38, 1)),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
                "surplus",
                response(200, true, 93, 1),
            ),
            ("HTTP/1.1 200 OK\nContent-Length: 1\n\nx", "surplus", response(200, true, 35, 1)),
        ];
        for (text, surplus, expected) in table {
            assert_eq!(outcome(format!("{text}{surplus}").as_bytes(), false), (text.len(), Ok(*expected)), "{text:?}");
        }
    }

    #[test]
    fn the_response_to_head_ends_with_its_head() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(outcome(format!("{head}HTTP").as_bytes(), true), (head.len(), Ok(response(200, true, 38, 0))));
        let informed = format!("HTTP/1.1 100 Continue\r\n\r\n{head}");
        assert_eq!(outcome(informed.as_bytes(), true), (informed.len(), Ok(response(200, true, 63, 0))));
    }

    #[test]
    fn other_protocols_are_refused_at_their_first_byte_that_differs() {
        for bytes in [
            &b"\x15\x03\x01\x00\x02"[..],
            b"SSH-2.0-",
            b"HTTP/2 200\r\n",
            b"\rHTTP/1.1 200 OK\r\n",
            b"\r\r\n",
            b"http/1.1",
        ] {
            assert_eq!(outcome(bytes, false).1, Err(ParseError::NotHttp), "{bytes:?}");
        }
        let mut parser = ResponseParser::new();
        assert_eq!(parser.feed(b"HTT").map(|fed| fed.step), Ok(ParseStep::NeedMore));
        assert_eq!(parser.feed(b"X"), Err(ParseError::NotHttp));
        assert_eq!(parser.feed(b"P/1.1 200 OK\r\n\r\n"), Err(ParseError::NotHttp), "the parser repeats its error");
        let after_informational = b"HTTP/1.1 100 Continue\r\n\r\nX";
        assert_eq!(outcome(after_informational, false).1, Err(ParseError::NotHttp));
    }

    #[test]
    fn a_few_empty_lines_before_a_status_line_are_skipped_and_counted() {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        for (before, between, lines) in
            [("", "", 0), ("\r\n", "", 1), ("\n", "", 1), ("\r\n\n\r\n\n", "", 4), ("\r\n", "\r\n\r\n", 3)]
        {
            let informed = if between.is_empty() { "" } else { "HTTP/1.1 100 Continue\r\n\r\n" };
            let text = format!("{before}{informed}{between}{answer}");
            for size in 1..=text.len() {
                let mut parser = ResponseParser::new();
                let fed: Vec<FeedResult> =
                    text.as_bytes().chunks(size).map(|piece| parser.feed(piece).unwrap()).collect();
                let head_bytes = (informed.len() + answer.len() - 2) as u64;
                let expected = response(200, true, head_bytes, 2);
                assert_eq!(fed.last().map(|fed| fed.step), Some(ParseStep::Complete(expected)), "{text:?} by {size}");
                assert_eq!(parser.empty_lines(), lines, "{text:?} by {size}");
                assert_eq!(parser.received_continue(), !informed.is_empty(), "{text:?}");
            }
        }
        let many = format!("\r\n\r\n\r\n\r\n\r\n{answer}");
        let error = outcome(many.as_bytes(), false).1.unwrap_err();
        assert!(error.to_string().contains("empty lines"), "{error}");
        assert_eq!(outcome(b"\r\n", false).1, Err(ParseError::Truncated { received: 0 }));
    }

    #[test]
    fn empty_lines_between_two_responses_are_counted_with_the_second() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        let whole = |parser: &mut ResponseParser| {
            let fed = parser.feed(answer).unwrap();
            assert!(matches!(fed.step, ParseStep::Complete(_)) && fed.consumed == answer.len());
            parser.empty_lines()
        };
        for (before, after) in [(&b"\r\n"[..], &b""[..]), (b"\r", b"\n"), (b"", b"\r\n"), (b"\n", b"")] {
            let mut parser = ResponseParser::new();
            assert_eq!(whole(&mut parser), 0);
            assert_eq!(parser.skip_empty_lines(before), before.len());
            parser.start(false);
            let fed = FeedResult { consumed: after.len(), step: ParseStep::NeedMore };
            assert_eq!(parser.feed(after), Ok(fed), "{before:?} and {after:?}");
            assert_eq!(parser.received(), 0, "an empty line does not begin a response");
            assert_eq!(whole(&mut parser), 1, "{before:?} and {after:?}");
            assert_eq!(parser.received(), answer.len() as u64);
        }
        for (other, skipped) in [(&b"x"[..], 0), (b"\r\nx", 2), (b"\n\n\n\n\n", 0)] {
            let mut parser = ResponseParser::new();
            whole(&mut parser);
            assert_eq!(parser.skip_empty_lines(other), skipped, "{other:?}");
        }
    }

    #[test]
    fn a_truncated_response_reports_the_bytes_received() {
        for text in
            ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 100 X\r\n\r\n"]
        {
            let received = text.len() as u64;
            assert_eq!(
                outcome(text.as_bytes(), false),
                (text.len(), Err(ParseError::Truncated { received })),
                "{text:?}"
            );
        }
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
        assert_eq!(outcome(chunked.as_bytes(), false).1, Err(ParseError::Truncated { received: 50 }));
    }

    #[test]
    fn heads_are_bounded() {
        let head_of = |length: usize| {
            let (start, end) = ("HTTP/1.1 204 X\r\nA: ", "\r\n\r\n");
            format!("{start}{}{end}", "a".repeat(length - start.len() - end.len()))
        };
        let largest = head_of(MAX_HEAD_BYTES);
        assert_eq!(outcome(largest.as_bytes(), false).1, Ok(response(204, true, MAX_HEAD_BYTES as u64, 0)));
        assert_eq!(outcome(head_of(MAX_HEAD_BYTES + 1).as_bytes(), false).1, Err(ParseError::HeadTooLarge));

        let mut parser = ResponseParser::new();
        let endless = head_of(2 * MAX_HEAD_BYTES);
        let error = (0..).zip(endless.as_bytes().chunks(1)).find_map(|(at, byte)| {
            let error = parser.feed(byte).err()?;
            Some((at, error))
        });
        assert_eq!(error, Some((MAX_HEAD_BYTES - 1, ParseError::HeadTooLarge)));

        let head_with = |fields: usize| format!("HTTP/1.1 204 X\r\n{}\r\n", "A: b\r\n".repeat(fields));
        assert!(outcome(head_with(crate::MAX_FIELDS).as_bytes(), false).1.is_ok());
        assert_eq!(outcome(head_with(crate::MAX_FIELDS + 1).as_bytes(), false).1, Err(ParseError::HeadTooLarge));
    }

    #[test]
    fn a_parser_serves_one_response_after_another() {
        let mut parser = ResponseParser::new();
        for _ in 0..3 {
            parser.start(false);
            assert_eq!(parser.feed(b"HTTP/1.1 200 OK\r\nConte").map(|fed| fed.step), Ok(ParseStep::NeedMore));
            let fed = parser.feed(b"nt-Length: 3\r\n\r\nabcHTTP").expect("a good response");
            assert_eq!(fed, FeedResult { consumed: 19, step: ParseStep::Complete(response(200, true, 38, 3)) });
            assert_eq!(parser.feed(b"HTTP"), Ok(FeedResult { consumed: 0, ..fed }), "nothing more is consumed");
            assert_eq!(parser.finish(), Ok(response(200, true, 38, 3)), "a close after the end changes nothing");
        }
        parser.start(false);
        assert!(parser.feed(b"nonsense").is_err());
        parser.start(true);
        assert!(parser.feed(b"HTTP/1.1 200 OK\r\n\r\n").is_ok(), "`start` clears the error");
        parser.start(false);
        assert_eq!(
            parser.feed(b"HTTP/1.1 200 OK\r\n\r\n").map(|fed| fed.step),
            Ok(ParseStep::NeedMore),
            "`start` clears the flag of HEAD"
        );
    }
}
