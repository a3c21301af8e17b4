//! Tests `load --warm-up`: the results must not include the calls of the warm-up.

use crate::documents;
use crate::program::{run, words};
use brimful_testkit::RawServer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A server that counts its requests.
fn counting_server() -> (RawServer, Arc<AtomicU64>) {
    let requests = Arc::new(AtomicU64::new(0));
    let counter = requests.clone();
    let server = RawServer::with_handler(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
    });
    (server, requests)
}

#[test]
fn a_warm_up_of_a_given_length_precedes_the_run() {
    let (server, requests) = counting_server();
    let load = ["load", &server.url(), "--rate", "100", "-n", "50", "--warm-up", "1s", "--json"];
    let record = documents::record(&run(&load).exits(&[0, 4]).stdout);
    assert_eq!((record.counts.scheduled, record.warm_up_s), (50, Some(1.0)));
    let all = requests.load(Ordering::Relaxed);
    assert!(all >= 145, "the server got {all} requests, of which 100 are the warm-up's");
}

#[test]
fn an_automatic_warm_up_ends_when_response_times_are_steady() {
    let (server, _) = counting_server();
    let load = ["load", &server.url(), "--rate", "200", "-n", "100", "--warm-up", "auto", "--json"];
    let done = run(&load).exits(&[0, 4]);
    let length = documents::record(&done.stdout).warm_up_s.unwrap();
    assert!((4.5..=60.0).contains(&length), "the warm-up took {length} s");
    // On a busy host, response times may never be steady. Then the program must say so.
    assert!(length < 60.0 || words(&done.stderr).contains("response times still changed"), "{}", done.stderr);
}

#[test]
fn the_text_says_that_the_warm_up_is_left_out() {
    let (server, _) = counting_server();
    let done = run(&["load", &server.url(), "--rate", "100", "-n", "50", "--warm-up", "500ms"]).exits(&[0, 4]);
    let note = "The server was warmed up by the same load for 500 ms first; no figure includes these calls.";
    assert!(words(&done.stdout).contains(note), "{}", done.stdout);
}

#[test]
fn a_load_with_a_course_of_its_own_has_no_warm_up() {
    for flags in [["--stage", "1s:10"], ["--sweep", "1:2:x2"]] {
        run(&[&["load", "http://127.0.0.1:1/", "--warm-up", "1s"], &flags[..]].concat()).exits(&[2]);
    }
}
