//! Formats of access logs. A format converts the bytes of a line to an [`Entry`](crate::Entry).
//!
//! - `pattern`: fields in a fixed order. `apache` and `nginx` compile a server's format string to a pattern, and
//!   `configuration` extracts the format strings from a server's configuration files.
//! - `labelled`: fields with names, as in LTSV and in JSON (`json`).
//! - `w3c`, `haproxy` and `squid`: formats with readers of their own.
//! - `prefix`: texts that syslog and container runtimes write before a line. `docker`: lines wrapped in JSON.
//! - `time`, `number`: values of fields. `request`: the values of the request whose line is being read.
//!
//! A reader reads each byte of a line a few times at most. It allocates memory only to describe a malformed line.

mod apache;
mod configuration;
mod directive;
pub(crate) mod docker;
mod haproxy;
mod json;
mod labelled;
mod nginx;
mod number;
mod pattern;
mod prefix;
mod request;
mod squid;
mod time;
mod w3c;

use crate::entry::{Line, LineParseError, Scratch};
use crate::error::LogError;
pub(crate) use number::{TimeUnit, has_milliseconds, has_unit, whole_number};
pub(crate) use pattern::tail::{TailField, TailFields};
use pattern::{Pattern, Tail};
pub(crate) use request::{Parsed, is_address_list, parse_ip};
use std::sync::LazyLock;
use time::Clock;

/// Reads the lines of one log format.
#[derive(Clone, Debug)]
pub struct Format {
    name: String,
    reader: Reader,
}

#[derive(Clone, Debug)]
enum Reader {
    Pattern(Box<Pattern>),
    /// JSON. The [`TimeUnit`] applies to durations that are whole numbers and whose field name states no unit.
    Json(Clock, TimeUnit),
    Ltsv(Clock, TimeUnit),
    W3c(Box<w3c::W3c>),
    Haproxy(Clock),
    Squid,
}

