//! Tests access logs of other servers and proxies, and logs that users have changed.

use crate::documents::{document, record};
use crate::program::{Done, run, words};
use brimful_core::profile::Profile;
use brimful_core::record::Record;
use brimful_core::workload::Load;
use brimful_testkit::RawServer;
use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// A temporary directory for the files of a test.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn server() -> RawServer {
    RawServer::content_length("hello\n")
}

/// A log line in Common format. Its time stamp is `second` seconds after 10 o'clock; `second` may be negative.
fn line(second: i64, path: &str) -> String {
    let at = 36_000 + second;
    let (hour, minute, second) = (at / 3600, at / 60 % 60, at % 60);
    format!("10.0.0.1 - - [02/Mar/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 6\n")
}

/// A log of 300 lines in 30 s. `stamp` changes the time stamp of the line with the index `at`.
fn thirty_seconds(at: usize, stamp: impl Fn(&str) -> String) -> String {
    (0..300)
        .map(|call| {
            let usual = line(call as i64 / 10, &format!("/page?n={call}"));
            if call == at { stamp(&usual) } else { usual }
        })
        .collect()
}

/// The time stamp of a request that started 50 minutes earlier, such as a long download.
fn early(usual: &str) -> String {
    usual.replace(":10:00:", ":09:10:")
}

fn in_2038(usual: &str) -> String {
    usual.replace("/2026:", "/2038:")
}

fn replay(args: &[&str]) -> (Record, Done) {
    let done = run(&[&["replay"], args, &["--json"]].concat()).exits(&[0, 4]);
    (record(&done.stdout), done)
}

fn profile(args: &[&str]) -> Profile {
    document(&run(&[&["characterize"], args, &["--json"]].concat()).exits(&[0]).stdout)
}

#[test]
fn one_early_stamp_at_a_logs_head_does_not_stall_its_replay() {
    let (files, server) = (Files::new(), server());
    for at in [0, 5, 150] {
        let log = files.write("early.log", thirty_seconds(at, early));
        let (record, done) = replay(&[&log, &server.url(), "--speed", "60x"]);
        assert_eq!((record.counts.completed, record.counts.errors()), (300, 0), "{}", done.stderr);
        assert!((0.4..30.0).contains(&record.window_s), "{}", record.window_s);
        assert!(done.stderr.contains("1 were too far out of order to be sorted"), "{}", done.stderr);
        let length = words(&done.stderr);
        let is_said = ["498", "499"].iter().any(|ms| length.contains(&format!("300 calls over {ms} ms (at 60 times")));
        assert!(is_said, "{length}");
    }
}

#[test]
fn one_stamp_of_2038_does_not_stall_a_replay() {
    let (files, server) = (Files::new(), server());
    for at in [0, 150, 299] {
        let log = files.write("future.log", thirty_seconds(at, in_2038));
        let (record, done) = replay(&[&log, &server.url(), "--speed", "60x"]);
        assert_eq!(record.counts.completed, 300, "{}", done.stderr);
        assert!(done.stderr.contains("1 have timestamps far ahead of the lines around them"), "{}", done.stderr);
    }
    // Merge two logs. The line with the wrong time stamp is the first line of one of them.
    let other: String = (0..300).map(|call| line(call / 10, &format!("/other?n={call}"))).collect();
    let (log, other) = (files.write("future.log", thirty_seconds(0, in_2038)), files.write("other.log", other));
    let (record, done) = replay(&[&log, &other, &server.url(), "--speed", "60x"]);
    assert_eq!(record.counts.completed, 600, "{}", done.stderr);
    assert!(!done.stderr.contains("too far out of order"), "{}", done.stderr);
}

#[test]
fn an_early_stamp_does_not_change_the_mean_rate_of_a_flat_replay() {
    let (files, server) = (Files::new(), server());
    let log = files.write("early.log", thirty_seconds(5, early));
    let (record, done) = replay(&[&log, &server.url(), "--speed", "60x", "--flatten"]);
    assert_eq!(record.counts.completed, 300, "{}", done.stderr);
    assert!(record.window_s < 30.0, "{}", record.window_s);
}

