//! Servers that misbehave, and a host with too little: every call is accounted for, and the figures say of what.

use crate::documents;
use crate::program::{Running, brimful, run, share_machine};
use brimful_core::record::{Counts, ReasonCode};
use brimful_testkit::{Nginx, NginxOptions, RawServer, full_backlog_listener};
use std::process::Command;

/// What became of 20 calls.
fn counts(url: &str, rest: &[&str]) -> Counts {
    let args = [&["load", url, "--json", "--rate", "200", "--requests", "20"], rest].concat();
    let record = documents::record(&run(&args).exits(&[0, 4]).stdout);
    assert_eq!(record.counts.scheduled, 20);
    record.counts
}

#[test]
fn what_servers_do_wrong_is_told_apart() {
    let server = RawServer::closes_on_accept();
    assert_eq!(counts(&server.url(), &[]).reset, 20);
    let server = RawServer::truncated("hello", 5);
    assert_eq!(counts(&server.url(), &["--new-connection"]).reset, 20);
    let server = RawServer::garbage();
    assert_eq!(counts(&server.url(), &[]).malformed, 20);
    let server = RawServer::never_answers();
    assert_eq!(counts(&server.url(), &["--timeout", "300ms"]).timed_out, 20);
    let server = full_backlog_listener();
    assert_eq!(counts(&server.url(), &["--connect-timeout", "50ms"]).abandoned, 20);
}

#[test]
fn errors_in_place_of_pages_are_pointed_out() {
    let nginx = Nginx::start(NginxOptions::default());
    let args = ["load", &format!("{}nowhere", nginx.url()), "--clients", "1", "--requests", "20"];
    let text = run(&args).exits(&[0]).stdout;
    assert!(text.contains("4xx 20") && text.contains("note: All 20 responses were 4xx"), "{text}");
}

#[test]
fn a_load_that_nobody_answers_is_pointed_out() {
    let server = RawServer::never_answers();
    let args = ["load", &server.url(), "--rate", "100", "--requests", "5", "--timeout", "100ms"];
    let text = run(&args).exits(&[0, 4]).stdout;
    assert!(text.contains("timed out 5") && text.contains("note: No call was completed"), "{text}");
}

#[test]
fn a_lack_of_descriptors_is_the_generators_fault() {
    let server = RawServer::never_answers();
    let _machine = share_machine();
    let load = brimful(&["load", &server.url(), "--json", "--rate", "500", "--duration", "1s", "--timeout", "2s"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 40; exec \"$0\" \"$@\""]).arg(load.get_program()).args(load.get_args());
    let done = Running::start(shell).finish().exits(&[4]);
    let record = documents::record(&done.stdout);
    let counts = record.counts;
    assert_eq!(counts.scheduled, 500, "the run goes on to its end");
    assert!(counts.client_limited > 0 && counts.timed_out > 0, "{counts:#?}");
    assert_eq!(counts.client_limited + counts.timed_out, 500);
    assert!(record.generator.max_open_connections <= 40);
    let reason = record.verdict.reasons.iter().find(|reason| reason.code == ReasonCode::Descriptors);
    assert!(reason.is_some_and(|reason| reason.message.contains("ulimit -n")), "{:#?}", record.verdict);
}

/// Fewer than it needs before it even begins.
#[test]
fn a_want_of_any_descriptor_says_what_to_do() {
    let server = RawServer::never_answers();
    for limit in [4, 5] {
        let load = brimful(&["load", &server.url(), "--requests", "1", "--timeout", "50ms"]);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")])
            .arg(load.get_program())
            .args(load.get_args());
        let done = Running::start(shell).finish().exits(&[3]);
        assert!(done.stderr.contains("ulimit -n"), "{limit} descriptors: {}", done.stderr);
    }
}
