//! What one line of a log says.

use std::borrow::Cow;

/// One request, as a line tells it. A text that the line does not have, or has as `-`, is empty. Texts are bytes of the
/// line, with its escapes, but for JSON's, which are undone in [`Scratch`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry<'a> {
    /// When the request came, in nanoseconds since 1970. Where a log has the end of the response and how long it took,
    /// that is its beginning.
    pub time_ns: i64,
    /// Whether that is known to less than a second.
    pub is_fine: bool,
    /// How far the log's clock is east of UTC, in seconds, where its stamps say so; otherwise they are taken for UTC.
    pub offset_s: Option<i32>,
    /// The method: `GET`.
    pub method: &'a [u8],
    /// What was asked for, with its query.
    pub target: &'a [u8],
    /// `HTTP/1.1`; empty in requests of HTTP/0.9.
    pub protocol: &'a [u8],
    /// The virtual host.
    pub host: &'a [u8],
    /// The client's address or name.
    pub client: &'a [u8],
    /// `User-Agent`.
    pub agent: &'a [u8],
    /// `Referer`.
    pub referer: &'a [u8],
    /// The status of the answer; 0 where the log has none, as of an aborted request.
    pub status: u16,
    /// Bytes of the answer's body, or where the log has only these, with its head; `None` where it does not say.
    pub bytes: Option<u64>,
    /// How long the server took, in nanoseconds.
    pub service_ns: Option<u64>,
    /// How long those behind it took, in nanoseconds.
    pub upstream_ns: Option<u64>,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line<'a> {
    /// A request.
    Entry(Entry<'a>),
    /// Something that belongs to the log but is no request: a directive, an empty line.
    Other,
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where in the line, in bytes from 1.
    pub column: usize,
    /// What should have been there, as a noun phrase: `a status of three digits`.
    pub expected: Cow<'static, str>,
}

/// Where texts are kept that are not in the line as they are.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Unescaped texts, one after another.
    pub bytes: Vec<u8>,
    /// The line that another program has wrapped up, as it was before.
    pub line: Vec<u8>,
}

impl Malformed {
    /// At a byte of the line, from 0.
    pub fn at(byte: usize, expected: impl Into<Cow<'static, str>>) -> Malformed {
        Malformed { column: byte + 1, expected: expected.into() }
    }
}
