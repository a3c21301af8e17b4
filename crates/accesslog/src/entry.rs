//! A line of a log, as it was read.

use std::borrow::Cow;

/// One request. A text that the line lacks, or has as `-`, is empty. Texts are bytes of the line, including its escapes,
/// except JSON escapes, which are undone in [`Scratch`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry<'a> {
    /// When the request arrived, in nanoseconds since 1970. If a log has the end of the response and its duration, this
    /// is the difference.
    pub time_ns: i64,
    /// Whether the log's time has fractions of a second.
    pub is_fine: bool,
    /// The offset of the log's clock from UTC, in seconds east, if its stamps state one; otherwise UTC is assumed.
    pub offset_s: Option<i32>,
    /// The method: `GET`.
    pub method: &'a [u8],
    /// The request target, with its query.
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
    /// The status of the response; 0 if the log has none, as for an aborted request.
    pub status: u16,
    /// Bytes of the response body (with headers, if the log counts only these together); `None` if unknown.
    pub bytes: Option<u64>,
    /// Service time of the server, in nanoseconds.
    pub service_ns: Option<u64>,
    /// Service time of upstream servers, in nanoseconds.
    pub upstream_ns: Option<u64>,
}

/// A line that could be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line<'a> {
    /// A request.
    Entry(Entry<'a>),
    /// A line without a request, such as a directive or an empty line.
    Other,
}

/// The error about a line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Position in the line, in bytes from 1.
    pub column: usize,
    /// What was expected there, as a noun phrase: `a status of three digits`.
    pub expected: Cow<'static, str>,
}

/// Memory for texts that differ from the bytes of the line.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Unescaped texts, one after another.
    pub bytes: Vec<u8>,
    /// A line without the wrapping that another program added.
    pub line: Vec<u8>,
}

impl Malformed {
    /// The error at a byte of the line, from 0.
    pub fn at_byte(byte: usize, expected: impl Into<Cow<'static, str>>) -> Malformed {
        Malformed { column: byte + 1, expected: expected.into() }
    }
}
