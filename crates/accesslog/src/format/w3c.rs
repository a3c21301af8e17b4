//! Reads the W3C extended log file format (Hallam-Baker & Behlendorf 1996), which Microsoft's IIS and Amazon's
//! CloudFront write. A directive `#Fields:` lists the fields of the lines that follow. Times are in UTC, and are taken
//! at the end of the request.
//!
//! Values are separated by spaces, or by tabs if the directive or a line contains tabs. Between tabs, values may
//! contain spaces. A quote inside a quoted value is doubled.

use super::number::{self, TimeUnit};
use super::request::{Parsed, RawRequest, Slot, client_address, move_to_start, without_dash};
use super::time::{self, Clock, Stamp};
use crate::entry::LineParseError;
use memchr::{memchr, memchr2};

/// The default fields of IIS.
const IIS: &str = "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) \
                   cs(Referer) sc-status sc-substatus sc-win32-status time-taken";

/// The fields of CloudFront's standard logs.
const CLOUDFRONT: &str = "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) \
                          cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header \
                          cs-protocol cs-bytes time-taken";

/// Upper bound of the number of fields.
const MAX_FIELDS: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Skip,
    Date,
    Time,
    /// Date and time in a single field, as a timestamp or as seconds since 1970.
    Stamp,
    Client,
    Forwarded,
    Method,
    Stem,
    Query,
    Protocol,
    /// The host, with the rank of the column. Of several columns for the host, the one with the lowest rank is used.
    Host(u8),
    Agent,
    Referer,
    Status,
    Bytes,
    Taken,
}

/// A reader of the W3C extended log file format, with the columns of the lines that follow.
#[derive(Clone, Debug)]
pub(crate) struct W3c {
    columns: Vec<Column>,
    /// Whether a directive `#Fields:` has set the columns.
    is_declared: bool,
    is_cloudfront: bool,
    separator: Separator,
    /// The start of the day in a directive `#Date:`, in seconds since 1970.
    day_s: Option<i64>,
    clock: Clock,
}

/// The separator of the values in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    /// A space or a tab; used until a line shows that values are separated by tabs.
    SpaceOrTab,
    Tab,
}

/// The values of the columns that were read from a line so far.
#[derive(Default)]
struct State<'a> {
    raw: RawRequest<'a>,
    day_s: Option<i64>,
    /// The time of day: seconds since midnight, nanoseconds of the fraction, and whether there is a fraction.
    time: Option<(i64, i64, bool)>,
    stamp: Option<Stamp>,
    forwarded: &'a [u8],
    host_rank: u8,
}

impl W3c {
    /// Creates a reader with the default columns of IIS.
    pub(crate) fn iis() -> W3c {
        W3c::with(IIS, false)
    }

    /// Creates a reader with the columns of CloudFront's standard logs.
    pub(crate) fn cloudfront() -> W3c {
        W3c::with(CLOUDFRONT, true)
    }

    fn with(fields: &str, is_cloudfront: bool) -> W3c {
        let columns = fields.split(' ').map(|name| column(name.as_bytes())).collect();
        let separator = if is_cloudfront { Separator::Tab } else { Separator::SpaceOrTab };
        W3c { columns, is_declared: false, is_cloudfront, separator, day_s: None, clock: Clock::default() }
    }

    /// Whether the columns are those of CloudFront.
    pub(crate) fn is_cloudfront(&self) -> bool {
        self.is_cloudfront
    }

    /// Reads a line, or a directive such as `#Fields:`, which sets the columns.
    pub(crate) fn read<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, LineParseError> {
        if line.first() == Some(&b'#') {
            return self.directive(line);
        }
        if self.separator == Separator::SpaceOrTab && self.has_tabs(line) {
            self.separator = Separator::Tab;
        }
        let mut state = State { day_s: self.day_s, host_rank: u8::MAX, ..State::default() };
        let mut at = 0;
        let mut is_at_end = false;
        for column in &self.columns {
            if is_at_end {
                return Err(LineParseError::at_byte(
                    line.len(),
                    format!("{} fields, as #Fields says", self.columns.len()),
                ));
            }
            let rest = line.get(at..).unwrap_or_default();
            let (value, length) = self.value(rest);
            state
                .set(*column, value, self.is_cloudfront, &mut self.clock)
                .map_err(|e| LineParseError::at_byte(at, e))?;
            is_at_end = length == rest.len();
            at += length + usize::from(!is_at_end);
        }
        // A separator may follow the last value. Without a directive, the columns of CloudFront's oldest version are
        // used, so a line may have additional values.
        let has_more = !is_at_end && !line.get(at..).unwrap_or_default().trim_ascii().is_empty();
        if has_more && (self.is_declared || !self.is_cloudfront) {
            return Err(LineParseError::at_byte(at, "the end of the line"));
        }
        state.finish(line)
    }