#[test]
fn gaps_in_a_log_are_reported_and_can_be_shortened() {
    let (files, server) = (Files::new(), server());
    let with_a_hole: String = [0, 1, 2, 1800, 1801, 1802].map(|second| line(second, "/")).concat();
    let log = files.write("hole.log", with_a_hole);
    let (record, done) = replay(&[&log, &server.url(), "--speed", "10x", "--max-gap", "200ms"]);
    assert_eq!(record.counts.completed, 6);
    assert!(record.window_s < 30.0, "{}", record.window_s);
    assert!(done.stderr.contains("6 calls over 600 ms"), "{}", done.stderr);
    assert!(done.stderr.contains("1 pause shortened by 3 min in total (--max-gap)"), "{}", done.stderr);
    let Some(Load::Log(load)) = record.workload.unwrap().load else { panic!("the load should be the replay of a log") };
    assert_eq!(load.max_gap_s, Some(0.2));

    let done = run(&["replay", &log, &server.url(), "--duration", "10ms"]).exits(&[0, 4]);
    assert!(done.stderr.contains("until --duration ends it"), "{}", done.stderr);
    run(&["replay", &log, &server.url(), "--max-gap", "0s"]).fails(2, "give a time like 10s");
}

#[test]
fn one_early_stamp_does_not_stretch_a_profile() {
    let files = Files::new();
    for at in [0, 5, 150] {
        let profile = profile(&[&files.write("early.log", thirty_seconds(at, early))]);
        assert!(profile.from.starts_with("2026-03-02T10:00:0"), "{}", profile.from);
        assert!((9.0..=10.4).contains(&profile.arrivals.mean_rate), "{}", profile.arrivals.mean_rate);
        assert!((9.0..=10.4).contains(&profile.peak.rate), "{}", profile.peak.rate);
        assert!(profile.notes.iter().any(|note| note.starts_with("Requests far before or after all others: 1;")));
        let between = profile.interarrival_s.unwrap();
        assert!(at == 0 || between.max <= 1.0, "{between:?}");
    }
    let profile = profile(&[&files.write("future.log", thirty_seconds(150, in_2038))]);
    assert!(profile.to.starts_with("2026-03-02T10:00:29"), "{}", profile.to);
    assert!(profile.interarrival_s.unwrap().max <= 1.0);
}

#[test]
fn forwarded_lists_are_not_virtual_hosts() {
    let files = Files::new();
    let log: String = (1..=100)
        .map(|n| {
            format!(
                "203.0.113.{n}, 198.51.100.9 - - [03/Aug/2017:14:{:02}:{:02} +0000] \"GET /a HTTP/1.1\" 200 10 \"-\" \"x\"\n",
                n / 60,
                n % 60
            )
        })
        .collect();
    let log = files.write("forwarded.log", log);
    let found = profile(&[&log]);
    assert_eq!(found.format, "combined");
    assert!((95..=105).contains(&found.unique_clients), "{}", found.unique_clients);
    let client = found.format_sample.iter().find(|field| field.field == "client").unwrap();
    assert_eq!(client.value, "203.0.113.1");
    let text = run(&["characterize", &log]).exits(&[0]).stdout;
    let read_as = "read as client 203.0.113.1, time 2017-08-03T14:00:01Z, method GET, target /a, protocol HTTP/1.1, \
                   status 200, bytes 10, agent x";
    assert!(words(&text).contains(read_as), "{text}");
}

#[test]
fn microseconds_before_a_pid_are_not_seconds() {
    let files = Files::new();
    let log: String = (0..200_u64)
        .map(|n| {
            let micros = 5_040 + (n * 7_919) % 4_000;
            let stamp = format!("03/Aug/2017:14:{:02}:{:02} +0000", n / 60, n % 60);
            format!(
                "203.0.113.7 - - [{stamp}] \"GET /{n} HTTP/1.1\" 200 {} \"-\" \"x\" {micros} {}\n",
                900 + n * 31,
                4_711 + n % 5
            )
        })
        .collect();
    let log = files.write("times.log", log);
    let profile = profile(&[&log]);
    let mean_s = profile.service_s.unwrap().mean;
    assert!((0.005..0.01).contains(&mean_s), "{mean_s}");
    assert!(profile.notes[0].contains("whole numbers are read as microseconds"), "{:?}", profile.notes);
    assert!(profile.format_sample.iter().any(|field| field.field == "took" && field.value == "5.04 ms"));
    let text = words(&run(&["characterize", &log]).exits(&[0]).stdout);
    assert!(text.contains("beware The log does not name the unit of its times"), "{text}");
    // The program must accept the format that its error message suggests.
    let instead = text.split("give --format '").nth(1).unwrap().split('\'').next().unwrap();
    let otherwise: Profile = document(&run(&["characterize", &log, "--format", instead, "--json"]).exits(&[0]).stdout);
    assert!(otherwise.service_s.unwrap().mean > 1.0, "{instead}");
}

