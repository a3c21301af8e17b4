//! Reads logs with one JSON object per line, as Caddy, Traefik, Envoy and others write. Fields may be nested
//! (`request.method`). [`labelled`](super::labelled) determines the meanings of the names.
//!
//! The reader checks only as much JSON grammar as it needs to find the fields. An object without a request, such as
//! Caddy's message about its start, is not an error.

use super::labelled::{LabelledRequest, Meaning, Name, Value};
use super::number::TimeUnit;
use super::request::Parsed;
use super::time::Clock;
use crate::entry::LineParseError;
use memchr::memchr2;

/// Maximum nesting depth of objects and arrays.
const DEPTH: usize = 16;

/// Reads a line that is a JSON object. `default_unit` is the unit of durations that are whole numbers without a unit.
pub(crate) fn read<'a>(
    line: &'a [u8],
    clock: &mut Clock,
    default_unit: TimeUnit,
) -> Result<Parsed<'a>, LineParseError> {
    let mut reader = Reader { line, at: 0, fields: LabelledRequest::new(default_unit), first_error: None, clock };
    reader.skip_space();
    if reader.peek() != Some(b'{') {
        return Err(reader.wants("a JSON object"));
    }
    reader.object(Name::new(), 0)?;
    reader.skip_space();
    if reader.at < line.len() {
        return Err(reader.wants("the end of the line"));
    }
    if !reader.fields.is_request() {
        return Ok(Parsed::Other);
    }
    if let Some(error) = reader.first_error {
        return Err(error);
    }
    reader.fields.finish().map_err(|expected| LineParseError::at_byte(line.len(), expected))
}

/// The meaning and rank of a field inside a wrapping object, such as Azure's `properties`. The rank is higher than that
/// of the same field outside of the object, so the field outside takes precedence.
fn wrapped_meaning(parent: Name, key: &[u8]) -> Option<(Meaning, u8)> {
    let alone = Name::new().with(key).meaning().filter(|_| parent.is_wrapper());
    alone.map(|(meaning, rank)| (meaning, rank + 8))
}

struct Reader<'a, 'c> {
    line: &'a [u8],
    at: usize,
    fields: LabelledRequest<'a>,
    /// The error of the first field with an invalid value. It is reported only if the object describes a request.
    first_error: Option<LineParseError>,
    clock: &'c mut Clock,
}

impl<'a> Reader<'a, '_> {
    /// Reads an object; the next byte is its opening brace. `parent` is the name of the field whose value is the
    /// object.
    fn object(&mut self, parent: Name, depth: usize) -> Result<(), LineParseError> {
        self.at += 1;
        self.skip_space();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.skip_space();
            let key = self.string("a quote and the name of a field")?.raw;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.wants("a colon"));
            }
            // Traefik's top-level `Duration` is in nanoseconds.
            let known = match key {
                b"Duration" if depth == 0 => Some((Meaning::Service(Some(TimeUnit::Nanoseconds)), 0)),
                key => parent.with(key).meaning().or_else(|| wrapped_meaning(parent, key)),
            };
            self.value(known, Name::new().with(key), depth)?;
            self.skip_space();
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.wants("a comma or a closing brace"));
            }
        }
    }

    fn value(&mut self, known: Option<(Meaning, u8)>, name: Name, depth: usize) -> Result<(), LineParseError> {
        self.skip_space();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{' | b'[') if depth >= DEPTH => return Err(self.wants("less than 17 levels of objects")),
            Some(b'{') => return self.object(name, depth + 1),
            Some(b'[') => return self.array(known, name, depth + 1),
            Some(b'"') => self.string("a quote")?,
            Some(b'0'..=b'9' | b'-') => {
                self.word(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'))
            }
            Some(b't' | b'f' | b'n') => {
                let word = self.word(|byte| byte.is_ascii_lowercase());
                return match word.raw {
                    b"true" | b"false" | b"null" => Ok(()),
                    _ => Err(LineParseError::at_byte(start, "a value of JSON")),
                };
            }
            // For an unset variable, nginx writes nothing after the colon.
            Some(b',' | b'}') => return Ok(()),
            _ => return Err(self.wants("a value of JSON")),
        };
        if let Some(known) = known
            && let Err(expected) = self.fields.set(known, value, self.clock)
            && self.first_error.is_none()
        {
            self.first_error = Some(LineParseError::at_byte(start, expected));
        }
        Ok(())
    }

    /// Reads an array, for example that of a header that was sent twice. Only the first value is used.
    fn array(&mut self, mut known: Option<(Meaning, u8)>, name: Name, depth: usize) -> Result<(), LineParseError> {
        self.at += 1;
        self.skip_space();
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value(known.take(), name, depth)?;
            self.skip_space();
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.wants("a comma or a closing bracket"));
            }
        }
    }

    /// Reads the text between quotes.
    fn string(&mut self, expected: &'static str) -> Result<Value<'a>, LineParseError> {
        if !self.take(b'"') {
            return Err(self.wants(expected));
        }
        let start = self.at;
        let mut is_escaped = false;
        loop {
            let rest = self.line.get(self.at..).unwrap_or_default();
            let Some(found) = memchr2(b'"', b'\\', rest) else {
                self.at = self.line.len();
                return Err(self.wants("a closing quote"));
            };
            self.at += found;
            if self.take(b'"') {
                let raw = self.line.get(start..self.at - 1).unwrap_or_default();
                return Ok(Value { raw, is_escaped });
            }
            is_escaped = true;
            // Skips a backslash and the byte that it escapes, which may be a quote.
            self.at = (self.at + 2).min(self.line.len());
        }
    }

    fn word(&mut self, is_part: impl Fn(u8) -> bool) -> Value<'a> {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len());
        self.at += length;
        Value { raw: rest.get(..length).unwrap_or_default(), is_escaped: false }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn wants(&self, expected: &'static str) -> LineParseError {
        LineParseError::at_byte(self.at.min(self.line.len()), expected)
    }
}
