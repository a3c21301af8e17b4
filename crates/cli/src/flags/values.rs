//! Parsers of the flags' values, and their error messages.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use brimful_core::Nanos;
use brimful_core::secret::CREDENTIAL_MASK;
use brimful_core::tls::TlsVersion;
use brimful_core::units::{Count, ParseUnitError};
use brimful_engine::{Close, Engine};
use brimful_http::Version;
use brimful_monitor::{DutyCycle, GroupName, Intervals};
use brimful_run::{FleetClock, WarmUp};
use brimful_workload::{ArrivalProcess, ArrivalsError, Shard};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The process that determines when the calls of an open loop are due.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// A stochastic or constant process with a mean rate.
    Process(ArrivalProcess),
    /// The times at which calls are due, read from this file.
    Trace(PathBuf),
}

/// The sampling interval of one group of metrics; of all groups if the group is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupInterval(pub Option<GroupName>, pub Nanos);

/// A header field of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name of the header field.
    pub name: String,
    /// Value of the header field.
    pub value: String,
    /// The argument as the user wrote it.
    pub argument: String,
}

/// Names of request classes, each with its share of the calls.
#[derive(Clone, Debug, PartialEq)]
pub struct MixList(pub Vec<(String, f64)>);

/// A user's name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The argument as the user wrote it, `NAME:PASSWORD`.
    pub argument: String,
}

impl Credentials {
    /// The header field of basic authentication (RFC 7617).
    pub fn header(&self) -> (String, String) {
        ("Authorization".to_owned(), format!("Basic {}", BASE64_STANDARD.encode(&self.argument)))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CREDENTIAL_MASK)
    }
}

/// A parser of HTTP versions.
pub fn http_version_parser() -> impl TypedValueParser<Value = Version> {
    one_of([
        ("1.0", "HTTP/1.0", Version::Http10),
        ("1.1", "HTTP/1.1", Version::Http11),
        ("2", "HTTP/2: negotiated by TLS (ALPN) or, for http:// URLs, by prior knowledge", Version::Http2),
    ])
}

/// A parser of minimum TLS versions.
pub fn tls_version_parser() -> impl TypedValueParser<Value = TlsVersion> {
    one_of([("1.2", "TLS 1.2 or 1.3", TlsVersion::V12), ("1.3", "TLS 1.3", TlsVersion::V13)])
}

/// A parser of the values of `--close`, which select the side that closes a connection and how.
pub fn close_parser() -> impl TypedValueParser<Value = Close> {
    one_of([
        ("server", "The server, by `Connection: close`; its host keeps the socket in TIME_WAIT", Close::Server),
        ("fin", "This side, with FIN", Close::Fin),
        ("rst", "This side, with RST; costs little, but the server sees an error", Close::Rst),
    ])
}

/// A parser of I/O engines.
pub fn engine_parser() -> impl TypedValueParser<Value = Engine> {
    one_of([
        ("auto", "io_uring if it is allowed, else epoll", Engine::Auto),
        ("uring", "io_uring", Engine::Uring),
        ("epoll", "epoll", Engine::Epoll),
    ])
}

/// A parser of one of several values, each with its name and description.
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = values.map(|(name, help, _)| PossibleValue::new(name).help(help));
    let value = move |given: String| values.iter().find(|(name, ..)| *name == given).map(|(.., value)| *value);
    PossibleValuesParser::new(names).try_map(move |given| value(given).ok_or("there is no such value"))
}

/// The label of a run: its name and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Name of the label, the text before the first `=`.
    pub name: String,
    /// Value of the label, the text after the first `=`.
    pub value: String,
}

/// Parses a label, like `commit=abc123`. The value may be empty, and may contain `=`.
pub fn parse_label(text: &str) -> Result<Label, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Label { name: name.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => Err(format!("`{text}` is no label: write NAME=VALUE, like commit=abc123")),
    }
}

/// Parses the number of a shard and the total number of shards, like `1/4`.
pub fn parse_shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
    match numbers {
        Some((i, n)) if (1..=n).contains(&i) && n <= 1 << 20 => Ok(Shard { index: i - 1, count: n }),
        _ => Err(format!("`{text}` is not a part of a load: write 1/4 to 4/4 for four parts")),
    }
}

/// The limit on the number of connections of an open load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxConnections {
    /// A pool of this many connections: a call waits while all of them are in use.
    AtMost(u64),
    /// No limit: a call opens another connection while all are in use.
    Unlimited,
}

/// Parses a number of connections, like `32`, or `unlimited`.
pub fn parse_max_connections(text: &str) -> Result<MaxConnections, String> {
    if text == "unlimited" {
        return Ok(MaxConnections::Unlimited);
    }
    match text.parse::<Count>() {
        Ok(Count(0)) => Err("a load needs connections: give at least 1, or unlimited".to_owned()),
        Ok(Count(most)) => Ok(MaxConnections::AtMost(most)),
        Err(error) => Err(format!("{error}, or unlimited")),
    }
}

