//! Reads lines whose fields have names, in any order. Determines the meanings of the names, and combines the values
//! into a request. Also reads Labelled Tab-separated Values (ltsv.org).
//!
//! The comparison of names ignores case and the characters `_`, `-`, `.` and `$`. If several fields of a line have the
//! same purpose, the field with the lowest rank is used. The names come from the documentation of Caddy 2, Traefik 3,
//! Envoy, nginx, Elastic Common Schema, Google Cloud, API Gateway and ltsv.org.

use super::number::{TimeUnit, any_duration, byte_count, status};
use super::request::{
    Parsed, RawRequest, Slot, client_address, first_address, move_to_start, without_dash, without_port,
};
use super::time::{Clock, Stamp};
use crate::entry::LineParseError;
use memchr::memchr;

/// The meaning of a named field in a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The time at which the request ended.
    Time,
    /// The time at which the request began.
    Start,
    Request,
    Method,
    Target,
    Query,
    Protocol,
    Host,
    Client,
    ClientPort,
    Forwarded,
    Agent,
    Referer,
    Status,
    Bytes,
    /// The service time, in this unit. `None` if the value itself shows the unit.
    Service(Option<TimeUnit>),
    Upstream(Option<TimeUnit>),
}

/// A field's name in lower case, without separators.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    bytes: [u8; 40],
    length: usize,
}

impl Name {
    /// Creates an empty name.
    pub(crate) fn new() -> Name {
        Name { bytes: [0; 40], length: 0 }
    }

    /// Appends `text` to the name. A name that becomes too long matches no field.
    pub(crate) fn with(mut self, text: &[u8]) -> Name {
        for byte in text.iter().filter(|byte| !matches!(byte, b'_' | b'-' | b'.' | b'$' | b' ')) {
            match self.bytes.get_mut(self.length) {
                Some(place) => *place = byte.to_ascii_lowercase(),
                None => return Name { bytes: [0; 40], length: 40 },
            }
            self.length += 1;
        }
        self
    }

    /// Whether an object with this name only groups fields, so that its fields are read like fields outside of it.
    pub(crate) fn is_wrapper(&self) -> bool {
        let name = self.bytes.get(..self.length).unwrap_or_default();
        matches!(name, b"properties" | b"fields" | b"data" | b"access" | b"accesslog" | b"http" | b"nginx")
    }

    /// The meaning of a field with this name, and its rank. Of several fields with the same purpose, the one with the
    /// lowest rank is used.
    pub(crate) fn meaning(&self) -> Option<(Meaning, u8)> {
        let name = self.bytes.get(..self.length).unwrap_or_default();
        time(name).or_else(|| request(name)).or_else(|| answer(name))
    }
}

fn time(name: &[u8]) -> Option<(Meaning, u8)> {
    Some(match name {
        b"starttime" | b"startutc" | b"edgestarttimestamp" | b"eventstart" => (Meaning::Start, 0),
        b"startlocal" | b"requesttimeepoch" => (Meaning::Start, 1),
        b"msec" | b"timems" | b"timestampms" | b"epochms" => (Meaning::Time, 2),
        b"ts" | b"@timestamp" | b"timestamp" | b"timeiso8601" => (Meaning::Time, 3),
        b"time" | b"timelocal" | b"datetime" | b"logtime" | b"eventtime" | b"epoch" => (Meaning::Time, 4),
        b"date" | b"localtime" => (Meaning::Time, 5),
        _ => return None,
    })
}

