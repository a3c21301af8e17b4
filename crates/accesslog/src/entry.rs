//! One line of an access log, parsed into fields.

use std::borrow::Cow;

/// One request in an access log. A text is empty if it is missing in the line, or if it is `-` in the line. Texts are
/// bytes of the line, with escapes unchanged. Only JSON escapes are decoded, in [`Scratch`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry<'a> {
    /// Start time of the request, in nanoseconds since 1970. If a log contains the end time and the duration of the
    /// response, the start time is their difference.
    pub time_ns: i64,
    /// Whether the logged time has fractions of a second.
    pub has_subsecond_time: bool,
    /// The number of seconds by which the log's clock is ahead of UTC. If the log states no offset, this is `None`, and
    /// the time is assumed to be in UTC.
    pub offset_s: Option<i32>,
    /// The method, such as `GET`.
    pub method: &'a [u8],
    /// The request target, with its query.
    pub target: &'a [u8],
    /// The protocol, such as `HTTP/1.1`; empty in requests of HTTP/0.9.
    pub protocol: &'a [u8],
    /// The virtual host.
    pub host: &'a [u8],
    /// The client's address or name.
    pub client: &'a [u8],
    /// The value of `User-Agent`.
    pub user_agent: &'a [u8],
    /// The value of `Referer`.
    pub referer: &'a [u8],
    /// The status of the response; 0 if the line contains no status, as for an aborted request.
    pub status: u16,
    /// Size of the response body in bytes, or of body and headers if the log contains only their sum; `None` if
    /// unknown.
    pub bytes: Option<u64>,
    /// Service time of the server, in nanoseconds.
    pub service_ns: Option<u64>,
    /// Service time of upstream servers, in nanoseconds.
    pub upstream_ns: Option<u64>,
}

/// The content of a line that could be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line<'a> {
    /// A request.
    Entry(Entry<'a>),
    /// A line without a request, such as a W3C directive or an empty line.
    Other,
}

/// The error for a line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineParseError {
    /// Position in the line, in bytes, counted from 1.
    pub column: usize,
    /// What was expected at this position, as a noun phrase such as `a status of three digits`.
    pub expected: Cow<'static, str>,
}

/// Buffers for texts of an entry that differ from the bytes of the line.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Unescaped texts, one after another.
    pub bytes: Vec<u8>,
    /// The line without Docker's wrapping.
    pub line: Vec<u8>,
}

impl LineParseError {
    /// Creates the error for a byte of the line. `byte` is counted from 0.
    pub fn at_byte(byte: usize, expected: impl Into<Cow<'static, str>>) -> LineParseError {
        LineParseError { column: byte + 1, expected: expected.into() }
    }
}