/// Parses a time in RFC 3339, with any offset, or in seconds since 1970.
pub fn parse_instant(text: &str) -> Result<SystemTime, String> {
    let since_1970 = || SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(text.parse().ok()?).ok()?);
    let at = text.parse::<Timestamp>().ok().map(SystemTime::from).or_else(since_1970);
    at.ok_or_else(|| format!("`{text}` is not an instant: write it like 2026-03-01T14:00:00Z or 1772373600.5"))
}

/// Parses a clock offset and its error, like `1.2ms/300us` and `-15us/300us`.
pub fn parse_clock_offset(text: &str) -> Result<FleetClock, String> {
    let read = || {
        let (ahead, error) = text.split_once('/')?;
        let size: Nanos = ahead.strip_prefix('-').unwrap_or(ahead).parse().ok()?;
        let size = i64::try_from(size.0).ok()?;
        let ahead_ns = if ahead.starts_with('-') { -size } else { size };
        Some(FleetClock { ahead_ns, error: error.parse().ok()? })
    };
    read().ok_or_else(|| {
        format!("`{text}` is not a clock offset with its error: write it like 1.2ms/300us or -15us/300us")
    })
}

/// Parses an arrival process with its parameters, or `trace:FILE`.
pub fn parse_arrivals(text: &str) -> Result<Arrivals, ArrivalsError> {
    match text.strip_prefix("trace:") {
        Some(file) => Ok(Arrivals::Trace(file.into())),
        None => text.parse().map(Arrivals::Process),
    }
}

/// Parses an interval, like `1s` or, for one group, `process=5s`.
pub fn parse_interval(text: &str) -> Result<GroupInterval, String> {
    let (group, time) = match text.split_once('=') {
        Some((group, time)) => (Some(group.parse()?), time),
        None => (None, text),
    };
    let interval: Nanos = time.parse().map_err(|error: ParseUnitError| error.to_string())?;
    match Intervals::uniform(interval).shortest() == Some(interval) {
        true => Ok(GroupInterval(group, interval)),
        false => Err(format!("an interval of {interval} is out of range: choose one from 10ms to 1h")),
    }
}

/// Parses a share above 0, like `70%` and `0.7`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let above_zero = parse_share_or_zero(text).ok().filter(|share| *share > 0.0);
    above_zero.ok_or_else(|| format!("`{text}` is not a share above 0: write it like 70% or 0.7"))
}

