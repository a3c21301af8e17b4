//! Tests lines of every format field by field, the detection of formats, and real logs.

mod found;
mod logs;
mod proxies;
mod reported;
mod servers;
mod structured;

use brimful_accesslog::detect::Formats;
use brimful_accesslog::format::Format;
use brimful_accesslog::{Entry, Line, LineParseError, LogError, Scratch};
use jiff::Timestamp;
use proptest::prelude::*;
use std::path::PathBuf;

/// The expected entry of a line. Its time is written with a decimal point if the log's time has fractions of a second.
#[derive(Default)]
struct Want {
    time: &'static str,
    method: &'static str,
    target: &'static str,
    protocol: &'static str,
    host: &'static str,
    client: &'static str,
    user_agent: &'static str,
    referer: &'static str,
    status: u16,
    bytes: Option<u64>,
    service_ns: Option<u64>,
    upstream_ns: Option<u64>,
}

impl Want {
    fn entry(&self) -> Entry<'static> {
        let time: Timestamp = self.time.parse().unwrap();
        Entry {
            time_ns: i64::try_from(time.as_nanosecond()).unwrap(),
            has_subsecond_time: self.time.contains('.'),
            offset_s: None,
            method: self.method.as_bytes(),
            target: self.target.as_bytes(),
            protocol: self.protocol.as_bytes(),
            host: self.host.as_bytes(),
            client: self.client.as_bytes(),
            user_agent: self.user_agent.as_bytes(),
            referer: self.referer.as_bytes(),
            status: self.status,
            bytes: self.bytes,
            service_ns: self.service_ns,
            upstream_ns: self.upstream_ns,
        }
    }
}

/// The expected entry of the example line in Apache's documentation.
fn apache_pie() -> Want {
    Want {
        time: "2000-10-10T20:55:36Z",
        method: "GET",
        target: "/apache_pb.gif",
        protocol: "HTTP/1.0",
        client: "127.0.0.1",
        status: 200,
        bytes: Some(2326),
        ..Want::default()
    }
}

fn format(text: &str) -> Format {
    Format::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn read_one(format: &mut Format, line: &[u8], check: impl FnOnce(Result<Line<'_>, LineParseError>)) {
    check(format.read(line, &mut Scratch::default()));
}

/// Removes the offset from UTC, which other tests check.
fn without_offset(read: Result<Line<'_>, LineParseError>) -> Result<Line<'_>, LineParseError> {
    Ok(match read? {
        Line::Entry(entry) => Line::Entry(Entry { offset_s: None, ..entry }),
        other => other,
    })
}

/// Checks that the format `name` reads each line as expected.
fn check(name: &str, cases: &[(&str, Want)]) {
    for (line, want) in cases {
        read_one(&mut format(name), line.as_bytes(), |read| {
            assert_eq!(without_offset(read), Ok(Line::Entry(want.entry())), "{name}: {line}");
        });
    }
}

/// Like [`check`], but also checks that the format that is detected from each line alone is `name`, and reads the line
/// as expected.
fn check_found(name: &str, cases: &[(&str, Want)]) {
    check(name, cases);
    for (line, want) in cases {
        let mut formats = Formats::detect(&[line.as_bytes()]).unwrap_or_else(|error| panic!("{line}: {error}"));
        let mut scratch = Scratch::default();
        let read = formats.read(line.as_bytes(), &mut scratch);
        assert_eq!(without_offset(read), Ok(Line::Entry(want.entry())), "{line}");
        assert_eq!(formats.shares()[0].name, name, "{line}");
    }
}