#[test]
fn a_format_that_matches_no_line_says_why() {
    let (files, server) = (Files::new(), server());
    let log = files.write("common.log", [0, 1, 2].map(|second| line(second, "/a")).concat());
    let reason = format!("{log}:1:66: expected a space and a quote");
    run(&["characterize", &log, "--format", "combined"]).fails(2, &reason);
    run(&["replay", &log, &server.url(), "--format", "combined"]).fails(2, &reason);
    run(&["replay", &log, &server.url(), "--flatten", "--format", "combined"]).fails(2, &reason);
    let done = from_stdin(&["replay", "-", &server.url(), "--format", "combined"], line(0, "/a").as_bytes());
    assert!(done.code == 2 && done.stderr.contains("-:1:66: expected a space and a quote"), "{done:?}");
    let tomcat = "%h %l %u %{yyyy-MM-dd HH:mm:ss}t \"%r\" %s %b";
    let done = run(&["characterize", &log, "--format", tomcat]);
    let said = words(&done.stderr);
    assert!(said.contains("Java's SimpleDateFormat, which Tomcat accepts"), "{said}");
    assert!(said.contains("write %{%Y-%m-%d %H:%M:%S}t in its place"), "{said}");
    assert_eq!(done.code, 2);
}

/// Runs the program with this input on its stdin.
fn from_stdin(args: &[&str], input: &[u8]) -> Done {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brimful"));
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn flags_may_stand_between_a_log_and_its_url() {
    let (files, server) = (Files::new(), server());
    let log = files.write("x.log", [0, 0, 1].map(|second| line(second, "/")).concat());
    let url = server.url();
    for args in [
        &[&log, "--speed", "20x", &url][..],
        &["--speed", "20x", &log, &url],
        &[&log, &url, "--speed", "20x"],
        &[&url, "--speed", "20x", &log],
    ] {
        let args: Vec<&str> = args.iter().map(|arg| &**arg).collect();
        assert_eq!(replay(&args).0.counts.completed, 3, "{args:?}");
    }
    run(&["replay", &log]).fails(2, "a log and a server are needed");
    run(&["replay", &url, "--speed", "2x"]).fails(2, "a log is missing: brimful replay access.log");
    run(&["replay", &url, &log, "http://127.0.0.2/"]).fails(2, "only one server can be loaded");
}

#[test]
fn a_byte_order_mark_is_ignored_in_every_file() {
    let (files, server) = (Files::new(), server());
    let url = server.url();
    let marked = |name: &str, text: &str| files.write(name, ["\u{feff}", text].concat());
    let load = |args: &[&str]| {
        let done = run(&[&["load", &url, "--json"], args].concat()).exits(&[0, 4]);
        record(&done.stdout)
    };
    let workload = "[[class]]\nname = \"a\"\npath = \"/\"\n";
    assert_eq!(load(&["--workload", &marked("w.toml", workload), "-n", "3", "-c", "1"]).counts.completed, 3);
    assert_eq!(load(&["--urls", &marked("urls.txt", "/a\n/b\n"), "-n", "4", "-c", "1"]).counts.completed, 4);
    let requests = "{\"method\": \"GET\", \"path\": \"/a\"}\n";
    assert_eq!(load(&["--requests-file", &marked("r.jsonl", requests), "-n", "2", "-c", "1"]).counts.completed, 2);
    let trace = format!("trace:{}", marked("trace.txt", "0\n0.01\n0.02\n"));
    assert_eq!(load(&["--arrivals", &trace]).counts.completed, 3);

    let log = marked("x.log", &line(0, "/a").repeat(3));
    assert_eq!(profile(&[&log]).lines.malformed, 0);
    let configuration = marked("nginx.conf", "http { access_log /var/log/x combined; }");
    let common = files.write("c.log", line(0, "/a").trim_end().to_owned() + " \"-\" \"x\"\n");
    assert_eq!(profile(&[&common, "--format-from", &configuration]).lines.parsed, 1);
    let before = run(&["characterize", &common, "--json"]).exits(&[0]).stdout;
    run(&["characterize", &common, "--against", &marked("before.json", &before)]).exits(&[0]);

    let done = run(&["load", &url, "--json", "-n", "5", "-c", "1"]).exits(&[0, 4]);
    let one = marked("one.json", &done.stdout);
    run(&["merge", &one, &one]).exits(&[0, 1, 2, 4]).stderr.lines().for_each(|line| {
        assert!(!line.contains("is not a Record"), "{line}");
    });
    let series: String = (0..200).fold("time,rate\n".to_owned(), |mut series, hour| {
        writeln!(series, "2026-03-{:02}T{:02}:00Z,{}", 1 + hour / 24, hour % 24, 10 + hour % 24).unwrap();
        series
    });
    run(&["plan", "forecast", &marked("series.csv", &series), "--unit", "rates"]).exits(&[0]);
}
