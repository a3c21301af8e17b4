//! Lines whose fields stand in a given order with given text between them: Common, Combined, all of Apache's and nginx's
//! formats, and most that load balancers and stores write.
//!
//! A pattern is a text that lines begin with, and fields, each with the text that follows it. Numbers and times end by
//! themselves; any other field ends where that text begins, between quotes at the first quote without a backslash. Each byte
//! of a line is looked at once or twice, whatever it holds.

use super::found::{Found, Parsed, begun, first_address, text, without_port};
use super::number::{self, Unit};
use super::time::{self, Clock, Part, Parts, Stamp};
use crate::entry::{Entry, Malformed};
use memchr::memchr;
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
    Client,
    /// With a port.
    ClientPort,
    /// `X-Forwarded-For`: where it is there, it knows the client better.
    Forwarded,
    Host,
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
    Upstream(Unit),
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
            || matches!(self, Stage | UpstreamStage | SkipDurations)
    }

    /// Of fields for the same thing, only one counts.
    fn purpose(self) -> Option<&'static str> {
        use Kind::*;
        Some(match self {
            Client | ClientPort => "client",
            Forwarded => "forwarded",
            Host | HostTarget => "host",
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
            Service(_) | WholeService(_) => "service",
            Upstream(_) => "upstream",
            Skip | SkipList | SkipDurations | Stage | UpstreamStage | Part(_) => return None,
        })
    }

    fn skipped(self) -> Kind {
        match self {
            Kind::Service(_) | Kind::WholeService(_) | Kind::Upstream(_) => Kind::SkipDurations,
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

/// What is known of a line so far.
#[derive(Default)]
struct State<'a> {
    found: Found<'a>,
    forwarded: &'a [u8],
    stamp: Option<Stamp>,
    parts: Parts,
    /// The sum of stages; the inner none if one is missing.
    stages_ns: Option<Option<u64>>,
}

impl Pattern {
    /// Of the pieces of a format; an error says what the format lacks, as the end of a sentence about it.
    pub(crate) fn new(pieces: Vec<Piece>, traits: Traits) -> Result<Pattern, String> {
        let mut pieces = joined(pieces)?;
        keep_the_best(&mut pieces);
        let has = |wanted: &[&str]| {
            let is_wanted = |piece: &Piece| matches!(piece, Piece::Field { kind, .. } if kind.purpose().is_some_and(|p| wanted.contains(&p)));
            pieces.iter().any(is_wanted)
        };
        let is_part = |piece: &Piece| matches!(piece, Piece::Field { kind: Kind::Part(_), .. });
        let dates = [Part::Epoch, Part::Year, Part::YearOfCentury];
        let is_date = |piece: &Piece| matches!(piece, Piece::Field { kind: Kind::Part(part), .. } if dates.contains(part));
        let is_whole_target = |piece: &Piece| matches!(piece, Piece::Field { kind: Kind::HostTarget, .. });
        if !has(&["time"]) && !pieces.iter().any(is_date) {
            return Err("has no time of the request: add %t (Apache), $time_local or $msec (nginx)".to_owned());
        }
        if !has(&["request"]) && !(has(&["method"]) && (has(&["target"]) || pieces.iter().any(is_whole_target))) {
            let missing = "has no request: add \"%r\" (Apache), \"$request\" (nginx), or both method and URI";
            return Err(missing.to_owned());
        }
        let has_parts = pieces.iter().any(is_part);
        let (head, fields) = fields(pieces, traits);
        Ok(Pattern { head, fields, traits, has_parts, clock: Clock::default() })
    }

    pub(crate) fn read<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, Malformed> {
        let Pattern { head, fields, traits, has_parts, clock } = self;
        let mut state = State::default();
        if !line.starts_with(head) {
            return Err(not_there(line, 0, head));
        }
        let mut at = head.len();
        let mut index = 0;
        while let Some(field) = fields.get(index) {
            let end = at + field.read(line, at, traits.has_escapes, &mut state, clock)?;
            index += 1;
            at = match line.get(end..) {
                Some(rest) if rest.starts_with(&field.literal) => end + field.literal.len(),
                // A quoted field may be missing as a whole.
                _ => match fields.get(index).and_then(|next| dash(line, end, &field.literal, next)) {
                    Some(after) => {
                        index += 1;
                        after
                    }
                    None => return Err(not_there(line, end, &field.literal)),
                },
            };
        }
        match traits.tail {
            Tail::End if at < line.len() => return Err(Malformed::at(at, "the end of the line")),
            Tail::Fields { with_time } => state.tail(line, at, with_time)?,
            _ => {}
        }
        state.finish(line, *has_parts, traits.is_end)
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
            state.text(self.kind, rest.get(..length).unwrap_or_default());
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
        matches!(self.kind, Bytes | Service(_) | WholeService(_) | Upstream(_) | SkipDurations)
    }

    /// How long a text is: until what follows it. Else where its end was missed.
    #[inline]
    fn text_length(&self, rest: &[u8], has_escapes: bool) -> Result<usize, usize> {
        match &*self.literal {
            [] => Ok(rest.len()),
            [byte] if !self.is_quoted && !self.is_last && self.kind != Kind::SkipList => {
                memchr(*byte, rest).ok_or(rest.len())
            }
            [first, ..] => self.find_end(*first, rest, has_escapes),
        }
    }

    fn find_end(&self, first: u8, rest: &[u8], has_escapes: bool) -> Result<usize, usize> {
        let mut from = 0;
        while let Some(at) = rest.get(from..).and_then(|rest| memchr(first, rest)).map(|at| from + at) {
            let after = rest.get(at..).unwrap_or_default();
            let is_escaped = self.is_quoted && has_escapes && is_escaped(rest, at);
            let is_end = after.starts_with(&self.literal) && (!self.is_last || after.len() == self.literal.len());
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

impl<'a> State<'a> {
    #[inline]
    fn text(&mut self, kind: Kind, raw: &'a [u8]) {
        let entry = &mut self.found.entry;
        match kind {
            Kind::Client => entry.client = text(raw),
            Kind::ClientPort => entry.client = text(without_port(raw)),
            Kind::Forwarded => self.forwarded = first_address(raw),
            Kind::Host => entry.host = text(raw),
            Kind::HostTarget => {
                let end = memchr(b'/', raw).unwrap_or(raw.len());
                entry.host = text(raw.get(..end).unwrap_or_default());
                entry.target = raw.get(end..).unwrap_or_default();
            }
            Kind::Agent => entry.agent = text(raw),
            Kind::Referer => entry.referer = text(raw),
            Kind::Request | Kind::UrlRequest => {
                entry.target = raw;
                self.found.is_request_line = true;
                self.found.may_be_absolute = kind == Kind::UrlRequest;
            }
            Kind::Method => entry.method = text(raw),
            Kind::Target | Kind::Path => entry.target = text(raw),
            Kind::Query => self.found.query = text(raw.strip_prefix(b"?").unwrap_or(raw)),
            Kind::Protocol => entry.protocol = text(raw),
            _ => {}
        }
    }

    #[inline]
    fn number(&mut self, kind: Kind, rest: &[u8], clock: &mut Clock) -> Option<usize> {
        let entry = &mut self.found.entry;
        let mut at = |(stamp, length): (Stamp, usize)| {
            self.stamp = Some(stamp);
            length
        };
        let length = match kind {
            Kind::Clf => at(clock.clf(rest)?),
            Kind::Iso => at(clock.iso(rest)?),
            Kind::Epoch => at(time::epoch(rest)?),
            Kind::Part(part) => self.parts.read(part, rest)?,
            Kind::Status => {
                let (status, length) = number::status(rest)?;
                entry.status = status;
                length
            }
            Kind::Bytes => {
                let (bytes, length) = number::bytes(rest)?;
                entry.bytes = bytes;
                length
            }
            Kind::Service(unit) => {
                let (ns, length) = number::duration_or_none(rest, unit)?;
                entry.service_ns = ns;
                length
            }
            Kind::WholeService(unit) => {
                let (ns, length) = number::duration_or_none(rest, unit)?;
                rest.get(..length)?.iter().all(|byte| *byte != b'.').then_some(())?;
                entry.service_ns = ns;
                length
            }
            Kind::Upstream(unit) => {
                let (ns, length) = number::durations(rest, unit)?;
                entry.upstream_ns = ns;
                length
            }
            Kind::Stage | Kind::UpstreamStage => {
                let (ns, length) = number::duration_or_none(rest, Unit::Seconds)?;
                let sum = self.stages_ns.unwrap_or(Some(0));
                self.stages_ns = Some(sum.and_then(|sum| Some(sum.saturating_add(ns?))));
                if kind == Kind::UpstreamStage {
                    entry.upstream_ns = ns;
                }
                length
            }
            _ => number::durations(rest, Unit::Seconds)?.1,
        };
        Some(length)
    }

    /// The fields after those of the format, each after a space.
    #[cold]
    fn tail(&mut self, line: &'a [u8], mut at: usize, with_time: bool) -> Result<(), Malformed> {
        let (first, mut times) = (at, 0);
        while at < line.len() {
            let rest = line.get(at..).unwrap_or_default();
            let Some(rest) = rest.strip_prefix(b" ") else { return Err(Malformed::at(at, "a space")) };
            let equals = rest.iter().take(24).position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
            let equals = equals.filter(|equals| *equals > 0 && rest.get(*equals) == Some(&b'='));
            let label = equals.and_then(|equals| rest.get(..equals)).unwrap_or_default();
            let start = equals.map_or(0, |equals| equals + 1);
            let value = rest.get(start..).unwrap_or_default();
            let (value, length) = match value.strip_prefix(b"\"") {
                Some(quoted) => {
                    let end = closing_quote(quoted).ok_or_else(|| Malformed::at(line.len(), "a closing quote"))?;
                    (quoted.get(..end).unwrap_or_default(), end + 2)
                }
                None => {
                    // A list of durations has spaces of its own.
                    let list = number::durations(value, Unit::Seconds).map_or(0, |(_, length)| length);
                    let end = value.get(list..).and_then(|rest| memchr(b' ', rest)).map_or(value.len(), |end| list + end);
                    (value.get(..end).unwrap_or_default(), end)
                }
            };
            times += usize::from(self.labelled(label, value, times));
            at += 1 + start + length;
        }
        if at == first || (with_time && times == 0) {
            return Err(Malformed::at(at, "a space and the time that the request took"));
        }
        Ok(())
    }

    /// Takes a field of the tail, and says whether it is a duration.
    fn labelled(&mut self, label: &[u8], value: &'a [u8], times: usize) -> bool {
        let entry = &mut self.found.entry;
        let seconds = number::durations(value, Unit::Seconds).filter(|(_, length)| *length == value.len());
        let is_decimal = seconds.is_some() && value.contains(&b'.');
        match (label, seconds) {
            (b"rt" | b"request_time" | b"reqtime", Some((ns, _))) => entry.service_ns = ns,
            (b"urt" | b"ut" | b"upstream_response_time" | b"apptime", Some((ns, _))) => entry.upstream_ns = ns,
            // nginx's have a point, always; the first is the whole, the second that of the server behind it.
            (b"", Some((ns, _))) if is_decimal && times == 0 => entry.service_ns = ns,
            (b"", Some((ns, _))) if is_decimal && times == 1 => entry.upstream_ns = ns,
            (b"host" | b"vhost" | b"sn", None) => {
                entry.host = text(value);
                return false;
            }
            _ => return false,
        }
        true
    }

    #[inline]
    fn finish(mut self, line: &'a [u8], has_parts: bool, is_end: bool) -> Result<Parsed<'a>, Malformed> {
        let stamp = match (has_parts, self.stamp) {
            (true, Some(stamp)) => Some(self.parts.with_fraction(stamp)),
            (true, None) => self.parts.stamp(),
            (false, stamp) => stamp,
        };
        let stamp = stamp.ok_or_else(|| Malformed::at(line.len(), "a time that there is"))?;
        let entry: &mut Entry<'a> = &mut self.found.entry;
        (entry.time_ns, entry.is_fine) = (stamp.ns, stamp.is_fine);
        if let Some(sum) = self.stages_ns {
            entry.service_ns = sum;
        }
        if !self.forwarded.is_empty() {
            entry.client = self.forwarded;
        }
        begun(entry, is_end);
        Ok(Parsed::Found(self.found))
    }
}

/// Where the text after an unquoted `-` that stands for a quoted field goes on.
#[cold]
fn dash(line: &[u8], at: usize, before: &[u8], field: &Field) -> Option<usize> {
    let (before, after) = (before.strip_suffix(b"\"")?, field.literal.strip_prefix(b"\"")?);
    let rest = line.get(at..)?.strip_prefix(before)?.strip_prefix(b"-")?;
    let is_whole = field.is_quoted && rest.starts_with(after) && (!after.is_empty() || matches!(rest.first(), None | Some(b' ')));
    is_whole.then_some(at + before.len() + 1 + after.len())
}

/// Whether an odd number of backslashes stands before this byte.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// The first quote that is not escaped.
fn closing_quote(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'"', text).find(|at| !is_escaped(text, *at))
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

/// With literals in one piece, and fields that stand side by side as one where that is possible.
fn joined(pieces: Vec<Piece>) -> Result<Vec<Piece>, String> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (_, Piece::Literal(text)) if text.is_empty() => {}
            (Some(Piece::Literal(before)), Piece::Literal(text)) => before.extend(text),
            (Some(Piece::Field { kind: before, name: first, .. }), Piece::Field { kind, rank, name }) => {
                if before.ends_itself() {
                    joined.push(Piece::Field { kind, rank, name });
                } else if let Some(both) = both(*before, kind) {
                    *before = both;
                } else {
                    return Err(format!("has nothing between {first} and {name}: put a space there, in the server too"));
                }
            }
            (_, piece) => joined.push(piece),
        }
    }
    Ok(joined)
}

/// Two fields without anything between them.
fn both(first: Kind, second: Kind) -> Option<Kind> {
    match (first, second) {
        (Kind::Path | Kind::Target, Kind::Query) => Some(Kind::Target),
        (Kind::Query, Kind::Query) => Some(Kind::Query),
        (Kind::Host, Kind::Path | Kind::Target) | (Kind::HostTarget, Kind::Query) => Some(Kind::HostTarget),
        (Kind::Skip, Kind::Skip) => Some(Kind::Skip),
        _ => None,
    }
}

/// Leaves one field for each purpose, and no part of the request beside the whole.
fn keep_the_best(pieces: &mut [Piece]) {
    let ranks: Vec<(usize, &'static str, u8)> = pieces
        .iter()
        .enumerate()
        .filter_map(|(index, piece)| match piece {
            Piece::Field { kind, rank, .. } => kind.purpose().map(|purpose| (index, purpose, *rank)),
            Piece::Literal(_) => None,
        })
        .collect();
    let has_request = ranks.iter().any(|(_, purpose, _)| *purpose == "request");
    let mut best: Vec<(usize, &'static str, u8)> = ranks.clone();
    best.sort_by_key(|(index, purpose, rank)| (*purpose, *rank, *index));
    best.dedup_by_key(|(_, purpose, _)| *purpose);
    let whole_target = best.iter().any(|(index, _, _)| {
        matches!(pieces.get(*index), Some(Piece::Field { kind: Kind::Target | Kind::HostTarget, .. }))
    });
    for (index, purpose, _) in ranks {
        let is_best = best.iter().any(|(best, _, _)| *best == index);
        let is_part = has_request && matches!(purpose, "method" | "target" | "query" | "protocol");
        let is_known = whole_target && purpose == "query";
        if let Some(Piece::Field { kind, .. }) = pieces.get_mut(index) {
            if !is_best || is_part || is_known || (has_request && *kind == Kind::HostTarget) {
                *kind = kind.skipped();
            }
        }
    }
}

fn fields(pieces: Vec<Piece>, traits: Traits) -> (Box<[u8]>, Vec<Field>) {
    let mut head: Box<[u8]> = Box::default();
    let mut fields: Vec<Field> = Vec::new();
    let mut before: Vec<u8> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => {
                match fields.last_mut() {
                    Some(field) => {
                        field.is_quoted &= text.starts_with(b"\"");
                        field.literal = text.clone().into();
                    }
                    None => head = text.clone().into(),
                }
                before = text;
            }
            Piece::Field { kind, .. } => {
                let is_quoted = before.ends_with(b"\"");
                fields.push(Field { kind, is_quoted, literal: Box::default(), is_last: false });
                before.clear();
            }
        }
    }
    if let Some(last) = fields.last_mut() {
        last.is_last = traits.tail == Tail::End;
        last.is_quoted &= !last.literal.is_empty();
    }
    (head, fields)
}
