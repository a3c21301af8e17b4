//! A request body in chunks (RFC 9112 §7.1), read byte by byte and thrown away. No I/O, and nothing is buffered.

/// The longest body that is read, in any framing.
pub(crate) const MAX_BODY: u64 = 64 << 20;
/// The most that chunk extensions and trailers may take together.
const MAX_OVERHEAD: usize = 16 << 10;
/// The longest chunk size, in hexadecimal digits.
const MAX_DIGITS: usize = 16;

/// A chunked body, as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct Chunked {
    at: At,
    digits: usize,
    /// What is left of this chunk's data, in bytes.
    left: u64,
    /// The data of all chunks so far, in bytes.
    total: u64,
    overhead: usize,
}

/// Why a body was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadBody {
    /// It is not in chunks.
    Malformed,
    /// It is longer than [`MAX_BODY`], or its extensions and trailers are longer than is sane.
    TooLarge,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
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
    /// Reads on; returns how many bytes belong to the body and whether it is over.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(usize, bool), BadBody> {
        let mut used = 0;
        while used < bytes.len() {
            if self.at == At::Data {
                let n = self.left.min((bytes.len() - used) as u64);
                self.left -= n;
                used += n as usize;
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            let byte = bytes[used];
            used += 1;
            if self.at == At::LastLf {
                return if byte == b'\n' { Ok((used, true)) } else { Err(BadBody::Malformed) };
            }
            self.at = self.step(byte)?;
        }
        Ok((used, false))
    }

    fn step(&mut self, byte: u8) -> Result<At, BadBody> {
        Ok(match (self.at, byte) {
            (At::Size, b'\r') if self.digits > 0 => At::SizeLf,
            (At::Size, b';' | b' ' | b'\t') if self.digits > 0 => At::Extension,
            (At::Size, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(BadBody::Malformed)?;
                self.digits += 1;
                self.left = self.left.saturating_mul(16).saturating_add(u64::from(digit));
                if self.digits > MAX_DIGITS || self.left > MAX_BODY {
                    return Err(BadBody::TooLarge);
                }
                At::Size
            }
            (At::Extension, b'\r') => At::SizeLf,
            (At::Extension, byte) if byte != b'\n' => self.skip(At::Extension)?,
            (At::SizeLf, b'\n') => {
                self.digits = 0;
                self.total += self.left;
                match self.left {
                    _ if self.total > MAX_BODY => return Err(BadBody::TooLarge),
                    0 => At::TrailerStart,
                    _ => At::Data,
                }
            }
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size,
            (At::TrailerStart, b'\r') => At::LastLf,
            (At::Trailer, b'\r') => At::TrailerLf,
            (At::TrailerStart | At::Trailer, byte) if byte != b'\n' => self.skip(At::Trailer)?,
            (At::TrailerLf, b'\n') => At::TrailerStart,
            _ => return Err(BadBody::Malformed),
        })
    }

    fn skip(&mut self, at: At) -> Result<At, BadBody> {
        self.overhead += 1;
        if self.overhead > MAX_OVERHEAD { Err(BadBody::TooLarge) } else { Ok(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bodies_that_are_bodies() {
        for body in
            ["0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "A;x=\"y\"\r\n0123456789\r\n0 \r\nTrailer: x\r\nB: y\r\n\r\n"]
        {
            assert_eq!(Chunked::default().feed(format!("{body}GET").as_bytes()), Ok((body.len(), true)), "{body:?}");
        }
    }

    #[test]
    fn bodies_that_are_not() {
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
        fn however_a_body_is_cut_it_ends_in_the_same_place(
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
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Chunked::default().feed(&bytes);
        }
    }
}
