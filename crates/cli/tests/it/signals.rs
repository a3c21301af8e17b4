//! Ctrl-C: what was measured is kept, and marked.

use crate::documents;
use crate::program::{LIMIT, Running, brimful, share_machine, until};
use brimful_core::record::ReasonCode;
use brimful_testkit::RawServer;
use rustix::process::Signal;
use std::fs;
use std::sync::mpsc::channel;

#[test]
fn an_interrupted_load_leaves_its_record() {
    let _machine = share_machine();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    for signal in [Signal::INT, Signal::TERM] {
        let (served, requests) = channel();
        let server = RawServer::answering(move |_| {
            // Fails once the test has seen enough.
            let _ = served.send(());
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
        });
        // A single client: each of its requests but the first shows that the answer before it has arrived.
        let pace = ["--clients", "1", "--think", "3ms", "--duration", "1h", "--out", out.to_str().unwrap()];
        let load = Running::start(brimful(&[&["load", &server.url()], &pace[..]].concat()));
        for _ in 0..50 {
            requests.recv_timeout(LIMIT).expect("the server is asked");
        }
        load.signal(signal);
        let done = load.finish().exits(&[130]);
        let record = documents::record(&fs::read_to_string(&out).unwrap());
        assert!(record.interrupted && record.counts.completed >= 49, "{:#?}", record.counts);
        assert!(record.window_s <= record.duration_s && record.window_s < 600.0, "{}", record.window_s);
        assert!(done.stdout.contains("note: The run was interrupted"), "{}", done.stdout);
    }
}

#[test]
fn calls_in_flight_at_an_interruption_are_accounted_for() {
    let _machine = share_machine();
    let server = RawServer::never_answers();
    let load = Running::start(brimful(&["load", &server.url(), "--json", "--rate", "100", "--timeout", "1h"]));
    // One more was made to find out that somebody listens.
    until(|| server.connections() >= 6);
    // Twice at once, as `timeout -s INT` does, is one wish.
    load.ctrl_c();
    load.ctrl_c();
    let record = documents::record(&load.finish().exits(&[130]).stdout);
    assert_eq!(record.counts.completed, 0);
    assert!(record.counts.in_flight_at_end + record.counts.unsent_at_end >= 5, "{:#?}", record.counts);
    assert_eq!(record.verdict.reasons.last().map(|reason| reason.code), Some(ReasonCode::Interrupted));
}

#[test]
fn an_interrupted_survey_leaves_document_and_report() {
    let _machine = share_machine();
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.html");
    let args =
        ["survey", "--demo", "--level", "300ms", "--timeout", "1s", "--json", "--report", report.to_str().unwrap()];
    let mut survey = Running::start(brimful(&args));
    survey.stderr_line("calibration: ");
    survey.stderr_line("calibration: ");
    survey.ctrl_c();
    let done = survey.finish().exits(&[130]);
    let document = documents::survey(&done.stdout);
    let stopped = document.stopped.expect("the survey tells where it stopped");
    assert!(stopped.level.contains("calibration") && stopped.reason.contains("interrupted"), "{stopped:?}");
    assert!(!document.levels.is_empty() && document.saturation_rate.measured.is_none());
    assert!(document.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::Interrupted));
    assert!(fs::read_to_string(&report).unwrap().contains(&stopped.level));
}
