//! Tests logs of several servers that are merged by time.

use brimful_accesslog::logs::Logs;
use brimful_accesslog::read::{EntryDecision, Progress, ReadOptions, ReadSummary};
use brimful_accesslog::{Entry, LogError};
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::sync::atomic::Ordering;
use tempfile::TempDir;

/// A line of a JSON log. `ms` is its time in milliseconds after midnight, and its path contains the name of the server.
fn line(server: &str, ms: u64) -> String {
    let second = ms / 1000;
    let (hour, minute, second, ms) = (second / 3600, second / 60 % 60, second % 60, ms % 1000);
    format!(
        r#"{{"time":"2026-03-02T{hour:02}:{minute:02}:{second:02}.{ms:03}Z","method":"GET","uri":"/{server}","status":200,"size":5}}"#
    ) + "\n"
}

fn log(server: &str, times: impl IntoIterator<Item = u64>) -> Vec<u8> {
    times.into_iter().map(|ms| line(server, ms)).collect::<String>().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn directory(files: &[(&str, Vec<u8>)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(directory.path().join(name), bytes).unwrap();
    }
    directory
}

/// Reads the files. Returns the summary, and each request's time in milliseconds with its path.
fn merged(files: &[(&str, Vec<u8>)]) -> Result<(ReadSummary, Vec<(i64, String)>), LogError> {
    let directory = directory(files);
    let paths: Vec<String> =
        files.iter().map(|(name, _)| directory.path().join(name).to_string_lossy().into_owned()).collect();
    let mut found = Vec::new();
    let mut sink = |entry: &Entry<'_>| {
        found.push((entry.time_ns / 1_000_000, String::from_utf8_lossy(entry.target).into_owned()));
        if entry.target == b"/filtered" { EntryDecision::FilteredOut } else { EntryDecision::Accepted }
    };
    let mut last = Progress::default();
    let read = Logs::open(&paths, ReadOptions::default())?.read(&mut sink, &mut |now| last = *now)?;
    let lines = &read.lines;
    assert_eq!(lines.read, lines.parsed + lines.malformed + lines.filtered, "{lines:?}");
    assert_eq!(lines.read, read.sources.iter().map(|source| source.lines).sum::<u64>());
    assert_eq!(
        (last.lines, last.total_bytes),
        (lines.read, Some(last.bytes)),
        "all bytes and lines must be reported as read"
    );
    Ok((read, found))
}

fn is_sorted(found: &[(i64, String)]) -> bool {
    found.is_sorted_by_key(|(ms, _)| *ms)
}

#[test]
fn servers_of_the_same_hours_are_merged() {
    let a = log("a", (0..20_000).map(|i| 10 * i));
    let b = log("b", (0..15_000).map(|i| 1_000_000 + 13 * i));
    let c = gzip(&log("c", (0..9_000).map(|i| 5 + 20 * i)));
    let (read, found) = merged(&[("b.log", b), ("c.log.gz", c), ("a.log", a)]).unwrap();
    assert!(is_sorted(&found));
    let of = |server: &str| found.iter().filter(|(_, path)| path == server).count();
    assert_eq!((found.len(), of("/a"), of("/b"), of("/c")), (44_000, 20_000, 15_000, 9_000));
    assert_eq!((read.lines.parsed, read.lines.out_of_order), (44_000, 0));
    let sources: Vec<_> = read.sources.iter().map(|s| (s.path.rsplit('/').next().unwrap(), s.lines)).collect();
    assert_eq!(sources, [("a.log", 20_000), ("c.log.gz", 9_000), ("b.log", 15_000)]);
    assert_eq!((read.formats.shares().len(), &*read.formats.shares()[0].name), (1, "json"));
}

#[test]
fn each_server_may_have_a_rotated_set() {
    let part = |server: &'static str, from: u64, step: u64| log(server, (0..3_000).map(|i| from + step * i));
    let files = [
        ("a.log", part("a", 30_000, 10)),
        ("a.log.1", part("a", 0, 10)),
        ("b.log", part("b", 45_003, 10)),
        ("b.log.1", part("b", 15_003, 10)),
        ("late.log", part("late", 900_000, 1)),
    ];
    let (read, found) = merged(&files).unwrap();
    assert!(is_sorted(&found));
    assert_eq!((read.lines.parsed, found.len(), read.lines.out_of_order), (15_000, 15_000, 0));
}

