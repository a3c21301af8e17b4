//! Formats of access logs: from a line's bytes to an [`Entry`](crate::Entry).
//!
//! - `pattern`: fields in a given order; `apache` and `nginx` make one of what a server is configured with, which
//!   `configuration` finds in its files.
//! - `labelled`: fields with names; `json` and `ltsv` are such.
//! - `w3c`, `haproxy` and `squid`: fields in an order that the log tells, and those of two proxies.
//! - `prefix`: what syslog and the like put before a line; `docker`: lines wrapped up in JSON.
//! - `time`, `number`: what stands in fields. `found`: what is known of a line, on its way to an entry.
//!
//! A reader looks at each byte of a line a few times at most and allocates nothing, unless the line is malformed.

mod apache;
mod configuration;
pub(crate) mod docker;
mod found;
mod haproxy;
mod json;
mod labelled;
mod ltsv;
mod nginx;
mod number;
mod pattern;
mod prefix;
mod squid;
mod time;
mod w3c;

use crate::entry::{Line, Malformed, Scratch};
use crate::error::LogError;
pub(crate) use found::{Parsed, ip, is_address_list};
pub(crate) use number::{Unit, has_milliseconds, has_unit, whole};
pub(crate) use pattern::tail::{TailField, TailFields};
use pattern::{Pattern, Tail};
use time::Clock;

/// How lines are read.
#[derive(Clone, Debug)]
pub struct Format {
    name: String,
    reader: Reader,
}

#[derive(Clone, Debug)]
enum Reader {
    Pattern(Box<Pattern>),
    /// With the unit of whole numbers that do not say theirs.
    Json(Clock, Unit),
    Ltsv(Clock, Unit),
    W3c(Box<w3c::W3c>),
    Haproxy(Clock),
    Squid,
}

/// A format that is known by name: what is written of a request, and by whom.
struct BuiltIn {
    name: &'static str,
    /// As nginx would have it.
    format: &'static str,
    tail: Tail,
    /// Whether the time is that of the end of the request.
    is_end: bool,
}

const COMMON: &str = r#"$remote_addr $ident $user [$time_local] "$request" $status $body_bytes_sent"#;
const COMBINED: &str =
    r#"$remote_addr $ident $user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;
