//! Validates workload models from logs: a log is characterized, the resulting Workload loads nginx, and nginx's log of
//! that load is characterized too. The two profiles must be alike. Menascé, Almeida & Dowdy (1999, §4) planned this
//! validation, but were not permitted to do it.

use crate::program::run;
use brimful_core::profile::Profile;
use brimful_testkit::{Nginx, NginxOptions};
use serde_json::Value;
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Rate of the first log in calls per second (`RATE`), and its length in seconds (`SECONDS`).
const RATE: u64 = 150;
const SECONDS: u64 = 20;

/// The log of a site with a popular page, images and a download. A third of the responses have status 304.
fn a_log() -> String {
    let mut log = String::new();
    for call in 0..RATE * SECONDS {
        // A hash of the call's number chooses the time and the class. So both are spread evenly, without an order that
        // would look like a burst.
        let draw = call.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let second = call / RATE;
        let (path, status, bytes) = match draw % 100 {
            0..33 => (format!("/page/{}.html", draw / 100 % 7), 304, 0),
            33..73 => (format!("/page/{}.html", draw / 100 % 7), 200, 1200 + draw / 100 % 7 * 40),
            73..98 => (format!("/images/{}.png", draw / 100 % 20), 200, 15_000 + draw / 100 % 20 * 300),
            _ => ("/download.tar".to_owned(), 200, 400_000),
        };
        let client = draw / 7 % 50;
        writeln!(
            log,
            "10.0.0.{client} - - [02/Mar/2026:10:00:{second:02} +0100] \"GET {path} HTTP/1.1\" {status} {bytes} \"-\" \"Mozilla/5.0\""
        )
        .unwrap();
    }
    log
}