fn request(name: &[u8]) -> Option<(Meaning, u8)> {
    use Meaning::*;
    Some(match name {
        b"request" | b"req" | b"requestline" | b"httprequest" => (Request, 0),
        b"method" | b"requestmethod" | b"httpmethod" | b"verb" | b"httprequestrequestmethod" => (Method, 0),
        b"clientrequestmethod" => (Method, 0),
        b"requesturi" | b"clientrequesturi" | b"xenvoyoriginalpath" | b"originalpath" | b"urloriginal" | b"rawuri" => {
            (Target, 0)
        }
        b"uri" | b"requesturl" | b"httprequestrequesturl" => (Target, 1),
        b"requestpath" | b"url" | b"urlfull" | b"target" => (Target, 2),
        b"path" | b"urlpath" | b"uripath" | b"endpoint" => (Target, 3),
        b"query" | b"querystring" | b"args" | b"urlquery" | b"requestquery" => (Query, 0),
        b"protocol" | b"proto" | b"requestproto" | b"requestprotocol" | b"serverprotocol" => (Protocol, 0),
        b"clientrequestprotocol" | b"httpversion" | b"httprequestprotocol" | b"requesthttpversion" => (Protocol, 1),
        b"host" | b"vhost" | b"requesthost" | b"httphost" | b"authority" | b"headershost" => (Host, 0),
        b"clientrequesthost" | b"xforwardedhost" | b"virtualhost" | b"domain" | b"urldomain" | b"domainname" => {
            (Host, 1)
        }
        b"servername" | b"requestaddr" => (Host, 2),
        b"clientip" | b"requestclientip" | b"clientaddress" => (Client, 0),
        b"remoteaddr" | b"remoteip" | b"requestremoteip" | b"remotehost" | b"clienthost" => (Client, 1),
        b"httprequestremoteip" | b"sourceip" | b"identitysourceip" | b"ip" | b"client" => (Client, 2),
        b"clientaddr" | b"downstreamremoteaddress" | b"requestremoteaddr" | b"remote" => (ClientPort, 3),
        b"xforwardedfor" | b"forwardedfor" | b"httpxforwardedfor" | b"headersxforwardedfor" => (Forwarded, 0),
        b"realip" | b"xrealip" | b"httpxrealip" | b"headersxrealip" => (Forwarded, 1),
        b"useragent" | b"ua" | b"httpuseragent" | b"headersuseragent" | b"agent" => (Agent, 0),
        b"clientrequestuseragent" | b"useragentoriginal" | b"requestuseragent" | b"httprequestuseragent" => (Agent, 1),
        b"referer" | b"referrer" | b"httpreferer" | b"httpreferrer" | b"headersreferer" => (Referer, 0),
        b"clientrequestreferer"
        | b"requestreferer"
        | b"requestreferrer"
        | b"httprequestreferer"
        | b"httprequestreferrer" => (Referer, 1),
        _ => return None,
    })
}

fn answer(name: &[u8]) -> Option<(Meaning, u8)> {
    use Meaning::*;
    use TimeUnit::*;
    Some(match name {
        b"status" | b"responsecode" | b"downstreamstatus" | b"responsestatuscode" | b"httpresponsestatuscode" => {
            (Status, 0)
        }
        b"edgeresponsestatus"
        | b"statuscode"
        | b"httpstatus"
        | b"httpstatuscode"
        | b"responsestatus"
        | b"httprequeststatus" => (Status, 1),
        b"code" => (Status, 2),
        b"bodybytessent" | b"downstreamcontentsize" | b"responsebodysize" => (Bytes, 0),
        b"edgeresponsebytes"
        | b"size"
        | b"responsesize"
        | b"responsebytes"
        | b"responselength"
        | b"httprequestresponsesize" => (Bytes, 1),
        b"bytes" | b"bytessent" | b"bytesout" | b"sentbytes" | b"contentlength" => (Bytes, 2),
        b"reqtimemicrosec" | b"durationus" | b"requesttimeus" | b"elapsedus" => (Service(Some(Microseconds)), 0),
        b"durationns" | b"eventduration" | b"elapsedns" => (Service(Some(Nanoseconds)), 0),
        b"durationms" | b"latencyms" | b"elapsedms" | b"responsetimems" | b"requesttimems" => {
            (Service(Some(Milliseconds)), 1)
        }
        b"requesttime" | b"reqtime" | b"takensec" | b"durations" | b"durationsec" => (Service(Some(Seconds)), 1),
        b"duration" | b"latency" | b"elapsed" | b"responsetime" | b"taken" | b"timetaken" => (Service(None), 2),
        b"httprequestlatency" | b"responselatency" => (Service(None), 2),
        b"upstreamresponsetime" | b"apptime" | b"upstreamtime" | b"runtime" => (Upstream(Some(Seconds)), 0),
        b"originduration" | b"originresponsetime" => (Upstream(Some(Nanoseconds)), 0),
        b"upstreamservicetime" | b"xenvoyupstreamservicetime" => (Upstream(Some(Milliseconds)), 1),
        _ => return None,
    })
}

