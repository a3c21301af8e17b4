//! Reads the stored bytes of a log.
//!
//! A file is read up to the size that it had when it was found. The server continues to write lines, so without this
//! limit the result would depend on the duration of reading.

use std::io::{self, BufRead, ErrorKind, Read};

const BUFFER_BYTES: usize = 64 * 1024;

pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Start of the unread bytes in the buffer.
    from: usize,
    to: usize,
    taken: u64,
    /// Number of bytes that may still be read from the source; `None` if there is no limit.
    left: Option<u64>,
    ended: bool,
    broken: bool,
}

impl Input {
    /// Creates an input that reads at most `limit` bytes from `source`.
    pub fn new(source: Box<dyn Read + Send>, limit: Option<u64>) -> Input {
        let buffer = vec![0; BUFFER_BYTES];
        Input { source, buffer, from: 0, to: 0, taken: 0, left: limit, ended: false, broken: false }
    }

    /// Number of bytes that the callers have read so far.
    pub fn bytes_read(&self) -> u64 {
        self.taken
    }

    /// Whether the end of the input was reached.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether reading has failed.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Number of bytes by which the file has become shorter since it was found.
    pub fn missing_bytes(&self) -> u64 {
        if self.ended { self.left.unwrap_or(0) } else { 0 }
    }

    /// Returns the next bytes without consuming them. These are at least `least` bytes, unless the input ends, and at
    /// most 64 KiB.
    pub fn peek(&mut self, least: usize) -> io::Result<&[u8]> {
        while self.to - self.from < least.min(BUFFER_BYTES) && !self.ended {
            self.fill()?;
        }
        Ok(self.buffer.get(self.from..self.to).unwrap_or_default())
    }

    /// Reads once into the free part of the buffer. The buffer must not be full.
    fn fill(&mut self) -> io::Result<()> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        let free = self.buffer.get_mut(self.to..).unwrap_or_default();
        let (read, ended) = read_once(&mut *self.source, &mut self.left, free).inspect_err(|_| self.broken = true)?;
        self.to += read;
        self.ended |= ended;
        Ok(())
    }
}

/// Calls `source.read` once. Returns the number of bytes, and whether the input has ended.
fn read_once(source: &mut dyn Read, left: &mut Option<u64>, into: &mut [u8]) -> io::Result<(usize, bool)> {
    let most = left.map_or(into.len(), |left| usize::try_from(left).unwrap_or(usize::MAX).min(into.len()));
    let into = into.get_mut(..most).unwrap_or_default();
    if into.is_empty() {
        return Ok((0, true));
    }
    loop {
        match source.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(read) => {
                if let Some(left) = left {
                    *left = left.saturating_sub(read as u64);
                }
                return Ok((read, read == 0));
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        // If the buffer is empty, large reads bypass it.
        if self.from == self.to && into.len() >= BUFFER_BYTES {
            let read = read_once(&mut *self.source, &mut self.left, into).inspect_err(|_| self.broken = true)?;
            self.ended |= read.1;
            self.taken += read.0 as u64;
            return Ok(read.0);
        }
        let available = self.fill_buf()?;
        let count = available.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..count), available.get(..count)) {
            to.copy_from_slice(from);
        }
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.peek(1)
    }

    fn consume(&mut self, count: usize) {
        let count = count.min(self.to - self.from);
        self.from += count;
        self.taken += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns its bytes one at a time.
    struct OneByteReader(&'static [u8]);

    impl Read for OneByteReader {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(1);
            let (now, later) = self.0.split_at(count);
            into[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn a_look_ahead_takes_nothing() {
        let mut input = Input::new(Box::new(OneByteReader(b"abcdef")), None);
        assert_eq!(&input.peek(4).unwrap()[..4], b"abcd");
        assert_eq!((input.bytes_read(), input.has_ended()), (0, false));
        let mut text = String::new();
        input.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), input.bytes_read(), input.has_ended()), ("abcdef", 6, true));
        assert_eq!(input.peek(4).unwrap(), b"");
    }

    #[test]
    fn no_more_is_taken_than_the_limit_and_what_is_missing_is_known() {
        let mut text = String::new();
        let mut longer = Input::new(Box::new(&b"abcdef"[..]), Some(4));
        longer.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), longer.missing_bytes()), ("abcd", 0));
        let mut shorter = Input::new(Box::new(&b"abcdef"[..]), Some(10));
        assert_eq!(shorter.missing_bytes(), 0);
        let mut large = vec![0; 2 * BUFFER_BYTES];
        assert_eq!(shorter.read(&mut large).unwrap(), 6);
        assert_eq!(shorter.read(&mut large).unwrap(), 0);
        assert_eq!((shorter.missing_bytes(), shorter.bytes_read()), (4, 6));
    }
}
