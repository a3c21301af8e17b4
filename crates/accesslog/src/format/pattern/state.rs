//! Collects the values of a line's fields while the line is read.

use super::FieldKind;
use super::tail::TailFields;
use crate::entry::{Entry, LineParseError};
use crate::format::number::{self, TimeUnit};
use crate::format::request::{RawRequest, client_address, first_address, move_to_start, without_dash, without_port};
use crate::format::time::{self, Clock, Parts, Stamp};
use memchr::memchr;

/// The values of the fields that were read from a line so far.
#[derive(Default)]
pub(super) struct State<'a> {
    /// The request, with texts as they are written in the line.
    pub(super) raw: RawRequest<'a>,
    forwarded: &'a [u8],
    stamp: Option<Stamp>,
    parts: Parts,
    /// Sum of the stages of the service time, in nanoseconds. It is `Some(None)` if a stage has no value, and `None`
    /// before the first stage.
    stages_ns: Option<Option<u64>>,
}

impl<'a> State<'a> {
    /// Stores the value `raw` of a text field.
    #[inline]
    pub(super) fn set_text(&mut self, kind: FieldKind, raw: &'a [u8]) {
        let entry = &mut self.raw.entry;
        match kind {
            FieldKind::Client | FieldKind::Address => entry.client = client_address(raw),
            FieldKind::ClientPort => entry.client = without_dash(without_port(raw)),
            FieldKind::Forwarded | FieldKind::ForwardedAddresses => self.forwarded = first_address(raw),
            FieldKind::Host | FieldKind::HostName => entry.host = without_dash(raw),
            FieldKind::HostTarget => {
                let end = memchr(b'/', raw).unwrap_or(raw.len());
                entry.host = without_dash(raw.get(..end).unwrap_or_default());
                entry.target = raw.get(end..).unwrap_or_default();
            }
            FieldKind::Agent => entry.user_agent = without_dash(raw),
            FieldKind::Referer => entry.referer = without_dash(raw),
            FieldKind::Request | FieldKind::UrlRequest => {
                entry.target = raw;
                self.raw.is_request_line = true;
                self.raw.may_be_absolute = kind == FieldKind::UrlRequest;
            }
            FieldKind::Method => entry.method = without_dash(raw),
            FieldKind::Target | FieldKind::Path => entry.target = without_dash(raw),
            FieldKind::Query => self.raw.query = without_dash(raw.strip_prefix(b"?").unwrap_or(raw)),
            FieldKind::Protocol => entry.protocol = without_dash(raw),
            FieldKind::OwnUnitService => entry.service_ns = number::any_duration(raw, None).flatten(),
            _ => {}
        }
    }

    /// Reads and stores a number or time at the start of `rest`. Returns its length in bytes; `None` if it is not
    /// valid.
    #[inline]
    pub(super) fn set_number(&mut self, kind: FieldKind, rest: &[u8], clock: &mut Clock) -> Option<usize> {
        let entry = &mut self.raw.entry;
        let mut at = |(stamp, length): (Stamp, usize)| {
            self.stamp = Some(stamp);
            length
        };
        let length = match kind {
            FieldKind::Clf => at(clock.clf(rest)?),
            FieldKind::Iso => at(clock.iso(rest)?),
            FieldKind::Epoch => at(time::epoch(rest)?),
            FieldKind::Part(part) => self.parts.read(part, rest)?,
            FieldKind::Status => {
                let (status, length) = number::status(rest)?;
                entry.status = status;
                length
            }
            FieldKind::Bytes => {
                let (bytes, length) = number::byte_count(rest)?;
                entry.bytes = bytes;
                length
            }
            FieldKind::Service(unit) => {
                let (ns, length) = number::duration_or_none(rest, unit)?;
                entry.service_ns = ns;
                length
            }
            FieldKind::WholeService(unit) => {
                let (ns, length) = number::duration_or_none(rest, unit)?;
                rest.get(..length)?.iter().all(|byte| *byte != b'.').then_some(())?;
                entry.service_ns = ns;
                length
            }
            FieldKind::DecimalService => {
                let (ns, length) = number::duration_or_none(rest, TimeUnit::Seconds)?;
                (ns.is_none() || number::has_milliseconds(rest.get(..length)?)).then_some(())?;
                entry.service_ns = ns;
                length
            }
            FieldKind::DecimalUpstream => {
                let (ns, length) = number::durations(rest, TimeUnit::Seconds)?;
                (ns.is_none() || number::has_milliseconds(rest.get(..length)?)).then_some(())?;
                entry.upstream_ns = ns;
                length
            }
            FieldKind::Upstream(unit) => {
                let (ns, length) = number::durations(rest, unit)?;
                entry.upstream_ns = ns;
                length
            }
            FieldKind::Stage | FieldKind::UpstreamStage => {
                let (ns, length) = number::duration_or_none(rest, TimeUnit::Seconds)?;
                let sum = self.stages_ns.unwrap_or(Some(0));
                self.stages_ns = Some(sum.and_then(|sum| Some(sum.saturating_add(ns?))));
                if kind == FieldKind::UpstreamStage {
                    entry.upstream_ns = ns;
                }
                length
            }
            _ => number::durations(rest, TimeUnit::Seconds)?.1,
        };
        Some(length)
    }

