//! Feeds arbitrary bytes as a log. Checks that nothing panics, and that the counts of lines add up. Also checks that
//! the result does not depend on whether the bytes arrive at once, one by one, or in a gzip file. `README.md` contains
//! the command that runs this target.
#![no_main]

use brimful_accesslog::LogError;
use brimful_accesslog::detect::Formats;
use brimful_accesslog::format::Format;
use brimful_accesslog::read::{EntryDecision, ReadOptions, ReadSummary, read_stream};
use flate2::Crc;
use libfuzzer_sys::{Corpus, fuzz_target};
use std::io::{self, Cursor};
use std::sync::LazyLock;

/// Maximum number of decompressed bytes of an input that libFuzzer keeps for mutation. A few bytes can decompress to
/// megabytes, and reading megabytes takes thousands of times as long as reading a usual input.
const MAX_DECOMPRESSED_BYTES: u64 = 64 << 10;

fuzz_target!(|input: &[u8]| -> Corpus {
    let whole = read(Cursor::new(input.to_vec()));
    let bytewise = read(OneByteReader(input.to_vec(), 0));
    // If the input is itself compressed, the results are not compared. For damaged compressed bytes, the result depends
    // on the number of bytes that are read at once. An additional layer of gzip would not be removed.
    let is_packed =
        matches!(input, [0x1f, 0x8b, ..] | [b'B', b'Z', b'h', ..] | [0x28, 0xb5, ..] | [0x50..=0x5f, 0x2a, ..]);
    if !is_packed {
        same(&whole, &bytewise);
        same(&whole, &read(Cursor::new(gzip(input))));
    }

    let Ok(read) = whole else {
        return Corpus::Keep;
    };
    let lines = &read.lines;
    assert_eq!(lines.read, lines.parsed + lines.malformed + lines.filtered);
    if !is_packed {
        let ends = input.iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert!(lines.read == ends || lines.read == ends + 1);
    }
    for malformed in &lines.first_malformed {
        assert!(malformed.text.chars().count() <= 80 && !malformed.text.contains(char::is_control));
        assert!((1..=lines.read).contains(&malformed.line));
    }
    let decompressed: u64 = read.sources.iter().map(|source| source.bytes).sum();
    if decompressed <= MAX_DECOMPRESSED_BYTES { Corpus::Keep } else { Corpus::Reject }
});

/// The formats are detected once: detection takes longer than everything else, and the target `detect` tests it.
static FORMATS: LazyLock<Formats> = LazyLock::new(|| {
    let named = |name| Format::by_name(name).expect("the format exists");
    Formats::from_list(["combined", "json", "w3c"].map(named).into())
});

fn read(reader: impl io::Read + Send + 'static) -> Result<ReadSummary, LogError> {
    let options = ReadOptions { formats: Some(FORMATS.clone()), ..ReadOptions::default() };
    read_stream("log", reader, options, &mut |_| EntryDecision::Accepted, &mut |_| {})
}

fn same(a: &Result<ReadSummary, LogError>, b: &Result<ReadSummary, LogError>) {
    match (a, b) {
        (Ok(a), Ok(b)) => assert_eq!((&a.lines, &a.sources), (&b.lines, &b.sources)),
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        _ => panic!("{a:?} and {b:?}"),
    }
}

/// Wraps bytes as a gzip member (RFC 1952). Its deflate blocks are stored without compression (RFC 1951, section
/// 3.2.4), because compressing a short log would take longer than reading it.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    for block in bytes.chunks(usize::from(u16::MAX)) {
        let length = block.len() as u16;
        packed.push(0);
        packed.extend(length.to_le_bytes());
        packed.extend((!length).to_le_bytes());
        packed.extend(block);
    }
    // An empty stored block that is marked as the last block.
    packed.extend([1, 0, 0, 0xff, 0xff]);
    let mut crc = Crc::new();
    crc.update(bytes);
    packed.extend(crc.sum().to_le_bytes());
    packed.extend((bytes.len() as u32).to_le_bytes());
    packed
}

/// A reader that returns its bytes one at a time.
struct OneByteReader(Vec<u8>, usize);

impl io::Read for OneByteReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (Some(to), Some(&byte)) = (into.first_mut(), self.0.get(self.1)) else {
            return Ok(0);
        };
        *to = byte;
        self.1 += 1;
        Ok(1)
    }
}
