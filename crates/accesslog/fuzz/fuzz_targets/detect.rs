//! Feeds arbitrary lines to the detection of formats. Checks that the detected formats read these lines without panic,
//! and that the formats' shares of the requests add up to 1. Detection tries every known format on each input, so this
//! target is slower than the other targets.
//!
//! The input is a sequence of lines. `README.md` contains the command that runs this target.
#![no_main]

use brimful_accesslog::detect::Formats;
use brimful_accesslog::{Line, Scratch};
use libfuzzer_sys::fuzz_target;

/// Maximum number of lines that are read from an input. Four lines are enough for a log in which two formats read two
/// lines each.
const MAX_LINES: usize = 4;

fuzz_target!(|input: &[u8]| {
    let lines: Vec<&[u8]> = input.split(|&byte| byte == b'\n').take(MAX_LINES).collect();
    let Ok(mut formats) = Formats::detect(&lines) else {
        return;
    };
    let mut scratch = Scratch::default();
    for line in &lines {
        match formats.read(line, &mut scratch) {
            Ok(Line::Entry(entry)) => assert!(entry.status < 1000),
            Ok(Line::Other) => {}
            Err(malformed) => assert!((1..=line.len() + 1).contains(&malformed.column)),
        }
    }
    let shares: f64 = formats.shares().iter().map(|share| share.share).sum();
    assert!(shares.abs() < 1e-9 || (shares - 1.0).abs() < 1e-9);
});
