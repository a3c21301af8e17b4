//! Tests surveys of servers with few workers, and of servers that respond only with redirects.
//!
//! The servers run in this process, so the surveys observe only their responses. A survey is interrupted as soon as its
//! output suffices for the test. A test that other programs can disturb is tried up to three times.

use crate::documents;
use crate::program::{Done, Running, brimful, lock_machine_shared, run};
use brimful_core::survey::{Level, Survey};
use brimful_testkit::{RawServer, WorkerServer, with_length};
use std::time::Duration;

/// Maximum number of tries of a test that other programs can disturb.
const TRIES: usize = 3;
const SERVICE: Duration = Duration::from_micros(300);

/// Runs a survey until a line on stderr contains `until`, and then interrupts it.
fn survey_until(url: &str, until: &str, more: &[&str]) -> Survey {
    let short = ["survey", url, "--black-box", "--level", "300ms", "--json", "--report", "/dev/null"];
    let mut running = Running::start(brimful(&[&short[..], more].concat()));
    running.stderr_line(until);
    running.ctrl_c();
    documents::survey(&running.finish().exits(&[130]).stdout)
}

/// Makes up to [`TRIES`] surveys. Returns the first for which `is_right` is true.
fn tried(survey: impl Fn() -> Survey, is_right: impl Fn(&Survey) -> bool) -> Survey {
    let _machine = lock_machine_shared();
    let mut last = None;
    for _ in 0..TRIES {
        let survey = survey();
        if is_right(&survey) {
            return survey;
        }
        last = Some(survey);
    }
    panic!("{TRIES} surveys did not find what they should; the last one: {last:#?}");
}

/// A survey must not use more connections than the server has workers, if each worker serves only one connection:
/// Gunicorn with threads, Apache prefork, Puma. The bug: 32 idle connections occupied all workers, and no call got a
/// response.
#[test]
fn a_survey_does_not_starve_a_server_that_gives_each_connection_a_worker() {
    let server = WorkerServer::with_keep_alive(4, SERVICE);
    let found = |survey: &Survey| survey.connections.served_at_once == Some(4);
    let survey = tried(|| survey_until(&server.url(), "calibration, block 1", &[]), found);
    assert_eq!(survey.connections.max_connections, Some(4));
    let said = "This server serves 4 connections at a time: the survey uses 4.";
    assert_eq!(survey.connections.to_string(), said);
    assert!(survey.levels.iter().all(|level: &Level| level.clients.is_none_or(|clients| clients <= 4)));
}

/// A survey uses a single connection if the server serves only one at a time, like Python's HTTPServer and other
/// servers with one thread.
#[test]
fn a_server_with_one_connection_at_a_time_is_surveyed_with_one() {
    let server = WorkerServer::with_keep_alive(1, SERVICE);
    let found = |survey: &Survey| survey.connections.served_at_once == Some(1);
    let survey = tried(|| survey_until(&server.url(), "looking for the capacity: 1 at once", &[]), found);
    assert_eq!(survey.connections.max_connections, Some(1));
}

/// A survey makes each call on a new connection if the server closes each connection, like Unicorn, `php -S` and the
/// sync workers of Gunicorn.
#[test]
fn a_server_that_closes_each_connection_is_surveyed_with_a_new_one_for_each_call() {
    let server = WorkerServer::without_keep_alive(2, SERVICE);
    let found = |survey: &Survey| survey.connections.closed_by_server && survey.connections.served_at_once.is_none();
    let survey = tried(|| survey_until(&server.url(), "This server closes each connection", &[]), found);
    assert!(survey.connections.one_call_each);
}

#[test]
fn harmless_idle_connections_are_not_taken_for_a_limit() {
    let server = RawServer::with_handler(|_| with_length(b"hello\n"));
    let found = |survey: &Survey| survey.connections.served_at_once.is_none();
    let survey = tried(|| survey_until(&server.url(), "a pool of 7 connections", &["--max-connections", "7"]), found);
    assert_eq!(survey.connections.max_connections, Some(7));
}

#[test]
fn a_survey_of_redirects_names_their_target_at_once() {
    let redirecting = |location: &str| {
        let answer = format!("HTTP/1.1 301 Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        RawServer::with_handler(move |_| answer.clone().into_bytes())
    };
    let secure = redirecting("https://shop.example/");
    survey(&secure.url()).fails(2, "every answer is 301 to https://shop.example/: survey that URL");
    let relative = redirecting("/new?a=b");
    survey(&relative.url()).fails(2, &format!("every answer is 301 to {}new?a=b: survey that URL", relative.url()));
}

#[test]
fn a_survey_of_error_pages_says_at_once_what_is_missing() {
    for (status, said) in [(401, "--user NAME:PASSWORD"), (404, "check the path"), (503, "its own log says why")] {
        let server = RawServer::status(status);
        let done = survey(&server.url());
        assert!(done.stderr.contains(&format!("every answer is {status}")), "{}", done.stderr);
        done.fails(2, said);
    }
}

/// Runs a survey of a server that it cannot survey: it must end after the first calls.
fn survey(url: &str) -> Done {
    run(&["survey", url, "--black-box", "--report", "/dev/null", "--quiet"])
}

/// With a limit on connections, calls must wait for a free connection instead of failing.
#[test]
fn calls_of_an_open_load_wait_for_one_of_the_pooled_connections() {
    let server = WorkerServer::with_keep_alive(16, Duration::from_millis(2));
    // The rate of this load exceeds the capacity of three connections, which is 1,500 calls per second.
    let load = ["load", &server.url(), "-R", "2000", "-n", "100", "--max-connections", "3", "--json"];
    for engine in ["epoll", "auto"] {
        let before = server.connections();
        let done = run(&[&load[..], &["--engine", engine]].concat()).exits(&[0, 4]);
        let record = documents::record(&done.stdout);
        assert_eq!((record.counts.completed, record.counts.established), (100, 3), "{engine}: {:?}", record.counts);
        assert_eq!(server.connections() - before, 3 + 1, "the first connection only checks that the server listens");
    }
    let unlimited = ["load", &server.url(), "-R", "100", "-n", "10", "--max-connections", "unlimited", "--json"];
    run(&unlimited).exits(&[0, 4]);
    let clients = ["load", &server.url(), "-c", "4", "--max-connections", "3"];
    run(&clients).fails(2, "cannot be used with");
    let none = ["load", &server.url(), "-R", "4", "--max-connections", "0"];
    run(&none).fails(2, "a load needs connections");
    let threads = ["load", &server.url(), "-R", "4", "--max-connections", "2", "-t", "3"];
    run(&threads).fails(2, "--max-connections 2 is less than one for each of 3 threads");
}
