//! Tests `brimful characterize` and `brimful fileset` with generated logs, and with real logs if there are any on this
//! machine.

use crate::documents::document;
use crate::plan::{Files, path_argument};
use crate::program::{Done, Running, brimful, lock_machine_shared, run, wait_until};
use brimful_core::profile::Profile;
use brimful_core::workload::Workload;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two hours of log lines in Combined format. In the first hour, there is a request every two seconds; in the second
/// hour, there is one every second. The requests are for pages and images; some responses are 304 and 404.
fn log() -> String {
    let stamps = (0..1800).map(|i| 2 * i).chain(3600..7200);
    let line = |(i, second): (usize, u32)| {
        let (url, status, bytes) = match i % 10 {
            0..=3 => ("/index.html".to_owned(), 200, "2345".to_owned()),
            4..=6 => (format!("/images/{}.png", i % 7), 200, format!("{}", 20_000 + 100 * (i % 7))),
            7 => (format!("/search?q={}", i % 100), 200, format!("{}", 5_000 + i % 1000)),
            8 => ("/index.html".to_owned(), 304, "-".to_owned()),
            _ => ("/favicon.ico".to_owned(), 404, "209".to_owned()),
        };
        entry(second, i % 50, "GET", &url, status, &bytes)
    };
    stamps.enumerate().map(line).collect()
}

fn entry(second: u32, client: usize, method: &str, url: &str, status: u16, bytes: &str) -> String {
    let (hour, minute, second) = (14 + second / 3600, second / 60 % 60, second % 60);
    format!(
        "10.0.0.{client} - - [01/Mar/2026:{hour:02}:{minute:02}:{second:02} +0000] \"{method} {url} HTTP/1.1\" {status} {bytes} \
         \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n"
    )
}

fn characterize(args: &[&str]) -> Done {
    run(&[&["characterize"], args].concat())
}

/// Runs `brimful characterize` and returns the profile.
fn profile(args: &[&str]) -> Profile {
    let profile: Profile = document(&characterize(&[args, &["--json"]].concat()).exits(&[0]).stdout);
    let lines = &profile.lines;
    assert_eq!(lines.read, lines.parsed + lines.malformed + lines.filtered, "{lines:#?}");
    assert_eq!(profile.requests, lines.parsed);
    profile
}

