//! Reads lines whose fields have a fixed order, with fixed text between fields. Such formats are Common, Combined,
//! every format of Apache and nginx, and most formats of load balancers and object stores.
//!
//! A pattern consists of the text at the start of each line and a sequence of fields. Each field is followed by a
//! literal text. The syntax of a number or time shows its end. Any other field ends where its literal text begins. A
//! quoted field ends at the first quote that is not escaped. Each byte of a line is read once or twice.

mod compile;
mod state;
pub(crate) mod tail;

use super::number::{self, TimeUnit};
use super::request::{self, Parsed};
use super::time::{Clock, Part};
use crate::entry::LineParseError;
use compile::{compile_fields, join_adjacent, keep_best_ranked};
use memchr::memchr;
use state::State;
use std::borrow::Cow;
use std::sync::Arc;

/// The meaning and syntax of a field in a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// A text whose value is ignored.
    Skip,
    /// An ignored text that may be one of nginx's lists: `10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80`.
    SkipList,
    /// An ignored duration, or a list of durations.
    SkipDurations,
    /// The client's address or name, or a list as proxies write it: `client, proxy, proxy`.
    Client,
    /// A client that must contain a point or a colon. This distinguishes the format from similar formats.
    Address,
    /// The client with its port.
    ClientPort,
    /// The value of `X-Forwarded-For`. If it contains a client, this client replaces the client's address.
    Forwarded,
    /// A forwarded list in which every element must be an address or a placeholder such as `unknown`. This
    /// distinguishes the format from similar formats.
    ForwardedAddresses,
    Host,
    /// A host without commas and quotes. This distinguishes the format from similar formats.
    HostName,
    /// An ignored port number.
    Port,
    /// Host and target without a separator.
    HostTarget,
    Agent,
    Referer,
    Request,
    /// A request line with an absolute URL, as load balancers write.
    UrlRequest,
    Method,
    Target,
    /// A target without its query.
    Path,
    /// The query, with or without its `?`.
    Query,
    Protocol,
    Clf,
    Iso,
    Epoch,
    Part(Part),
    Status,
    Bytes,
    Service(TimeUnit),
    /// A duration in digits only.
    WholeService(TimeUnit),
    /// A duration in seconds with a decimal point, as nginx writes.
    DecimalService,
    /// A duration that is written with its unit: `12ms`, `1.5s`.
    OwnUnitService,
    Upstream(TimeUnit),
    /// A duration in seconds with a decimal point, as nginx writes, or a list of durations.
    DecimalUpstream,
    /// One stage of the request, such as the wait in a load balancer: its duration in seconds. The service time is the
    /// sum of all stages.
    Stage,
    /// Duration of the stage in which the upstream server handled the request, in seconds.
    UpstreamStage,
}

impl FieldKind {
    /// Whether the syntax of the field's value shows where the value ends, as for a number.
    fn ends_itself(self) -> bool {
        use FieldKind::*;
        matches!(self, Clf | Iso | Epoch | Part(_) | Status | Bytes | Service(_) | WholeService(_) | Upstream(_))
            || matches!(self, Stage | UpstreamStage | SkipDurations | DecimalService | DecimalUpstream)
    }

    /// Whether the field contains a client. Such a field may be quoted, or may be a list with a space after each comma.
    fn is_client_list(self) -> bool {
        matches!(self, FieldKind::Client | FieldKind::Address | FieldKind::Forwarded | FieldKind::ForwardedAddresses)
    }

