//! Decompresses logs. The first bytes show the format: gzip (RFC 1952), zstd (RFC 8878), bzip2, or uncompressed.
//!
//! A compressed log is a sequence of members (compressed files or frames), as created by `cat a.gz b.gz` and by
//! parallel compressors. The members may have different formats. Zeros may follow the last member, as on tapes. Other
//! bytes after a member are an error, which is reported after the data of this member.
//!
//! The memory is the size of the compression window: 32 KiB for gzip, 4 MB for bzip2. For zstd, it is usually at most 8
//! MiB. It is larger for files that were compressed with `--long` or `--ultra`, but never more than 128 MiB.

use super::input::Input;
use brimful_core::quantity;
use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, ErrorKind, Read};
use std::mem;

/// Number of bytes at the start of a member that identify its format.
const MAGIC_BYTES: usize = 5;

/// An empty block that ends a zstd frame, followed by zeros in place of a checksum.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

/// Decompresses a log.
pub(crate) struct Decoder {
    state: State,
    /// The decoder of the last zstd frame, whose buffers are reused.
    frame: Option<Box<FrameDecoder>>,
    /// The error that ended a zstd frame. It is returned after all data that precedes the error.
    failed: Option<io::Error>,
    compression: Option<Compression>,
}

enum State {
    Plain(Input),
    Gzip(Box<GzDecoder<Input>>),
    Bzip2(Box<BzDecoder<Input>>),
    Zstd(Input, Box<FrameDecoder>),
    /// The position is before the first member, or after a member.
    Between(Input),
    Over(Option<Input>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compression {
    Gzip,
    Bzip2,
    Zstd,
    /// A zstd frame whose content is skipped.
    Skippable,
}

impl Decoder {
    /// Creates a decoder that begins with the first member of `input`.
    pub fn new(input: Input) -> Decoder {
        Decoder { state: State::Between(input), frame: None, failed: None, compression: None }
    }

    /// Number of bytes read, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.input().map_or(0, Input::bytes_read)
    }

    /// Describes where and why the log ends early. `error` is the error that occurred.
    pub fn describe_truncation(&self, error: &io::Error) -> String {
        let bytes = quantity::count(self.bytes_read());
        let kind = self.compression.map_or("", Compression::name);
        match (&self.state, self.input()) {
            (_, Some(input)) if input.is_broken() => format!("it cannot be read on after {bytes} bytes: {error}"),
            (State::Over(_), _) => format!("after {bytes} bytes, {error}"),
            (_, Some(input)) if input.has_ended() => format!("its {kind} data ends in the middle, after {bytes} bytes"),
            _ => format!("its {kind} data is damaged at about byte {bytes}: {error}"),
        }
    }

    /// Describes how much of the file is missing, if it became shorter while it was read.
    pub fn truncation_reason(&self) -> Option<String> {
        let missing = self.input().map_or(0, Input::missing_bytes);
        let read = quantity::count(self.bytes_read());
        let all = quantity::count(self.bytes_read() + missing);
        (missing > 0).then(|| format!("it became shorter while it was read: {read} of {all} bytes were left"))
    }

    fn input(&self) -> Option<&Input> {
        match &self.state {
            State::Plain(input) | State::Zstd(input, _) | State::Between(input) => Some(input),
            State::Gzip(decoder) => Some(decoder.get_ref()),
            State::Bzip2(decoder) => Some(decoder.get_ref()),
            State::Over(input) => input.as_ref(),
        }
    }

    /// Begins the next member; ends the log if no member follows.
    fn begin_member(&mut self) -> io::Result<()> {
        let State::Between(mut input) = mem::replace(&mut self.state, State::Over(None)) else {
            return Ok(());
        };
        let next_member = self.next_member(&mut input);
        self.state = match next_member {
            Ok(Some(NextMember::Plain)) => State::Plain(input),
            Ok(Some(NextMember::Gzip)) => State::Gzip(Box::new(GzDecoder::new(input))),
            Ok(Some(NextMember::Bzip2)) => State::Bzip2(Box::new(BzDecoder::new(input))),
            Ok(Some(NextMember::Zstd(frame))) => State::Zstd(input, frame),
            Ok(Some(NextMember::Nothing)) => State::Between(input),
            Ok(None) => State::Over(Some(input)),
            Err(MemberError::Inside(error, frame)) => {
                self.state = State::Zstd(input, frame);
                return Err(error);
            }
            Err(MemberError::Between(error)) => {
                self.state = State::Over(Some(input));
                return Err(error);
            }
        };
        Ok(())
    }

    fn next_member(&mut self, input: &mut Input) -> Result<Option<NextMember>, MemberError> {
        let found = Compression::from_magic(input.peek(MAGIC_BYTES)?);
        let is_first = self.compression.is_none();
        self.compression = found.or(self.compression);
        match found {
            None if is_first => Ok(Some(NextMember::Plain)),
            None => {
                if only_zeros_follow(input)? {
                    return Ok(None);
                }
                let error = "what follows is not compressed and was not read";
                Err(MemberError::Between(io::Error::new(ErrorKind::InvalidData, error)))
            }
            Some(Compression::Gzip) => Ok(Some(NextMember::Gzip)),
            Some(Compression::Bzip2) => Ok(Some(NextMember::Bzip2)),
            Some(Compression::Skippable) => {
                skip(input).map(|()| Some(NextMember::Nothing)).map_err(MemberError::Between)
            }
            Some(Compression::Zstd) => {
                let mut frame = self.frame.take().unwrap_or_else(|| Box::new(FrameDecoder::new()));
                match frame.reset(&mut *input) {
                    Ok(()) => Ok(Some(NextMember::Zstd(frame))),
                    Err(error) => Err(MemberError::Inside(io::Error::other(error), frame)),
                }
            }
        }
    }

    fn end_member(&mut self) {
        self.state = match mem::replace(&mut self.state, State::Over(None)) {
            State::Gzip(decoder) => State::Between(decoder.into_inner()),
            State::Bzip2(decoder) => State::Between(decoder.into_inner()),
            State::Zstd(input, frame) => {
                self.frame = Some(frame);
                State::Between(input)
            }
            State::Plain(input) | State::Between(input) => State::Over(Some(input)),
            State::Over(input) => State::Over(input),
        };
    }
}

impl Read for Decoder {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !into.is_empty() {
            let read = match &mut self.state {
                State::Plain(input) => return input.read(into),
                State::Over(_) => return Ok(0),
                State::Between(_) => {
                    self.begin_member()?;
                    continue;
                }
                State::Gzip(decoder) => decoder.read(into)?,
                State::Bzip2(decoder) => decoder.read(into)?,
                State::Zstd(input, frame) => read_frame(input, frame, &mut self.failed, into)?,
            };
            if read > 0 {
                return Ok(read);
            }
            self.end_member();
        }
        Ok(0)
    }
}

