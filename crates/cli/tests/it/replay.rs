//! Tests `brimful replay` against nginx. The requests and times in nginx's own log are compared with the log that was
//! replayed.

use crate::documents;
use crate::program::run;
use brimful_core::record::Record;
use brimful_core::workload::{Load, LogReplay};
use brimful_testkit::{Nginx, NginxOptions};
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A log of twenty seconds, with 15 requests for pages in each second. One response in five has status 304. The last
/// lines are a POST, a request without a path, and a malformed line.
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

/// Starts an nginx that writes a log. Returns the server and the path of the log.
fn nginx(dir: &Path) -> (Nginx, String) {
    nginx_with(dir, "")
}

/// Starts an nginx with additional directives in its `server` block. Its log has the format that [`arrived`] reads.
fn nginx_with(dir: &Path, more: &str) -> (Nginx, String) {
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let log = dir.join("second.log").to_str().unwrap().to_owned();
    let files = (0..3).map(|n| (format!("page{n}"), b"hello\n".to_vec())).collect();
    let http = r#"log_format arrived '$msec "$request" $status $body_bytes_sent $request_time';"#.to_owned();
    let extra = format!("access_log {log} arrived; {more}");
    (Nginx::start(NginxOptions { files, extra, http, ..NginxOptions::default() }), log)
}

/// A request that nginx received.
struct Arrived {
    /// Time of arrival, in seconds since 1970.
    at_s: f64,
    method: String,
    path: String,
    bytes: u64,
}