    /// If `text` is not valid for the field, returns a description of valid text.
    fn refusal(self, text: &[u8]) -> Option<&'static str> {
        let (is_right, expected) = match self {
            FieldKind::Address => (memchr::memchr2(b'.', b':', text).is_some(), "an address"),
            FieldKind::ForwardedAddresses => (request::is_address_list(text), "addresses, or - for none"),
            FieldKind::HostName => (memchr::memchr2(b',', b'"', text).is_none(), "the name of a host"),
            FieldKind::Port => (!text.is_empty() && text.iter().all(u8::is_ascii_digit), "a port"),
            FieldKind::OwnUnitService => (number::has_unit(text), "a time with its unit, such as 12ms"),
            _ => return None,
        };
        (!is_right).then_some(expected)
    }

    /// The purpose of the field. If several fields of a format have the same purpose, the one with the lowest rank is
    /// used.
    fn purpose(self) -> Option<&'static str> {
        use FieldKind::*;
        Some(match self {
            Client | Address | ClientPort => "client",
            Forwarded | ForwardedAddresses => "forwarded",
            Host | HostName | HostTarget => "host",
            Agent => "agent",
            Referer => "referer",
            Request | UrlRequest => "request",
            Method => "method",
            Target | Path => "target",
            Query => "query",
            Protocol => "protocol",
            Clf | Iso | Epoch => "time",
            Status => "status",
            Bytes => "bytes",
            Service(_) | WholeService(_) | DecimalService | OwnUnitService => "service",
            Upstream(_) | DecimalUpstream => "upstream",
            Port | Skip | SkipList | SkipDurations | Stage | UpstreamStage | Part(_) => return None,
        })
    }

    fn skipped(self) -> FieldKind {
        match self {
            FieldKind::Service(_) | FieldKind::WholeService(_) | FieldKind::Upstream(_) => FieldKind::SkipDurations,
            FieldKind::DecimalService | FieldKind::DecimalUpstream => FieldKind::SkipDurations,
            _ => FieldKind::Skip,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            FieldKind::Clf => "a time such as 10/Oct/2000:13:55:36 -0700",
            FieldKind::Iso => "a time such as 2000-10-10T13:55:36-07:00",
            FieldKind::Epoch => "a time in seconds since 1970",
            FieldKind::Part(_) => "a part of the time",
            FieldKind::Status => "a status of three digits",
            FieldKind::Bytes => "a number of bytes",
            FieldKind::Service(_) | FieldKind::WholeService(_) => "the time that the request took",
            FieldKind::DecimalService => "the seconds that the request took, such as 0.005",
            _ => "a duration",
        }
    }
}

/// One element of a format string: literal text or a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(Vec<u8>),
    Field {
        kind: FieldKind,
        /// The rank of the field. If several fields have the same purpose, the field with the lowest rank is used.
        rank: u8,
        /// The field in the notation of the format string, for messages.
        name: String,
    },
}

impl Piece {
    fn kind(&self) -> Option<FieldKind> {
        match self {
            Piece::Literal(_) => None,
            Piece::Field { kind, .. } => Some(*kind),
        }
    }
}

/// The text that may follow the last field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// No text may follow.
    End,
    /// Any text may follow, because new fields are added to the format from time to time.
    Anything,
    /// Fields that are recognized by a label (`rt=0.005`) or by their form (`0.005`) must follow, at least one. If
    /// `with_time` is set, at least one of them must be a duration.
    Fields { with_time: bool },
}

/// Properties of a whole log format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// The text that may follow the last field of a line.
    pub tail: Tail,
    /// Whether the format's timestamps are taken at the end of the request.
    pub is_end_time: bool,
    /// Whether a backslash before a quote makes the quote part of the text.
    pub has_escapes: bool,
}

#[derive(Clone, Debug)]
struct Field {
    kind: FieldKind,
    /// Whether the field is quoted.
    is_quoted: bool,
    /// The literal text that follows the field.
    literal: Box<[u8]>,
    /// Whether the line must end after `literal`.
    is_last: bool,
}

/// A compiled log format whose fields have a fixed order. It reads lines of this format.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    // The literal text at the start of each line. Copies of a pattern share it, because detection copies formats often.
    head: Arc<[u8]>,
    fields: Arc<[Field]>,
    traits: Traits,
    has_parts: bool,
    clock: Clock,
}

