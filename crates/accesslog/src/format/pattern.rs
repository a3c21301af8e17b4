//! Lines whose fields stand in a given order with given text between them: Common, Combined, all of Apache's and
//! nginx's formats, and most that load balancers and stores write.
//!
//! A pattern is a text that lines begin with, and fields, each with the text that follows it. Numbers and times end by
//! themselves; any other field ends where that text begins, between quotes at the first quote without a backslash. Each
//! byte of a line is looked at once or twice, whatever it holds.

mod compile;
mod state;
pub(crate) mod tail;

use super::found::{self, Parsed};
use super::number::{self, Unit};
use super::time::{Clock, Part};
use crate::entry::Malformed;
use compile::{fields, joined, keep_the_best};
use memchr::memchr;
use state::State;
use std::borrow::Cow;

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text that means nothing here.
    Skip,
    /// The same, of one of nginx's lists: `10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80`.
    SkipList,
    /// Durations that mean nothing here, perhaps a list of them.
    SkipDurations,
    /// An address or a name; also a list as proxies write it, `client, proxy, proxy`.
    Client,
    /// The same, where it is what tells a format from a similar one: it has a point or a colon.
    Address,
    /// With a port.
    ClientPort,
    /// `X-Forwarded-For`: where it is there, it knows the client better.
    Forwarded,
    /// The same, where nothing but addresses and what stands for a hidden one belongs to a format.
    ForwardedAddresses,
    Host,
    /// The same, where it is what tells a format from a similar one: no list and no quote.
    HostName,
    /// Digits that mean nothing here.
    Port,
    /// Host and target without anything between them.
    HostTarget,
    Agent,
    Referer,
    Request,
    /// A request with a whole URL, as a load balancer writes it.
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
    Service(Unit),
    /// Digits only.
    WholeService(Unit),
    /// With a point, as nginx writes seconds.
    DecimalService,
    /// With its unit: `12ms`, `1.5s`.
    OwnUnitService,
    Upstream(Unit),
    /// With points, as nginx writes seconds; perhaps a list.
    DecimalUpstream,
    /// A part of the time that the server took, in seconds; all add up.
    Stage,
    /// That part which is of those behind it.
    UpstreamStage,
}

impl Kind {
    /// Whether its end is found in it and not by what follows.
    fn ends_itself(self) -> bool {
        use Kind::*;
        matches!(self, Clf | Iso | Epoch | Part(_) | Status | Bytes | Service(_) | WholeService(_) | Upstream(_))
            || matches!(self, Stage | UpstreamStage | SkipDurations | DecimalService | DecimalUpstream)
    }

    /// Whether it may be a list with a comma and a space between its parts, or stand between quotes of its own.
    fn is_client_list(self) -> bool {
        matches!(self, Kind::Client | Kind::Address | Kind::Forwarded | Kind::ForwardedAddresses)
    }

    /// What a text has to be, where it is not that.
    fn refusal(self, text: &[u8]) -> Option<&'static str> {
        let (is_right, expected) = match self {
            Kind::Address => (memchr::memchr2(b'.', b':', text).is_some(), "an address"),
            Kind::ForwardedAddresses => (found::is_address_list(text), "addresses, or - for none"),
            Kind::HostName => (memchr::memchr2(b',', b'"', text).is_none(), "the name of a host"),
            Kind::Port => (!text.is_empty() && text.iter().all(u8::is_ascii_digit), "a port"),
            Kind::OwnUnitService => (number::has_unit(text), "a time with its unit, such as 12ms"),
            _ => return None,
        };
        (!is_right).then_some(expected)
    }

    /// Of fields for the same thing, only one counts.
    fn purpose(self) -> Option<&'static str> {
        use Kind::*;
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

    fn skipped(self) -> Kind {
        match self {
            Kind::Service(_) | Kind::WholeService(_) | Kind::Upstream(_) => Kind::SkipDurations,
            Kind::DecimalService | Kind::DecimalUpstream => Kind::SkipDurations,
            _ => Kind::Skip,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Kind::Clf => "a time such as 10/Oct/2000:13:55:36 -0700",
            Kind::Iso => "a time such as 2000-10-10T13:55:36-07:00",
            Kind::Epoch => "a time in seconds since 1970",
            Kind::Part(_) => "a part of the time",
            Kind::Status => "a status of three digits",
            Kind::Bytes => "a number of bytes",
            Kind::Service(_) | Kind::WholeService(_) => "the time that the request took",
            Kind::DecimalService => "the seconds that the request took, such as 0.005",
            _ => "a duration",
        }
    }
}

/// A piece of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(Vec<u8>),
    Field {
        kind: Kind,
        /// Of several fields for one purpose that with the least counts.
        rank: u8,
        /// As the format has it.
        name: String,
    },
}

impl Piece {
    fn kind(&self) -> Option<Kind> {
        match self {
            Piece::Literal(_) => None,
            Piece::Field { kind, .. } => Some(*kind),
        }
    }
}