/// Stops nginx, and returns all requests that it has received.
fn arrived(nginx: Nginx, log: &str) -> Vec<Arrived> {
    drop(nginx);
    let text = fs::read_to_string(log).unwrap();
    let one = |line: &str| {
        let (before, rest) = line.split_once('"').unwrap();
        let (request, after) = rest.split_once('"').unwrap();
        let after: Vec<&str> = after.split_whitespace().collect();
        let ended_s: f64 = before.trim().parse().unwrap();
        let mut request = request.split(' ').map(str::to_owned);
        Arrived {
            at_s: ended_s - after[2].parse::<f64>().unwrap(),
            method: request.next().unwrap(),
            path: request.next().unwrap(),
            bytes: after[1].parse().unwrap(),
        }
    };
    // If all responses are 4xx, brimful checks whether the port speaks TLS. nginx logs that attempt as a request, which
    // is left out here.
    text.lines().filter(|line| !line.contains(r#""\x16\x03"#)).map(one).collect()
}

/// The number in a request's query.
fn number(path: &str) -> Option<usize> {
    path.split_once("n=")?.1.parse().ok()
}

/// A log line whose time stamp is `ms` milliseconds after a fixed time.
fn fine(ms: u64, request: &str, bytes: u64) -> String {
    let at = 1_772_445_600_000 + ms;
    let (second, ms) = (at / 1000, at % 1000);
    let (method, uri) = request.split_once(' ').unwrap();
    format!(r#"{{"ts":{second}.{ms:03},"method":"{method}","uri":"{uri}","status":200,"size":{bytes}}}"#) + "\n"
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_requests_of_the_log_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first.log").to_str().unwrap().to_owned();
    fs::write(&first, a_log()).unwrap();
    let (nginx, second) = nginx(dir.path());
    let done = run(&["replay", &first, &nginx.url(), "--speed", "20x", "--json"]).exits(&[0, 4]);
    let record = documents::record(&done.stdout);
    assert_eq!((record.counts.completed, record.counts.errors()), (300, 0), "{}", done.stderr);
    assert_eq!((record.counts.status.s2xx, record.counts.status.s3xx), (240, 60), "a 304 in the log is a 304 again");
    assert_eq!((record.classes["2xx"].counts.completed, record.classes["304"].counts.completed), (240, 60));
    assert!(done.stderr.contains("303 lines read = 300 parsed + 1 malformed + 2 filtered out"), "{}", done.stderr);
    assert!(done.stderr.contains("not sent: 1 with other methods (--methods), 1 without a path"), "{}", done.stderr);
    // From the middle of its first to the middle of its last second, the log lasts 19 s: 0.95 s at twenty times the
    // speed.
    assert!(record.duration_s > 0.95, "{}", record.duration_s);
    let log = LogReplay { files: vec![first.clone()], speed: 20.0, flattened: false, max_gap_s: None };
    assert_eq!(record.workload.unwrap().load, Some(Load::Log(log)));
    let asked = arrived(nginx, &second);
    assert_eq!(asked.len(), 300);
    let mut numbers: Vec<usize> = asked.iter().filter_map(|asked| number(&asked.path)).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>(), "each request is sent once, with its own query");
}

#[test]
fn flags_select_and_change_the_requests() {
    let dir = tempfile::tempdir().unwrap();
    let log = write(dir.path(), "first.log", &a_log());
    let (server, second) = nginx(dir.path());
    let args = ["replay", &log, &server.url(), "--speed", "20x", "--map", "/page=/new/page", "--methods", "POST,GET"];
    let record = documents::record(&run(&[&args[..], &["--json"]].concat()).exits(&[0, 4]).stdout);
    assert_eq!(record.counts.completed, 301);
    let asked = arrived(server, &second);
    assert_eq!(asked.iter().filter(|asked| asked.path.starts_with("/new/page")).count(), 300);
    let posts: Vec<&str> = asked.iter().filter(|a| a.method == "POST").map(|asked| asked.path.as_str()).collect();
    assert_eq!(posts, ["/order"]);

    let (server, second) = nginx(dir.path());
    fs::write(&second, "").unwrap();
    // At 20 times the speed, 300 ms cover six seconds of the log, which has 15 requests per second.
    let args = ["replay", &log, &server.url(), "--speed", "20x", "--duration", "300ms", "--json"];
    let record = documents::record(&run(&args).exits(&[0, 4]).stdout);
    assert_eq!(record.counts.scheduled, 90);
}

#[test]
fn responses_have_the_sizes_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = [0, 700, 5_000, 23_456, 1_234_567];
    let log: String = (0..50).map(|i| fine(i * 20, &format!("GET /x/{i}"), sizes[i as usize % 5])).collect();
    let log = write(dir.path(), "first.log", &log);
    let root = dir.path().join("www");
    fs::create_dir(&root).unwrap();
    let root = root.to_str().unwrap();
    let (server, second) = nginx_with(dir.path(), &format!("location /brimful/ {{ root {root}; }}"));
    let args = ["replay", &log, &server.url(), "--fileset", root, "--json"];
    let record = documents::record(&run(&args).exits(&[0, 4]).stdout);
    assert_eq!((record.counts.completed, record.counts.status.s2xx), (50, 50));
    let asked = arrived(server, &second);
    for size in sizes {
        let close = asked.iter().filter(|asked| asked.bytes.abs_diff(size) <= size / 100).count();
        assert_eq!(close, 10, "{size}: {:?}", asked.iter().map(|asked| asked.bytes).collect::<Vec<_>>());
    }
}

#[test]
fn logs_of_several_servers_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    // Twenty seconds with a request every 10 ms, alternately to two servers. The log of the second server consists of
    // two files, because it was rotated.
    let part = |numbers: &mut dyn Iterator<Item = u64>| -> String {
        numbers.map(|n| fine(10 * n, &format!("GET /page0?n={n}"), 6)).collect()
    };
    let a = write(dir.path(), "a.log", &part(&mut (0..2000).step_by(2)));
    let b = write(dir.path(), "b.log", &part(&mut (1001..2000).step_by(2)));
    let b_before = write(dir.path(), "b.log.1", &part(&mut (1..1001).step_by(2)));
    let (server, second) = nginx(dir.path());
    let done = run(&["replay", &b, &a, &b_before, &server.url(), "--speed", "20x", "--json"]).exits(&[0, 4]);
    let record = documents::record(&done.stdout);
    assert_eq!(record.counts.scheduled, 2000);
    assert!(done.stderr.contains("2,000 lines read = 2,000 parsed + 0 malformed + 0 filtered"), "{}", done.stderr);
    assert!(!done.stderr.contains("too far out of order"), "{}", done.stderr);
    assert!(record.duration_s > 0.95, "{}", record.duration_s);
    let mut numbers: Vec<usize> = arrived(server, &second).iter().filter_map(|asked| number(&asked.path)).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
}