impl Pattern {
    /// Compiles the elements of a format string. The error message continues a sentence that begins with "the format".
    pub(crate) fn new(pieces: Vec<Piece>, traits: Traits) -> Result<Pattern, String> {
        let mut pieces = join_adjacent(pieces)?;
        keep_best_ranked(&mut pieces);
        let kinds: Vec<FieldKind> = pieces.iter().filter_map(Piece::kind).collect();
        let has = |purpose: &str| kinds.iter().any(|kind| kind.purpose() == Some(purpose));
        let is_date =
            |kind: &FieldKind| matches!(kind, FieldKind::Part(Part::Epoch | Part::Year | Part::YearOfCentury));
        if !has("time") && !kinds.iter().any(is_date) {
            return Err("has no time of the request: add %t (Apache), $time_local or $msec (nginx)".to_owned());
        }
        if !has("request") && !(has("method") && (has("target") || kinds.contains(&FieldKind::HostTarget))) {
            let missing = "has no request: add \"%r\" (Apache), \"$request\" (nginx), or both method and URI";
            return Err(missing.to_owned());
        }
        let has_parts = kinds.iter().any(|kind| matches!(kind, FieldKind::Part(_)));
        let (head, fields) = compile_fields(pieces, traits);
        Ok(Pattern { head: head.into(), fields: fields.into(), traits, has_parts, clock: Clock::default() })
    }

    /// Whether lines begin with a timestamp.
    #[inline]
    pub(crate) fn begins_with_time(&self) -> bool {
        let is_time = |kind| matches!(kind, FieldKind::Clf | FieldKind::Iso | FieldKind::Epoch | FieldKind::Part(_));
        self.fields.first().is_some_and(|field| is_time(field.kind))
    }

    /// Reads all fields of a line. The error has the position of the first field that is not valid.
    pub(crate) fn read<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, LineParseError> {
        let mut state = State::default();
        let at = self.read_fields(line, &mut state)?;
        let Pattern { traits, has_parts, .. } = self;
        match traits.tail {
            Tail::End if at < line.len() => return Err(LineParseError::at_byte(at, "the end of the line")),
            Tail::Fields { with_time } => state.tail(line, at, with_time)?,
            _ => {}
        }
        state.finish(line, *has_parts, traits.is_end_time)?;
        Ok(Parsed::Request(state.raw))
    }

    /// Returns the text after the fields in a line; `None` if the fields cannot be read.
    pub(crate) fn rest_of<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let at = self.read_fields(line, &mut State::default()).ok()?;
        line.get(at..)
    }

    /// Reads the fields, and returns the position at which the last field and its literal text end.
    #[inline]
    fn read_fields<'a>(&mut self, line: &'a [u8], state: &mut State<'a>) -> Result<usize, LineParseError> {
        let Pattern { head, fields, traits, clock, .. } = self;
        if !starts_with(line, head) {
            return Err(missing_literal(line, 0, head));
        }
        let mut at = head.len();
        let mut index = 0;
        while let Some(field) = fields.get(index) {
            let end = at + field.read(line, at, traits.has_escapes, state, clock)?;
            index += 1;
            at = match line.get(end..) {
                Some(rest) if starts_with(rest, &field.literal) => end + field.literal.len(),
                // Some servers write `-` without quotes instead of an empty quoted field.
                _ => match after_dashes(fields, index, line, end, &field.literal) {
                    Some((after, next)) => {
                        index = next;
                        after
                    }
                    None => return Err(missing_literal(line, end, &field.literal)),
                },
            };
        }
        Ok(at)
    }
}

