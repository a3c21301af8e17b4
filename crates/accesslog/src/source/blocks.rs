//! Reads logs in blocks of whole lines. Another thread can parse the lines without copying them.
//!
//! A line that extends over two blocks is copied to the second block; no other bytes are copied. The end of a line that
//! exceeds the limit is dropped while it is read, so the line needs no more memory than the limit.

use super::decode::Decoder;
use brimful_core::text::strip_bom_bytes;
use std::io::{ErrorKind, Read};

/// The limits of blocks and lines, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Number of bytes that are read at a time. The default fits into the second-level cache of a CPU core.
    pub block_bytes: usize,
    /// Maximum length of a line, without its newline.
    pub line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { block_bytes: 256 * 1024, line_bytes: 1024 * 1024 }
    }
}

/// Minimum number of bytes that are read at a time. A byte order mark must fit into the first block.
const MIN_BLOCK: usize = 16;
/// Number of bytes that are kept of a line that exceeds the limit.
const KEPT_OF_LONG_LINE: usize = 4096;

/// A block of bytes of a log. Its memory is reused for later blocks.
#[derive(Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

/// The kind of bytes that a block contains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BlockContent {
    /// Whole lines with their newlines. The last line of a log may have no newline.
    Lines,
    /// The beginning of a line that exceeds the limit.
    TooLong,
    /// No content, because the log has ended.
    End,
}

impl Block {
    /// The bytes of the block.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.from..self.to).unwrap_or_default()
    }

    fn len(&self) -> usize {
        self.to - self.from
    }

    fn replace_content(&mut self, bytes: &[u8]) {
        if self.bytes.len() < bytes.len() {
            self.bytes.resize(bytes.len(), 0);
        }
        if let Some(place) = self.bytes.get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
        }
        (self.from, self.to) = (0, bytes.len());
    }

    fn drop_first(&mut self, count: usize) {
        self.from = (self.from + count).min(self.to);
    }

    fn keep_first(&mut self, count: usize) {
        self.to = self.to.min(self.from + count);
    }
}

/// Reads a log block by block.
pub(crate) struct Blocks {
    decoder: Decoder,
    limits: Limits,
    /// Bytes after the last whole line of the previous block. The next block begins with them.
    carry: Vec<u8>,
    decoded: u64,
    is_at_start: bool,
    is_in_long_line: bool,
    has_ended: bool,
    cut_short: Option<String>,
}

impl Blocks {
    /// Creates a reader of a log whose beginning, `head`, is already decoded. `decoder` reads the rest.
    pub fn new(decoder: Decoder, head: Vec<u8>, limits: Limits) -> Blocks {
        Blocks {
            decoder,
            limits: Limits { block_bytes: limits.block_bytes.max(MIN_BLOCK), line_bytes: limits.line_bytes },
            decoded: head.len() as u64,
            carry: head,
            is_at_start: true,
            is_in_long_line: false,
            has_ended: false,
            cut_short: None,
        }
    }

    /// Makes the log end after the bytes that are already decoded. `why` is the reason for users.
    pub fn end(&mut self, why: String) {
        self.has_ended = true;
        self.cut_short = Some(why);
    }

    /// Number of bytes read, as stored: compressed if the log is compressed.
    pub fn bytes_read(&self) -> u64 {
        self.decoder.bytes_read()
    }

    /// Number of bytes after decompression.
    pub fn bytes_decoded(&self) -> u64 {
        self.decoded
    }

    /// Returns the reason why the log was not read to its end; `None` if the log was read to its end. Call this
    /// function only when the log has ended.
    pub fn truncation_reason(&mut self) -> Option<String> {
        self.cut_short.take()
    }

    /// Replaces the content of `block` with the next lines.
    pub fn next(&mut self, block: &mut Block) -> BlockContent {
        block.replace_content(&self.carry);
        self.carry.clear();
        // Number of bytes at the start of the block that are known to contain no newline.
        let mut searched = 0;
        loop {
            self.fill(block);
            if self.is_in_long_line {
                match memchr::memchr(b'\n', block.bytes()) {
                    Some(end) => {
                        block.drop_first(end + 1);
                        self.is_in_long_line = false;
                    }
                    None => block.replace_content(&[]),
                }
            }
            let last_end = memchr::memrchr(b'\n', block.bytes().get(searched..).unwrap_or_default());
            if let Some(end) = last_end {
                let whole = searched + end + 1;
                self.carry.extend_from_slice(block.bytes().get(whole..).unwrap_or_default());
                block.keep_first(whole);
                return BlockContent::Lines;
            }
            if self.has_ended {
                return if block.len() == 0 { BlockContent::End } else { BlockContent::Lines };
            }
            if block.len() > self.limits.line_bytes {
                block.keep_first(KEPT_OF_LONG_LINE);
                self.is_in_long_line = true;
                return BlockContent::TooLong;
            }
            searched = block.len();
        }
    }