/// The kind of the next member.
enum NextMember {
    Plain,
    Gzip,
    Bzip2,
    Zstd(Box<FrameDecoder>),
    /// A zstd frame without log data, which was skipped.
    Nothing,
}

/// The error for a member that could not be started: `Inside` its header, or `Between` two members.
enum MemberError {
    Inside(io::Error, Box<FrameDecoder>),
    Between(io::Error),
}

impl From<io::Error> for MemberError {
    fn from(error: io::Error) -> MemberError {
        MemberError::Between(error)
    }
}

impl Compression {
    fn from_magic(start: &[u8]) -> Option<Compression> {
        match start {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            // The fifth byte is the first byte of a block or of the end of the stream.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Some(Compression::Bzip2),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Skippable),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Bzip2 => "bzip2",
            Compression::Zstd | Compression::Skippable => "zstd",
        }
    }
}

/// Reads decompressed bytes from a zstd frame. Returns their number; 0 if the frame has ended.
fn read_frame(
    input: &mut Input,
    frame: &mut FrameDecoder,
    failed: &mut Option<io::Error>,
    into: &mut [u8],
) -> io::Result<usize> {
    while frame.can_collect() == 0 && !frame.is_finished() {
        if let Err(error) = frame.decode_blocks(&mut *input, BlockDecodingStrategy::UptoBlocks(1)) {
            // The decoder keeps some MiB of decoded data (the window) for references in later blocks, and returns this
            // data only when the frame ends. So the damaged frame is ended here by an empty last block.
            frame.decode_blocks(LAST_BLOCK, BlockDecodingStrategy::UptoBlocks(1)).map_err(io::Error::other)?;
            *failed = Some(io::Error::other(error));
        }
    }
    let read = frame.read(into)?;
    match failed.take_if(|_| read == 0) {
        Some(error) => Err(error),
        None => Ok(read),
    }
}

/// Skips a zstd frame that contains no log data: its magic number, its length, and its content.
fn skip(input: &mut Input) -> io::Result<()> {
    let mut head = [0; 8];
    input.read_exact(&mut head)?;
    let [_, _, _, _, length @ ..] = head;
    let length = u64::from(u32::from_le_bytes(length));
    let skipped = io::copy(&mut input.take(length), &mut io::sink())?;
    if skipped < length {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "a part to skip is cut off"));
    }
    Ok(())
}

