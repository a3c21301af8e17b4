//! `brimful replay` against nginx: what a log says is asked for again.

use crate::documents;
use crate::program::run;
use brimful_core::workload::{Load, LogReplay};
use brimful_testkit::{Nginx, NginxOptions};
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Twenty seconds with 15 requests each: pages, one in five unchanged, and one each of what is not sent.
fn a_log() -> String {
    let mut log = String::new();
    let mut line = |second: usize, request: &str, status: u16| {
        writeln!(log, "10.0.0.1 - - [02/Mar/2026:10:00:{second:02} +0100] \"{request}\" {status} 6").unwrap();
    };
    for call in 0..300 {
        let status = if call % 5 == 0 { 304 } else { 200 };
        line(call / 15, &format!("GET /page{}?n={call} HTTP/1.1", call % 3), status);
    }
    line(19, "POST /order HTTP/1.1", 200);
    line(19, r"\x16\x03\x01", 400);
    log + "what is this\n"
}

/// nginx with a log of its own, where it may write.
fn nginx(dir: &Path) -> (Nginx, String) {
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let log = dir.join("second.log").to_str().unwrap().to_owned();
    let files = (0..3).map(|n| (format!("page{n}"), b"hello\n".to_vec())).collect();
    let extra = format!("access_log {log} combined;");
    (Nginx::start(NginxOptions { files, extra, ..NginxOptions::default() }), log)
}

#[test]
fn a_server_is_asked_what_its_log_says() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first.log").to_str().unwrap().to_owned();
    fs::write(&first, a_log()).unwrap();
    let (nginx, second) = nginx(dir.path());
    let done = run(&["replay", &first, &nginx.url(), "--speed", "20x", "--json"]).exits(&[0, 4]);
    let record = documents::record(&done.stdout);
    assert_eq!((record.counts.completed, record.counts.errors()), (300, 0), "{}", done.stderr);
    assert_eq!((record.counts.status.s2xx, record.counts.status.s3xx), (240, 60), "what was unchanged still is");
    assert_eq!((record.classes["2xx"].counts.completed, record.classes["304"].counts.completed), (240, 60));
    assert!(done.stderr.contains("303 lines read = 300 parsed + 1 malformed + 2 filtered out"), "{}", done.stderr);
    assert!(done.stderr.contains("not sent: 1 of other methods (--methods), 1 without a path"), "{}", done.stderr);
    // Twenty seconds but for the middles of the first and the last call's time, at twenty times the speed.
    assert!(record.duration_s > 0.95, "{}", record.duration_s);
    let log = LogReplay { files: vec![first.clone()], speed: 20.0, flattened: false };
    assert_eq!(record.workload.unwrap().load, Some(Load::Log(log)));
    drop(nginx);
    let lines = fs::read_to_string(&second).unwrap();
    let asked: Vec<&str> = lines.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(asked.len(), 300);
    let mut numbers: Vec<usize> =
        asked.iter().filter_map(|request| request.split("n=").nth(1)?.split(' ').next()?.parse().ok()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>(), "each once, with its own query");
}

#[test]
fn a_flat_replay_has_the_same_requests_at_a_constant_rate() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first.log").to_str().unwrap().to_owned();
    fs::write(&first, a_log()).unwrap();
    let (nginx, _) = nginx(dir.path());
    let args = ["replay", &first, &nginx.url(), "--speed", "20x", "--flatten", "--json"];
    let record = documents::record(&run(&args).exits(&[0, 4]).stdout);
    assert_eq!(record.counts.completed, 300);
    assert!(matches!(&record.workload.unwrap().load, Some(Load::Log(log)) if log.flattened));
    run(&["replay", "-", &nginx.url(), "--flatten"]).fails(2, "--flatten reads the logs twice");
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("posts.log").to_str().unwrap().to_owned();
    fs::write(&log, "10.0.0.1 - - [02/Mar/2026:10:00:00 +0100] \"POST / HTTP/1.1\" 200 6\n".repeat(3)).unwrap();
    let (nginx, _) = nginx(dir.path());
    run(&["replay", &log, &nginx.url(), "--quiet"]).fails(2, "there is no call to make");
    run(&["replay", "/nowhere/at.log", &nginx.url(), "--quiet"]).exits(&[2, 3]);
    run(&["replay", &log, &nginx.url(), "--workload", &log, "--quiet"]).fails(2, "leave out --workload");
}