/// Parses a share, like `0.5%` and `0.005`.
pub fn parse_share_or_zero(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map(|number| number / scale).ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{text}` is not a share from 0 to 100%: write it like 0.5% or 0.005"))
}

/// Parses a duty cycle, the share of time in which the eBPF programs measure, like `20%` and `0.2`.
pub fn parse_duty(text: &str) -> Result<DutyCycle, String> {
    let share = parse_share(text)?;
    DutyCycle::from_share(share).ok_or_else(|| format!("`{text}` is less than 0.1%: choose a larger share"))
}

/// Parses a local address, like `9477`, `:9477` and `0.0.0.0:9477`. The default address is 127.0.0.1, at which only
/// this host can connect.
pub fn parse_local_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse();
    let address = port.map(|port| SocketAddr::from(([127, 0, 0, 1], port))).or_else(|_| text.parse());
    address.map_err(|_| format!("`{text}` is not an address: write it like 9477, 127.0.0.1:9477 or [::1]:9477"))
}

/// Parses shares of classes, like `light=0.7,heavy=0.3`.
pub fn parse_mix(text: &str) -> Result<MixList, String> {
    let share = |item: &str| {
        let (name, share) = item.split_once('=')?;
        Some((name.trim().to_owned(), share.trim().parse().ok()?))
    };
    let shares: Option<Vec<_>> = text.split(',').map(share).collect();
    shares.map(MixList).ok_or_else(|| format!("`{text}` is not a mix: write it like light=0.7,heavy=0.3"))
}

/// Parses a duration, like `10s`. A number without a unit is in seconds.
pub fn parse_time(text: &str) -> Result<Nanos, ParseUnitError> {
    let seconds = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let with_unit = if seconds { format!("{text}s") } else { text.to_owned() };
    with_unit.parse().or_else(|_| text.parse())
}

/// Parses the length of a warm-up: `auto`, or a time as in [`parse_time`].
pub fn parse_warm_up(text: &str) -> Result<WarmUp, ParseUnitError> {
    if text == "auto" { Ok(WarmUp::Auto) } else { parse_time(text).map(WarmUp::Fixed) }
}

/// Parses a method, and makes the standard methods upper case. Other methods keep their case.
pub fn parse_method(text: &str) -> Result<String, Infallible> {
    const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"];
    let known = METHODS.iter().find(|method| method.eq_ignore_ascii_case(text));
    Ok(known.map_or(text, |method| method).to_owned())
}

/// Parses credentials, `NAME:PASSWORD`.
pub fn parse_credentials(text: &str) -> Result<Credentials, &'static str> {
    match text.contains(':') {
        true => Ok(Credentials { argument: text.to_owned() }),
        false => Err("write it like NAME:PASSWORD"),
    }
}

/// Parses a header field, like `Accept: text/html`.
pub fn parse_header(text: &str) -> Result<Header, String> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| format!("`{text}` is not a header: write it like 'Accept: text/html'"))?;
    Ok(Header { name: name.trim().to_owned(), value: value.trim().to_owned(), argument: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_instants() {
        assert_eq!(parse_shard("2/4"), Ok(Shard { index: 1, count: 4 }));
        for text in ["", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3", "1/99999999"] {
            assert!(parse_shard(text).is_err(), "{text}");
        }
        let at = |seconds: f64| Ok(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds));
        assert_eq!(parse_instant("1772373600.5"), at(1_772_373_600.5));
        assert_eq!(parse_instant("2026-03-01T14:00:00.5Z"), at(1_772_373_600.5));
        assert_eq!(parse_instant("2026-03-01T15:00:00+01:00"), at(1_772_373_600.0));
        for text in ["", "now", "2026-03-01", "2026-03-01T14:00:00", "-1", "NaN", "inf", "1e300"] {
            assert!(parse_instant(text).is_err(), "{text}");
        }
    }

    #[test]
    fn differences_of_clocks() {
        let error = Nanos::from_micros(300);
        for (text, ahead_ns) in [("1.2ms/300us", 1_200_000), ("-15us/300us", -15_000), ("0s/300us", 0)] {
            assert_eq!(parse_clock_offset(text), Ok(FleetClock { ahead_ns, error }));
        }
        for text in ["", "1ms", "1ms/", "/1ms", "--1ms/1ms", "1ms/-1ms", "1/1", "99999999h/1ms"] {
            assert!(parse_clock_offset(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_methods_and_credentials() {
        for (text, ms) in [("10", 10_000), ("0.5", 500), ("10s", 10_000), ("250ms", 250), ("2m", 120_000)] {
            assert_eq!(parse_time(text), Ok(Nanos::from_millis(ms)), "{text}");
        }
        for text in ["", ".", "-1", "soon", "1.2.3"] {
            assert!(
                parse_time(text).unwrap_err().to_string().starts_with(&format!("`{text}` is not a duration")),
                "{text}"
            );
        }
        assert_eq!(
            [parse_method("get"), parse_method("Post"), parse_method("purge")].map(Result::unwrap),
            ["GET", "POST", "purge"]
        );
        let user = parse_credentials("Aladdin:open sesame").unwrap();
        // This is the example of RFC 7617, section 2.
        assert_eq!(user.header().1, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(format!("{user:?}"), CREDENTIAL_MASK);
        assert!(parse_credentials("Aladdin").is_err());
    }

    #[test]
    fn mixes_and_headers() {
        assert_eq!(parse_mix("a=1, b=0.5"), Ok(MixList(vec![("a".to_owned(), 1.0), ("b".to_owned(), 0.5)])));
        assert!(parse_mix("a").is_err() && parse_mix("a=x").is_err());
        let field = Header { name: "A".to_owned(), value: "b: c".to_owned(), argument: "A: b: c".to_owned() };
        assert_eq!(parse_header("A: b: c"), Ok(field));
        assert!(parse_header("A").is_err());
    }

    #[test]
    fn intervals_and_addresses() {
        assert_eq!(parse_interval("500ms"), Ok(GroupInterval(None, Nanos::from_millis(500))));
        assert_eq!(parse_interval("process=5s"), Ok(GroupInterval(Some(GroupName::Process), Nanos::from_secs(5))));
        for (text, message) in
            [("0s", "10ms"), ("2h", "1h"), ("disk=1s", "kernel, process"), ("process=", "duration"), ("5", "500ms")]
        {
            assert!(parse_interval(text).unwrap_err().contains(message), "{text}");
        }
        for (text, address) in [
            ("9477", "127.0.0.1:9477"),
            (":9477", "127.0.0.1:9477"),
            ("0.0.0.0:9477", "0.0.0.0:9477"),
            ("[::1]:9477", "[::1]:9477"),
        ] {
            assert_eq!(parse_local_address(text), Ok(address.parse().unwrap()));
        }
        assert!(parse_local_address("localhost").is_err() && parse_local_address("70000").is_err());
    }
}