/// What may follow the last field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing.
    End,
    /// Whatever there is: fields are added to the format from time to time.
    Anything,
    /// Fields that tell what they are by a label (`rt=0.005`) or their look (`0.005`); at least one, or one duration.
    Fields { with_time: bool },
}

/// What is particular about a format as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub tail: Tail,
    /// Whether its time is that of the end of the request.
    pub is_end: bool,
    /// Whether a backslash before a quote makes it part of the text.
    pub has_escapes: bool,
}

#[derive(Clone, Debug)]
struct Field {
    kind: Kind,
    /// Whether it stands between quotes.
    is_quoted: bool,
    /// What follows it.
    literal: Box<[u8]>,
    /// Whether nothing may follow after that.
    is_last: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    head: Box<[u8]>,
    fields: Vec<Field>,
    traits: Traits,
    has_parts: bool,
    clock: Clock,
}

impl Pattern {
    /// Of the pieces of a format; an error says what the format lacks, as the end of a sentence about it.
    pub(crate) fn new(pieces: Vec<Piece>, traits: Traits) -> Result<Pattern, String> {
        let mut pieces = joined(pieces)?;
        keep_the_best(&mut pieces);
        let kinds: Vec<Kind> = pieces.iter().filter_map(Piece::kind).collect();
        let has = |purpose: &str| kinds.iter().any(|kind| kind.purpose() == Some(purpose));
        let is_date = |kind: &Kind| matches!(kind, Kind::Part(Part::Epoch | Part::Year | Part::YearOfCentury));
        if !has("time") && !kinds.iter().any(is_date) {
            return Err("has no time of the request: add %t (Apache), $time_local or $msec (nginx)".to_owned());
        }
        if !has("request") && !(has("method") && (has("target") || kinds.contains(&Kind::HostTarget))) {
            let missing = "has no request: add \"%r\" (Apache), \"$request\" (nginx), or both method and URI";
            return Err(missing.to_owned());
        }
        let has_parts = kinds.iter().any(|kind| matches!(kind, Kind::Part(_)));
        let (head, fields) = fields(pieces, traits);
        Ok(Pattern { head, fields, traits, has_parts, clock: Clock::default() })
    }

    /// Whether a line begins with its time.
    #[inline]
    pub(crate) fn begins_with_time(&self) -> bool {
        let is_time = |kind| matches!(kind, Kind::Clf | Kind::Iso | Kind::Epoch | Kind::Part(_));
        self.fields.first().is_some_and(|field| is_time(field.kind))
    }

    pub(crate) fn read<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, Malformed> {
        let mut state = State::default();
        let at = self.read_fields(line, &mut state)?;
        let Pattern { traits, has_parts, .. } = self;
        match traits.tail {
            Tail::End if at < line.len() => return Err(Malformed::at(at, "the end of the line")),
            Tail::Fields { with_time } => state.tail(line, at, with_time)?,
            _ => {}
        }
        state.finish(line, *has_parts, traits.is_end)?;
        Ok(Parsed::Found(state.found))
    }

    /// What follows a line's fields.
    pub(crate) fn rest_of<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let at = self.read_fields(line, &mut State::default()).ok()?;
        line.get(at..)
    }

    /// Reads the fields: where the last one ends.
    #[inline]
    fn read_fields<'a>(&mut self, line: &'a [u8], state: &mut State<'a>) -> Result<usize, Malformed> {
        let Pattern { head, fields, traits, clock, .. } = self;
        if !begins(line, head) {
            return Err(not_there(line, 0, head));
        }
        let mut at = head.len();
        let mut index = 0;
        while let Some(field) = fields.get(index) {
            let end = at + field.read(line, at, traits.has_escapes, state, clock)?;
            index += 1;
            at = match line.get(end..) {
                Some(rest) if begins(rest, &field.literal) => end + field.literal.len(),
                // A quoted field may be missing as a whole.
                _ => match after_dashes(fields, index, line, end, &field.literal) {
                    Some((after, next)) => {
                        index = next;
                        after
                    }
                    None => return Err(not_there(line, end, &field.literal)),
                },
            };
        }
        Ok(at)
    }
}