#[test]
fn a_replay_keeps_the_times_of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    // Ten seconds with a request every 40 ms, and a few bursts of forty requests within some milliseconds.
    let mut times: Vec<u64> = (0..250).map(|i| 40 * i).collect();
    times.extend((0..10).flat_map(|bunch| (0..40).map(move |i| 300 + bunch * 937 + i / 4)));
    times.sort_unstable();
    let log: String = times.iter().enumerate().map(|(n, ms)| fine(*ms, &format!("GET /page1?n={n}"), 6)).collect();
    let log = write(dir.path(), "first.log", &log);
    let (server, second) = nginx(dir.path());
    let record = documents::record(&run(&["replay", &log, &server.url(), "--json"]).exits(&[0, 4]).stdout);
    let asked = arrived(server, &second);
    assert_eq!(asked.len(), times.len());
    let mut behind: Vec<f64> =
        asked.iter().map(|asked| asked.at_s - times[number(&asked.path).unwrap()] as f64 / 1e3).collect();
    behind.sort_by(f64::total_cmp);
    // nginx received each request between its due time and its response, even on a busy machine. nginx reads its clock
    // once per iteration of its event loop, with a resolution of a millisecond.
    let spread_s = behind[behind.len() - 1] - behind[0];
    let within_s = record.response_time_us.unwrap().max / 1e6 + 0.02;
    assert!(spread_s <= within_s, "arrivals spread over {spread_s} s, more than {within_s} s");
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
fn bursts_are_compared_with_a_constant_rate() {
    let dir = tempfile::tempdir().unwrap();
    let first = write(dir.path(), "first.log", &a_log());
    let (nginx, second) = nginx(dir.path());
    let [out, flat] = ["a.json", "a.flat.json"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let url = nginx.url();
    let args = ["replay", &first, &url, "--speed", "20x", "--against-flat", "--out", &out, "--json"];
    let done = run(&args).exits(&[0, 4]);
    let pair: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let [as_logged, flattened] = [&out, &flat].map(|path| documents::record(&fs::read_to_string(path).unwrap()));
    assert_eq!(pair["as_logged"], serde_json::to_value(&as_logged).unwrap());
    assert_eq!(pair["flattened"], serde_json::to_value(&flattened).unwrap());
    assert_eq!((as_logged.counts.scheduled, flattened.counts.scheduled), (300, 300));
    assert_eq!(as_logged.classes["304"].counts.scheduled, flattened.classes["304"].counts.scheduled);
    let is_flat =
        |record: &Record| matches!(&record.workload.as_ref().unwrap().load, Some(Load::Log(l)) if l.flattened);
    assert!(!is_flat(&as_logged) && is_flat(&flattened));
    // In both runs, the last calls are due at the same time.
    let planned = |record: &Record| record.window_s;
    assert!((planned(&as_logged) - planned(&flattened)).abs() < 0.2 * planned(&as_logged));
    assert_eq!(pair["comparison"]["valid"], as_logged.verdict.valid && flattened.verdict.valid);
    assert!(pair["comparison"]["verdict"].as_str().is_some_and(|verdict| !verdict.is_empty()), "{pair}");
    assert_eq!(arrived(nginx, &second).len(), 600);

    let nowhere = ["replay", &first, "http://127.0.0.1:1/", "--against-flat"];
    run(&[&nowhere[..], &["--flatten"]].concat()).fails(2, "cannot be used with");
    run(&["replay", "-", "http://127.0.0.1:1/", "--against-flat"]).fails(2, "--against-flat reads the logs twice");
    run(&[&nowhere[..], &["--out", "-"]].concat()).fails(2, "give --out a file");
}

#[test]
fn logs_that_cannot_be_replayed_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("posts.log").to_str().unwrap().to_owned();
    fs::write(&log, "10.0.0.1 - - [02/Mar/2026:10:00:00 +0100] \"POST / HTTP/1.1\" 200 6\n".repeat(3)).unwrap();
    let (nginx, _) = nginx(dir.path());
    run(&["replay", &log, &nginx.url(), "--quiet"]).fails(2, "the logs have no request to send");
    run(&["replay", "/nowhere/at.log", &nginx.url(), "--quiet"]).exits(&[2, 3]);
    run(&["replay", &log, &nginx.url(), "--workload", &log, "--quiet"]).fails(2, "remove --workload");
}
