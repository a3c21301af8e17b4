//! Tests the reading of whole files, rotated sets and streams.

use brimful_accesslog::read::{EntryDecision, Progress, ReadOptions, ReadSummary, read, read_stream};
use brimful_accesslog::{Entry, LogError};
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use tempfile::TempDir;

/// A line of a log. `second` is the number of seconds since midnight in its timestamp.
fn line(second: u32) -> String {
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let stamp = format!("10/Oct/2000:{hour:02}:{minute:02}:{second:02} +0000");
    format!("10.0.0.1 - - [{stamp}] \"GET /{second} HTTP/1.1\" 200 5 \"-\" \"curl/8\"")
}

fn lines(seconds: std::ops::Range<u32>) -> Vec<u8> {
    seconds.map(|second| line(second) + "\n").collect::<String>().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Creates a directory that contains these files.
fn logs(files: &[(&str, Vec<u8>)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(directory.path().join(name), bytes).unwrap();
    }
    directory
}

/// Reads logs in a directory. Returns the summary, the times of the requests in the order of reading, and all progress
/// reports.
fn read_in(directory: &Path, paths: &[&str]) -> Result<(ReadSummary, Vec<i64>, Vec<Progress>), LogError> {
    let paths: Vec<_> = paths.iter().map(|path| directory.join(path).to_string_lossy().into_owned()).collect();
    let mut stamps = Vec::new();
    let mut progress = Vec::new();
    let mut sink = |entry: &Entry<'_>| {
        stamps.push(entry.time_ns);
        EntryDecision::Accepted
    };
    let read = read(&paths, ReadOptions::default(), &mut sink, &mut |now| progress.push(*now))?;
    Ok((read, stamps, progress))
}

fn names(read: &ReadSummary) -> Vec<&str> {
    read.sources.iter().map(|source| source.path.rsplit('/').next().unwrap()).collect()
}

fn is_sorted(stamps: &[i64]) -> bool {
    stamps.is_sorted()
}

#[test]
fn a_rotated_set_is_read_in_the_order_of_time_whatever_its_order() {
    let directory = logs(&[
        ("access.log", lines(3000..4000)),
        ("access.log.1", lines(2000..3000)),
        ("access.log.2.gz", gzip(&lines(1000..2000))),
        ("access.log-20001009", lines(0..1000)),
    ]);
    let in_time = ["access.log-20001009", "access.log.2.gz", "access.log.1", "access.log"];
    for order in
        [&["access.log*"][..], &["."], &["access.log.1", "access.log", "access.log-20001009", "access.log.2.gz"]]
    {
        let (read, stamps, _) = read_in(directory.path(), order).unwrap();
        assert_eq!(names(&read), in_time);
        assert_eq!((stamps.len(), is_sorted(&stamps), read.lines.out_of_order), (4000, true, 0));
        assert!(read.sources.iter().all(|source| source.lines == 1000 && source.cut_short.is_none()));
    }
}

#[test]
fn progress_ends_with_all_there_is() {
    let packed = gzip(&lines(1000..2000));
    let stored = lines(0..1000).len() + packed.len();
    let directory = logs(&[("a", lines(0..1000)), ("b", packed)]);
    let (_, _, progress) = read_in(directory.path(), &["a", "b"]).unwrap();
    let stored = stored as u64;
    assert_eq!(*progress.last().unwrap(), Progress { bytes: stored, total_bytes: Some(stored), lines: 2000 });
    assert!(progress.is_sorted_by_key(|now| now.bytes));
}

#[test]
fn what_a_log_is_called_says_nothing_of_its_compression() {
    let directory = logs(&[("plain.gz", lines(0..10)), ("packed.log", gzip(&lines(10..20)))]);
    let (read, stamps, _) = read_in(directory.path(), &["plain.gz", "packed.log"]).unwrap();
    assert_eq!((stamps.len(), read.lines.malformed), (20, 0));
}

#[test]
fn gzip_files_after_one_another_are_one_log_and_one_that_is_cut_off_counts() {
    let mut both = [gzip(&lines(0..3000)), gzip(&lines(3000..6000))].concat();
    let directory = logs(&[("whole", both.clone())]);
    assert_eq!(read_in(directory.path(), &["whole"]).unwrap().0.lines.parsed, 6000);
    both.truncate(both.len() * 3 / 4);
    let directory = logs(&[("cut", both), ("other", lines(6000..6100))]);
    let (read, ..) = read_in(directory.path(), &["cut", "other"]).unwrap();
    let [cut, other] = &read.sources[..] else { panic!("{:?}", read.sources) };
    assert!(cut.lines > 3000 && cut.lines < 6000, "{cut:?}");
    assert!(cut.cut_short.as_deref().unwrap().starts_with("its gzip data ends in the middle, after "));
    assert_eq!((other.lines, &other.cut_short), (100, &None));
    assert_eq!(read.lines.read, read.lines.parsed + read.lines.malformed + read.lines.filtered);
}