    /// Appends to the block until it is full or the log ends.
    fn fill(&mut self, block: &mut Block) {
        let to = block.to + self.limits.block_bytes;
        if block.bytes.len() < to {
            block.bytes.resize(to, 0);
        }
        while block.to < to && !self.has_ended {
            match self.decoder.read(block.bytes.get_mut(block.to..to).unwrap_or_default()) {
                Ok(0) => {
                    self.has_ended = true;
                    self.cut_short = self.decoder.truncation_reason();
                }
                Ok(count) => {
                    block.to += count;
                    self.decoded += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.has_ended = true;
                    self.cut_short = Some(self.decoder.describe_truncation(&error));
                }
            }
        }
        if self.is_at_start {
            self.is_at_start = false;
            block.drop_first(block.len() - strip_bom_bytes(block.bytes()).len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::Input;
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// Reads the lines of a log, without their newlines; `None` for a line that is too long. The first `head` bytes are
    /// passed to the reader as already decoded.
    fn lines(log: &[u8], head: usize, limits: Limits) -> Vec<Option<Vec<u8>>> {
        let (head, rest) = log.split_at(head);
        let decoder = Decoder::new(Input::new(Box::new(Cursor::new(rest.to_vec())), None));
        let mut blocks = Blocks::new(decoder, head.to_vec(), limits);
        let mut block = Block::default();
        let mut lines = Vec::new();
        loop {
            match blocks.next(&mut block) {
                BlockContent::End => break,
                BlockContent::TooLong => lines.push(None),
                BlockContent::Lines => {
                    let bytes = block.bytes().strip_suffix(b"\n").unwrap_or(block.bytes());
                    lines.extend(bytes.split(|&byte| byte == b'\n').map(|line| {
                        // A line in the middle of a block may exceed the limit, too.
                        (line.len() <= limits.line_bytes).then(|| line.to_vec())
                    }));
                }
            }
        }
        assert_eq!((blocks.bytes_decoded(), blocks.truncation_reason()), (log.len() as u64, None));
        lines
    }

    proptest! {
        #[test]
        fn lines_are_the_same_whatever_the_size_of_blocks(
            lengths in prop::collection::vec(0_usize..90, 0..60), block in 1_usize..200, head in 0_usize..50, has_end: bool,
        ) {
            let longest = 60;
            let mut log = Vec::new();
            for (i, &length) in lengths.iter().enumerate() {
                log.resize(log.len() + length, b'a' + u8::try_from(i % 26).unwrap());
                log.push(b'\n');
            }
            let mut expected: Vec<_> = lengths.iter().enumerate().map(|(i, &length)| {
                (length <= longest).then(|| vec![b'a' + u8::try_from(i % 26).unwrap(); length])
            }).collect();
            if !has_end && log.pop().is_some() && lengths.last() == Some(&0) {
                // The empty text after the last newline is not a line.
                expected.pop();
            }
            let head = head.min(log.len());
            prop_assert_eq!(lines(&log, head, Limits { block_bytes: block, line_bytes: longest }), expected);
        }
    }

    #[test]
    fn a_mark_before_the_text_is_none_of_it() {
        let small = Limits { block_bytes: 1, line_bytes: 1000 };
        assert_eq!(lines(b"\xef\xbb\xbfa\nb", 0, small), [Some(b"a".to_vec()), Some(b"b".to_vec())]);
        assert_eq!(lines(b"\xef\xbb\xbfa\n", 4, small), [Some(b"a".to_vec())]);
        assert!(lines(b"\xef\xbb\xbf", 0, small).is_empty());
        assert_eq!(lines(b"a\n\xef\xbb\xbfb\n", 0, small)[1].as_deref(), Some(&b"\xef\xbb\xbfb"[..]));
    }

    #[test]
    fn a_long_line_takes_no_more_memory_than_the_longest_that_may_be() {
        let limits = Limits { block_bytes: 1000, line_bytes: 5000 };
        let log = [b"first\n".to_vec(), vec![b'x'; 3_000_000], b"\nlast".to_vec()].concat();
        let mut blocks = Blocks::new(Decoder::new(Input::new(Box::new(Cursor::new(log)), None)), Vec::new(), limits);
        let mut block = Block::default();
        let mut pieces = Vec::new();
        while pieces.last() != Some(&BlockContent::End) {
            pieces.push(blocks.next(&mut block));
            assert!(
                block.bytes.len() <= limits.line_bytes + 2 * limits.block_bytes
                    && blocks.carry.len() <= limits.block_bytes
            );
        }
        assert_eq!(pieces, [BlockContent::Lines, BlockContent::TooLong, BlockContent::Lines, BlockContent::End]);
    }
}