impl Field {
    /// Reads the value of the field, and returns its length.
    #[inline]
    fn read<'a>(
        &self,
        line: &'a [u8],
        at: usize,
        has_escapes: bool,
        state: &mut State<'a>,
        clock: &mut Clock,
    ) -> Result<usize, LineParseError> {
        let rest = line.get(at..).unwrap_or_default();
        if !self.kind.ends_itself() {
            let length = self.text_length(rest, has_escapes).map_err(|stop| self.without_end(at + stop))?;
            let text = rest.get(..length).unwrap_or_default();
            if let Some(expected) = self.kind.refusal(text) {
                return Err(LineParseError::at_byte(at, expected));
            }
            state.set_text(self.kind, text);
            return Ok(length);
        }
        match state.set_number(self.kind, rest, clock) {
            Some(length) => Ok(length),
            // With `escape=json`, nginx writes an empty value for an unset variable.
            None if self.may_be_empty() && !self.literal.is_empty() && rest.starts_with(&self.literal) => Ok(0),
            None => Err(LineParseError::at_byte(at.min(line.len()), self.kind.expected())),
        }
    }

    fn may_be_empty(&self) -> bool {
        use FieldKind::*;
        matches!(self.kind, Bytes | Service(_) | WholeService(_) | DecimalService | Upstream(_) | SkipDurations)
    }

    /// The length of a text field, up to its literal text. The error is the position at which the literal text is
    /// missing.
    #[inline]
    fn text_length(&self, rest: &[u8], has_escapes: bool) -> Result<usize, usize> {
        match &*self.literal {
            [] => Ok(rest.len()),
            [byte] if !self.is_quoted && !self.is_last && self.kind != FieldKind::SkipList => {
                match rest {
                    // `-` is the most frequent value, so it is handled without a function call.
                    [one, next, ..] if next == byte && one != byte => Ok(1),
                    _ if *byte == b' ' && self.kind.is_client_list() => list_length(rest).ok_or(rest.len()),
                    _ => memchr(*byte, rest).ok_or(rest.len()),
                }
            }
            [first, ..] => {
                let end = self.find_end(*first, rest, has_escapes);
                // An ignored field without quotes contains no spaces. So a `-` after its first space is the value of
                // the next field, which has quotes in other lines.
                let is_word = self.kind == FieldKind::Skip && !self.is_quoted;
                match end {
                    Ok(end) if is_word => Ok(self.before_dash(rest.get(..end).unwrap_or(rest)).unwrap_or(end)),
                    Ok(end) => Ok(end),
                    Err(at) if self.is_quoted => self.quote_before_dash(rest, at).ok_or(at),
                    Err(at) => self.before_dash(rest).ok_or(at),
                }
            }
        }
    }

    /// The position at which this unquoted field ends, if the next field is `-` instead of a quoted text.
    #[cold]
    fn before_dash(&self, rest: &[u8]) -> Option<usize> {
        let before = self.literal.strip_suffix(b"\"").filter(|_| !self.is_quoted)?;
        let is_there = |at: &usize| {
            let dash = rest.get(*at..).and_then(|rest| rest.strip_prefix(before));
            dash.is_some_and(|dash| dash.first() == Some(&b'-'))
        };
        memchr::memchr_iter(*before.first()?, rest).find(is_there)
    }

    /// The position of the quote just before `at`, if this quote is followed by `-` instead of the next quoted field.
    #[cold]
    fn quote_before_dash(&self, rest: &[u8], at: usize) -> Option<usize> {
        let quote = at.checked_sub(1)?;
        let after = rest.get(quote..)?.strip_prefix(self.literal.strip_suffix(b" \"")?)?;
        (after.starts_with(b" -") && matches!(after.get(2), None | Some(b' '))).then_some(quote)
    }

    fn find_end(&self, first: u8, rest: &[u8], has_escapes: bool) -> Result<usize, usize> {
        let mut from = 0;
        while let Some(at) = rest.get(from..).and_then(|rest| memchr(first, rest)).map(|at| from + at) {
            let after = rest.get(at..).unwrap_or_default();
            let is_escaped = self.is_quoted && has_escapes && is_escaped(rest, at);
            let is_end = starts_with(after, &self.literal) && (!self.is_last || after.len() == self.literal.len());
            if is_end && !is_escaped && !(self.kind == FieldKind::SkipList && is_inside_list(rest, at)) {
                return Ok(at);
            }
            // A space follows this quote, so the quote ends the field: clients rarely send a quote followed by a space.
            // The expected literal text is missing after it.
            if self.is_quoted && !is_escaped && matches!(after.get(1), None | Some(b' ')) {
                return Err(at + 1);
            }
            from = at + 1;
        }
        Err(rest.len())
    }

    fn without_end(&self, at: usize) -> LineParseError {
        if self.is_quoted && self.is_last && self.literal.len() == 1 {
            return LineParseError::at_byte(at, "a closing quote at the end of the line");
        }
        LineParseError::at_byte(at, literal_name(&self.literal))
    }
}

