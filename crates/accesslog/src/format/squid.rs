//! Squid's own format (`logformat squid`), which proxies write by default:
//! `1286536309.450    180 192.0.2.1 TCP_MISS/200 411 GET http://example.com/ - HIER_DIRECT/192.0.2.2 text/html`.
//!
//! The stamp is that of the request's end, in seconds since 1970; the number after it is how long the request took, in
//! milliseconds. What follows the type of the answer, as the heads that `log_mime_hdrs` adds, is passed over.

use super::found::{Found, Parsed, begun, text};
use super::number::{self, Unit};
use super::time;
use crate::entry::{Entry, Malformed};
use memchr::memchr;

pub(crate) fn read(line: &[u8]) -> Result<Parsed<'_>, Malformed> {
    let mut words = Words { line, at: 0 };
    let (at, stamp) = words.next("a time such as 1286536309.450")?;
    // Without the point it would be any number.
    let whole = stamp.contains(&b'.').then(|| time::epoch(stamp)).flatten();
    let whole = whole.filter(|(_, length)| *length == stamp.len());
    let (stamp, _) = whole.ok_or_else(|| Malformed::at(at, "a time such as 1286536309.450"))?;
    let mut entry = Entry { time_ns: stamp.ns, is_fine: true, ..Entry::default() };
    let (at, taken) = words.next("the time that the request took")?;
    let whole = number::duration_or_none(taken, Unit::Milliseconds).filter(|(_, length)| *length == taken.len());
    entry.service_ns = whole.ok_or_else(|| Malformed::at(at, "the time that the request took"))?.0;
    entry.client = text(words.next("a client")?.1);
    let (at, result) = words.next("a result and status such as TCP_MISS/200")?;
    entry.status = status(result).ok_or_else(|| Malformed::at(at, "a result and status such as TCP_MISS/200"))?;
    let (at, bytes) = words.next("a number of bytes")?;
    let whole = number::bytes(bytes).filter(|(_, length)| *length == bytes.len());
    entry.bytes = whole.ok_or_else(|| Malformed::at(at, "a number of bytes"))?.0;
    entry.method = text(words.next("a method")?.1);
    entry.target = text(words.next("a URL")?.1);
    let _user = words.next("a user")?;
    let (at, from) = words.next("where the answer came from, such as HIER_DIRECT/192.0.2.2")?;
    if !from.contains(&b'/') {
        return Err(Malformed::at(at, "where the answer came from, such as HIER_DIRECT/192.0.2.2"));
    }
    words.next("the type of the answer")?;
    begun(&mut entry, true);
    Ok(Parsed::Found(Found { entry, may_be_absolute: true, ..Found::default() }))
}

/// `TCP_MISS/200`, `NONE_NONE/000`
fn status(result: &[u8]) -> Option<u16> {
    let slash = memchr(b'/', result)?;
    let (code, status) = (result.get(..slash)?, result.get(slash + 1..)?);
    let is_code = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9');
    let (found, length) = number::status(status)?;
    (!code.is_empty() && code.iter().all(is_code) && length == status.len()).then_some(found)
}

/// Words with one or more spaces between them.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// The next word and where it begins.
    fn next(&mut self, expected: &'static str) -> Result<(usize, &'a [u8]), Malformed> {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        let word = rest.get(spaces..).unwrap_or_default();
        let word = word.get(..memchr(b' ', word).unwrap_or(word.len())).unwrap_or_default();
        let start = self.at + spaces;
        if word.is_empty() {
            return Err(Malformed::at(self.line.len(), expected));
        }
        self.at = start + word.len();
        Ok((start, word))
    }
}
