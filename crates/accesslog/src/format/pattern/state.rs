//! What a pattern's fields say, on its way to an entry.

use super::Kind;
use super::tail::TailFields;
use crate::entry::{Entry, Malformed};
use crate::format::found::{Found, begun, client, first_address, text, without_port};
use crate::format::number::{self, Unit};
use crate::format::time::{self, Clock, Parts, Stamp};
use memchr::memchr;

/// What is known of a line so far.
#[derive(Default)]
pub(super) struct State<'a> {
    pub(super) found: Found<'a>,
    forwarded: &'a [u8],
    stamp: Option<Stamp>,
    parts: Parts,
    /// The sum of stages; the inner none if one is missing.
    stages_ns: Option<Option<u64>>,
}

impl<'a> State<'a> {
    #[inline]
    pub(super) fn text(&mut self, kind: Kind, raw: &'a [u8]) {
        let entry = &mut self.found.entry;
        match kind {
            Kind::Client | Kind::Address => entry.client = client(raw),
            Kind::ClientPort => entry.client = text(without_port(raw)),
            Kind::Forwarded | Kind::ForwardedAddresses => self.forwarded = first_address(raw),
            Kind::Host | Kind::HostName => entry.host = text(raw),
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
            Kind::OwnUnitService => entry.service_ns = number::any_duration(raw, None).flatten(),
            _ => {}
        }
    }

    #[inline]
    pub(super) fn number(&mut self, kind: Kind, rest: &[u8], clock: &mut Clock) -> Option<usize> {
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
            Kind::DecimalService => {
                let (ns, length) = number::duration_or_none(rest, Unit::Seconds)?;
                (ns.is_none() || number::has_milliseconds(rest.get(..length)?)).then_some(())?;
                entry.service_ns = ns;
                length
            }
            Kind::DecimalUpstream => {
                let (ns, length) = number::durations(rest, Unit::Seconds)?;
                (ns.is_none() || number::has_milliseconds(rest.get(..length)?)).then_some(())?;
                entry.upstream_ns = ns;
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
    pub(super) fn tail(&mut self, line: &'a [u8], at: usize, with_time: bool) -> Result<(), Malformed> {
        let mut times = 0;
        for field in TailFields::new(line, at) {
            let field = field?;
            times += usize::from(self.labelled(field.label, field.value, times));
        }
        if at >= line.len() || (with_time && times == 0) {
            return Err(Malformed::at(line.len(), "a space and the time that the request took"));
        }
        Ok(())
    }

    /// Takes a field of the tail, and says whether it is a duration.
    fn labelled(&mut self, label: &[u8], value: &'a [u8], times: usize) -> bool {
        let entry = &mut self.found.entry;
        let seconds = number::durations(value, Unit::Seconds).filter(|(_, length)| *length == value.len());
        let is_decimal = seconds.is_some() && number::has_milliseconds(value);
        match (label, seconds) {
            (b"rt" | b"request_time" | b"reqtime", Some((ns, _))) => entry.service_ns = ns,
            (b"urt" | b"ut" | b"upstream_response_time" | b"apptime", Some((ns, _))) => entry.upstream_ns = ns,
            // nginx's have a point and three digits, always (a ratio of compression has two); the first is the whole, the
            // second that of the server behind it.
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
    pub(super) fn finish(&mut self, line: &'a [u8], has_parts: bool, is_end: bool) -> Result<(), Malformed> {
        let stamp = match (has_parts, self.stamp) {
            (true, Some(stamp)) => Some(self.parts.with_fraction(stamp)),
            (true, None) => self.parts.stamp(),
            (false, stamp) => stamp,
        };
        let stamp = stamp.ok_or_else(|| Malformed::at(line.len(), "a time that there is"))?;
        let entry: &mut Entry<'a> = &mut self.found.entry;
        (entry.time_ns, entry.is_fine, entry.offset_s) = (stamp.ns, stamp.is_fine, stamp.offset_s);
        if let Some(sum) = self.stages_ns {
            entry.service_ns = sum;
        }
        if !self.forwarded.is_empty() {
            entry.client = self.forwarded;
        }
        begun(entry, is_end);
        Ok(())
    }
}