    /// Whether a line has at least as many tab-separated values as there are fields.
    fn has_tabs(&self, line: &[u8]) -> bool {
        self.columns.len() > 1 && memchr::memchr_iter(b'\t', line).count() + 1 >= self.columns.len()
    }

    /// The first value of `rest` without its quotes, and the length of this value including its quotes.
    fn value<'a>(&self, rest: &'a [u8]) -> (Value<'a>, usize) {
        let end = |rest: &[u8]| {
            let end = match self.separator {
                Separator::Tab => memchr(b'\t', rest),
                Separator::SpaceOrTab => memchr2(b' ', b'\t', rest),
            };
            end.unwrap_or(rest.len())
        };
        if let Some(quoted) = rest.strip_prefix(b"\"")
            && let Some((length, has_quotes)) = quoted_length(quoted)
            && let Some(after) = quoted.get(length + 1..)
            && end(after) == 0
        {
            return (Value { text: quoted.get(..length).unwrap_or_default(), has_quotes }, length + 2);
        }
        let length = end(rest);
        let text = rest.get(..length).unwrap_or_default();
        // Values between tabs may be padded with spaces, which are removed.
        let text = if self.separator == Separator::Tab { text.trim_ascii() } else { text };
        (Value { text, has_quotes: false }, length)
    }

    fn directive<'a>(&mut self, line: &[u8]) -> Result<Parsed<'a>, LineParseError> {
        let lower = line.get(..16).unwrap_or(line).to_ascii_lowercase();
        if lower.starts_with(b"#fields:") {
            let names = line.get(8..).unwrap_or_default().split(|byte| matches!(byte, b' ' | b'\t'));
            let names = names.filter(|name| !name.is_empty()).take(MAX_FIELDS);
            let mut is_cloudfront = false;
            let columns: Vec<Column> = names
                .map(|name| {
                    is_cloudfront |= name.starts_with(b"x-edge-");
                    column(name)
                })
                .collect();
            if !columns.is_empty() {
                let is_tabbed = is_cloudfront || line.get(8..).unwrap_or_default().trim_ascii().contains(&b'\t');
                self.separator = if is_tabbed { Separator::Tab } else { Separator::SpaceOrTab };
                (self.columns, self.is_declared, self.is_cloudfront) = (columns, true, is_cloudfront);
            }
        } else if lower.starts_with(b"#date:") {
            let date = line.get(6..).unwrap_or_default().trim_ascii_start().first_chunk::<10>();
            self.day_s = date.and_then(|date| self.clock.day_start_s(date)).or(self.day_s);
        }
        Ok(Parsed::Other)
    }
}

/// A value of a line, in which doubled quotes are still doubled.
#[derive(Clone, Copy)]
struct Value<'a> {
    text: &'a [u8],
    /// Whether the value has doubled quotes.
    has_quotes: bool,
}

/// The length of a text up to its closing quote, and whether it has doubled quotes.
fn quoted_length(text: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    let mut has_quotes = false;
    loop {
        at += memchr(b'"', text.get(at..)?)?;
        if text.get(at + 1) != Some(&b'"') {
            return Some((at, has_quotes));
        }
        has_quotes = true;
        at += 2;
    }
}