fn only_zeros_follow(input: &mut Input) -> io::Result<bool> {
    loop {
        let next = input.fill_buf()?;
        let count = next.len();
        if count == 0 {
            return Ok(true);
        }
        if next.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        input.consume(count);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    pub(crate) fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Builds a zstd frame (RFC 8878, 3.1.1) without a checksum. The window is 128 KiB. Blocks are raw, except that a
    /// block of equal bytes is an RLE block.
    pub(crate) fn zstd(text: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
        let mut blocks = text.chunks(100_000).peekable();
        let header = |size: usize, kind: u32, last: bool| {
            let header = (u32::try_from(size).unwrap() << 3) | (kind << 1) | u32::from(last);
            header.to_le_bytes()[..3].to_vec()
        };
        if text.is_empty() {
            frame.extend(header(0, 0, true));
        }
        while let Some(block) = blocks.next() {
            let is_repeated = block.len() > 1 && block.iter().all(|byte| byte == &block[0]);
            frame.extend(header(block.len(), u32::from(is_repeated), blocks.peek().is_none()));
            frame.extend(if is_repeated { &block[..1] } else { block });
        }
        frame
    }

    fn skippable(bytes: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x5a, 0x2a, 0x4d, 0x18];
        frame.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        frame.extend(bytes);
        frame
    }

    fn decoded(stored: Vec<u8>) -> (Vec<u8>, Option<String>) {
        let limit = stored.len() as u64;
        let mut decoder = Decoder::new(Input::new(Box::new(io::Cursor::new(stored)), Some(limit)));
        let mut text = Vec::new();
        let mut piece = [0; 1000];
        loop {
            match decoder.read(&mut piece) {
                Ok(0) => return (text, decoder.truncation_reason()),
                Ok(count) => text.extend(&piece[..count]),
                Err(error) => return (text, Some(decoder.describe_truncation(&error))),
            }
        }
    }

    fn text() -> Vec<u8> {
        (0..40_000).flat_map(|i| format!("line {i}\n").into_bytes()).chain([b'x'; 200_000]).collect()
    }

    #[test]
    fn every_compression_gives_the_same_bytes() {
        for stored in [text(), gzip(&text()), bzip2(&text()), zstd(&text())] {
            assert!(decoded(stored) == (text(), None));
        }
        for stored in [vec![], gzip(b""), bzip2(b""), zstd(b""), skippable(b"nothing")] {
            assert_eq!(decoded(stored), (vec![], None));
        }
    }

    #[test]
    fn members_follow_one_another() {
        let ab = |a: Vec<u8>, b: Vec<u8>| decoded([a, b].concat());
        let expected = (b"ab".to_vec(), None);
        assert_eq!(ab(gzip(b"a"), gzip(b"b")), expected);
        assert_eq!(ab(bzip2(b"a"), bzip2(b"b")), expected);
        assert_eq!(ab(zstd(b"a"), zstd(b"b")), expected);
        assert_eq!(ab(zstd(b"a"), [skippable(&[7; 99_999]), zstd(b"b"), skippable(b"")].concat()), expected);
        assert_eq!(ab(skippable(b"index"), [zstd(b"a"), gzip(b"b")].concat()), expected);
        assert_eq!(ab(gzip(b"ab"), vec![0; 10_240]), expected);
    }

    #[test]
    fn what_is_cut_off_is_read_up_to_there() {
        for (kind, stored) in [("gzip", gzip(&text())), ("zstd", zstd(&text()))] {
            let (read, why) = decoded(stored[..stored.len() / 2].to_vec());
            assert!(!read.is_empty() && text().starts_with(&read), "{kind}");
            let why = why.unwrap();
            assert!(why.starts_with(&format!("its {kind} data ends in the middle, after ")), "{why}");
        }
        // A bzip2 block is decoded completely or not at all, so nothing is read.
        let (read, why) = decoded(bzip2(&text())[..1000].to_vec());
        assert_eq!(read, b"");
        assert_eq!(why.unwrap(), "its bzip2 data ends in the middle, after 1,000 bytes");
        for stored in [gzip(&text()), bzip2(&text()), zstd(&text()), skippable(b"nothing")] {
            for length in 6..14 {
                let (read, why) = decoded(stored[..length].to_vec());
                assert!(read.len() < 10 && why.is_some(), "{length} {why:?}");
            }
        }
    }

    #[test]
    fn damage_is_said_and_so_is_what_follows() {
        let mut stored = gzip(&text());
        let end = stored.len();
        stored[end - 5] ^= 1;
        let (read, why) = decoded(stored);
        assert!(read == text());
        assert!(why.unwrap().contains("gzip data is damaged at about byte"));
        let (read, why) = decoded([gzip(b"a"), b"plain".to_vec()].concat());
        assert_eq!(read, b"a");
        assert_eq!(why.unwrap(), "after 21 bytes, what follows is not compressed and was not read");
    }

    #[test]
    fn plain_text_stays_as_it_is_whatever_it_begins_with() {
        for text in ["", "B", "BZh9 is no compression", "\u{1f}", "(\n", "P*M"] {
            assert_eq!(decoded(text.into()), (text.into(), None));
        }
    }

    proptest::proptest! {
        #[test]
        fn foreign_bytes_are_no_reason_to_panic(
            kind in 0_usize..4, at in proptest::collection::vec((0_usize..100_000, 0_u8..=255), 0..4), cut in 0_usize..100_000,
        ) {
            let text = (0..4000).flat_map(|i| format!("line {i}\n").into_bytes()).collect::<Vec<_>>();
            let mut stored = match kind {
                0 => gzip(&text),
                1 => bzip2(&text),
                2 => zstd(&text),
                _ => [skippable(b"x"), gzip(&text)].concat(),
            };
            for (at, byte) in at {
                let at = at % stored.len();
                stored[at] = byte;
            }
            stored.truncate(cut.max(1));
            decoded(stored);
        }
    }
}