/// Reads a line of LTSV: `label:value`, with a tab between fields. The value of the label `host` is the client.
pub(crate) fn read_ltsv<'a>(
    line: &'a [u8],
    clock: &mut Clock,
    default_unit: TimeUnit,
) -> Result<Parsed<'a>, LineParseError> {
    let mut fields = LabelledRequest::new(default_unit);
    let mut at = 0;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let field = rest.get(..memchr(b'\t', rest).unwrap_or(rest.len())).unwrap_or_default();
        let label_length = field.iter().take_while(|byte| is_label(**byte)).count();
        let label = field.get(..label_length).unwrap_or_default();
        if label.is_empty() || field.get(label_length) != Some(&b':') {
            return Err(LineParseError::at_byte(at, "a label, a colon and a value"));
        }
        let raw = field.get(label_length + 1..).unwrap_or_default();
        let known = if label == b"host" { Some((Meaning::Client, 0)) } else { Name::new().with(label).meaning() };
        if let Some(known) = known {
            let value = Value { raw, is_escaped: false };
            fields
                .set(known, value, clock)
                .map_err(|expected| LineParseError::at_byte(at + label_length + 1, expected))?;
        }
        if field.len() == rest.len() {
            return fields.finish().map_err(|expected| LineParseError::at_byte(line.len(), expected));
        }
        at += field.len() + 1;
    }
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// A value as it is written in the line, with its escapes.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    /// The bytes of the value.
    pub raw: &'a [u8],
    /// Whether the value has JSON escapes.
    pub is_escaped: bool,
}

/// A request whose named fields are being read, one after another.
pub(crate) struct LabelledRequest<'a> {
    /// The unit of durations that are whole numbers and whose field name does not state a unit.
    default_unit: TimeUnit,
    raw: RawRequest<'a>,
    /// The request line.
    request: Option<Value<'a>>,
    forwarded: &'a [u8],
    stamp: Option<Stamp>,
    is_end: bool,
    /// For each purpose of a field, the lowest rank of the fields read so far.
    ranks: [u8; 15],
    has_target: bool,
    has_status: bool,
}

impl<'a> LabelledRequest<'a> {
    /// Creates an empty request. `default_unit` is the unit of durations that are whole numbers and whose field name
    /// does not state a unit.
    pub(crate) fn new(default_unit: TimeUnit) -> Self {
        LabelledRequest {
            default_unit,
            raw: RawRequest { may_be_absolute: true, ..RawRequest::default() },
            request: None,
            forwarded: &[],
            stamp: None,
            is_end: false,
            ranks: [u8::MAX; 15],
            has_target: false,
            has_status: false,
        }
    }

