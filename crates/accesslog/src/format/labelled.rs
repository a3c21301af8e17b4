//! Lines whose fields have names, in any order: what the names mean, and how their values become a request.
//!
//! Names are compared without regard to case and to `_`, `-`, `.` and `$` in them; where a line has several fields for
//! one thing, that with the least rank counts. The names are those of the servers' documentation (Caddy 2, Traefik 3,
//! Envoy, nginx, Elastic Common Schema, Google Cloud, API Gateway) and of ltsv.org.

use super::found::{Found, Parsed, Slot, begun, client, first_address, text, without_port};
use super::number::{Unit, any_duration, bytes, status};
use super::time::{Clock, Stamp};

/// What a field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// When the request ended.
    Time,
    /// When it came.
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
    /// The unit, where its look does not tell it.
    Service(Option<Unit>),
    Upstream(Option<Unit>),
}

/// A name without what is not compared.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    bytes: [u8; 40],
    length: usize,
}

impl Name {
    pub(crate) fn new() -> Name {
        Name { bytes: [0; 40], length: 0 }
    }

    /// With more of it; a name that is too long is none that is known, and becomes one that no field has.
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

    /// Whether its fields may be meant without it.
    pub(crate) fn is_wrapper(&self) -> bool {
        let name = self.bytes.get(..self.length).unwrap_or_default();
        matches!(name, b"properties" | b"fields" | b"data" | b"access" | b"accesslog" | b"http" | b"nginx")
    }

    /// What it means, and its rank.
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
    use Unit::*;
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

/// A value as the line has it.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub raw: &'a [u8],
    /// Whether it has JSON's escapes.
    pub is_escaped: bool,
}

/// What is known of a line so far.
pub(crate) struct Labelled<'a> {
    whole: Unit,
    found: Found<'a>,
    /// The request as a line of its own, and whether it has escapes.
    request: Option<Value<'a>>,
    forwarded: &'a [u8],
    stamp: Option<Stamp>,
    is_end: bool,
    /// The least rank so far of each purpose.
    ranks: [u8; 15],
    has_target: bool,
    has_status: bool,
}

impl<'a> Labelled<'a> {
    /// A reader of no line yet. Whole numbers that are times and do not name their unit are in units of `whole`.
    pub(crate) fn new(whole: Unit) -> Self {
        Labelled {
            whole,
            found: Found { may_be_absolute: true, ..Found::default() },
            request: None,
            forwarded: &[],
            stamp: None,
            is_end: false,
            ranks: [u8::MAX; 15],
            has_target: false,
            has_status: false,
        }
    }

    /// Takes a field; an error is what its value should have been.
    pub(crate) fn set(
        &mut self,
        (meaning, rank): (Meaning, u8),
        value: Value<'a>,
        clock: &mut Clock,
    ) -> Result<(), &'static str> {
        // A value that is not there leaves its place to another field.
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
        let entry = &mut self.found.entry;
        let slot = match meaning {
            Meaning::Time | Meaning::Start => return self.time(meaning == Meaning::Time, value.raw, clock),
            Meaning::Status => {
                let (found, length) = status(value.raw).ok_or("a status of three digits")?;
                (entry.status, self.has_status) = (found, true);
                return if length == value.raw.len() { Ok(()) } else { Err("a status of three digits") };
            }
            Meaning::Bytes => {
                // Some programs write all numbers with a point.
                let digits = value.raw.strip_suffix(b".0").unwrap_or(value.raw);
                let (found, length) = bytes(digits).ok_or("a number of bytes")?;
                entry.bytes = found;
                return if length == digits.len() { Ok(()) } else { Err("a number of bytes") };
            }
            // API Gateway's is the time of the request, nginx's how long it took.
            Meaning::Service(_) if value.raw.contains(&b'/') => return self.time(false, value.raw, clock),
            Meaning::Service(unit) => {
                let is_whole = value.raw.iter().all(u8::is_ascii_digit);
                let unit = unit.or(if is_whole { Some(self.whole) } else { None });
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
            Meaning::Query => (&mut self.found.query, Slot::Query),
            Meaning::Protocol => (&mut entry.protocol, Slot::Protocol),
            Meaning::Host => (&mut entry.host, Slot::Host),
            Meaning::Client | Meaning::ClientPort => (&mut entry.client, Slot::Client),
            Meaning::Agent => (&mut entry.agent, Slot::Agent),
            Meaning::Referer => (&mut entry.referer, Slot::Referer),
        };
        let (place, slot) = slot;
        *place = match meaning {
            Meaning::ClientPort if !value.raw.contains(&b',') => without_port(value.raw),
            Meaning::Client | Meaning::ClientPort => client(value.raw),
            Meaning::Query => value.raw.strip_prefix(b"?").unwrap_or(value.raw),
            _ => text(value.raw),
        };
        let bit = 1 << slot as u8;
        self.found.escaped = if value.is_escaped { self.found.escaped | bit } else { self.found.escaped & !bit };
        Ok(())
    }

    fn time(&mut self, is_end: bool, text: &[u8], clock: &mut Clock) -> Result<(), &'static str> {
        let mut plain = [0; 48];
        let text = without_backslashes(text, &mut plain).unwrap_or(text);
        self.stamp = Some(clock.any(text).ok_or("a time such as 2000-10-10T13:55:36-07:00")?);
        self.is_end = is_end;
        Ok(())
    }

    /// Whether anything of it is a request's.
    pub(crate) fn is_request(&self) -> bool {
        self.request.is_some() || self.has_target || (self.has_status && !self.found.entry.method.is_empty())
    }

    /// The request; an error is what the line should have had.
    pub(crate) fn finish(mut self) -> Result<Parsed<'a>, &'static str> {
        let stamp = self.stamp.ok_or("a field with the time: time, ts, msec, @timestamp or the like")?;
        if let Some(request) = self.request.filter(|_| !self.has_target) {
            self.found.entry.target = request.raw;
            self.found.is_request_line = true;
            let bit = 1 << Slot::Target as u8;
            self.found.escaped = if request.is_escaped { self.found.escaped | bit } else { self.found.escaped & !bit };
        } else if !self.has_target {
            return Err("a field with the request: request, or method and uri");
        }
        let entry = &mut self.found.entry;
        (entry.time_ns, entry.is_fine, entry.offset_s) = (stamp.ns, stamp.is_fine, stamp.offset_s);
        if !self.forwarded.is_empty() {
            entry.client = self.forwarded;
            self.found.escaped &= !(1 << Slot::Client as u8);
        }
        begun(&mut self.found.entry, self.is_end);
        Ok(Parsed::Found(self.found))
    }
}

/// `10\/Oct\/2000`, as some write a slash.
fn without_backslashes<'b>(text: &[u8], plain: &'b mut [u8; 48]) -> Option<&'b [u8]> {
    memchr::memchr(b'\\', text)?;
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
