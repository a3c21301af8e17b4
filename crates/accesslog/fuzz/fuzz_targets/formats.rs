//! Feeds arbitrary lines to each format. Checks that nothing panics, that every text of an entry is part of its line,
//! and that the result does not depend on earlier lines.
//!
//! The first byte of the input selects a format. The rest is lines, of which at most three are read. All formats are
//! created once. For half of the inputs, one copy of the format reads all lines, and a new copy reads each line again.
//! The results must be equal, because the state of a format (the date of the previous line) must not affect results.
//! For the other half, no copies are made, to save time. `README.md` contains the command that runs this target.
#![no_main]

use brimful_accesslog::format::Format;
use brimful_accesslog::{Line, LineParseError, Scratch};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::sync::LazyLock;

/// Maximum number of lines that are read from an input. Three lines can have a date that is parsed, the same date from
/// the cache, and a date that replaces the cached date.
const MAX_LINES: usize = 3;

/// Additional formats, which are not in `Format::names()`: common variants, and formats with all kinds of fields.
const ADDITIONAL_FORMATS: [&str; 15] = [
    "combined + %D",
    "combined + %D %P \"$http_x_forwarded_for\" _",
    "%v combined + $duration rt=%{ms}T",
    "forwarded common + :response-time ms",
    "combined + %T/%D",
    "common + fields",
    "combined + fields",
    "vhost_combined + \"$http_x_forwarded_for\" %D",
    "combined + $request_time $upstream_response_time",
    "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %{ms}T",
    "%a %{%Y-%m-%dT%H:%M:%S}t.%{usec_frac}t %m %U%q %H %s %O %{us}T %v:%p",
    "%{sec}t.%{msec_frac}t %V \"%r\" %>s %B %D",
    "$msec $remote_addr \"$request_method $uri$is_args$args $server_protocol\" $status $bytes_sent $request_time",
    "[$time_iso8601] $host$request_uri $request_method $status $body_bytes_sent \"$upstream_response_time\" $remote_addr",
    "$time_local|$remote_addr|$request|$status|$body_bytes_sent|$http_referer|$http_user_agent|$http_x_forwarded_for",
];

static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| {
    let understood = |text: &str| Format::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Format::names().into_iter().chain(ADDITIONAL_FORMATS).map(understood).collect()
});

thread_local! {
    /// Formats whose state (the cached date) comes from earlier lines and earlier inputs.
    static USED_FORMATS: RefCell<(Vec<Format>, Scratch)> = RefCell::new((FORMATS.clone(), Scratch::default()));
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, lines)) = input.split_first() else {
        return;
    };
    let (place, is_compared) = (usize::from(choice & 0x7f) % FORMATS.len(), choice & 0x80 != 0);
    let lines = lines.split(|&byte| byte == b'\n').take(MAX_LINES);
    let pristine = &FORMATS[place];
    // In these formats, a directive determines the fields of the following lines.
    let has_directives = ["w3c", "iis", "cloudfront"].contains(&pristine.name());
    if !is_compared && !has_directives {
        USED_FORMATS.with_borrow_mut(|(formats, scratch)| {
            for line in lines {
                check(line, &formats[place].read(line, scratch));
            }
        });
        return;
    }
    let (mut format, mut scratch) = (pristine.clone(), Scratch::default());
    for line in lines {
        let outcome = format.read(line, &mut scratch);
        check(line, &outcome);
        if !has_directives {
            assert_eq!(outcome, pristine.clone().read(line, &mut Scratch::default()));
        }
    }
});

/// Checks properties that the result of every line must have.
fn check(line: &[u8], outcome: &Result<Line<'_>, LineParseError>) {
    match outcome {
        Ok(Line::Entry(entry)) => {
            assert!(entry.status < 1000);
            assert!(entry.method.len() <= line.len() && entry.user_agent.len() <= line.len());
        }
        Ok(Line::Other) => {}
        Err(malformed) => {
            assert!((1..=line.len() + 1).contains(&malformed.column));
            assert!(!malformed.expected.is_empty());
        }
    }
}