impl Field {
    /// Reads what stands there: its length.
    #[inline]
    fn read<'a>(
        &self,
        line: &'a [u8],
        at: usize,
        has_escapes: bool,
        state: &mut State<'a>,
        clock: &mut Clock,
    ) -> Result<usize, Malformed> {
        let rest = line.get(at..).unwrap_or_default();
        if !self.kind.ends_itself() {
            let length = self.text_length(rest, has_escapes).map_err(|stop| self.without_end(at + stop))?;
            let text = rest.get(..length).unwrap_or_default();
            if let Some(expected) = self.kind.refusal(text) {
                return Err(Malformed::at(at, expected));
            }
            state.text(self.kind, text);
            return Ok(length);
        }
        match state.number(self.kind, rest, clock) {
            Some(length) => Ok(length),
            // nginx writes nothing for a variable without value where it escapes for JSON.
            None if self.may_be_empty() && !self.literal.is_empty() && rest.starts_with(&self.literal) => Ok(0),
            None => Err(Malformed::at(at.min(line.len()), self.kind.expected())),
        }
    }

    fn may_be_empty(&self) -> bool {
        use Kind::*;
        matches!(self.kind, Bytes | Service(_) | WholeService(_) | DecimalService | Upstream(_) | SkipDurations)
    }

    /// How long a text is: until what follows it. Else where its end was missed.
    #[inline]
    fn text_length(&self, rest: &[u8], has_escapes: bool) -> Result<usize, usize> {
        match &*self.literal {
            [] => Ok(rest.len()),
            [byte] if !self.is_quoted && !self.is_last && self.kind != Kind::SkipList => {
                match rest {
                    // Nothing is there, `-`, as in most fields of most lines: a call would take longer.
                    [one, next, ..] if next == byte && one != byte => Ok(1),
                    _ if *byte == b' ' && self.kind.is_client_list() => list_length(rest).ok_or(rest.len()),
                    _ => memchr(*byte, rest).ok_or(rest.len()),
                }
            }
            [first, ..] => {
                let end = self.find_end(*first, rest, has_escapes);
                // What means nothing has no spaces: a `-` after it stands for the quoted field that follows.
                let is_word = self.kind == Kind::Skip && !self.is_quoted;
                match end {
                    Ok(end) if is_word => Ok(self.before_dash(rest.get(..end).unwrap_or(rest)).unwrap_or(end)),
                    Ok(end) => Ok(end),
                    Err(at) if self.is_quoted => self.quote_before_dash(rest, at).ok_or(at),
                    Err(at) => self.before_dash(rest).ok_or(at),
                }
            }
        }
    }

    /// Where the quoted field that follows begins, if it is `-` without quotes.
    #[cold]
    fn before_dash(&self, rest: &[u8]) -> Option<usize> {
        let before = self.literal.strip_suffix(b"\"").filter(|_| !self.is_quoted)?;
        let is_there = |at: &usize| {
            let dash = rest.get(*at..).and_then(|rest| rest.strip_prefix(before));
            dash.is_some_and(|dash| dash.first() == Some(&b'-'))
        };
        memchr::memchr_iter(*before.first()?, rest).find(is_there)
    }

    /// The quote just before a place, where `-` without quotes stands for the quoted field that follows.
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
            let is_end = begins(after, &self.literal) && (!self.is_last || after.len() == self.literal.len());
            if is_end && !is_escaped && !(self.kind == Kind::SkipList && is_inside_list(rest, at)) {
                return Ok(at);
            }
            // A quote that some client has put into the text is not followed by a space.
            if self.is_quoted && !is_escaped && matches!(after.get(1), None | Some(b' ')) {
                return Err(at + 1);
            }
            from = at + 1;
        }
        Err(rest.len())
    }

    fn without_end(&self, at: usize) -> Malformed {
        if self.is_quoted && self.is_last && self.literal.len() == 1 {
            return Malformed::at(at, "a closing quote at the end of the line");
        }
        Malformed::at(at, name_of(&self.literal))
    }
}

/// Where a line goes on after `-` without quotes, which stands for a quoted field, and with which field.
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
        // Of several, one after another, each lacks the quotes that the next would begin with.
        before = after;
    }
}

/// How long a client is, or a list of one and its proxies, which a space ends: spaces after its commas do not.
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

/// What `starts_with` says; nearly all of a format's texts are so short that a call would take longer than a look.
#[inline]
fn begins(text: &[u8], literal: &[u8]) -> bool {
    match (literal, text) {
        ([], _) => true,
        ([a], [x, ..]) => a == x,
        ([a, b], [x, y, ..]) => a == x && b == y,
        ([a, b, c], [x, y, z, ..]) => a == x && b == y && c == z,
        _ => text.starts_with(literal),
    }
}

/// Whether an odd number of backslashes stands before this byte.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Whether the space here belongs to `, ` or ` : `.
fn is_inside_list(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let after = text.get(at + 1..).unwrap_or_default();
    before.ends_with(b",") || after.starts_with(b": ") || before.ends_with(b" :")
}

/// The error where a text of the format is not there: it points at the first byte that differs.
#[cold]
fn not_there(line: &[u8], at: usize, literal: &[u8]) -> Malformed {
    let rest = line.get(at..).unwrap_or_default();
    let same = rest.iter().zip(literal).take_while(|(a, b)| a == b).count();
    Malformed::at((at + same).min(line.len()), name_of(literal.get(same..).unwrap_or(literal)))
}

fn name_of(literal: &[u8]) -> Cow<'static, str> {
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
