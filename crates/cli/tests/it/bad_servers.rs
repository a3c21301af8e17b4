//! Tests loads of misbehaving servers, and a host without free file descriptors. The Record must count every call by
//! the way in which it failed.

use crate::documents;
use crate::program::{Running, brimful, lock_machine_shared, run, words};
use brimful_core::counts::Counts;
use brimful_core::record::ReasonCode;
use brimful_testkit::{Nginx, NginxOptions, RawServer, Request, full_backlog_listener, with_descriptor_limit};
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::thread;

/// Number of calls of one run, at 200 per second.
const CALLS: u64 = 20;

/// Runs a load in which no call can complete, and returns its counts. Asserts the exit code; 4 is also accepted,
/// because the load generator may be late on a busy host.
fn counts(url: &str, rest: &[&str], code: i32) -> Counts {
    let calls = CALLS.to_string();
    let args = [&["load", url, "--json", "--rate", "200", "--requests", &calls], rest].concat();
    let done = run(&args).exits(&[code, 4]);
    let record = documents::record(&done.stdout);
    assert_eq!((record.counts.scheduled, record.counts.errors()), (CALLS, CALLS));
    assert_eq!(record.verdict.valid, done.code == code, "{:#?}", record.verdict);
    assert_eq!((record.verdict.failing, record.verdict.error_share), (Some(true), Some(1.0)));
    assert!(done.stderr.contains("WARNING: 20 of 20 calls failed (100 %): "), "{}", done.stderr);
    let nobody = done.stderr.contains("Check that a server listens at");
    assert_eq!(nobody, record.counts.established == 0, "{}", done.stderr);
    // The window is the length of the schedule, 0.1 s, even if the last call failed later.
    assert_eq!(record.window_s, 0.1);
    assert!((record.rates.offered - 200.0).abs() < 1e-9, "{:?}", record.rates);
    record.counts
}

#[test]
fn failures_of_servers_are_distinguished() {
    let server = RawServer::closes_on_accept();
    assert_eq!(counts(&server.url(), &[], 1).reset, CALLS);
    let server = RawServer::truncated("hello", 5);
    assert_eq!(counts(&server.url(), &["--new-connection"], 1).reset, CALLS);
    let server = RawServer::garbage();
    assert_eq!(counts(&server.url(), &[], 1).malformed, CALLS);
    let server = RawServer::never_answers();
    assert_eq!(counts(&server.url(), &["--timeout", "300ms"], 1).timed_out, CALLS);
    let server = full_backlog_listener();
    assert_eq!(counts(&server.url(), &["--connect-timeout", "50ms"], 3).abandoned, CALLS);
}

/// A server that responds to this number of requests and then ends.
fn dies_after(requests: usize) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let mut left = requests;
        while left > 0 {
            let (conn, _) = listener.accept().unwrap();
            // Before the load, brimful checks that the server listens. This connection has no request.
            if Request::read(&mut BufReader::new(&conn)).is_some() {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
                (&conn).write_all(answer).unwrap();
                left -= 1;
            }
        }
    });
    (url, server)
}

#[test]
fn a_server_that_fails_most_calls_is_not_reported_as_healthy() {
    let calls = ["--rate", "200", "--requests", "60", "--new-connection"];
    let failed = "40 of 60 calls failed (66.7 %)";
    for json in [false, true] {
        let (url, server) = dies_after(20);
        let more = if json { &["--json"][..] } else { &[] };
        let done = run(&[&["load", &url], &calls[..], more].concat()).exits(&[1, 4]);
        server.join().unwrap();
        let said = if json { &done.stderr } else { &done.stdout };
        let (_, warning) = said.split_once(&format!("WARNING: {failed}: ")).expect("stderr has the warning");
        assert!(words(warning).contains(". The times are those of the 20 that completed."), "{warning}");
        if json {
            let record = documents::record(&done.stdout);
            assert_eq!((record.counts.completed, record.counts.errors()), (20, 40), "{:#?}", record.counts);
            assert_eq!((record.verdict.failing, record.verdict.error_share), (Some(true), Some(40.0 / 60.0)));
            assert_eq!(record.verdict.valid, done.code == 1);
        } else if done.code == 1 {
            let verdict = format!("\nVerdict     valid, of a FAILING server: {failed}\n");
            assert!(done.stdout.contains(&verdict), "{}", done.stdout);
        }
    }
    let (url, server) = dies_after(20);
    let done = run(&[&["load", &url, "--json", "--quiet"], &calls[..]].concat()).exits(&[1, 4]);
    server.join().unwrap();
    assert_eq!(done.stderr, "", "--quiet leaves only the Record and the exit code");
}

#[test]
fn error_responses_are_pointed_out() {
    let nginx = Nginx::start(NginxOptions::default());
    let args = ["load", &format!("{}nowhere", nginx.url()), "--clients", "1", "--requests", "20"];
    let text = run(&args).exits(&[0, 4]).stdout;
    assert!(text.contains("4xx 20") && text.contains("note: All 20 responses were 4xx"), "{text}");
}

#[test]
fn a_load_without_responses_is_pointed_out() {
    let server = RawServer::never_answers();
    let args = ["load", &server.url(), "--rate", "100", "--requests", "5", "--timeout", "100ms"];
    let text = run(&args).exits(&[1, 4]).stdout;
    assert!(text.contains("WARNING: 5 of 5 calls failed (100 %): timed out 5. No call was completed"), "{text}");
    assert!(!text.contains("server listens"), "{text}");
}

#[test]
fn a_lack_of_descriptors_counts_as_client_limited() {
    let server = RawServer::never_answers();
    let _machine = lock_machine_shared();
    let load = brimful(&["load", &server.url(), "--json", "--rate", "500", "--duration", "1s", "--timeout", "2s"]);
    let done = Running::start(with_descriptor_limit(40, &load)).finish().exits(&[4]);
    let record = documents::record(&done.stdout);
    let counts = record.counts;
    assert_eq!(counts.scheduled, 500, "the run continues to its end");
    assert!(counts.client_limited > 0 && counts.timed_out > 0, "{counts:#?}");
    assert_eq!(counts.client_limited + counts.timed_out, 500);
    assert!(record.generator.max_open_connections <= 40);
    let reason = record.verdict.reasons.iter().find(|reason| reason.code == ReasonCode::Descriptors);
    assert!(reason.is_some_and(|reason| reason.message.contains("ulimit -n")), "{:#?}", record.verdict);
}

/// If the limit of file descriptors is too low to start a load, the error message says how to raise it.
#[test]
fn a_lack_of_all_descriptors_says_what_to_do() {
    let server = RawServer::never_answers();
    for limit in [4, 5] {
        let load = brimful(&["load", &server.url(), "--clients", "1", "--requests", "1", "--timeout", "50ms"]);
        let done = Running::start(with_descriptor_limit(limit, &load)).finish().exits(&[3]);
        assert!(done.stderr.contains("ulimit -n"), "{limit} descriptors: {}", done.stderr);
    }
}