/// Skips quoted fields whose value is written as `-` without quotes. Returns the position at which the line continues,
/// and the index of the field at this position.
#[cold]
fn after_dashes<'f>(
    fields: &'f [Field],
    mut index: usize,
    line: &[u8],
    mut at: usize,
    mut before: &'f [u8],
) -> Option<(usize, usize)> {
    loop {
        let field = fields.get(index).filter(|field| field.is_quoted)?;
        let before_quote = before.strip_suffix(b"\"")?;
        let rest = line.get(at..)?.strip_prefix(before_quote)?.strip_prefix(b"-")?;
        let after = field.literal.strip_prefix(b"\"")?;
        at += before_quote.len() + 1;
        index += 1;
        if rest.starts_with(after) && (!after.is_empty() || matches!(rest.first(), None | Some(b' '))) {
            return Some((at + after.len(), index));
        }
        // After a `-` without quotes, the literal text before the next field has no closing quote at its start.
        before = after;
    }
}

/// The length of a field that contains a client, or a list of a client and proxies. The first space that is not next to
/// a comma ends the field.
#[inline]
fn list_length(rest: &[u8]) -> Option<usize> {
    if rest.first() == Some(&b'"') {
        let close = memchr(b'"', rest.get(1..)?)? + 2;
        return (rest.get(close) == Some(&b' ')).then_some(close);
    }
    let mut from = 0;
    loop {
        let at = from + memchr(b' ', rest.get(from..)?)?;
        let is_after_comma = at > 0 && rest.get(at - 1) == Some(&b',') && rest.get(at + 1) != Some(&b'-');
        if !is_after_comma && rest.get(at + 1) != Some(&b',') {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Like `text.starts_with(literal)`, but faster for the short literals of nearly all formats.
#[inline]
fn starts_with(text: &[u8], literal: &[u8]) -> bool {
    match (literal, text) {
        ([], _) => true,
        ([a], [x, ..]) => a == x,
        ([a, b], [x, y, ..]) => a == x && b == y,
        ([a, b, c], [x, y, z, ..]) => a == x && b == y && c == z,
        _ => text.starts_with(literal),
    }
}

/// Whether the byte at index `at` is escaped: an odd number of backslashes precedes it.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Whether the space at index `at` belongs to the separator `, ` or ` : ` of a list.
fn is_inside_list(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let after = text.get(at + 1..).unwrap_or_default();
    before.ends_with(b",") || after.starts_with(b": ") || before.ends_with(b" :")
}

/// The error for missing literal text. Its column is that of the first byte that differs from the literal text.
#[cold]
fn missing_literal(line: &[u8], at: usize, literal: &[u8]) -> LineParseError {
    let rest = line.get(at..).unwrap_or_default();
    let same = rest.iter().zip(literal).take_while(|(a, b)| a == b).count();
    LineParseError::at_byte((at + same).min(line.len()), literal_name(literal.get(same..).unwrap_or(literal)))
}

fn literal_name(literal: &[u8]) -> Cow<'static, str> {
    match literal {
        b" " => "a space".into(),
        b"\"" => "a quote".into(),
        b"\" " => "a quote and a space".into(),
        b" \"" => "a space and a quote".into(),
        b"\t" => "a tab".into(),
        other => {
            let shown = String::from_utf8_lossy(other.get(..24).unwrap_or(other)).into_owned();
            format!("`{}`", brimful_core::text::one_line(&shown)).into()
        }
    }
}
