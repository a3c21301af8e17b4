//! Tests Ctrl-C and other signals: results so far are kept and marked as interrupted, and changes to the host are
//! undone.

use crate::documents;
use crate::program::{Running, WAIT_LIMIT, brimful, lock_machine_shared, start_target, wait_until};
use brimful_core::record::ReasonCode;
use brimful_testkit::RawServer;
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The command `brimful` with these arguments and the default action for SIGHUP. Without this, SIGHUP might be ignored,
/// because the test process itself ignores it.
fn on_a_terminal(args: &[&str]) -> Command {
    let brimful = brimful(args);
    let mut env = Command::new("env");
    env.arg("--default-signal=HUP").arg(brimful.get_program()).args(brimful.get_args());
    env.envs(brimful.get_envs().filter_map(|(name, value)| Some((name, value?))));
    env
}

#[test]
fn an_interrupted_load_leaves_its_record() {
    let _machine = lock_machine_shared();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (served, requests) = channel();
        let server = RawServer::with_handler(move |_| {
            // Sending fails after the test has ended.
            let _ = served.send(());
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
        });
        // There is a single client, so when the server receives a request, the client has received the previous
        // response.
        let pace = ["--clients", "1", "--think", "3ms", "--duration", "1h", "--out", out.to_str().unwrap()];
        let load = Running::start(on_a_terminal(&[&["load", &server.url()], &pace[..]].concat()));
        for _ in 0..50 {
            requests.recv_timeout(WAIT_LIMIT).expect("the server receives a request");
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
fn a_load_under_nohup_ignores_sighup() {
    let _machine = lock_machine_shared();
    let (served, requests) = channel();
    let server = RawServer::with_handler(move |_| {
        // Sending fails after the test has received enough.
        let _ = served.send(());
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
    });
    let mut nohup = Command::new("sh");
    nohup.args(["-c", r#"trap '' HUP; exec "$@""#, "sh", env!("CARGO_BIN_EXE_brimful")]);
    nohup.args(["load", &server.url(), "--clients", "1", "--think", "3ms", "--duration", "1h", "--json"]);
    let load = Running::start(nohup);
    let asked =
        |times| (0..times).for_each(|_| requests.recv_timeout(WAIT_LIMIT).expect("the server receives a request"));
    asked(20);
    load.signal(Signal::HUP);
    asked(100);
    load.signal(Signal::INT);
    assert!(documents::record(&load.finish().exits(&[130]).stdout).interrupted);
}

/// The CPUs on which each thread of a process may run.
fn affinity(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut statuses: Vec<_> = tasks.map(|task| task.unwrap().path().join("status")).collect();
    statuses.sort();
    let allowed = |status: &PathBuf| {
        let status = fs::read_to_string(status).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    };
    statuses.iter().map(allowed).collect()
}

#[test]
fn a_servers_cpus_are_restored_however_its_survey_ends() {
    let _machine = lock_machine_shared();
    let (target, url) = start_target(&["--workers", "2"]);
    let before = affinity(target.pid());
    assert!(before.len() >= 2 && before.iter().all(|cpus| cpus != "0"), "this test needs two CPUs: {before:?}");
    let dir = tempfile::tempdir().unwrap();
    let (report, out) = (dir.path().join("report.html"), dir.path().join("survey.json"));
    let pid = target.pid().to_string();
    let survey = |at: &str| {
        let on = ["survey", &url, "--process", &pid, "--server-cpus", "0", "--timeout", "1s"];
        let files = ["--report", report.to_str().unwrap(), "--out", out.to_str().unwrap()];
        let mut survey = Running::start(on_a_terminal(&[&on[..], &files].concat()));
        survey.stderr_line(at);
        assert!(affinity(target.pid()).iter().all(|cpus| cpus == "0"), "the server was not pinned");
        survey
    };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let survey = survey("a short load to try");
        survey.signal(signal);
        survey.finish().exits(&[130]);
        assert_eq!(affinity(target.pid()), before, "{signal:?}");
        let document = documents::survey(&fs::read_to_string(&out).unwrap());
        assert_eq!(document.verdict.reasons[0].code, ReasonCode::Interrupted);
        assert!(fs::read_to_string(&report).unwrap().contains(&document.started_at));
    }

    survey("a short load to try").kill();
    wait_until(|| affinity(target.pid()) == before);

    // A second Ctrl-C must end the survey at once. Here it comes during a pause that the first Ctrl-C does not end.
    let impatient = survey("the idle server");
    impatient.ctrl_c();
    thread::sleep(Duration::from_millis(1100));
    impatient.ctrl_c();
    impatient.finish().exits(&[130]);
    wait_until(|| affinity(target.pid()) == before);
}

#[test]
fn calls_in_flight_at_an_interruption_are_accounted_for() {
    let _machine = lock_machine_shared();
    let server = RawServer::never_answers();
    let load = Running::start(brimful(&["load", &server.url(), "--json", "--rate", "100", "--timeout", "1h"]));
    // Five calls are waiting. The sixth connection is that of the check that the server listens.
    wait_until(|| server.connections() >= 6);
    // Two signals shortly after each other, as `timeout -s INT` sends them, count as one.
    load.ctrl_c();
    load.ctrl_c();
    let record = documents::record(&load.finish().exits(&[130]).stdout);
    assert_eq!(record.counts.completed, 0);
    assert!(record.counts.in_flight_at_end + record.counts.unsent_at_end >= 5, "{:#?}", record.counts);
    assert_eq!(record.verdict.reasons.last().map(|reason| reason.code), Some(ReasonCode::Interrupted));
}

#[test]
fn an_interrupted_survey_leaves_document_and_report() {
    let _machine = lock_machine_shared();
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.html");
    let args =
        ["survey", "--demo", "--level", "300ms", "--timeout", "1s", "--json", "--report", report.to_str().unwrap()];
    let mut survey = Running::start(brimful(&args));
    survey.stderr_line("calibration, block 1");
    survey.stderr_line("calibration, block 2");
    survey.ctrl_c();
    let done = survey.finish().exits(&[130]);
    let document = documents::survey(&done.stdout);
    let stopped = document.stopped.expect("the survey says where it stopped");
    assert!(stopped.level.contains("calibration") && stopped.reason.contains("interrupted"), "{stopped:?}");
    assert!(!document.levels.is_empty() && document.saturation_rate.measured.is_none());
    assert!(document.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::Interrupted));
    assert!(fs::read_to_string(&report).unwrap().contains(&stopped.level));
}