const VHOST_COMBINED: &str = concat!(
    r#"$server_name:$port $remote_addr $ident $user [$time_local] "$request" $status $bytes_sent "#,
    r#""$http_referer" "$http_user_agent""#
);
const ALB: &str = concat!(
    "$type $time_iso8601 $elb $client_port $target $stage $upstream_stage $stage $status $target_status $received ",
    r#"$bytes_sent "$url_request" "$http_user_agent" "#
);
const ELB: &str = concat!(
    "$time_iso8601 $elb $client_port $target $stage $upstream_stage $stage $status $target_status $received ",
    r#"$bytes_sent "$url_request" "$http_user_agent" $cipher $tls"#
);
// The version is the last field that each log has; its time is that of the request's coming.
const S3: &str = concat!(
    "$owner $bucket [$time_local] $remote_addr $requester $id $operation $key ",
    r#""$request" $status $error $body_bytes_sent $size $milliseconds $upstream_milliseconds "#,
    r#""$http_referer" "$http_user_agent" $version"#
);
const INGRESS_NGINX: &str = concat!(
    r#"$remote_addr - $user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "#,
    "$request_length $request_time [$proxy] [$alternative] $upstream_addr $upstream_response_length ",
    "$upstream_response_time $upstream_status $id"
);
const TRAEFIK: &str = concat!(
    r#"$remote_addr - $user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "#,
    r#"$count "$router" "$url" ${milliseconds}ms"#
);
const ENVOY: &str = concat!(
    r#"[$time_iso8601] "$request" $status $flags $received $bytes_sent $milliseconds $upstream_milliseconds "#,
    r#""$http_x_forwarded_for" "$http_user_agent" "$id" "$http_host" "$upstream""#
);
const ISTIO: &str = concat!(
    r#"[$time_iso8601] "$request" $status $flags $details $termination "$failure" $received $bytes_sent "#,
    r#"$milliseconds $upstream_milliseconds "$http_x_forwarded_for" "$http_user_agent" "$id" "$http_host" "#,
    r#""$upstream" $cluster $local $downstream $client_port $sni $route"#
);
// Its requests have whole URLs.
const VARNISH: &str = concat!(
    r#"$remote_addr $ident $user [$time_local] "$url_request" $status $body_bytes_sent "#,
    r#""$http_referer" "$http_user_agent""#
);
const V_COMMON: &str =
    concat!("$host_name $address $ident $user [$time_local] ", r#""$request" $status $body_bytes_sent"#);
const V_COMBINED: &str = concat!(
    "$host_name $address $ident $user [$time_local] ",
    r#""$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#
);

// What proxies say of the client, before the address of the last of them.
const FORWARDED_COMMON: &str =
    concat!("$forwarded $address $ident $user [$time_local] ", r#""$request" $status $body_bytes_sent"#);
const FORWARDED_COMBINED: &str = concat!(
    "$forwarded $address $ident $user [$time_local] ",
    r#""$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#
);

/// Formats whose lines follow one pattern, in the order in which they are tried.
static BUILT_IN: [BuiltIn; 15] = [
    BuiltIn { name: "varnish", format: VARNISH, tail: Tail::End, is_end: true },
    BuiltIn { name: "alb", format: ALB, tail: Tail::Anything, is_end: true },
    BuiltIn { name: "elb", format: ELB, tail: Tail::End, is_end: false },
    BuiltIn { name: "s3", format: S3, tail: Tail::Anything, is_end: false },
    BuiltIn { name: "ingress-nginx", format: INGRESS_NGINX, tail: Tail::End, is_end: true },
    BuiltIn { name: "traefik", format: TRAEFIK, tail: Tail::End, is_end: false },
    BuiltIn { name: "envoy", format: ENVOY, tail: Tail::End, is_end: false },
    BuiltIn { name: "istio", format: ISTIO, tail: Tail::End, is_end: false },
    BuiltIn { name: "vhost_combined", format: VHOST_COMBINED, tail: Tail::End, is_end: false },
    BuiltIn { name: "forwarded combined", format: FORWARDED_COMBINED, tail: Tail::End, is_end: true },
    BuiltIn { name: "forwarded common", format: FORWARDED_COMMON, tail: Tail::End, is_end: true },
    BuiltIn { name: "%v combined", format: V_COMBINED, tail: Tail::End, is_end: false },
    BuiltIn { name: "%v common", format: V_COMMON, tail: Tail::End, is_end: false },
    BuiltIn { name: "combined", format: COMBINED, tail: Tail::End, is_end: true },
    BuiltIn { name: "common", format: COMMON, tail: Tail::End, is_end: true },
];

/// What is often added to Common, Combined and vhost_combined, and known without a look at its numbers.
static ADDED: [&str; 5] = [
    "$request_time",
    "\"$request_time\"",
    "$request_time $upstream_response_time",
    "\"$request_time\" \"$upstream_response_time\"",
    "\"$http_x_forwarded_for\"",
];

/// Fields of an addition as its name has them, and as they are read.
static ADDED_FIELDS: [(&str, &str); 14] = [
    ("%T/%D", "${seconds}/${microseconds}"),
    ("%{ms}T", "${milliseconds}"),
    ("%{ns}T", "${nanoseconds}"),
    ("%D", "${microseconds}"),
    ("%T", "${seconds}"),
    ("$duration", "${own_unit}"),
    (":response-time", "${response_milliseconds}"),
    ("$request_time", "${decimal_time}"),
    ("$upstream_response_time", "${decimal_upstream}"),
    ("$http_x_forwarded_for", "${http_x_forwarded_for}"),
    // These say nothing that a profile needs.
    ("%P", "${process}"),
    ("%k", "${keepalive}"),
    ("%O", "${sent}"),
    ("_", "${anything}"),
];

/// An addition as nginx would have it: fields with a space between them, perhaps quoted or with a label (`rt=%D`).
fn added(name: &str) -> Option<String> {
    let read = |field: &str| {
        let (label, field) = match field.split_once('=') {
            Some((label, field)) => (format!("{label}="), field),
            None => (String::new(), field),
        };
        let bare = field.strip_prefix('"').and_then(|field| field.strip_suffix('"'));
        let read = match bare.unwrap_or(field) {
            unit @ ("ms" | "s" | "us") => unit,
            bare => ADDED_FIELDS.iter().find(|(shown, _)| *shown == bare)?.1,
        };
        Some(if bare.is_some() { format!("{label}\"{read}\"") } else { label + read })
    };
    name.split(' ').map(read).collect::<Option<Vec<_>>>().map(|fields| fields.join(" "))
}

impl BuiltIn {
    /// Whether servers often write more fields after its own.
    fn is_extended(&self) -> bool {
        self.name.ends_with("combined") || self.name.ends_with("common")
    }
}

impl Format {
    /// By the name that `--format` takes: `combined`, `json`, `w3c` and so on (see [`Format::names`]); also the names
    /// of formats that were found out, like `combined + %D`.
    pub fn named(name: &str) -> Option<Format> {
        let lower = name.trim().to_ascii_lowercase();
        let reader = match lower.as_str() {
            "json" | "caddy" => Reader::Json(Clock::default(), Unit::Milliseconds),
            "ltsv" => Reader::Ltsv(Clock::default(), Unit::Milliseconds),
            "w3c" | "iis" => Reader::W3c(Box::new(w3c::W3c::iis())),
            "cloudfront" => Reader::W3c(Box::new(w3c::W3c::cloudfront())),
            "haproxy" => Reader::Haproxy(Clock::default()),
            "squid" => Reader::Squid,
            _ => return Format::with_addition(name.trim(), &lower),
        };
        Some(Format { name: lower, reader })
    }

    /// A pattern that is built in, perhaps with what is added to it.
    fn with_addition(name: &str, lower: &str) -> Option<Format> {
        let (base, addition) = name.split_once(" + ").map_or((lower, None), |(base, addition)| (base, Some(addition)));
        let built_in = BUILT_IN.iter().find(|built_in| built_in.name == base)?;
        let (format, tail) = match addition {
            None => (built_in.format.to_owned(), built_in.tail),
            Some("fields") => (built_in.format.to_owned(), Tail::Fields { with_time: base.ends_with("common") }),
            Some(text) => (format!("{} {}", built_in.format, added(text)?), built_in.tail),
        };
        let pattern = nginx::built_in(&format, tail, built_in.is_end)?;
        Some(Format::of(if addition.is_some() { name } else { lower }, pattern))
    }

    /// Those formats that are extended: each with whatever follows it.
    pub(crate) fn open_ended() -> impl Iterator<Item = (&'static str, Format)> {
        let extended = BUILT_IN.iter().filter(|built_in| built_in.is_extended());
        extended.filter_map(|built_in| {
            let pattern = nginx::built_in(built_in.format, Tail::Anything, built_in.is_end)?;
            Some((built_in.name, Format::of(built_in.name, pattern)))
        })
    }

    /// What follows a line's fields, if its fields can be read.
    pub(crate) fn rest_of<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = line.get(prefix::length(line)..)?;
        match &mut self.reader {
            Reader::Pattern(pattern) => pattern.rest_of(line),
            _ => None,
        }
    }

    /// All names, but for those of formats with additions.
    pub fn names() -> Vec<&'static str> {
        let patterns = BUILT_IN.iter().rev().map(|built_in| built_in.name);
        patterns.chain(["json", "ltsv", "w3c", "cloudfront", "haproxy", "squid"]).collect()
    }

    /// Of Apache's `LogFormat`: the directive or its content.
    pub fn apache(log_format: &str) -> Result<Format, LogError> {
        Ok(Format::of(log_format, apache::pattern(log_format)?))
    }

    /// Of nginx's `log_format`: the directive or its content.
    pub fn nginx(log_format: &str) -> Result<Format, LogError> {
        Ok(Format::of(log_format, nginx::pattern(log_format)?))
    }

    /// What `--format` takes: a name; text with `%` is Apache's, with `$` nginx's.
    pub fn parse(text: &str) -> Result<Format, LogError> {
        if let Some(format) = Format::named(text) {
            return Ok(format);
        }
        let directive = text.trim_start();
        let letters = |sign: char| {
            let is_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '{' | '>' | '<');
            text.split(sign).skip(1).filter(|rest| rest.starts_with(is_name)).count()
        };
        let (of_apache, of_nginx) = (letters('%'), letters('$'));
        if directive.starts_with("log_format") || of_nginx > of_apache {
            Format::nginx(text)
        } else if text.contains('%') {
            Format::apache(text)
        } else {
            Err(LogError::BadFormat(format!(
                "no format is called `{}`: --format takes {}, or a LogFormat (Apache) or log_format (nginx) string",
                apache::shown(text),
                Format::names().join(", ")
            )))
        }
    }

    /// All formats that a server's configuration file defines and uses (nginx: `log_format` and `access_log`, Apache:
    /// `LogFormat` and `CustomLog`), most used first, by the names that they have there.
    pub fn of_configuration(text: &str) -> Result<Vec<Format>, LogError> {
        configuration::formats(text)
    }

    /// Its name, or the format string itself.
    pub fn name(&self) -> &str {
        match &self.reader {
            Reader::W3c(w3c) if w3c.is_cloudfront() => "cloudfront",
            _ => &self.name,
        }
    }

    /// Whether it takes lines that end with any fields.
    pub(crate) fn is_loose(&self) -> bool {
        self.name.ends_with(" + fields")
    }

    /// Reads a line, without its newline. Texts of the entry are of the line or of the scratch, whose content is
    /// replaced.
    pub fn read<'a>(&mut self, line: &'a [u8], scratch: &'a mut Scratch) -> Result<Line<'a>, Malformed> {
        Ok(finished(&self.parsed(line)?, &mut scratch.bytes))
    }

    /// Reads a line as far as that goes without scratch. What is read can be [`finished`] at once.
    pub(crate) fn parsed<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, Malformed> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(Parsed::Other);
        }
        match prefix::length(line) {
            0 => self.parsed_bare(line),
            length if self.may_be_carried() => {
                let parsed = self.parsed_bare(line.get(length..).unwrap_or_default());
                parsed.map_err(|malformed| Malformed { column: malformed.column + length, ..malformed })
            }
            _ => self.parsed_bare(line),
        }
    }

    #[inline]
    fn parsed_bare<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, Malformed> {
        match &mut self.reader {
            Reader::Pattern(pattern) => pattern.read(line),
            Reader::Json(clock, whole) => json::read(line, clock, *whole),
            Reader::Ltsv(clock, whole) => ltsv::read(line, clock, *whole),
            Reader::W3c(w3c) => w3c.read(line),
            Reader::Haproxy(clock) => haproxy::read(line, clock),
            Reader::Squid => squid::read(line),
        }
    }

    /// Whether syslog's words before a line are none of its own.
    fn may_be_carried(&self) -> bool {
        match &self.reader {
            Reader::Pattern(pattern) => !pattern.begins_with_time(),
            Reader::Json(..) | Reader::Ltsv(..) | Reader::Squid => true,
            Reader::W3c(_) | Reader::Haproxy(_) => false,
        }
    }

    /// This format with `whole` as the unit of whole numbers that do not name theirs; `None` where it has no such numbers.
    pub(crate) fn with_whole_unit(mut self, unit: Unit) -> Option<Format> {
        match &mut self.reader {
            Reader::Json(_, whole) | Reader::Ltsv(_, whole) => *whole = unit,
            _ => return None,
        }
        Some(self)
    }

    /// Of a pattern.
    fn of(name: &str, pattern: Pattern) -> Format {
        Format { name: name.to_owned(), reader: Reader::Pattern(Box::new(pattern)) }
    }

    fn renamed(self, name: &str) -> Format {
        Format { name: name.to_owned(), ..self }
    }

    /// Formats to try on a log of which nothing is known, the most particular first.
    pub(crate) fn candidates() -> Vec<Format> {
        let mut names: Vec<String> =
            ["json", "haproxy", "squid", "w3c", "cloudfront", "ltsv"].map(str::to_owned).into();
        // Varnish's reads all that Combined does.
        for built_in in BUILT_IN.iter().filter(|built_in| built_in.name != "varnish") {
            if built_in.is_extended() {
                names.extend(ADDED.iter().map(|shown| format!("{} + {shown}", built_in.name)));
            }
            names.push(built_in.name.to_owned());
            if built_in.is_extended() {
                names.push(format!("{} + fields", built_in.name));
            }
        }
        names.iter().filter_map(|name| Format::named(name)).collect()
    }
}