#[test]
fn a_stamp_that_is_wrong_holds_up_nobody() {
    let mut a: Vec<u64> = (0..5_000).map(|i| 10 * i).collect();
    (a[100], a[4_000]) = (80_000_000, 80_000_000);
    let b = (0..5_000).map(|i| 5 + 10 * i).collect::<Vec<_>>();
    for files in [[("a", log("a", a.clone())), ("b", log("b", b.clone()))], [("a", log("a", b)), ("b", log("b", a))]] {
        let (read, found) = merged(&files).unwrap();
        let others: Vec<(i64, String)> = found.iter().filter(|(ms, _)| ms % 86_400_000 < 70_000_000).cloned().collect();
        assert_eq!((others.len(), read.lines.out_of_order), (9_998, 2));
        assert!(is_sorted(&others));
    }
}

#[test]
fn what_is_filtered_malformed_or_empty_is_accounted_for() {
    let a = [log("a", (0..2_000).map(|i| 7 * i)), b"what is this\n".to_vec()].concat();
    let b = log("filtered", (0..2_000).map(|i| 7 * i));
    let c = b"nobody knows\n".to_vec();
    let (read, found) = merged(&[("a", a), ("b", b), ("c", c), ("d", Vec::new())]).unwrap();
    let lines = &read.lines;
    assert_eq!((lines.read, lines.parsed, lines.malformed, lines.filtered), (4_002, 2_000, 2, 2_000));
    assert_eq!((found.len(), lines.first_malformed.len(), read.sources.len()), (4_000, 2, 4));
}

#[test]
fn reading_ends_when_nothing_more_is_wanted() {
    let times = || (0..60_000).map(|i| 10 * i);
    let directory = directory(&[("a", log("a", times())), ("b", log("b", times())), ("c", log("c", [86_000_000]))]);
    let paths = ["a", "b", "c"].map(|name| directory.path().join(name).to_string_lossy().into_owned());
    let options = ReadOptions::default();
    let enough = options.stop.clone();
    let mut seen = 0;
    let mut sink = |_: &Entry<'_>| {
        seen += 1;
        if seen < 1_000 {
            return EntryDecision::Accepted;
        }
        enough.store(true, Ordering::Relaxed);
        EntryDecision::FilteredOut
    };
    let read = Logs::open(&paths, options).unwrap().read(&mut sink, &mut |_| {}).unwrap();
    let lines = &read.lines;
    assert!(lines.parsed == 999 && lines.read < 100_000, "{lines:?}");
    assert_eq!(lines.read, lines.parsed + lines.malformed + lines.filtered);
    assert_eq!(read.sources[2].cut_short.as_deref(), Some("the reading was stopped"));
}

#[test]
fn the_clock_of_the_logs_is_the_one_that_most_stamps_have() {
    let line = |zone: &str| format!("10.0.0.1 - - [02/Mar/2026:10:00:00 {zone}] \"GET / HTTP/1.1\" 200 5\n");
    let offset = |files: &[(&str, Vec<u8>)]| {
        let directory = directory(files);
        let paths: Vec<_> =
            files.iter().map(|(name, _)| directory.path().join(name).to_string_lossy().into_owned()).collect();
        Logs::open(&paths, ReadOptions::default()).unwrap().offset_s()
    };
    let summer = line("+0200").repeat(10) + &line("+0100").repeat(3);
    assert_eq!(offset(&[("log", summer.into_bytes())]), Some(7200));
    assert_eq!(offset(&[("log", line("-0330").into_bytes())]), Some(-12_600));
    let stamp = br#"{"ts":1772445600.5,"method":"GET","uri":"/","status":200}"#;
    assert_eq!(offset(&[("log", stamp.to_vec())]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_the_logs_none_of_their_requests_is_lost(
        times in prop::collection::vec((0_u64..6, 0_u64..86_400_000), 1..400), spread in 1_u64..1_000,
    ) {
        let mut servers = vec![Vec::new(); 6];
        for (server, ms) in times {
            servers[server as usize].push(ms / spread);
        }
        servers.iter_mut().for_each(|server| server.sort_unstable());
        let total: usize = servers.iter().map(Vec::len).sum();
        let names: Vec<String> = (0..6).map(|server| format!("{server}.log")).collect();
        let files: Vec<(&str, Vec<u8>)> =
            names.iter().zip(&servers).map(|(name, times)| (name.as_str(), log(name, times.iter().copied()))).collect();
        let (read, found) = merged(&files).unwrap();
        prop_assert_eq!((read.lines.parsed, found.len(), read.lines.out_of_order), (total as u64, total, 0));
        prop_assert!(is_sorted(&found));
    }
}