/// Runs the command with this input on its stdin.
fn with_stdin(args: &[&str], stdin: &[u8]) -> Done {
    let _machine = lock_machine_shared();
    let mut command = brimful(&[&["characterize"], args].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // Writing fails if the program stops reading before the end.
    let feeder = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn the_document_has_the_keys_that_scripts_use() {
    let files = Files::new();
    let path = files.write("access.log", log());
    let done = characterize(&[&path, "--json"]).exits(&[0]);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(found["schema"], "brimful.profile/1");
    for key in ["format", "from", "to", "requests", "bytes", "status", "methods", "zero_length", "hurst", "dispersion"]
    {
        assert!(found.get(key).is_some(), "{key}");
    }
    for key in ["unique_urls", "unique_clients", "sessions", "workload"] {
        assert!(!found[key].is_null(), "{key}");
    }
    for key in ["read", "parsed", "malformed", "filtered", "first_malformed"] {
        assert!(!found["lines"][key].is_null(), "{key}");
    }
    for key in ["from", "seconds", "rate"] {
        assert!(!found["peak"][key].is_null(), "{key}");
    }
    for key in ["name", "share_requests", "share_bytes", "mean_bytes"] {
        assert!(!found["classes"][0][key].is_null(), "{key}");
    }

    let profile: Profile = document(&done.stdout);
    assert_eq!((profile.format.as_str(), profile.requests, profile.lines.read), ("combined", 5400, 5400));
    assert_eq!((profile.status["200"], profile.status["304"], profile.status["404"]), (4320, 540, 540));
    assert_eq!((profile.peak.seconds, profile.peak.requests), (3600, 3600));
    assert!((profile.peak.rate - 1.0).abs() < 1e-9 && profile.peak.from.starts_with("2026-03-01T15:00:00"));
    assert!(profile.from.starts_with("2026-03-01T14:00:00") && profile.to.starts_with("2026-03-01T15:59:59"));
    let shares: f64 = profile.classes.iter().map(|class| class.share_requests).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    assert_eq!(profile.command[1], "characterize");
}

#[test]
fn the_text_starts_with_the_main_figures_and_accounts_for_all_lines() {
    let files = Files::new();
    let broken = "10.0.0.1 - - [01/Mar/2026:16:00:00 +0000] \"GET / HTTP/1.1\" OK\n";
    let path = files.write("access.log", log() + "\n" + broken);
    let text = characterize(&[&path]).exits(&[0]).stdout;
    assert!(text.starts_with("5,400 requests in "), "{text}");
    let account = "\nlines       5,402 read = 5,400 parsed + 1 malformed + 1 filtered\n";
    assert!(text.contains(account), "{text}");
    assert!(text.contains("\npeak        1.00/s, 1.33 times the mean"), "{text}");
    assert!(text.contains("access.log:5402:"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.contains(&path)), "{text}");

    let plain = Running::start({
        let mut command = brimful(&["characterize", &path]);
        command.env("LC_ALL", "C");
        command
    });
    assert!(!plain.finish().exits(&[0]).stdout.contains(['█', '▁', '▓']));
}

#[test]
fn stdin_and_compressed_files_give_the_same_profile() {
    let files = Files::new();
    let path = files.write("access.log", log());
    let plain = profile(&[&path]);
    let read: Profile = document(&with_stdin(&["-", "--json"], log().as_bytes()).exits(&[0]).stdout);
    assert_eq!((read.sources[0].path.as_str(), read.lines), ("-", plain.lines.clone()));
    assert_eq!((read.status, read.classes, read.arrivals), (plain.status, plain.classes, plain.arrivals));

    let Ok(packed) = Command::new("gzip").args(["-k", path.as_str()]).status() else {
        note("gzip is not installed: its files are not read here");
        return;
    };
    assert!(packed.success());
    let unpacked = profile(&[&(path + ".gz")]);
    assert_eq!((unpacked.lines, unpacked.requests), (plain.lines, 5400));
}

#[test]
fn formats_are_detected_given_and_listed() {
    let files = Files::new();
    let path = files.write("access.log", log());
    let names = characterize(&["--list-formats"]).exits(&[0]).stdout;
    assert!(names.lines().any(|name| name == "combined") && names.lines().any(|name| name == "common"), "{names}");
    assert_eq!(profile(&[&path, "--format", "combined"]).requests, 5400);
    let apache = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;
    assert_eq!(profile(&[&path, "--format", apache]).requests, 5400);
    let configuration = files.write(
        "nginx.conf",
        "http {\n  log_format main '$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent '\n    \
         '\"$http_referer\" \"$http_user_agent\"';\n  access_log /var/log/nginx/access.log main;\n}\n",
    );
    assert_eq!(profile(&[&path, "--format-from", &configuration]).requests, 5400);

    characterize(&[&path, "--format", "%h %Q"]).fails(2, "--format: ");
    characterize(&[&path, "--format", "no such name"]).fails(2, "--format: ");
    characterize(&[&path, "--format-from", "/no/such/nginx.conf"]).fails(3, "check the path");
    let poem = files.write("poem.txt", "It was many and many a year ago,\nIn a kingdom by the sea\n".repeat(20));
    characterize(&[&poem]).fails(2, "--format");
}

#[test]
fn errors_in_reading_say_what_to_do() {
    let files = Files::new();
    characterize(&["/no/such/access.log"]).fails(3, "check the path");
    characterize(&[&files.write("empty.log", "")]).fails(2, "empty");
    characterize(&[]).fails(2, "<LOG>");
    let path = files.write("access.log", log());
    for (flags, message) in [
        (&["--window", "90s"][..], "whole minutes"),
        (&["--window", "5"], "500ms"),
        (&["--peak", "2026-03-01"], "--peak: a window has a start and an end"),
        (&["--peak", "soon/later"], "--peak: `soon` is not a time"),
        (&["--peak", "2026-03-02/2026-03-01"], "must end after it starts"),
        (&["--peak", "2026-03-01/2026-03-02", "--window", "1h"], "cannot be used with"),
        (&["--timezone", "Mars/Olympus"], "Europe/Berlin"),
        (&["--robots", "love"], "keep"),
        (&["--classes", "0"], "--classes"),
        (&["--classes-by", "colour"], "status or vhost"),
        (&["--session-gap", "0s"], "--session-gap"),
        (&["--no-sessions", "--session-gap", "1m"], "cannot be used with"),
        (&["--since", "2026-03-02", "--until", "2026-03-01"], "a later --until"),
        (&["--filter-status", "20x"], "400-499"),
        (&["--filter-url", ""], "/shop/*"),
        (&["--filter-status", "500"], "check the format and the filters"),
    ] {
        characterize(&[&[path.as_str()], flags].concat()).fails(2, message);
    }
    let no_profile = files.write("record.json", r#"{"schema": "brimful.record/1"}"#);
    characterize(&[&path, "--against", &no_profile]).fails(2, "this is not a profile");
    characterize(&[&path, "--against", "/no/such/profile.json"]).fails(3, "check the path");
    characterize(&[&path, "--out", "/no/such/place.json"]).fails(3, "choose another place with --out");
}

#[test]
fn filtered_requests_are_counted() {
    let files = Files::new();
    let path = files.write("access.log", log());
    let filtered = |flags: &[&str]| {
        let profile = profile(&[&[path.as_str()], flags].concat());
        assert_eq!(profile.lines.read, 5400);
        (profile.lines.parsed, profile.lines.filtered)
    };
    assert_eq!(filtered(&["--filter-status", "3xx,404"]), (1080, 4320));
    assert_eq!(filtered(&["--filter-status", "!404"]), (4860, 540));
    assert_eq!(filtered(&["--filter-url", "/images/*", "--filter-url", "!*/3.png"]).1, 5400 - 1620 + 231);
    assert_eq!(filtered(&["--since", "2026-03-01T15:00"]), (3600, 1800));
    assert_eq!(filtered(&["--until", "2026-03-01T15:00:00Z"]), (1800, 3600));
    assert_eq!(filtered(&["--timezone", "+01:00", "--since", "2026-03-01T16:30"]), (1800, 3600));
    let peak = profile(&[&path, "--peak", "2026-03-01T14:00/2026-03-01T14:30"]).peak;
    assert_eq!((peak.chosen_by_user, peak.seconds, peak.requests), (true, 1800, 900));
}

#[test]
fn logs_of_several_servers_are_merged() {
    let files = Files::new();
    let whole = files.write("whole.log", log());
    let part = |keep: fn(usize) -> bool| -> String {
        log().lines().enumerate().filter(|(i, _)| keep(*i)).map(|(_, line)| line.to_owned() + "\n").collect()
    };
    // The logs of two servers. The log of the second server was rotated, so it consists of two files.
    let paths = [
        files.write("b.log", part(|i| i % 3 == 0 && i >= 2000)),
        files.write("b.log.1", part(|i| i % 3 == 0 && i < 2000)),
        files.write("a.log", part(|i| i % 3 != 0)),
    ];
    let (one, all) = (profile(&[&whole]), profile(&paths.each_ref().map(String::as_str)));
    assert_eq!((all.lines.parsed, all.lines.out_of_order, all.sources.len()), (5400, 0, 3));
    assert_eq!((all.requests, &all.from, &all.to, &all.peak), (one.requests, &one.from, &one.to, &one.peak));
    assert_eq!((&all.sessions, &all.interarrival_s), (&one.sessions, &one.interarrival_s));
    assert_eq!((all.arrivals, all.dispersion, all.status), (one.arrivals, one.dispersion, one.status));
}

#[test]
fn hours_are_in_the_logs_own_time_zone() {
    let files = Files::new();
    let path = files.write("access.log", log().replace(" +0000]", " +0200]"));
    let here = profile(&[&path]);
    assert_eq!((here.timezone.as_str(), here.arrivals.by_hour[14], here.arrivals.by_hour[15]), ("+02:00", 1800, 3600));
    assert!(here.from.starts_with("2026-03-01T14:00:00") && here.from.ends_with("+02:00"), "{}", here.from);
    assert!(here.notes.iter().any(|note| note.contains("the log's own time zone, UTC+2.")), "{:#?}", here.notes);
    let later = profile(&[&path, "--since", "2026-03-01T15:00"]);
    assert_eq!((later.requests, later.arrivals.by_hour[15]), (3600, 3600));
    let utc = profile(&[&path, "--timezone", "UTC"]);
    assert_eq!((utc.timezone.as_str(), utc.arrivals.by_hour[12], utc.arrivals.by_hour[13]), ("UTC", 1800, 3600));
    assert!(!utc.notes.iter().any(|note| note.contains("own time zone")), "{:#?}", utc.notes);
    assert_eq!(profile(&[&files.write("utc.log", log())]).timezone, "UTC");
}

#[test]
fn lines_wrapped_in_json_by_docker_are_unwrapped() {
    let files = Files::new();
    let plain = profile(&[&files.write("access.log", log())]);
    let wrap = |line: &str| {
        let line = serde_json::to_string(&format!("{line}\n")).unwrap();
        format!("{{\"log\":{line},\"stream\":\"stdout\",\"time\":\"2026-03-01T14:00:00.5Z\"}}\n")
    };
    let wrapped = profile(&[&files.write("docker.log", log().lines().map(wrap).collect::<String>())]);
    assert_eq!((wrapped.format, wrapped.lines, wrapped.classes), (plain.format, plain.lines, plain.classes));
}

#[test]
fn robots_are_kept_skipped_or_kept_alone() {
    let files = Files::new();
    let robot = entry(7199, 99, "GET", "/robots.txt", 200, "20").replace("Mozilla/5.0", "ExampleBot/1.0");
    let path = files.write("access.log", log() + &robot.repeat(100));
    let requests = |policy: &str| {
        let profile = profile(&[&path, "--robots", policy]);
        assert_eq!(profile.robots.requests, 100);
        profile.requests
    };
    assert_eq!((requests("keep"), requests("drop"), requests("only")), (5500, 5400, 100));
}

#[test]
fn a_workload_is_written_and_its_files_are_created() {
    let files = Files::new();
    let path = files.write("access.log", log());
    let out = path_argument(&files.path("workload.toml"));
    let shown = characterize(&[&path, "--out", &out]).exits(&[0]).stdout;
    assert!(shown.starts_with("5,400 requests"), "the profile is shown, too: {shown}");
    let text = fs::read_to_string(&out).unwrap();
    let workload: Workload = toml::from_str(&text).unwrap_or_else(|error| panic!("{error} in:\n{text}"));
    assert_eq!(workload.validate(), Ok(()));
    let in_document = profile(&[&path]).workload.unwrap();
    assert_eq!(workload, in_document);
    // The workload is read before the load begins. The load then fails, because no server listens on port 1.
    run(&["load", "127.0.0.1:1", "--workload", &out, "--requests", "1"]).exits(&[3]);

    let root = files.path("www");
    let made = run(&["fileset", &out, &path_argument(&root)]).exits(&[0]).stdout;
    assert!(made.contains(" files, ") && made.contains(&path_argument(&root)), "{made}");
    assert_eq!(fs::metadata(root.join("index.html")).unwrap().len(), 2345);
    assert!(fs::metadata(root.join("images/1.png")).is_ok_and(|file| (20_000..21_000).contains(&file.len())));

    run(&["fileset", "/no/such/workload.toml", &path_argument(&root)]).fails(3, "check the path");
    run(&["fileset", &path, &path_argument(&root)]).fails(2, "access.log");
    let none = files.write("none.toml", "[[class]]\nname = \"a\"\npath = \"/\"\n");
    assert!(run(&["fileset", &none, &path_argument(&root)]).exits(&[0]).stdout.contains("needs no files"));
    run(&["fileset", &out, &path]).fails(3, "choose another directory");
}

#[test]
fn rates_over_time_are_a_history_for_forecasts() {
    let files = Files::new();
    let path = files.write("access.log", log());
    let out = path_argument(&files.path("rates.csv"));
    characterize(&[&path, "--out", &out]).exits(&[0]);
    let csv = fs::read_to_string(&out).unwrap();
    assert!(csv.starts_with("time,requests_per_second\n2026-03-01T14:00:00"), "{csv}");
    let forecast = run(&["plan", "forecast", &out, "--unit", "rates", "--horizon", "1h", "--json"]).exits(&[0]);
    assert!(forecast.stdout.contains("brimful.forecast/1"), "{}", forecast.stdout);
}

#[test]
fn another_log_is_compared_with_a_profile() {
    let files = Files::new();
    let path = files.write("access.log", log());
    let before = path_argument(&files.path("before.json"));
    characterize(&[&path, "--out", &before, "--json"]).exits(&[0]);
    let same = characterize(&[&path, "--against", &before]).exits(&[0]).stdout;
    assert!(same.contains("verdict     alike in all "), "{same}");

    let half: String = log().lines().step_by(2).map(|line| line.to_owned() + "\n").collect();
    let half = files.write("half.log", half);
    let done = characterize(&[&half, "--against", &before]).exits(&[1]);
    assert!(
        done.stdout.contains("apart in ") && done.stdout.contains("mean rate in the peak window"),
        "{}",
        done.stdout
    );
    let done = characterize(&[&half, "--against", &before, "--json"]).exits(&[1]);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&found["schema"], &found["against"]["alike"]), (&"brimful.profile/1".into(), &false.into()));
    let rate = &found["against"]["differences"][0];
    assert_eq!((rate["before"].as_f64(), rate["holds"].as_bool()), (Some(1.0), Some(false)));
}

#[test]
fn control_characters_are_escaped() {
    let files = Files::new();
    let hostile = "/a\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\u{9b}1m";
    let mut log = log();
    for second in 3600..7200 {
        log += &entry(second, 1, "GET", hostile, 200, "100");
    }
    log += "\u{1b}[31mno line at all\u{1b}[2J\n";
    let path = files.write("e\u{1b}[2J.log", log);
    let _machine = lock_machine_shared();
    for flags in [&["--format", "combined"][..], &[], &["--format", "\u{1b}[2J%h"]] {
        // With CLICOLOR_FORCE, the output has colours as on a terminal. Without it, all escape sequences would be
        // removed, because stdout is a pipe.
        let output = brimful(&[&["characterize", path.as_str()], flags].concat()).env("CLICOLOR_FORCE", "1").output();
        let output = output.unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(!shown.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']), "{shown:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("\x1b[2J") && !said.contains(['\x07', '\u{9b}', '\u{202e}']), "{said:?}");
    }
}

#[test]
fn after_ctrl_c_the_lines_read_so_far_are_shown_and_marked() {
    let _machine = lock_machine_shared();
    let mut command = brimful(&["characterize", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let [mut stdout, mut stderr] = [None, None];
    std::thread::scope(|scope| {
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let read = |mut pipe: Box<dyn Read + Send>| {
            let mut text = String::new();
            pipe.read_to_string(&mut text).unwrap();
            text
        };
        let out = scope.spawn(move || read(Box::new(out)));
        let err = scope.spawn(move || read(Box::new(err)));
        let tasks = format!("/proc/{}/task", child.id());
        let name = |task: PathBuf| fs::read_to_string(task.join("comm")).unwrap_or_default();
        wait_until(|| {
            let tasks = fs::read_dir(&tasks).into_iter().flatten().flatten();
            tasks.map(|task| task.path()).any(|task| name(task).trim() == "signals")
        });
        pipe.write_all(log().as_bytes()).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        // Wait until the signal has been handled: the thread that handles signals sets the flag that ends the reading.
        std::thread::sleep(Duration::from_secs(1));
        // Writing fails if the program has already ended, because it does not wait for the end of its input.
        let _ = pipe.write_all(log().repeat(4).as_bytes());
        (stdout, stderr) = (Some(out.join().unwrap()), Some(err.join().unwrap()));
        drop(pipe);
    });
    let (stdout, stderr) = (stdout.unwrap(), stderr.unwrap());
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stdout}\n{stderr}");
    assert!(stdout.contains("Interrupted: ") || stderr.contains("interrupted before"), "{stdout}\n{stderr}");
}

/// Prints why a part of a test is skipped.
#[allow(clippy::disallowed_macros, reason = "a test that is left out says so")]
fn note(text: &str) {
    println!("{text}");
}

/// The directory of real logs; `None` if there is none.
fn real_logs() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/logs");
    let directory = std::env::var_os("BRIMFUL_LOGS").map_or_else(beside, PathBuf::from);
    directory.is_dir().then_some(directory)
}

#[test]
fn real_logs_are_read_completely() {
    let Some(directory) = real_logs() else {
        note("BRIMFUL_LOGS names no directory of real logs: none are read here");
        return;
    };
    for (name, format, least) in [
        ("databricks_twiki_apache_clf.log", "common", 0.99),
        ("elastic_apache_combined.log", "combined", 0.99),
        ("nasa_jul95_logisland.log", "common", 0.9),
    ] {
        let path = directory.join(name);
        let Ok(text) = fs::read(&path) else {
            note(&format!("{} is not there", path.display()));
            continue;
        };
        let profile = profile(&[&path_argument(&path)]);
        let newlines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(profile.lines.read, newlines + u64::from(text.last() != Some(&b'\n')), "{name}");
        assert_eq!(profile.format, format, "{name}");
        assert!(profile.lines.parsed as f64 >= least * profile.lines.read as f64, "{name}: {:#?}", profile.lines);
        assert!(profile.workload.is_some_and(|workload| workload.validate().is_ok()), "{name}");
        let text = characterize(&[&path_argument(&path)]).exits(&[0]).stdout;
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

/// A log line that contains the service time in microseconds.
fn timed(second: u32, url: &str, bytes: &str, took_us: u64) -> String {
    let (day, clock) = (second / 86_400, second % 86_400);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!(
        "10.0.0.1 - - [{:02}/Mar/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET {url} HTTP/1.1\" 200 {bytes} {took_us}\n",
        2 + day
    )
}

#[test]
fn times_are_shown_by_class_url_and_hour() {
    let files = Files::new();
    // Two hours of lines. Requests for /report take 100 times as long as others. From 1 to 2 o'clock, all requests take
    // longer.
    let line = |i: u32| {
        let slower = if i >= 3600 { 3 } else { 1 };
        match i % 10 {
            0 => timed(i, "/report", "90000", slower * (200_000 + u64::from(i % 100) * 1_000)),
            1..=3 => timed(i, "/check", "-", slower * 500),
            _ => timed(i, "/page", "2000", slower * (2_000 + u64::from(i % 7) * 100)),
        }
    };
    let path = files.write("access.log", (0..7200).map(line).collect::<String>());
    let format = ["--format", "%h %l %u %t \"%r\" %>s %b %D", "--peak", "2026-03-02T01:00/2026-03-02T02:00"];
    let found = profile(&[&[path.as_str()], &format[..], &["--size-classes", "0,1k,10k,100k"]].concat());
    let names: Vec<&str> = found.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["empty", "1001-10000", "10001-100000"]);
    let p95 = |times: &brimful_core::profile::Times| times.percentiles["95"];
    let by_class: Vec<f64> = found.classes.iter().map(|class| p95(class.service_s.as_ref().unwrap())).collect();
    for (found, truth) in by_class.iter().zip([0.0015, 0.0078, 0.87]) {
        assert!((found / truth - 1.0).abs() < 0.07, "{by_class:?}");
    }
    assert_eq!(found.slowest_urls[0].url, "/report");
    assert!(found.slowest_urls[0].service_s.samples == 720 && found.slowest_urls[0].time_share > 0.9);
    let hour = found.slowest_hour.as_ref().unwrap();
    assert!(hour.from.starts_with("2026-03-02T01:00:00") && p95(&hour.service_s) > 2.5 * hour.median_p95_s / 3.0);
    let text = characterize(&[&[path.as_str()], &format[..]].concat()).exits(&[0]).stdout;
    for words in ["server, by class", "slowest URLs", "/report", "in the hour from 2026-03-02T01:00:00"] {
        assert!(text.contains(words), "{words:?} was expected in\n{text}");
    }
}

#[test]
fn ranges_of_sizes_are_checked() {
    let files = Files::new();
    let path = files.write("access.log", log());
    for (sizes, words) in [("10k,1k", "ascending order"), ("", "0,1k,10k,100k"), ("big", "0,1k,10k,100k")] {
        characterize(&[&path, "--size-classes", sizes]).fails(2, words);
    }
    characterize(&[&path, "--size-classes", "1k", "--classes", "3"]).fails(2, "--classes");
    let found = profile(&[&path, "--size-classes", "1k"]);
    assert_eq!(found.classes.iter().map(|class| class.requests).sum::<u64>(), found.peak.requests);
    // The workload that the profile contains must have a class for each class of the profile.
    assert_eq!(found.workload.unwrap().classes.len(), found.classes.len());
}

#[test]
fn seconds_of_the_peak_are_written_and_drawn() {
    let files = Files::new();
    let path = files.write("access.log", log());
    let out = path_argument(&files.path("seconds.csv"));
    let peak = ["--peak", "2026-03-01T15:00:00/2026-03-01T15:03:11", "--seconds", &out];
    let text = characterize(&[&[path.as_str()], &peak[..]].concat()).exits(&[0]).stdout;
    assert!(text.contains("by second") && text.contains("at most 1"), "{text}");
    let written = fs::read_to_string(&out).unwrap();
    let rows: Vec<&str> = written.lines().collect();
    assert_eq!(
        (rows.len(), rows[0], rows[1]),
        (192, "time,requests", "2026-03-01T15:00:00Z,1"),
        "191 s, as in Fig. 10"
    );
    let year = ["--window", "8760h", "--seconds", &out];
    let long = (0..40).map(|day| timed(86_400 * (day % 28), "/", "1", 1)).collect::<String>();
    let long = files.write("long.log", long);
    characterize(&[&[long.as_str(), "--format", "%h %l %u %t \"%r\" %>s %b %D"], &year[..]].concat()).exits(&[0, 2]);
}

#[test]
fn regular_peak_hours_are_named() {
    let files = Files::new();
    // Four weeks of lines, from Monday, 2 March 2026. On weekdays from 9 to 17 o'clock, there is a request every five
    // minutes; at other times, there is one every hour.
    let is_busy = |hour: u32| (hour / 24) % 7 < 5 && (9..17).contains(&(hour % 24));
    let seconds =
        (0..28 * 24).flat_map(|hour| (0..if is_busy(hour) { 12 } else { 1 }).map(move |i| 3600 * hour + 300 * i));
    let path = files.write("access.log", seconds.map(|second| timed(second, "/", "100", 1000)).collect::<String>());
    let format = ["--format", "%h %l %u %t \"%r\" %>s %b %D"];
    let found = profile(&[&[path.as_str()], &format[..]].concat());
    let busy = found.arrivals.busy_hours.unwrap();
    assert_eq!((busy.name.as_str(), busy.from_hour, busy.to_hour), ("weekdays 9–17", 9, 17));
    let text = characterize(&[&[path.as_str()], &format[..]].concat()).exits(&[0]).stdout;
    assert!(text.contains("weekdays 9–17"), "{text}");
}
