//! Finds the end of a chunked body (RFC 9112 §7.1). The parser reads byte by byte, but skips the data of chunks.
//!
//! Chunk lines must end in CRLF, as the grammar demands. Lines of the trailer section may end in a bare LF (§2.2); the
//! content of these lines is ignored. The parser stores no bytes, only its state and some counts. The lengths of lines
//! are bounded. Without these bounds, a server could send a line without end, and the response would never end.

use crate::error::ParseError;
use crate::head::{MAX_FIELDS, MAX_HEAD_BYTES};

/// Maximum length of a chunk line in bytes: the size, extensions and CRLF before the data of a chunk.
pub const MAX_CHUNK_LINE_BYTES: usize = 16 * 1024;

/// The position in a chunked body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    state: State,
    /// While the line with the size of a chunk is parsed, the size so far. After that, the number of data bytes that
    /// are left in the chunk.
    left: u64,
    /// Number of data bytes so far.
    data_bytes: u64,
    /// Number of bytes so far in the current chunk line or in the trailer section.
    line_bytes: usize,
    /// Number of lines in the trailer section so far.
    trailers: usize,
}

/// The element of the chunked coding to which the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first digit of a chunk size.
    SizeStart,
    /// Another digit of the chunk size, or the byte after it.
    Size,
    /// White space after a chunk size. Some servers send it.
    Padding,
    /// A chunk extension.
    Extension,
    /// The LF that ends a chunk line.
    SizeLf,
    /// The data of a chunk.
    Data,
    /// The CR after the data of a chunk.
    DataCr,
    /// The LF after the data of a chunk.
    DataLf,
    /// The start of a line in the trailer section; the last line is empty.
    LineStart,
    /// The rest of a line in the trailer section.
    Line,
    /// The LF of the empty line that ends the trailer section.
    LastLf,
    /// The body is complete; the next byte does not belong to the body.
    Done,
}

impl Chunked {
    /// The state at the start of a body.
    pub(crate) const fn new() -> Chunked {
        Chunked { state: State::SizeStart, left: 0, data_bytes: 0, line_bytes: 0, trailers: 0 }
    }

    /// Consumes the bytes that belong to the body and returns the number of bytes consumed.
    #[cfg(test)]
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<usize, ParseError> {
        self.feed_with(bytes, |_| {})
    }

    /// Consumes the bytes that belong to the body and passes the data to `on_data`. Returns the number of bytes
    /// consumed.
    #[inline]
    pub(crate) fn feed_with(&mut self, bytes: &[u8], mut on_data: impl FnMut(&[u8])) -> Result<usize, ParseError> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if self.state == State::Data {
                let n = self.left.min((bytes.len() - at) as u64);
                self.left -= n;
                self.data_bytes += n;
                on_data(&bytes[at..at + n as usize]);
                at += n as usize;
                if self.left == 0 {
                    self.state = State::DataCr;
                }
            } else {
                let before = self.state;
                self.state = self.next_state(bytes[at])?;
                self.count(before)?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// Whether the whole body has been consumed.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Number of data bytes so far, without chunk sizes, extensions and trailers.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Counts a byte that is not data, and checks the limits. The byte has changed the state from `before` to the
    /// current one.
    fn count(&mut self, before: State) -> Result<(), ParseError> {
        use State::*;
        match before {
            SizeStart => self.line_bytes = 1,
            Size | Padding | Extension | SizeLf => {
                self.line_bytes += 1;
                if self.line_bytes > MAX_CHUNK_LINE_BYTES {
                    return Err(ParseError::BadChunk("the line with its size exceeds 16 KiB"));
                }
                if self.state == LineStart {
                    self.line_bytes = 0;
                }
            }
            LineStart | Line | LastLf => {
                self.line_bytes += 1;
                self.trailers += usize::from(before == Line && self.state == LineStart);
                if self.line_bytes > MAX_HEAD_BYTES || self.trailers > MAX_FIELDS {
                    return Err(ParseError::BadChunk("the trailers exceed 64 KiB or 256 fields"));
                }
            }
            Data | DataCr | DataLf | Done => {}
        }
        Ok(())
    }

    /// The state after a byte that is not data.
    fn next_state(&mut self, byte: u8) -> Result<State, ParseError> {
        use State::*;
        Ok(match (self.state, byte) {
            (SizeStart | Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.left > u64::MAX >> 4 {
                    return Err(ParseError::BadChunk("its size does not fit 64 bits"));
                }
                self.left = self.left << 4 | u64::from(hex_value(byte));
                Size
            }
            (Size | Padding, b' ' | b'\t') => Padding,
            (Size | Padding, b';') => Extension,
            (Size | Padding | Extension, b'\r') => SizeLf,
            (SizeLf, b'\n') if self.left == 0 => LineStart,
            (SizeLf, b'\n') => Data,
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => SizeStart,
            (LineStart, b'\r') => LastLf,
            (LineStart | LastLf, b'\n') => Done,
            (Line, b'\n') => LineStart,
            (LineStart | Line, _) => Line,
            (Extension, other) if other != b'\n' => Extension,
            (SizeStart | Size | Padding, _) => {
                return Err(ParseError::BadChunk("its size is not a hexadecimal number"));
            }
            (DataCr | DataLf, _) => {
                return Err(ParseError::BadChunk("its data is longer than its size"));
            }
            (Extension | SizeLf | LastLf | Data | Done, _) => {
                return Err(ParseError::BadChunk("one of its lines does not end in CRLF"));
            }
        })
    }
}

/// The value of a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a whole body. Returns the number of bytes consumed, the number of data bytes, and whether the body is
    /// complete.
    fn feed(body: &[u8]) -> Result<(usize, u64, bool), ParseError> {
        let mut chunked = Chunked::new();
        let consumed = chunked.feed(body)?;
        Ok((consumed, chunked.data_bytes(), chunked.is_done()))
    }

