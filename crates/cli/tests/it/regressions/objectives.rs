//! Tests objectives that decide whether a build passes: a broken server must fail them, even if it responds fast.

use crate::documents;
use crate::program::{Done, run, words};
use brimful_core::record::Record;
use brimful_testkit::{RawServer, with_length};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Number of calls of each run.
const CALLS: &str = "40";

/// Runs a load and asserts its exit code. Exit code 4 is also accepted, because the load generator may be late on a
/// busy host; objectives are judged in either case.
fn judged(args: &[&str], code: i32) -> Done {
    let done = run(args);
    let is_late = ["INVALID: these figures", "\"valid\": false"].iter().any(|said| done.stdout.contains(said));
    done.exits(&[if is_late { 4 } else { code }])
}

fn load(url: &str, rest: &[&str], code: i32) -> Done {
    judged(&[&["load", url, "--clients", "1", "--requests", CALLS], rest].concat(), code)
}

fn record(url: &str, rest: &[&str], code: i32) -> Record {
    documents::record(&load(url, &[rest, &["--json"]].concat(), code).stdout)
}

#[test]
fn a_gate_does_not_pass_a_server_that_answers_503_or_429() {
    for status in [429, 503] {
        let server = RawServer::status(status);
        for slo in ["p95<50ms", "mean<50ms", "all:p50<50ms"] {
            let done = load(&server.url(), &["--slo", slo], 1);
            let said = format!("Objective {slo} MISSED: no answer was as expected: 40 of 40 were {status} ");
            assert!(words(&done.stdout).contains(&said), "{}", done.stdout);
        }
        let record = record(&server.url(), &["--slo", "p95<50ms"], 1);
        let objective = &record.objectives[0];
        assert_eq!((objective.met, objective.measured_s, objective.error_share), (false, None, Some(1.0)));
        assert_eq!((record.verdict.error_share, record.verdict.error_answers), (Some(1.0), 40));
        assert_eq!(record.status_codes, [(status.to_string(), 40)].into());
        assert_eq!(record.counts.completed, 40);
    }
}

/// Runs the load in docs/ci.md, with a shorter duration, against a server that responds 503. It must fail.
#[test]
fn the_recipe_for_ci_fails_a_server_that_answers_503() {
    let recipe = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci.md")).unwrap();
    let line = recipe.split("brimful load ").nth(1).unwrap().split(" && ").next().unwrap();
    let server = RawServer::status(503);
    let url = server.url();
    let out = tempfile::NamedTempFile::new().unwrap();
    let mut args = vec!["load"];
    for word in line.split_whitespace().filter(|word| *word != "\\") {
        args.push(match word.trim_matches('\'') {
            "http://127.0.0.1:8080/" => &url,
            "30s" => "300ms",
            "record.json" => out.path().to_str().unwrap(),
            other => other,
        });
    }
    assert!(args.contains(&"--slo"), "{args:?}");
    judged(&args, 1);
    assert_eq!(documents::record(&std::fs::read_to_string(out.path()).unwrap()).verdict.error_share, Some(1.0));
    assert!(recipe.contains(".verdict.error_share < 0.001"));
}

/// A server that responds 503 to one in `every` requests, and to the others with a page after `delay`.
fn sometimes_503(delay: Duration, every: usize) -> RawServer {
    let answered = AtomicUsize::new(0);
    RawServer::with_handler(move |_| {
        if answered.fetch_add(1, Ordering::SeqCst).is_multiple_of(every) {
            return b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec();
        }
        thread::sleep(delay);
        with_length(b"hello\n")
    })
}

#[test]
fn a_gate_counts_the_few_errors_of_a_server_that_mostly_works() {
    let server = sometimes_503(Duration::ZERO, 20);
    let missed = record(&server.url(), &["--slo", "p99<1h", "--slo", "mean<1h", "--slo", "p90<1h"], 1);
    let met: Vec<bool> = missed.objectives.iter().map(|objective| objective.met).collect();
    assert_eq!(met, [false, false, true], "{:?}", missed.objectives);
    assert_eq!((missed.verdict.error_share, missed.verdict.failing), (Some(0.05), Some(false)));
    let said = words(&load(&server.url(), &["--slo", "p90<1h"], 0).stdout);
    let slower = "2 calls of 40 (5.0 %) had no expected answer: 2 were 503; they count as slower than any limit";
    assert!(said.contains(slower), "{said}");
    assert!(said.contains("WARNING: 2 of 40 calls were answered 5xx or 429 (5.0 %): 503 2."), "{said}");
}

#[test]
fn a_gate_expects_the_statuses_that_it_is_given() {
    let busy = RawServer::status(503);
    let met = record(&busy.url(), &["--slo", "p95<1h", "--expect-status", "503"], 0);
    assert_eq!((met.objectives[0].met, met.verdict.error_share), (true, Some(0.0)));
    record(&busy.url(), &["--slo", "p95<1h", "--expect-status", "2xx,5xx"], 0);
    let absent = RawServer::status(404);
    let said = words(&load(&absent.url(), &["--slo", "p95<1h", "--expect-status", "200,3xx"], 1).stdout);
    assert!(said.contains("no answer was as expected: 40 of 40 were 404"), "{said}");
    // Some calls may be expected to get 404. But if all responses are 404, the text asks whether the path is right.
    let said = words(&load(&absent.url(), &["--slo", "p95<1h"], 0).stdout);
    assert!(said.contains("All 40 responses were 4xx (404):") && said.contains("Is the path right?"), "{said}");
}

#[test]
fn fast_errors_do_not_make_a_server_look_fast() {
    let server = sometimes_503(Duration::from_millis(20), 2);
    let record = record(&server.url(), &[], 0);
    let p50 = |class: &str| record.status_classes[class].response_time_us.unwrap().p50;
    assert!(p50("2xx") >= 20_000.0 && p50("5xx") < p50("2xx"), "{:?}", record.status_classes);
    let counts = ["2xx", "5xx"].map(|class| record.status_classes[class].count);
    assert_eq!((counts, record.status_classes.len()), ([20, 20], 2));
    assert_eq!(record.classes["all"].status_classes, record.status_classes);
    assert!(record.hdr.contains_key("response_time_us.5xx"), "{:?}", record.hdr.keys());
    let text = load(&server.url(), &["--full"], 0).stdout;
    assert!(text.lines().any(|line| line.starts_with("Status ") && line.contains("2xx")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("5xx ") && line.contains(" 20 ")), "{text}");
}

#[test]
fn merged_shards_are_judged_by_their_expected_statuses() {
    let server = sometimes_503(Duration::ZERO, 2);
    let directory = tempfile::tempdir().unwrap();
    let files = ["1/2", "2/2"].map(|shard| {
        let file = directory.path().join(shard.replace('/', "-"));
        let file = file.to_str().unwrap().to_owned();
        let args = ["--shard", shard, "--seed", "1", "--out", &file, "--expect-status", "2xx,503"];
        judged(&[&["load", &server.url(), "--clients", "2", "--requests", CALLS], &args[..]].concat(), 0);
        file
    });
    let merge = |slo: &str| run(&["merge", &files[0], &files[1], "--json", "--slo", slo]);
    let record = documents::record(&merge("p95<1h").stdout);
    assert!(record.objectives[0].met, "{:?}", record.objectives);
    let counts = ["2xx", "5xx"].map(|class| record.status_classes[class].count);
    assert_eq!((counts.iter().sum::<u64>(), counts[1]), (40, record.counts.status.s5xx));
}
