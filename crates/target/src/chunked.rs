//! Parses chunked request bodies (RFC 9112 §7.1) and discards their content. The parser does no I/O and does not buffer
//! bytes.

/// Maximum length of a request body in bytes, both with chunks and with `Content-Length`.
pub(crate) const MAX_BODY: u64 = 64 << 20;
/// Maximum total length in bytes of the chunk extensions and trailers of a body.
const MAX_OVERHEAD: usize = 16 << 10;
/// Maximum number of hexadecimal digits in a chunk size.
const MAX_DIGITS: usize = 16;

/// The parser for one chunked body.
#[derive(Debug, Default)]
pub(crate) struct Chunked {
    position: Position,
    /// Number of digits of the current chunk size that were parsed so far.
    digits: usize,
    /// Number of bytes of the current chunk that were not received yet.
    left: u64,
    /// Total size of all chunks so far, in bytes.
    total: u64,
    /// Number of bytes of chunk extensions and trailers so far.
    overhead: usize,
}

/// The reason why a body is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadBody {
    /// The body violates the chunked encoding.
    Malformed,
    /// The body is longer than [`MAX_BODY`], or its extensions and trailers are longer than [`MAX_OVERHEAD`].
    TooLarge,
}

/// The element of the chunked encoding that the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    #[default]
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    LastLf,
}

impl Chunked {
    /// Parses more bytes. Returns how many of these bytes belong to the body, and whether the body is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(usize, bool), BadBody> {
        let mut used = 0;
        while used < bytes.len() {
            if self.position == Position::Data {
                let n = self.left.min((bytes.len() - used) as u64);
                self.left -= n;
                used += n as usize;
                if self.left == 0 {
                    self.position = Position::DataCr;
                }
                continue;
            }
            let byte = bytes[used];
            used += 1;
            if self.position == Position::LastLf {
                return if byte == b'\n' { Ok((used, true)) } else { Err(BadBody::Malformed) };
            }
            self.position = self.step(byte)?;
        }
        Ok((used, false))
    }

    fn step(&mut self, byte: u8) -> Result<Position, BadBody> {
        Ok(match (self.position, byte) {
            (Position::Size, b'\r') if self.digits > 0 => Position::SizeLf,
            (Position::Size, b';' | b' ' | b'\t') if self.digits > 0 => Position::Extension,
            (Position::Size, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(BadBody::Malformed)?;
                self.digits += 1;
                self.left = self.left.saturating_mul(16).saturating_add(u64::from(digit));
                if self.digits > MAX_DIGITS || self.left > MAX_BODY {
                    return Err(BadBody::TooLarge);
                }
                Position::Size
            }
            (Position::Extension, b'\r') => Position::SizeLf,
            (Position::Extension, byte) if byte != b'\n' => self.skip(Position::Extension)?,
            (Position::SizeLf, b'\n') => {
                self.digits = 0;
                self.total += self.left;
                match self.left {
                    _ if self.total > MAX_BODY => return Err(BadBody::TooLarge),
                    0 => Position::TrailerStart,
                    _ => Position::Data,
                }
            }
            (Position::DataCr, b'\r') => Position::DataLf,
            (Position::DataLf, b'\n') => Position::Size,
            (Position::TrailerStart, b'\r') => Position::LastLf,
            (Position::Trailer, b'\r') => Position::TrailerLf,
            (Position::TrailerStart | Position::Trailer, byte) if byte != b'\n' => self.skip(Position::Trailer)?,
            (Position::TrailerLf, b'\n') => Position::TrailerStart,
            _ => return Err(BadBody::Malformed),
        })
    }

    fn skip(&mut self, position: Position) -> Result<Position, BadBody> {
        self.overhead += 1;
        if self.overhead > MAX_OVERHEAD { Err(BadBody::TooLarge) } else { Ok(position) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn valid_bodies_end_where_they_should() {
        for body in
            ["0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "A;x=\"y\"\r\n0123456789\r\n0 \r\nTrailer: x\r\nB: y\r\n\r\n"]
        {
            assert_eq!(Chunked::default().feed(format!("{body}GET").as_bytes()), Ok((body.len(), true)), "{body:?}");
        }
    }

    #[test]
    fn invalid_bodies_are_rejected() {
        for body in [
            "\r\n",
            "x\r\n",
            ";\r\n",
            "5\nhello",
            "5\r\nhello!",
            "5\r\nhello\r!",
            "0\r\n\r!",
            "0\r\na\n",
            "1;\n",
            "0\r\nA\r!",
        ] {
            assert_eq!(Chunked::default().feed(body.as_bytes()), Err(BadBody::Malformed), "{body:?}");
        }
        let endless = format!("0\r\n{}", "A: b\r\n".repeat(MAX_OVERHEAD));
        for body in ["FFFFFFFFFFFFFFFF\r\n", "00000000000000000", "4000001\r\n", &endless] {
            assert_eq!(Chunked::default().feed(body.as_bytes()), Err(BadBody::TooLarge), "{:.20}", body);
        }
    }

    proptest! {
        #[test]
        fn a_body_ends_at_the_same_byte_however_it_is_split(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5),
            cut in 1usize..20,
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:x}\r\n", chunk.len()).bytes());
                body.extend(chunk);
                body.extend(b"\r\n");
            }
            body.extend(b"0\r\n\r\n");
            let mut reader = Chunked::default();
            let pieces: Vec<&[u8]> = body.chunks(cut).collect();
            for (i, piece) in pieces.iter().enumerate() {
                prop_assert_eq!(reader.feed(piece), Ok((piece.len(), i + 1 == pieces.len())));
            }
        }

        #[test]
        fn no_input_causes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Chunked::default().feed(&bytes);
        }
    }
}