/// The line that was read; `place` is for texts that are not in it as they are.
#[inline]
pub(crate) fn finished<'a>(parsed: &Parsed<'a>, place: &'a mut Vec<u8>) -> Line<'a> {
    match parsed {
        Parsed::Found(found) => Line::Entry(found.entry(place)),
        Parsed::Other => Line::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_that_is_built_in_can_be_read() {
        for name in Format::names() {
            assert_eq!(Format::named(name).map(|format| format.name), Some(name.to_owned()));
        }
        let fields = ADDED_FIELDS.map(|(shown, _)| shown);
        for shown in ADDED.into_iter().chain(fields).chain(["%D %P", "\"_\" rt=%D \"%T\"", ":response-time ms"]) {
            let name = format!("combined + {shown}");
            assert_eq!(Format::named(&name).map(|format| format.name), Some(name));
        }
        assert!(Format::named("combined + %Q").is_none() && Format::named("combined + ").is_none());
        let additions = ADDED.len() + 1;
        assert_eq!(Format::candidates().len(), 6 + BUILT_IN.len() - 1 + 7 * additions);
    }

    #[test]
    fn what_format_takes_is_told_apart() {
        let name = |text| Format::parse(text).map(|format| format.name).map_err(|error| error.to_string());
        assert_eq!(name("Combined"), Ok("combined".to_owned()));
        assert_eq!(name("iis"), Ok("iis".to_owned()));
        for text in ["%h %t \"%r\" 100$ %>s", "$remote_addr [$time_local] \"$request\" 100% $status"] {
            assert_eq!(name(text), Ok(text.to_owned()));
        }
        assert!(name("combind").unwrap_err().contains("--format takes common, combined"));
        assert!(name("$x").unwrap_err().contains("log_format `$x` has no time"));
        assert!(name("%x").unwrap_err().contains("LogFormat `%x` has no time"));
    }
}
