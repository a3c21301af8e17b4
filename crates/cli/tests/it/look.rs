//! Tests `brimful load --slo`, `--print` and `--trace`.

use crate::documents;
use crate::program::run;
use brimful_testkit::{Nginx, NginxOptions};
use std::fs;

fn nginx() -> Nginx {
    let extra = "location /cookie { add_header Set-Cookie 'id=hunter2'; return 200 'cookie\\n'; }".to_owned();
    Nginx::start(NginxOptions { extra, ..NginxOptions::default() })
}

#[test]
fn a_missed_objective_is_reported_and_exits_1() {
    let nginx = nginx();
    let load = |slo: &[&str]| {
        let flags: Vec<&str> = slo.iter().flat_map(|slo| ["--slo", slo]).collect();
        run(&[&["load", &nginx.url(), "--clients", "2", "--requests", "50"][..], &flags].concat())
    };
    let done = load(&["p99<1h", "mean<1h", "all:p50<1h"]).exits(&[0, 4]);
    assert_eq!(done.stdout.matches(" met: ").count(), 3, "{}", done.stdout);
    // Every response takes longer than a nanosecond, so the second objective is missed (exit code 1). On a busy
    // machine, the load generator may be late (4).
    let done = load(&["p99<1h", "p50<1ns"]).exits(&[1, 4]);
    assert!(done.stdout.contains("Objective   p50<1ns MISSED: "), "{}", done.stdout);
    let json = ["load", &nginx.url(), "--clients", "2", "--requests", "50", "--slo", "p50<1ns", "--json"];
    let record = documents::record(&run(&json).exits(&[1, 4]).stdout);
    let [objective] = &record.objectives[..] else { panic!("{:?}", record.objectives) };
    assert_eq!((objective.objective.as_str(), objective.met), ("p50<1ns", false));
    assert!(objective.measured_s.is_some_and(|measured| measured > 1e-9));
}

#[test]
fn an_objective_that_cannot_be_judged_is_refused_before_the_load() {
    let nginx = nginx();
    let load = |slo: &str| run(&["load", &nginx.url(), "--rate", "10", "--duration", "1h", "--slo", slo]);
    load("cpu.utilization<70%").fails(2, "is about a utilization, which a load does not measure");
    load("other:p99<1s").fails(2, "the classes are: all");
    load("fast").fails(2, "`fast` is no objective");
}

#[test]
fn the_first_calls_are_printed_without_their_secrets() {
    let nginx = nginx();
    let url = format!("{}cookie", nginx.url());
    let args = ["load", &url, "--clients", "1", "--requests", "9", "--print", "2", "-H", "Authorization: hunter2"];
    let done = run(&args).exits(&[0, 4]);
    let shown = &done.stderr;
    assert_eq!(shown.matches("Call due at ").count(), 2, "{shown}");
    assert!(shown.contains("\n> GET /cookie HTTP/1.1\n") && shown.contains("\n< cookie\n"), "{shown}");
    assert!(shown.contains("> Authorization: •••") && shown.contains("< Set-Cookie: •••"), "{shown}");
    assert!(!shown.contains("hunter2") && !done.stdout.contains("> GET"), "{done:?}");
    // The first failure of each kind is printed once, independently of the number after `--print`.
    let url = format!("{}absent", nginx.url());
    let args = ["load", &url, "--clients", "1", "--requests", "9", "--print", "1"];
    let shown = run(&args).exits(&[0, 4]).stderr;
    assert!(shown.contains("answered 404") && shown.matches("< HTTP/1.1 404").count() == 1, "{shown}");
    run(&["load", &url, "--rate", "1", "--print", "0"]).fails(2, "--print");
}

#[test]
fn a_trace_has_a_line_for_every_call() {
    let nginx = nginx();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls.jsonl");
    let trace = path.to_str().unwrap();
    for threads in ["1", "2"] {
        let args = ["load", &nginx.url(), "--rate", "400", "--requests", "40", "--threads", threads, "--trace", trace];
        run(&args).exits(&[0, 4]);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 40);
        let mut due: Vec<f64> = lines.iter().map(|line| line["due_s"].as_f64().unwrap()).collect();
        due.sort_by(f64::total_cmp);
        assert!(due.iter().enumerate().all(|(nth, due)| (due - nth as f64 / 400.0).abs() < 1e-8), "{due:?}");
        for line in &lines {
            let time = |name: &str| line[name].as_f64().unwrap();
            assert!(time("due_s") <= time("sent_s") && time("sent_s") <= time("first_byte_s"), "{line}");
            assert_eq!(
                (&line["end"], &line["status"], &line["response"]["body"]),
                (&"completed".into(), &200.into(), &"hello\n".into())
            );
            let head = line["request"]["head"].as_str().unwrap();
            assert_eq!(head.len() as u64, line["bytes_sent"].as_u64().unwrap(), "{line}");
        }
    }
    let missing = dir.path().join("none/calls.jsonl");
    let args = ["load", &nginx.url(), "--rate", "9", "--requests", "1", "--trace", missing.to_str().unwrap()];
    run(&args).fails(3, "choose another place with --trace");
}
