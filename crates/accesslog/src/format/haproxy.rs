//! HAProxy's HTTP log (`option httplog`), with or without a syslog prefix.
//!
//! An example is `192.0.2.1:33317 [06/Feb/2009:12:14:14.655] frontend backend/server 10/0/30/69/109 200 2750 - - ----
//! 1/1/1/1/0 0/0 {captures} "GET /index.html HTTP/1.1"`. The timestamp is the time at which the request arrived, in
//! local time. It has no zone, and is read as UTC. The fourth timer is the time until the server's response, and the
//! fifth is the total time.

use super::number::{self, TimeUnit};
use super::request::{Parsed, RawRequest, without_port};
use super::time::{Clock, Stamp};
use crate::entry::{Entry, LineParseError};
use memchr::{memchr, memchr_iter, memrchr};

/// Reads a line of HAProxy's HTTP log.
pub(crate) fn read<'a>(line: &'a [u8], clock: &mut Clock) -> Result<Parsed<'a>, LineParseError> {
    let missing = || LineParseError::at_byte(0, "a client, and a time such as [06/Feb/2009:12:14:14.655]");
    let (open, stamp, length) = find_accept_time(line, clock).ok_or_else(missing)?;
    let before = line.get(..open).unwrap_or_default().trim_ascii_end();
    let client = before.get(memrchr(b' ', before).map_or(0, |space| space + 1)..).unwrap_or_default();
    if client.is_empty() {
        return Err(missing());
    }
    let mut entry = Entry {
        client: without_port(client),
        time_ns: stamp.ns,
        has_subsecond_time: stamp.has_subsecond_time,
        ..Entry::default()
    };
    entry.offset_s = stamp.offset_s;
    let mut words = Words { line, at: open + 1 + length + 1 };
    words.space()?;
    let (_frontend, _server) = (words.next("a frontend")?, words.next("a backend and server")?);
    timers(&mut words, &mut entry)?;
    let (at, status) = words.next("a status of three digits")?;
    let whole = number::status(status).filter(|(_, length)| *length == status.len());
    entry.status = whole.ok_or_else(|| LineParseError::at_byte(at, "a status of three digits"))?.0;
    let (at, bytes) = words.next("a number of bytes")?;
    // A plus sign means that HAProxy wrote the line before the end of the response.
    let digits = bytes.strip_prefix(b"+").unwrap_or(bytes);
    let whole = number::byte_count(digits).filter(|(_, length)| *length == digits.len());
    entry.bytes = whole.ok_or_else(|| LineParseError::at_byte(at, "a number of bytes"))?.0;
    for expected in ["a cookie", "a cookie", "how the session ended", "numbers of connections", "lengths of queues"] {
        words.next(expected)?;
    }
    let rest = line.get(words.at..).unwrap_or_default();
    let request = quoted(rest).ok_or_else(|| LineParseError::at_byte(line.len(), "a request between quotes"))?;
    entry.target = request;
    Ok(Parsed::Request(RawRequest { entry, is_request_line: true, may_be_absolute: true, ..RawRequest::default() }))
}

/// Finds the time at which HAProxy accepted the request. Returns the position of the bracket before this time, the
/// time, and its length in bytes.
fn find_accept_time(line: &[u8], clock: &mut Clock) -> Option<(usize, Stamp, usize)> {
    memchr_iter(b'[', line).find_map(|open| {
        let rest = line.get(open + 1..)?;
        let (stamp, length) = clock.clf(rest)?;
        (rest.get(length) == Some(&b']')).then_some((open, stamp, length))
    })
}

/// Reads the timers, such as `10/0/30/69/109`.
fn timers(words: &mut Words<'_>, entry: &mut Entry<'_>) -> Result<(), LineParseError> {
    let expected = "five timers such as 10/0/30/69/109";
    let (at, timers) = words.next(expected)?;
    let mut found = [None; 5];
    let mut count = 0;
    for timer in timers.split(|byte| *byte == b'/') {
        let digits = timer.strip_prefix(b"+").unwrap_or(timer);
        let whole =
            number::duration_or_none(digits, TimeUnit::Milliseconds).filter(|(_, length)| *length == digits.len());
        let place = found.get_mut(count).ok_or_else(|| LineParseError::at_byte(at, expected))?;
        *place = whole.ok_or_else(|| LineParseError::at_byte(at, expected))?.0;
        count += 1;
    }
    if count != 5 {
        return Err(LineParseError::at_byte(at, expected));
    }
    [_, _, _, entry.upstream_ns, entry.service_ns] = found;
    Ok(())
}

/// Returns the request: the text between the first pair of quotes after the captured headers.
fn quoted(rest: &[u8]) -> Option<&[u8]> {
    let open = if rest.starts_with(b"{") {
        // The request begins after the closing brace of the captured headers, which may contain quotes.
        memchr::memmem::find(rest, b"} \"")? + 2
    } else {
        memchr(b'"', rest)?
    };
    let text = rest.get(open + 1..)?;
    text.get(..memchr(b'"', text)?)
}

/// Splits a line into words. One space follows each word.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    fn space(&mut self) -> Result<(), LineParseError> {
        if self.line.get(self.at) != Some(&b' ') {
            return Err(LineParseError::at_byte(self.at.min(self.line.len()), "a space"));
        }
        self.at += 1;
        Ok(())
    }

    /// Returns the next word and its position.
    fn next(&mut self, expected: &'static str) -> Result<(usize, &'a [u8]), LineParseError> {
        let start = self.at;
        let rest = self.line.get(start..).unwrap_or_default();
        let length = memchr(b' ', rest).filter(|length| *length > 0);
        let length = length.ok_or_else(|| LineParseError::at_byte(start.min(self.line.len()), expected))?;
        self.at += length + 1;
        Ok((start, rest.get(..length).unwrap_or_default()))
    }
}
