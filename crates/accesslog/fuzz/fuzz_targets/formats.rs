//! Foreign text as a format, and foreign lines in it: no panic, and what is said of a line is in the line.
//!
//! Input: a byte that chooses a named format, or if there are not so many, none; a line that is a format string in
//! that case; lines. Run from `crates/accesslog`:
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run formats -- -dict=fuzz/accesslog.dict -max_total_time=120`.
#![no_main]

use brimful_accesslog::detect::Formats;
use brimful_accesslog::format::Format;
use brimful_accesslog::{Line, Malformed, Scratch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    let mut lines = rest.split(|&byte| byte == b'\n');
    let names = Format::names();
    let format = match names.get(usize::from(choice)) {
        Some(name) => Format::named(name),
        None => {
            let text = String::from_utf8_lossy(lines.next().unwrap_or_default());
            let _ = Format::of_configuration(&String::from_utf8_lossy(rest));
            Format::parse(&text).ok()
        }
    };
    let lines: Vec<&[u8]> = lines.collect();
    let mut scratch = Scratch::default();
    if let Some(mut format) = format {
        for line in &lines {
            check(line, format.read(line, &mut scratch));
        }
    }
    if let Ok(mut formats) = Formats::detect(&lines) {
        for line in &lines {
            check(line, formats.read(line, &mut scratch));
        }
        let shares: f64 = formats.shares().iter().map(|share| share.share).sum();
        assert!(shares.abs() < 1e-9 || (shares - 1.0).abs() < 1e-9);
    }
});

/// What holds for every line that was read.
fn check(line: &[u8], outcome: Result<Line<'_>, Malformed>) {
    match outcome {
        Ok(Line::Entry(entry)) => {
            assert!(entry.status < 1000);
            assert!(entry.method.len() <= line.len());
        }
        Ok(Line::Other) => {}
        Err(malformed) => {
            assert!((1..=line.len() + 1).contains(&malformed.column));
            assert!(!malformed.expected.is_empty());
        }
    }
}