fn readable(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_log_of_a_characterized_load_has_the_same_profile() {
    let dir = tempfile::tempdir().unwrap();
    readable(dir.path());
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (first, profile, workload) = (at("first.log"), at("profile.json"), at("workload.toml"));
    fs::write(&first, a_log()).unwrap();
    run(&["characterize", &first, "--out", &profile, "--quiet"]).exits(&[0]);
    run(&["characterize", &first, "--out", &workload, "--quiet"]).exits(&[0]);
    let root = at("www");
    let made = run(&["fileset", &workload, &root]).exits(&[0]);
    assert!(made.stdout.contains("28 files"), "7 pages, 20 images and a download: {}", made.stdout);

    let second = at("second.log");
    let extra = format!("location / {{ root {root}; access_log {second} combined; }}");
    let nginx = Nginx::start(NginxOptions { extra, ..NginxOptions::default() });
    let seconds = format!("{SECONDS}s");
    let load = ["load", &nginx.url(), "--workload", &workload, "--duration", &seconds, "--json"];
    let record: Value = serde_json::from_str(&run(&load).exits(&[0, 4]).stdout).unwrap();
    assert_eq!(record["counts"]["completed"], record["counts"]["scheduled"]);
    drop(nginx);

    let again = run(&["characterize", &second, "--against", &profile, "--json"]).exits(&[0, 1]);
    let again: Profile = serde_json::from_str(&again.stdout).unwrap();
    let once: Profile = serde_json::from_str(&fs::read_to_string(&profile).unwrap()).unwrap();
    assert_eq!(again.lines.malformed, 0);
    assert_eq!(again.classes.len(), once.classes.len(), "{:#?}", again.classes);
    for (before, after) in once.classes.iter().zip(&again.classes) {
        // With 3,000 calls, the standard error of a share is below 1 percentage point, so a difference of 4 does not
        // occur by chance. The relative difference of mean sizes must be less than 5 %.
        assert!((before.share_requests - after.share_requests).abs() < 0.04, "{before:?} {after:?}");
        assert!((after.mean_bytes / before.mean_bytes.max(1.0) - 1.0).abs() < 0.05 || before.mean_bytes == 0.0);
    }
    let share_of_304 = |profile: &Profile| profile.status["304"] as f64 / profile.requests as f64;
    assert!((share_of_304(&once) - share_of_304(&again)).abs() < 0.04);
    // Arrival times are not compared, because a busy machine may not keep the schedule. Tests of `brimful-workload`
    // check them.
}

/// Rate of new sessions per second in the second log (`SESSION_RATE`), and the length of this log in seconds
/// (`SESSIONS_S`).
const SESSION_RATE: f64 = 12.0;
const SESSIONS_S: f64 = 30.0;

/// The log of users who request three pages on average, each with embedded objects, and pause for two to five seconds
/// between pages. Some sessions begin before the log, and some end after it.
fn a_log_of_sessions() -> String {
    let mut state = 7_u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut requests: Vec<(f64, u32, usize)> = Vec::new();
    let (mut begins, mut user) = (-60.0, 0_u32);
    while begins < SESSIONS_S {
        begins -= (1.0 - draw()).ln() / SESSION_RATE;
        user += 1;
        let mut at = begins;
        loop {
            for embedded in 0..1 + (3.0 * draw()) as usize {
                requests.push((at + 0.02 * embedded as f64, user, (8.0 * draw()) as usize));
            }
            if draw() < 1.0 / 3.0 {
                break;
            }
            at += 2.0 + 3.0 * draw();
        }
    }
    requests.retain(|(at, ..)| (0.0..SESSIONS_S).contains(at));
    requests.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut log = String::new();
    for (at, user, page) in requests {
        let client = format!("10.{}.{}.{}", user >> 16, user >> 8 & 255, user & 255);
        let at = 1_772_442_000_000 + (at * 1000.0) as u64;
        writeln!(log, "{client} {}.{:03} GET /p{page}.html 200 2000", at / 1000, at % 1000).unwrap();
    }
    log
}

#[test]
fn the_log_of_characterized_sessions_has_the_same_sessions() {
    const FORMAT: &str = "$remote_addr $msec $request_method $request_uri $status $body_bytes_sent";
    let dir = tempfile::tempdir().unwrap();
    readable(dir.path());
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (first, profile, workload, root) = (at("first.log"), at("profile.json"), at("workload.toml"), at("www"));
    fs::write(&first, a_log_of_sessions()).unwrap();
    // A session ends when its client sends no request for nine seconds.
    let common = ["--format", FORMAT, "--session-gap", "9s", "--quiet"];
    for out in [&profile, &workload] {
        run(&[&["characterize", &first, "--out", out], &common[..]].concat()).exits(&[0]);
    }
    let written = fs::read_to_string(&workload).unwrap();
    assert!(written.contains("[load.sessions]") && written.contains("new sessions are a Poisson process"), "{written}");
    run(&["fileset", &workload, &root]).exits(&[0]);

    let second = at("second.log");
    let http = format!("log_format timed '{FORMAT}';");
    let extra = format!("location / {{ root {root}; access_log {second} timed; }}");
    let nginx = Nginx::start(NginxOptions { extra, http, ..NginxOptions::default() });
    let (url, seconds) = (nginx.url(), format!("{SESSIONS_S}s"));
    // The seed is fixed: with other seeds, the mean length of the random sessions may differ by a fifth.
    let chance = ["--seed", "1", "--source-ip", "127.20.0.0/16"];
    let load = [&["load", &url, "--workload", &workload, "--duration", &seconds, "--json"], &chance[..]].concat();
    let record: Value = serde_json::from_str(&run(&load).exits(&[0, 4]).stdout).unwrap();
    drop(nginx);

    let again =
        run(&[&["characterize", &second, "--against", &profile, "--json"], &common[..]].concat()).exits(&[0, 1]);
    let again: Profile = serde_json::from_str(&again.stdout).unwrap();
    let once: Profile = serde_json::from_str(&fs::read_to_string(&profile).unwrap()).unwrap();
    assert_eq!(
        Some(again.requests),
        record["counts"]["completed"].as_u64(),
        "the server's log contains each call exactly once"
    );
    let [before, after] = [&once, &again].map(|profile| profile.sessions.clone().unwrap());
    // Each log has a few hundred sessions, which limits the precision of means. Arrival and think times may be longer
    // on a busy machine, so they are tested in `brimful-workload` instead.
    for (what, before, after) in [
        ("sessions", before.sessions as f64, after.sessions as f64),
        ("requests", before.requests.mean, after.requests.mean),
        ("all requests", once.requests as f64, again.requests as f64),
    ] {
        assert!((after / before - 1.0).abs() < 0.2, "{what}: {before} became {after}");
    }
}
