//! Tests `load --stop-when`: a load ends when a condition is met, and its Record contains that condition.

use crate::documents;
use crate::program::{run, words};
use brimful_core::record::Record;
use brimful_testkit::RawServer;

/// Planned duration of the loads in seconds. It is much longer than the time until a condition is met.
const PLANNED_S: &str = "60";

/// Runs an open load that a condition must end, and returns its Record. The exit code is 1, or 4 if the load generator
/// was late on a busy host.
fn stopped(url: &str, condition: &str, rest: &[&str]) -> Record {
    let load = ["load", url, "--rate", "200", "-d", PLANNED_S, "--json", "--stop-when", condition];
    let done = run(&[&load, rest].concat());
    let record = documents::record(&done.stdout);
    done.exits(&[if record.verdict.valid { 1 } else { 4 }]);
    assert!(!record.interrupted, "the user did not interrupt the run");
    assert!(record.window_s < 50.0, "the load was offered for {} s", record.window_s);
    record
}

#[test]
fn a_server_that_answers_503_ends_the_load() {
    let server = RawServer::status(503);
    let record = stopped(&server.url(), "errors>5% for 1s", &[]);
    assert_eq!(record.stopped_by.as_deref(), Some("errors>0.05 for 1s"));
}

#[test]
fn a_server_that_never_answers_ends_the_load_by_its_response_time() {
    let server = RawServer::never_answers();
    for condition in ["p99>100ms for 1s", "mean>100ms for 1s"] {
        let record = stopped(&server.url(), condition, &["--timeout", "30s"]);
        assert_eq!(record.stopped_by.as_deref(), Some(condition));
        assert_eq!(record.counts.completed, 0);
    }
}

#[test]
fn the_text_says_which_condition_ended_the_load() {
    let server = RawServer::status(503);
    let load =
        ["load", &server.url(), "-c", "2", "-d", PLANNED_S, "--stop-when", "p99>1h", "--stop-when", "errors>5% for 1s"];
    let done = run(&load);
    assert!(
        words(&done.stdout).contains("The run was stopped by errors>0.05 for 1s; load was offered for"),
        "{done:?}"
    );
}

#[test]
fn a_server_within_the_limits_gets_the_whole_load() {
    let server = RawServer::content_length("hello");
    let load = ["load", &server.url(), "-n", "300", "--rate", "200", "--json"];
    let done = run(&[&load[..], &["--stop-when", "errors>5% for 100ms", "--stop-when", "all:p99>1h"]].concat());
    let record = documents::record(&done.stdout);
    assert_eq!((record.stopped_by, record.counts.scheduled), (None, 300));
}

#[test]
fn a_condition_that_cannot_hold_is_refused_before_the_load() {
    let server = RawServer::content_length("hello");
    for (condition, problem) in [
        ("api:p99>1s", "its classes are: all"),
        ("p99<1s", "there is no `>`"),
        ("utilization>90%", "does not measure utilizations"),
        ("errors>100%", "no share is above 100 %"),
    ] {
        let done = run(&["load", &server.url(), "--stop-when", condition]).exits(&[2]);
        assert!(words(&done.stderr).contains(problem), "{condition}: {}", done.stderr);
    }
}