/// A log format that `--format` accepts by name.
struct BuiltIn {
    name: &'static str,
    /// The fields, in the notation of nginx's `log_format`.
    format: &'static str,
    tail: Tail,
    /// Whether the format's timestamps are taken at the end of the request.
    is_end_time: bool,
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
// Every S3 log has the fields up to `$version`; newer logs have additional fields. The timestamp is the time at which
// the request arrived.
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
// Varnish logs a request line with an absolute URL.
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

// Lines begin with the value of `X-Forwarded-For`, which is a list of clients. The address of the last proxy follows.
const FORWARDED_COMMON: &str =
    concat!("$forwarded $address $ident $user [$time_local] ", r#""$request" $status $body_bytes_sent"#);
const FORWARDED_COMBINED: &str = concat!(
    "$forwarded $address $ident $user [$time_local] ",
    r#""$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#
);

/// Named formats whose fields have a fixed order, in the order in which detection tries them.
static BUILT_IN: [BuiltIn; 15] = [
    BuiltIn { name: "varnish", format: VARNISH, tail: Tail::End, is_end_time: true },
    BuiltIn { name: "alb", format: ALB, tail: Tail::Anything, is_end_time: true },
    BuiltIn { name: "elb", format: ELB, tail: Tail::End, is_end_time: false },
    BuiltIn { name: "s3", format: S3, tail: Tail::Anything, is_end_time: false },
    BuiltIn { name: "ingress-nginx", format: INGRESS_NGINX, tail: Tail::End, is_end_time: true },
    BuiltIn { name: "traefik", format: TRAEFIK, tail: Tail::End, is_end_time: false },
    BuiltIn { name: "envoy", format: ENVOY, tail: Tail::End, is_end_time: false },
    BuiltIn { name: "istio", format: ISTIO, tail: Tail::End, is_end_time: false },
    BuiltIn { name: "vhost_combined", format: VHOST_COMBINED, tail: Tail::End, is_end_time: false },
    BuiltIn { name: "forwarded combined", format: FORWARDED_COMBINED, tail: Tail::End, is_end_time: true },
    BuiltIn { name: "forwarded common", format: FORWARDED_COMMON, tail: Tail::End, is_end_time: true },
    BuiltIn { name: "%v combined", format: V_COMBINED, tail: Tail::End, is_end_time: false },
    BuiltIn { name: "%v common", format: V_COMMON, tail: Tail::End, is_end_time: false },
    BuiltIn { name: "combined", format: COMBINED, tail: Tail::End, is_end_time: true },
    BuiltIn { name: "common", format: COMMON, tail: Tail::End, is_end_time: true },
];

/// Fields that are often added to Common, Combined and vhost_combined. Detection tries each of these combinations.
/// Other added fields are recognized by their values.
static ADDED: [&str; 5] = [
    "$request_time",
    "\"$request_time\"",
    "$request_time $upstream_response_time",
    "\"$request_time\" \"$upstream_response_time\"",
    "\"$http_x_forwarded_for\"",
];

/// Fields that may be added to a format. Each pair contains the field's notation in the name of a format (`combined +
/// %D`), and the notation that is appended to the format string so that the field is read.
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
    // These fields are recognized, but profiles do not use their values.
    ("%P", "${process}"),
    ("%k", "${keepalive}"),
    ("%O", "${sent}"),
    ("_", "${anything}"),
];

/// Translates added fields to nginx variables; `None` if a field is unknown. Fields are separated by spaces, and may
/// have quotes or a label (`rt=%D`).
fn addition_format(name: &str) -> Option<String> {
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
    /// Whether servers often add fields after the fields of this format.
    fn is_extended(&self) -> bool {
        self.name.ends_with("combined") || self.name.ends_with("common")
    }
}

impl Format {
    /// Returns the format with a name that `--format` accepts, such as `combined`, `json` or `w3c` (see
    /// [`Format::names`]). Also accepts the names of detected formats, such as `combined + %D`.
    pub fn by_name(name: &str) -> Option<Format> {
        let lower = name.trim().to_ascii_lowercase();
        let reader = match lower.as_str() {
            "json" | "caddy" => Reader::Json(Clock::default(), TimeUnit::Milliseconds),
            "ltsv" => Reader::Ltsv(Clock::default(), TimeUnit::Milliseconds),
            "w3c" | "iis" => Reader::W3c(Box::new(w3c::W3c::iis())),
            "cloudfront" => Reader::W3c(Box::new(w3c::W3c::cloudfront())),
            "haproxy" => Reader::Haproxy(Clock::default()),
            "squid" => Reader::Squid,
            _ => return Format::with_addition(name.trim(), &lower),
        };
        Some(Format { name: lower, reader })
    }

    /// Returns a built-in pattern with the additional fields in its name (`combined + %D`).
    fn with_addition(name: &str, lower: &str) -> Option<Format> {
        let (base, addition) = name.split_once(" + ").map_or((lower, None), |(base, addition)| (base, Some(addition)));
        let built_in = BUILT_IN.iter().find(|built_in| built_in.name == base)?;
        let (format, tail) = match addition {
            None => (built_in.format.to_owned(), built_in.tail),
            Some("fields") => (built_in.format.to_owned(), Tail::Fields { with_time: base.ends_with("common") }),
            Some(text) => (format!("{} {}", built_in.format, addition_format(text)?), built_in.tail),
        };
        let pattern = nginx::built_in(&format, tail, built_in.is_end_time)?;
        Some(Format::from_pattern(if addition.is_some() { name } else { lower }, pattern))
    }