impl<'a> State<'a> {
    fn set(
        &mut self,
        column: Column,
        value: Value<'a>,
        is_cloudfront: bool,
        clock: &mut Clock,
    ) -> Result<(), &'static str> {
        let Value { text: raw, has_quotes } = value;
        if has_quotes && let Some(slot) = column.slot() {
            self.raw.doubled_quote_slots |= 1 << slot as u8;
        }
        let value = without_dash(raw);
        let entry = &mut self.raw.entry;
        match column {
            Column::Skip => {}
            Column::Date => {
                let day = raw.first_chunk::<10>().filter(|_| raw.len() == 10).and_then(|day| clock.day_start_s(day));
                self.day_s = Some(day.ok_or("a date such as 2000-10-10")?);
            }
            Column::Time => {
                let (second, nanos, length) = time::time_of_day(raw).ok_or("a time such as 13:55:36")?;
                if length != raw.len() {
                    return Err("a time such as 13:55:36");
                }
                self.time = Some((second, nanos, length > 8));
            }
            Column::Stamp => self.stamp = Some(clock.any_notation(raw).ok_or("a time in seconds since 1970")?),
            Column::Client => entry.client = client_address(value),
            Column::Forwarded => self.forwarded = super::request::first_address(value),
            Column::Method if !value.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')) => {
                return Err("a method");
            }
            Column::Method => entry.method = value,
            Column::Stem => entry.target = value,
            Column::Query => self.raw.query = value,
            Column::Protocol => entry.protocol = value,
            Column::Host(rank) if !value.is_empty() && rank < self.host_rank => {
                (entry.host, self.host_rank) = (value, rank);
            }
            Column::Host(_) => {}
            Column::Agent => entry.user_agent = value,
            Column::Referer => entry.referer = value,
            Column::Status => {
                let status = number::status(raw).filter(|(_, length)| *length == raw.len());
                entry.status = status.ok_or("a status of three digits")?.0;
            }
            Column::Bytes => {
                let bytes = number::byte_count(raw).filter(|(_, length)| *length == raw.len());
                entry.bytes = bytes.ok_or("a number of bytes")?.0;
            }
            Column::Taken => {
                // The W3C standard and CloudFront use seconds. IIS uses whole milliseconds.
                let is_seconds = is_cloudfront || raw.contains(&b'.');
                let unit = if is_seconds { TimeUnit::Seconds } else { TimeUnit::Milliseconds };
                let taken = number::duration_or_none(raw, unit).filter(|(_, length)| *length == raw.len());
                entry.service_ns = taken.ok_or("the time that the request took")?.0;
            }
        }
        Ok(())
    }

    fn finish(mut self, line: &[u8]) -> Result<Parsed<'a>, LineParseError> {
        let stamp = match (self.stamp, self.day_s, self.time) {
            (Some(stamp), _, _) => Some(stamp),
            (None, Some(day_s), Some((second, nanos, has_subsecond_time))) => {
                time::stamp_from_seconds(day_s + second, nanos, has_subsecond_time)
            }
            _ => None,
        };
        let stamp =
            stamp.ok_or_else(|| LineParseError::at_byte(line.len(), "a date and a time, which #Fields has to have"))?;
        let entry = &mut self.raw.entry;
        if entry.method.is_empty() && entry.target.is_empty() {
            return Err(LineParseError::at_byte(line.len(), "cs-method and cs-uri-stem, which #Fields has to have"));
        }
        (entry.time_ns, entry.has_subsecond_time, entry.offset_s) =
            (stamp.ns, stamp.has_subsecond_time, stamp.offset_s);
        self.raw.may_be_absolute = true;
        if !self.forwarded.is_empty() {
            entry.client = self.forwarded;
        }
        move_to_start(&mut self.raw.entry, true);
        Ok(Parsed::Request(self.raw))
    }
}

impl Column {
    /// The text of the entry that this column sets; `None` if this text never has doubled quotes.
    fn slot(self) -> Option<Slot> {
        match self {
            Column::Agent => Some(Slot::Agent),
            Column::Referer => Some(Slot::Referer),
            Column::Stem => Some(Slot::Target),
            Column::Query => Some(Slot::Query),
            _ => None,
        }
    }
}

fn column(name: &[u8]) -> Column {
    match name.to_ascii_lowercase().as_slice() {
        b"date" => Column::Date,
        b"time" => Column::Time,
        b"timestamp" | b"x-timestamp" => Column::Stamp,
        b"c-ip" => Column::Client,
        b"x-forwarded-for" | b"cs(x-forwarded-for)" => Column::Forwarded,
        // Microsoft's proxy uses its own names for some columns, such as `s-operation`.
        b"cs-method" | b"s-operation" => Column::Method,
        b"cs-uri-stem" | b"cs-uri" => Column::Stem,
        b"cs-uri-query" => Column::Query,
        b"cs-version" | b"cs-protocol-version" => Column::Protocol,
        b"x-host-header" => Column::Host(0),
        b"cs-host" | b"cs(host)" => Column::Host(1),
        b"r-host" => Column::Host(2),
        b"cs(user-agent)" | b"cs-user-agent" | b"c-agent" => Column::Agent,
        b"cs(referer)" | b"cs-referer" | b"cs-referred" => Column::Referer,
        b"sc-status" => Column::Status,
        b"sc-bytes" => Column::Bytes,
        b"time-taken" => Column::Taken,
        _ => Column::Skip,
    }
}
