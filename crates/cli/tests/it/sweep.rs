//! Tests `load --sweep`: a load at increasing levels, with a Record for each level.

use crate::program::{run, words};
use brimful_core::sweep::{Sweep, SweepKind};
use brimful_testkit::RawServer;

/// Runs a sweep with levels of one second, and returns its document. Exit code 4 is also accepted, because the load
/// generator may be late on a busy host.
fn sweep(args: &[&str], code: i32) -> Sweep {
    let done = run(&[args, &["-d", "1s", "--json"]].concat());
    let sweep: Sweep = serde_json::from_str(&done.stdout).unwrap();
    let is_valid = sweep.levels.iter().all(|level| level.record.verdict.valid);
    done.exits(&[if is_valid || code == 1 { code } else { 4 }]);
    sweep
}

#[test]
fn each_rate_has_its_record() {
    let server = RawServer::content_length("hello");
    let sweep = sweep(&["load", &server.url(), "--sweep", "50:200:x2"], 0);
    assert_eq!((sweep.kind, sweep.interrupted, sweep.levels.len()), (SweepKind::Rate, false, 3));
    for (level, calls) in sweep.levels.iter().zip([50, 100, 200]) {
        assert_eq!((level.level, level.record.counts.scheduled), (calls as f64, calls));
        assert!(level.record.account.is_none() && level.record.hdr.is_empty(), "only programs use these");
    }
    assert_eq!(sweep.target, format!("{}/", server.url().trim_end_matches('/')));
}

#[test]
fn s_clients_make_their_attempts_at_each_level() {
    let server = RawServer::content_length("hello");
    let sweep = sweep(&["load", &server.url(), "--sweep-clients", "1:3:+2"], 0);
    assert_eq!((sweep.kind, sweep.levels.len()), (SweepKind::SClients, 2));
    assert!(sweep.levels.iter().all(|level| level.record.counts.connect_attempts > 0));
}

/// An S-Client that pauses for 100 ms after each connection makes at most 11 attempts in a second.
#[test]
fn s_clients_of_a_sweep_think() {
    let server = RawServer::content_length("hello");
    let sweep = sweep(&["load", &server.url(), "--sweep-clients", "1:2:x2", "--think", "100ms"], 0);
    for level in &sweep.levels {
        let attempts = level.record.counts.connect_attempts;
        assert!((1..=level.level as u64 * 11).contains(&attempts), "{attempts} attempts of {} S-Clients", level.level);
    }
}

#[test]
fn the_text_has_a_row_for_each_level() {
    let server = RawServer::content_length("hello");
    let done = run(&["load", &server.url(), "--sweep", "50:100:x2", "-d", "1s"]).exits(&[0, 4]);
    assert!(words(&done.stdout).starts_with("The server keeps up with every rate up to 100/s."), "{}", done.stdout);
    for row in ["50.0/s", "100/s"] {
        assert!(done.stdout.lines().any(|line| line.trim_start().starts_with(row)), "{row}: {}", done.stdout);
    }
}

#[test]
fn a_condition_ends_the_sweep_at_its_level() {
    let server = RawServer::status(503);
    let args = ["load", &server.url(), "--sweep", "50:200:x2", "--stop-when", "errors>5% for 500ms"];
    let sweep = sweep(&args, 1);
    assert_eq!((sweep.levels.len(), sweep.interrupted), (1, false));
    assert_eq!(sweep.levels[0].record.stopped_by.as_deref(), Some("errors>0.05 for 500ms"));
}

#[test]
fn a_sweep_that_makes_no_sense_is_refused() {
    let server = RawServer::content_length("hello");
    for (args, problem) in [
        (vec!["--sweep", "100:10:x2"], "FROM must be above 0 and at most TO"),
        (vec!["--sweep", "100"], "FROM:TO:STEP"),
        (vec!["--sweep", "1:1000000:+1"], "at most 100 levels"),
        (vec!["--sweep", "1:2:x2", "--rate", "5"], "cannot be used with"),
        (vec!["--sweep", "1:2:x2", "--slo", "p99<1s"], "cannot be used with"),
        (vec!["--sweep", "1:2:x2", "--arrivals", "trace:/dev/null"], "a trace has its own rate"),
    ] {
        let done = run(&[&["load", &server.url()], &args[..]].concat()).exits(&[2]);
        assert!(words(&done.stderr).contains(problem), "{args:?}: {}", done.stderr);
    }
}