    #[test]
    fn bodies_end_where_they_should() {
        let whole: &[(&[u8], u64)] = &[
            (b"0\r\n\r\n", 0),
            (b"5\r\nhello\r\n0\r\n\r\n", 5),
            (b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", 6),
            (b"A\r\n0123456789\r\n0\r\n\r\n", 10),
            (b"a\r\n0123456789\r\n000\r\n\r\n", 10),
            (b"5;name=value;q=\"a;b\"\r\nhello\r\n0;last\r\n\r\n", 5),
            (b"5 \t\r\nhello\r\n0 ; x\r\n\r\n", 5),
            (b"1\r\n\n\r\n0\r\nExpires: never\r\nX: y\r\n\r\n", 1),
            (b"0\r\nX: y\n\n", 0),
            (b"00000000000000000000000001\r\nx\r\n0\r\n\r\n", 1),
        ];
        for (body, data) in whole {
            let text = String::from_utf8_lossy(body);
            assert_eq!(feed(body), Ok((body.len(), *data, true)), "{text:?}");
            assert_eq!(feed(&[body, &b"HTTP/1.1"[..]].concat()), Ok((body.len(), *data, true)), "{text:?} and surplus");
            for cut in 0..body.len() {
                let (consumed, _, done) = feed(&body[..cut]).expect("a prefix of a valid body is accepted");
                assert_eq!((consumed, done), (cut, false), "{text:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn faults_are_named() {
        let faults: &[(&[u8], &str)] = &[
            (b"\r\n", "hexadecimal"),
            (b" 5\r\n", "hexadecimal"),
            (b"-1\r\n", "hexadecimal"),
            (b"0x5\r\n", "hexadecimal"),
            (b"5 5\r\n", "hexadecimal"),
            (b"5\nhello", "hexadecimal"),
            (b";x\r\n", "hexadecimal"),
            (b"10000000000000000\r\n", "64 bits"),
            (b"5\r\nhello!", "longer"),
            (b"5\r\nhello\rX", "longer"),
            (b"5\rhello", "CRLF"),
            (b"5;x\nhello", "CRLF"),
            (b"0\r\n\rX", "CRLF"),
        ];
        for (body, reason) in faults {
            let error = feed(body).expect_err("a fault");
            assert!(error.to_string().contains(reason), "{:?} said: {error}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn lines_are_bounded() {
        let extended = |bytes: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(bytes - 4));
        let zeros = |bytes: usize| format!("{}1\r\nx\r\n0\r\n\r\n", "0".repeat(bytes - 3));
        let trailer = |bytes: usize| format!("1\r\nx\r\n0\r\nA: {}\r\n\r\n", "a".repeat(bytes - 7));
        let trailers = |fields: usize| format!("0\r\n{}\r\n", "A: b\r\n".repeat(fields));
        type Body<'a> = &'a dyn Fn(usize) -> String;
        let bounds: [(Body<'_>, usize, &str); 4] = [
            (&extended, MAX_CHUNK_LINE_BYTES, "16 KiB"),
            (&zeros, MAX_CHUNK_LINE_BYTES, "16 KiB"),
            (&trailer, MAX_HEAD_BYTES, "64 KiB"),
            (&trailers, MAX_FIELDS, "256 fields"),
        ];
        for (body, most, reason) in bounds {
            assert!(feed(body(most).as_bytes()).is_ok_and(|(_, _, done)| done), "{most} with {reason}");
            let error = feed(body(most + 1).as_bytes()).expect_err("one too many");
            assert!(error.to_string().contains(reason), "{error}");
        }
        // The bound applies to each line, not to all lines together.
        let many = format!("1;{}\r\nx\r\n", "e".repeat(9_000)).repeat(10) + "0\r\n\r\n";
        assert_eq!(feed(many.as_bytes()), Ok((many.len(), 10, true)));
    }

    #[test]
    fn the_largest_size_does_not_overflow() {
        assert_eq!(feed(b"ffffffffffffffff\r\nx"), Ok((19, 1, false)));
    }
}