    /// Reads additional fields, which follow the format's own fields. A space precedes each additional field.
    #[cold]
    pub(super) fn tail(&mut self, line: &'a [u8], at: usize, with_time: bool) -> Result<(), LineParseError> {
        let mut times = 0;
        for field in TailFields::new(line, at) {
            let field = field?;
            times += usize::from(self.labelled(field.label, field.value, times));
        }
        if at >= line.len() || (with_time && times == 0) {
            return Err(LineParseError::at_byte(line.len(), "a space and the time that the request took"));
        }
        Ok(())
    }

    /// Reads an additional field, which may have a label. Returns whether the field is a duration. `times` is the
    /// number of durations before this field.
    fn labelled(&mut self, label: &[u8], value: &'a [u8], times: usize) -> bool {
        let entry = &mut self.raw.entry;
        let seconds = number::durations(value, TimeUnit::Seconds).filter(|(_, length)| *length == value.len());
        let is_decimal = seconds.is_some() && number::has_milliseconds(value);
        match (label, seconds) {
            (b"rt" | b"request_time" | b"reqtime", Some((ns, _))) => entry.service_ns = ns,
            (b"urt" | b"ut" | b"upstream_response_time" | b"apptime", Some((ns, _))) => entry.upstream_ns = ns,
            // nginx's durations have three digits after the point, in contrast to a compression ratio, which has two.
            // The first duration is that of the request, and the second is that of the upstream server.
            (b"", Some((ns, _))) if is_decimal && times == 0 => entry.service_ns = ns,
            (b"", Some((ns, _))) if is_decimal && times == 1 => entry.upstream_ns = ns,
            (b"host" | b"vhost" | b"sn", None) => {
                entry.host = without_dash(value);
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Completes the request after all fields were read. `has_parts` is whether the time has several separate fields.
    #[inline]
    pub(super) fn finish(&mut self, line: &'a [u8], has_parts: bool, is_end_time: bool) -> Result<(), LineParseError> {
        let stamp = match (has_parts, self.stamp) {
            (true, Some(stamp)) => Some(self.parts.with_fraction(stamp)),
            (true, None) => self.parts.stamp(),
            (false, stamp) => stamp,
        };
        let stamp = stamp.ok_or_else(|| LineParseError::at_byte(line.len(), "a valid time"))?;
        let entry: &mut Entry<'a> = &mut self.raw.entry;
        (entry.time_ns, entry.has_subsecond_time, entry.offset_s) =
            (stamp.ns, stamp.has_subsecond_time, stamp.offset_s);
        if let Some(sum) = self.stages_ns {
            entry.service_ns = sum;
        }
        if !self.forwarded.is_empty() {
            entry.client = self.forwarded;
        }
        move_to_start(entry, is_end_time);
        Ok(())
    }
}
