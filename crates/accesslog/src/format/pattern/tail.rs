//! Reads additional fields, such as `rt=0.012 "-" 0.004, 0.003`, after the fields of a format. A space precedes each
//! additional field.

use super::is_escaped;
use crate::entry::LineParseError;
use crate::format::number::{self, TimeUnit};
use memchr::memchr;

/// An additional field, which follows the fields of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailField<'a> {
    /// The text before the equals sign of a field such as `rt=0.012`; empty if the field has no label.
    pub label: &'a [u8],
    /// The text of the value, without its quotes.
    pub value: &'a [u8],
    /// Whether the value is quoted in the line.
    pub is_quoted: bool,
}

/// Iterates over the fields at the end of a line, up to the first malformed field.
pub(crate) struct TailFields<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> TailFields<'a> {
    /// Starts at the byte `at` of a line, where the format's own fields end.
    pub fn new(line: &'a [u8], at: usize) -> TailFields<'a> {
        TailFields { line, at }
    }

    fn read(&mut self) -> Result<TailField<'a>, LineParseError> {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let Some(rest) = rest.strip_prefix(b" ") else { return Err(LineParseError::at_byte(self.at, "a space")) };
        let equals = rest.iter().take(24).position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
        let equals = equals.filter(|equals| *equals > 0 && rest.get(*equals) == Some(&b'='));
        let label = equals.and_then(|equals| rest.get(..equals)).unwrap_or_default();
        let start = equals.map_or(0, |equals| equals + 1);
        let value = rest.get(start..).unwrap_or_default();
        let quoted = value.strip_prefix(b"\"");
        let (value, length) = match quoted {
            Some(quoted) => {
                let end =
                    closing_quote(quoted).ok_or_else(|| LineParseError::at_byte(self.line.len(), "a closing quote"))?;
                (quoted.get(..end).unwrap_or_default(), end + 2)
            }
            None => {
                // A list of durations contains spaces.
                let list = number::durations(value, TimeUnit::Seconds).map_or(0, |(_, length)| length);
                let end = value.get(list..).and_then(|rest| memchr(b' ', rest)).map_or(value.len(), |end| list + end);
                (value.get(..end).unwrap_or_default(), end)
            }
        };
        self.at += 1 + start + length;
        Ok(TailField { label, value, is_quoted: quoted.is_some() })
    }
}

impl<'a> Iterator for TailFields<'a> {
    type Item = Result<TailField<'a>, LineParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.line.len() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.at = self.line.len();
        }
        Some(field)
    }
}

/// The index of the first quote that is not escaped.
fn closing_quote(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'"', text).find(|at| !is_escaped(text, *at))
}