#[test]
fn a_fifo_is_read_to_its_end_and_only_once() {
    let directory = logs(&[]);
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let writer = thread::spawn(move || File::create(fifo).unwrap().write_all(&gzip(&lines(0..5000))).unwrap());
    let (read, stamps, progress) = read_in(directory.path(), &["fifo"]).unwrap();
    writer.join().unwrap();
    assert_eq!((read.lines.parsed, stamps.len()), (5000, 5000));
    assert_eq!(progress.last().unwrap().total_bytes, None);
    // A pattern must skip FIFOs, because opening a FIFO might block forever.
    assert!(matches!(read_in(directory.path(), &["fif?"]), Err(LogError::NoMatch(_))));
}

#[test]
fn what_cannot_be_read_says_why() {
    let directory =
        logs(&[("empty", vec![]), ("binary", b"\x7fELF\x02\0\0\0".to_vec()), ("damaged", gzip(b"x")[..9].to_vec())]);
    let said = |path: &str| read_in(directory.path(), &[path]).map(|(read, ..)| read.lines).unwrap_err().to_string();
    assert!(said("missing").contains("no file matches"));
    assert!(said("empty").contains("the log is empty"));
    assert!(said("binary").contains("binary data"));
    assert!(said("damaged").contains("the log is empty") && said("damaged").contains("gzip"));
    assert!(said(".").contains("is a directory"));
}

#[test]
fn a_file_without_permission_says_what_to_do() {
    let directory = logs(&[("secret", lines(0..1))]);
    let path = directory.path().join("secret");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        println!("not tested: this user may read everything");
        return;
    }
    assert!(read_in(directory.path(), &["secret"]).unwrap_err().to_string().contains("sudo"));
}

/// A reader that returns its bytes in small pieces, like a slow program.
struct Pieces {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    at: usize,
    turn: usize,
}

impl io::Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = self.lengths[self.turn % self.lengths.len()].min(into.len()).min(self.bytes.len() - self.at);
        into[..length].copy_from_slice(&self.bytes[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_stream_is_the_same_however_it_comes(
        lengths in prop::collection::vec(1_usize..5000, 1..10), is_packed: bool, count in 1_u32..3000,
    ) {
        let bytes = if is_packed { gzip(&lines(0..count)) } else { lines(0..count) };
        let mut stamps = Vec::new();
        let mut sink = |entry: &Entry<'_>| { stamps.push(entry.time_ns); EntryDecision::Accepted };
        let stream = Pieces { bytes, lengths, at: 0, turn: 0 };
        let read = read_stream("-", stream, ReadOptions::default(), &mut sink, &mut |_| {}).unwrap();
        prop_assert_eq!(read.lines.parsed, u64::from(count));
        prop_assert_eq!(read.lines.read, u64::from(count));
        prop_assert!(is_sorted(&stamps));
    }
}

/// The real logs; empty if this machine has none.
fn real_logs() -> Vec<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/logs");
    let directory = std::env::var_os("BRIMFUL_LOGS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let Ok(entries) = fs::read_dir(&directory) else {
        println!("not tested: there are no logs in {}", directory.display());
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "log")).collect()
}

#[test]
fn real_logs_are_read_to_their_ends() {
    for path in real_logs() {
        let text = fs::read(&path).unwrap();
        let lines = text.iter().filter(|&&byte| byte == b'\n').count() + usize::from(!text.ends_with(b"\n"));
        let outcome = read_in(Path::new("/"), &[&path.to_string_lossy()]);
        let name = path.file_name().unwrap().to_string_lossy();
        // In some of the real logs, every line is damaged.
        if name.contains("unmatch") && matches!(outcome, Err(LogError::UnknownFormat(_))) {
            continue;
        }
        let read = outcome.unwrap().0;
        assert_eq!(read.lines.read, lines as u64, "{name}");
        assert_eq!(read.lines.read, read.lines.parsed + read.lines.malformed + read.lines.filtered, "{name}");
        assert_eq!(read.sources[0].bytes, text.len() as u64, "{name}");
        assert!(name.contains("unmatch") || read.lines.parsed * 2 > read.lines.read, "{name}: {:?}", read.lines);
    }
}
