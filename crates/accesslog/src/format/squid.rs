//! Squid's native format (`logformat squid`), which proxies write by default:
//! `1286536309.450    180 192.0.2.1 TCP_MISS/200 411 GET http://example.com/ - HIER_DIRECT/192.0.2.2 text/html`.
//!
//! The timestamp is the time at which the request ended, in seconds since 1970. The number after it is the request's
//! duration in milliseconds. Text after the content type, such as the headers that `log_mime_hdrs` adds, is ignored.

use super::number::{self, TimeUnit};
use super::request::{Parsed, RawRequest, move_to_start, without_dash};
use super::time;
use crate::entry::{Entry, LineParseError};
use memchr::memchr;

/// Reads a line in Squid's native format.
pub(crate) fn read(line: &[u8]) -> Result<Parsed<'_>, LineParseError> {
    let mut words = Words { line, at: 0 };
    let (at, stamp) = words.next("a time such as 1286536309.450")?;
    // Without a decimal point, the number is not a time in Squid's format.
    let whole = stamp.contains(&b'.').then(|| time::epoch(stamp)).flatten();
    let whole = whole.filter(|(_, length)| *length == stamp.len());
    let (stamp, _) = whole.ok_or_else(|| LineParseError::at_byte(at, "a time such as 1286536309.450"))?;
    let mut entry = Entry { time_ns: stamp.ns, has_subsecond_time: true, ..Entry::default() };
    let (at, taken) = words.next("the time that the request took")?;
    let whole = number::duration_or_none(taken, TimeUnit::Milliseconds).filter(|(_, length)| *length == taken.len());
    entry.service_ns = whole.ok_or_else(|| LineParseError::at_byte(at, "the time that the request took"))?.0;
    entry.client = without_dash(words.next("a client")?.1);
    let (at, result) = words.next("a result and status such as TCP_MISS/200")?;
    entry.status =
        status(result).ok_or_else(|| LineParseError::at_byte(at, "a result and status such as TCP_MISS/200"))?;
    let (at, bytes) = words.next("a number of bytes")?;
    let whole = number::byte_count(bytes).filter(|(_, length)| *length == bytes.len());
    entry.bytes = whole.ok_or_else(|| LineParseError::at_byte(at, "a number of bytes"))?.0;
    entry.method = without_dash(words.next("a method")?.1);
    entry.target = without_dash(words.next("a URL")?.1);
    let _user = words.next("a user")?;
    let (at, from) = words.next("where the answer came from, such as HIER_DIRECT/192.0.2.2")?;
    if !from.contains(&b'/') {
        return Err(LineParseError::at_byte(at, "where the answer came from, such as HIER_DIRECT/192.0.2.2"));
    }
    words.next("the type of the answer")?;
    move_to_start(&mut entry, true);
    Ok(Parsed::Request(RawRequest { entry, may_be_absolute: true, ..RawRequest::default() }))
}

/// Reads the status in `TCP_MISS/200` or `NONE_NONE/000`.
fn status(result: &[u8]) -> Option<u16> {
    let slash = memchr(b'/', result)?;
    let code = result.get(..slash)?;
    let status = result.get(slash + 1..)?;
    let is_code = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9');
    let (found, length) = number::status(status)?;
    (!code.is_empty() && code.iter().all(is_code) && length == status.len()).then_some(found)
}

/// Splits a line into words with one or more spaces between them.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// Returns the next word and its position.
    fn next(&mut self, expected: &'static str) -> Result<(usize, &'a [u8]), LineParseError> {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        let word = rest.get(spaces..).unwrap_or_default();
        let word = word.get(..memchr(b' ', word).unwrap_or(word.len())).unwrap_or_default();
        let start = self.at + spaces;
        if word.is_empty() {
            return Err(LineParseError::at_byte(self.line.len(), expected));
        }
        self.at = start + word.len();
        Ok((start, word))
    }
}
