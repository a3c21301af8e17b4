//! Uses arbitrary text as a format and as a server's configuration. Checks that nothing panics, not even when an
//! accepted format reads lines.
//!
//! The input is the text. `README.md` contains the command that runs this target.
#![no_main]

use brimful_accesslog::Scratch;
use brimful_accesslog::format::Format;
use libfuzzer_sys::fuzz_target;

/// Lines with fields of all kinds.
const LINES: [&[u8]; 2] = [
    br#"10.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET /a?b HTTP/1.1" 200 5 "-" "curl/8" 0.001 0.002, 0.003 : 0.004"#,
    b"2000-10-10T13:55:36.123Z 971211336.123 200 0 -",
];

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let mut formats = Format::from_configuration(&text).unwrap_or_default();
    formats.extend(Format::parse(&text));
    let mut scratch = Scratch::default();
    for format in &mut formats {
        assert!(format.name().len() <= 3 * input.len() + 32);
        for line in LINES {
            if let Err(malformed) = format.read(line, &mut scratch) {
                assert!((1..=line.len() + 1).contains(&malformed.column));
            }
        }
    }
});