    /// Adds a field. The error describes the value that was expected.
    pub(crate) fn set(
        &mut self,
        (meaning, rank): (Meaning, u8),
        value: Value<'a>,
        clock: &mut Clock,
    ) -> Result<(), &'static str> {
        // The value is missing, so another field with the same purpose may be used.
        if value.raw.is_empty() || value.raw == b"-" {
            self.has_status |= meaning == Meaning::Status;
            return Ok(());
        }
        if let Some(best) = self.ranks.get_mut(purpose(meaning)) {
            if rank >= *best {
                return Ok(());
            }
            *best = rank;
        }
        let entry = &mut self.raw.entry;
        let slot = match meaning {
            Meaning::Time | Meaning::Start => return self.time(meaning == Meaning::Time, value.raw, clock),
            Meaning::Status => {
                let (found, length) = status(value.raw).ok_or("a status of three digits")?;
                (entry.status, self.has_status) = (found, true);
                return if length == value.raw.len() { Ok(()) } else { Err("a status of three digits") };
            }
            Meaning::Bytes => {
                // Some programs write whole numbers with a decimal point, such as `5.0`.
                let digits = value.raw.strip_suffix(b".0").unwrap_or(value.raw);
                let (found, length) = byte_count(digits).ok_or("a number of bytes")?;
                entry.bytes = found;
                return if length == digits.len() { Ok(()) } else { Err("a number of bytes") };
            }
            // In API Gateway's logs `requestTime` is a date. In nginx's logs `request_time` is a duration.
            Meaning::Service(_) if value.raw.contains(&b'/') => return self.time(false, value.raw, clock),
            Meaning::Service(unit) => {
                let is_whole = value.raw.iter().all(u8::is_ascii_digit);
                let unit = unit.or(if is_whole { Some(self.default_unit) } else { None });
                entry.service_ns = any_duration(value.raw, unit).ok_or("the time that the request took")?;
                return Ok(());
            }
            Meaning::Upstream(unit) => {
                entry.upstream_ns = any_duration(value.raw, unit).ok_or("the time that the server behind took")?;
                return Ok(());
            }
            Meaning::Request => {
                self.request = Some(value);
                return Ok(());
            }
            Meaning::Forwarded => {
                self.forwarded = first_address(value.raw);
                return Ok(());
            }
            Meaning::Method => (&mut entry.method, Slot::Method),
            Meaning::Target => {
                self.has_target = true;
                (&mut entry.target, Slot::Target)
            }
            Meaning::Query => (&mut self.raw.query, Slot::Query),
            Meaning::Protocol => (&mut entry.protocol, Slot::Protocol),
            Meaning::Host => (&mut entry.host, Slot::Host),
            Meaning::Client | Meaning::ClientPort => (&mut entry.client, Slot::Client),
            Meaning::Agent => (&mut entry.user_agent, Slot::Agent),
            Meaning::Referer => (&mut entry.referer, Slot::Referer),
        };
        let (place, slot) = slot;
        *place = match meaning {
            Meaning::ClientPort if !value.raw.contains(&b',') => without_port(value.raw),
            Meaning::Client | Meaning::ClientPort => client_address(value.raw),
            Meaning::Query => value.raw.strip_prefix(b"?").unwrap_or(value.raw),
            _ => without_dash(value.raw),
        };
        let bit = 1 << slot as u8;
        self.raw.escaped_slots =
            if value.is_escaped { self.raw.escaped_slots | bit } else { self.raw.escaped_slots & !bit };
        Ok(())
    }

    fn time(&mut self, is_end: bool, text: &[u8], clock: &mut Clock) -> Result<(), &'static str> {
        let mut plain = [0; 48];
        let text = without_backslashes(text, &mut plain).unwrap_or(text);
        self.stamp = Some(clock.any_notation(text).ok_or("a time such as 2000-10-10T13:55:36-07:00")?);
        self.is_end = is_end;
        Ok(())
    }

    /// Whether any field that was read belongs to a request.
    pub(crate) fn is_request(&self) -> bool {
        self.request.is_some() || self.has_target || (self.has_status && !self.raw.entry.method.is_empty())
    }

    /// Completes the request. The error names the field that is missing in the line.
    pub(crate) fn finish(mut self) -> Result<Parsed<'a>, &'static str> {
        let stamp = self.stamp.ok_or("a field with the time: time, ts, msec, @timestamp or the like")?;
        if let Some(request) = self.request.filter(|_| !self.has_target) {
            self.raw.entry.target = request.raw;
            self.raw.is_request_line = true;
            let bit = 1 << Slot::Target as u8;
            self.raw.escaped_slots =
                if request.is_escaped { self.raw.escaped_slots | bit } else { self.raw.escaped_slots & !bit };
        } else if !self.has_target {
            return Err("a field with the request: request, or method and uri");
        }
        let entry = &mut self.raw.entry;
        (entry.time_ns, entry.has_subsecond_time, entry.offset_s) =
            (stamp.ns, stamp.has_subsecond_time, stamp.offset_s);
        if !self.forwarded.is_empty() {
            entry.client = self.forwarded;
            self.raw.escaped_slots &= !(1 << Slot::Client as u8);
        }
        move_to_start(&mut self.raw.entry, self.is_end);
        Ok(Parsed::Request(self.raw))
    }
}

/// Removes the backslashes of slashes that are escaped as in `10\/Oct\/2000`.
fn without_backslashes<'b>(text: &[u8], plain: &'b mut [u8; 48]) -> Option<&'b [u8]> {
    memchr(b'\\', text)?;
    let mut length = 0;
    for byte in text.iter().filter(|byte| **byte != b'\\') {
        *plain.get_mut(length)? = *byte;
        length += 1;
    }
    plain.get(..length)
}

fn purpose(meaning: Meaning) -> usize {
    match meaning {
        Meaning::Time | Meaning::Start => 0,
        Meaning::Request => 1,
        Meaning::Method => 2,
        Meaning::Target => 3,
        Meaning::Query => 4,
        Meaning::Protocol => 5,
        Meaning::Host => 6,
        Meaning::Client | Meaning::ClientPort => 7,
        Meaning::Forwarded => 8,
        Meaning::Agent => 9,
        Meaning::Referer => 10,
        Meaning::Status => 11,
        Meaning::Bytes => 12,
        Meaning::Service(_) => 13,
        Meaning::Upstream(_) => 14,
    }
}