    /// The formats that servers often extend. Each of these formats accepts any text after its own fields.
    pub(crate) fn open_ended() -> impl Iterator<Item = (&'static str, Format)> {
        static OPEN_ENDED: LazyLock<Vec<(&str, Format)>> = LazyLock::new(|| {
            let extended = BUILT_IN.iter().filter(|built_in| built_in.is_extended());
            let compiled = extended.filter_map(|built_in| {
                let pattern = nginx::built_in(built_in.format, Tail::Anything, built_in.is_end_time)?;
                Some((built_in.name, Format::from_pattern(built_in.name, pattern)))
            });
            compiled.collect()
        });
        OPEN_ENDED.iter().cloned()
    }

    /// Returns the text after the format's own fields in a line, or `None` if these fields cannot be read.
    pub(crate) fn rest_of<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = line.get(prefix::prefix_length(line)..)?;
        match &mut self.reader {
            Reader::Pattern(pattern) => pattern.rest_of(line),
            _ => None,
        }
    }

    /// The names of all formats, except formats with added fields.
    pub fn names() -> Vec<&'static str> {
        let patterns = BUILT_IN.iter().rev().map(|built_in| built_in.name);
        patterns.chain(["json", "ltsv", "w3c", "cloudfront", "haproxy", "squid"]).collect()
    }

    /// Compiles Apache's `LogFormat`: the whole directive or its format string.
    pub fn from_apache(log_format: &str) -> Result<Format, LogError> {
        Ok(Format::from_pattern(log_format, apache::pattern(log_format)?))
    }

    /// Compiles nginx's `log_format`: the whole directive or its format string.
    pub fn from_nginx(log_format: &str) -> Result<Format, LogError> {
        Ok(Format::from_pattern(log_format, nginx::pattern(log_format)?))
    }

    /// Parses a value of `--format`: a name, an Apache format string (with `%`) or an nginx format string (with `$`).
    pub fn parse(text: &str) -> Result<Format, LogError> {
        if let Some(format) = Format::by_name(text) {
            return Ok(format);
        }
        let directive = text.trim_start();
        let letters = |sign: char| {
            let is_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '{' | '>' | '<');
            text.split(sign).skip(1).filter(|rest| rest.starts_with(is_name)).count()
        };
        let of_apache = letters('%');
        let of_nginx = letters('$');
        if directive.starts_with("log_format") || of_nginx > of_apache {
            Format::from_nginx(text)
        } else if text.contains('%') {
            Format::from_apache(text)
        } else {
            Err(LogError::BadFormat(format!(
                "no format is called `{}`: --format takes {}, or a LogFormat (Apache) or log_format (nginx) string",
                directive::excerpt(text),
                Format::names().join(", ")
            )))
        }
    }

    /// All formats that a server's configuration file defines or uses, the most used first. Each format has the name
    /// that the file gives it. Reads nginx's `log_format` and `access_log`, and Apache's `LogFormat` and `CustomLog`.
    pub fn from_configuration(text: &str) -> Result<Vec<Format>, LogError> {
        configuration::formats(text)
    }

    /// The name of the format, or its format string if it has no name.
    pub fn name(&self) -> &str {
        match &self.reader {
            Reader::W3c(w3c) if w3c.is_cloudfront() => "cloudfront",
            _ => &self.name,
        }
    }

    /// Whether the format accepts any additional fields after its own fields.
    pub(crate) fn is_loose(&self) -> bool {
        self.name.ends_with(" + fields")
    }

    /// Reads a line without its newline. Texts of the entry borrow from the line or from `scratch`. The previous
    /// content of `scratch` is overwritten.
    pub fn read<'a>(&mut self, line: &'a [u8], scratch: &'a mut Scratch) -> Result<Line<'a>, LineParseError> {
        Ok(finish_line(&self.read_raw(line)?, &mut scratch.bytes))
    }

    /// Reads a line without decoding its escapes, which would need a buffer. [`finish_line`] decodes them.
    pub(crate) fn read_raw<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, LineParseError> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(Parsed::Other);
        }
        match prefix::prefix_length(line) {
            0 => self.read_unprefixed(line),
            length if self.may_have_prefix() => {
                let parsed = self.read_unprefixed(line.get(length..).unwrap_or_default());
                parsed.map_err(|malformed| LineParseError { column: malformed.column + length, ..malformed })
            }
            _ => self.read_unprefixed(line),
        }
    }

    #[inline]
    fn read_unprefixed<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, LineParseError> {
        match &mut self.reader {
            Reader::Pattern(pattern) => pattern.read(line),
            Reader::Json(clock, default_unit) => json::read(line, clock, *default_unit),
            Reader::Ltsv(clock, default_unit) => labelled::read_ltsv(line, clock, *default_unit),
            Reader::W3c(w3c) => w3c.read(line),
            Reader::Haproxy(clock) => haproxy::read(line, clock),
            Reader::Squid => squid::read(line),
        }
    }

    /// Whether a syslog or container prefix may precede the format's lines. A format that begins with a time would
    /// mistake its own fields for a prefix.
    fn may_have_prefix(&self) -> bool {
        match &self.reader {
            Reader::Pattern(pattern) => !pattern.begins_with_time(),
            Reader::Json(..) | Reader::Ltsv(..) | Reader::Squid => true,
            Reader::W3c(_) | Reader::Haproxy(_) => false,
        }
    }

    /// The format with another unit for durations that are whole numbers; `None` if the format states the units of all
    /// durations.
    pub(crate) fn with_default_unit(mut self, unit: TimeUnit) -> Option<Format> {
        match &mut self.reader {
            Reader::Json(_, default_unit) | Reader::Ltsv(_, default_unit) => *default_unit = unit,
            _ => return None,
        }
        Some(self)
    }

    fn from_pattern(name: &str, pattern: Pattern) -> Format {
        Format { name: name.to_owned(), reader: Reader::Pattern(Box::new(pattern)) }
    }

    fn renamed(self, name: &str) -> Format {
        Format { name: name.to_owned(), ..self }
    }

    /// Formats that detection tries on an unknown log, the most specific first.
    pub(crate) fn candidates() -> Vec<Format> {
        static CANDIDATES: LazyLock<Vec<Format>> = LazyLock::new(Format::compile_candidates);
        CANDIDATES.clone()
    }

    fn compile_candidates() -> Vec<Format> {
        let mut names: Vec<String> =
            ["json", "haproxy", "squid", "w3c", "cloudfront", "ltsv"].map(str::to_owned).into();
        // Varnish is not tried: its pattern also reads every line in the Combined format, so Combined would never be
        // chosen.
        for built_in in BUILT_IN.iter().filter(|built_in| built_in.name != "varnish") {
            if built_in.is_extended() {
                names.extend(ADDED.iter().map(|shown| format!("{} + {shown}", built_in.name)));
            }
            names.push(built_in.name.to_owned());
            if built_in.is_extended() {
                names.push(format!("{} + fields", built_in.name));
            }
        }
        names.iter().filter_map(|name| Format::by_name(name)).collect()
    }
}

/// Converts a parsed line into an entry. `buffer` stores texts that differ from the bytes of the line.
#[inline]
pub(crate) fn finish_line<'a>(parsed: &Parsed<'a>, buffer: &'a mut Vec<u8>) -> Line<'a> {
    match parsed {
        Parsed::Request(request) => Line::Entry(request.build_entry(buffer)),
        Parsed::Other => Line::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_that_is_built_in_can_be_read() {
        for name in Format::names() {
            assert_eq!(Format::by_name(name).map(|format| format.name), Some(name.to_owned()));
        }
        let fields = ADDED_FIELDS.map(|(shown, _)| shown);
        for shown in ADDED.into_iter().chain(fields).chain(["%D %P", "\"_\" rt=%D \"%T\"", ":response-time ms"]) {
            let name = format!("combined + {shown}");
            assert_eq!(Format::by_name(&name).map(|format| format.name), Some(name));
        }
        assert!(Format::by_name("combined + %Q").is_none() && Format::by_name("combined + ").is_none());
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
