//! Tests which runs form a history, and the sentences about its changes.

use crate::compared_runs::{machine, make_invalid, named, record};
use brimful_core::history::{Direction, History};
use brimful_core::record::Record;
use brimful_core::workload::Workload;
use brimful_stats::{StatsError, history};

/// Relative deviations of the runs from their mean. They are repeated.
const DEVIATIONS: [f64; 5] = [-0.01, 0.004, 0.0, 0.011, -0.005];

/// Records of runs, one a minute. Run number i has `throughput(i)` calls per second.
fn records(count: u64, throughput: impl Fn(u64) -> f64) -> Vec<Record> {
    let run = |number: u64| {
        let deviation = 1.0 + DEVIATIONS[number as usize % DEVIATIONS.len()];
        record(number, throughput(number) * deviation, 500.0)
    };
    (0..count).map(run).collect()
}

/// The history of these runs, of which the newest five may have new changes.
fn history_of(records: Vec<Record>) -> Result<History, StatsError> {
    history((0..).zip(records).map(|(number, record)| named(number, record)).collect(), 5)
}

fn steady() -> Vec<Record> {
    records(20, |_| 1_000.0)
}

#[test]
fn a_steady_server_has_no_change() {
    let found = history_of(steady()).unwrap();
    assert!(found.changes.is_empty() && found.notes.is_empty(), "{found:?}");
    assert_eq!(found.headline, "No change was found in the newest 5 of 20 runs.");
}

#[test]
fn a_new_change_is_named_with_its_date_and_label() {
    let mut runs = records(20, |number| if number < 16 { 1_000.0 } else { 800.0 });
    runs[16].labels.insert("commit".to_owned(), "abc123".to_owned());
    let found = history_of(runs).unwrap();
    assert!(
        matches!(&found.changes[..], [change] if change.index == 16 && change.direction == Direction::Worse && change.is_new)
    );
    let since = "Since 2026-11-27 (commit=abc123), the server takes 20 % fewer requests per second (";
    assert!(found.headline.starts_with(since), "{}", found.headline);

    let better = history_of(records(20, |number| if number < 16 { 800.0 } else { 1_000.0 })).unwrap();
    let beginning = "Nothing became worse in the newest 5 of 20 runs. Since 2026-11-27, the server takes 25 % more";
    assert!(better.headline.starts_with(beginning), "{}", better.headline);
}

#[test]
fn an_old_change_is_only_mentioned() {
    let mut runs = records(20, |number| if number < 8 { 1_000.0 } else { 800.0 });
    runs[8].server_software = Some("nginx/1.26".to_owned());
    runs[7].server_software = Some("nginx/1.22".to_owned());
    let found = history_of(runs).unwrap();
    assert_eq!(found.headline, "No change was found in the newest 5 of 20 runs; the last change was on 2026-11-27.");
    assert_eq!(found.changes[0].other_changes, ["software of the server: nginx/1.22, then nginx/1.26"]);
}

#[test]
fn few_runs_say_how_many_more_are_needed() {
    let found = history_of(records(4, |_| 1_000.0)).unwrap();
    assert_eq!(found.headline, "In 4 runs no change can be found yet: that takes 2 more runs.");
}

#[test]
fn a_note_names_each_run_that_is_left_out() {
    let note = |change: &dyn Fn(&mut Vec<Record>)| {
        let mut runs = steady();
        change(&mut runs);
        history_of(runs).unwrap().notes
    };
    let copy = note(&|runs| runs.push(runs[3].clone()));
    assert_eq!(copy, ["1 run left out, found twice: run-20.json"]);
    let invalid = note(&|runs| make_invalid(&mut runs[2]));
    assert_eq!(invalid, ["1 run left out, not valid: run-2.json (The generator was late)"]);
    let machines = note(&|runs| runs[4].machine = Some(machine("laptop")));
    assert_eq!(machines, ["1 run left out, with a load from another machine than most: run-4.json (laptop, Xeon)"]);
    let interrupted = note(&|runs| runs[5].interrupted = true);
    assert_eq!(interrupted, ["run-5.json was interrupted after 20.0 s"]);
    let loads = note(&|runs| {
        runs[..5].iter_mut().for_each(|run| run.workload = Some(Workload::single_class("GET", "/other")));
    });
    let four = "5 runs left out, of another load than most: run-0.json (their requests differ), run-1.json (their";
    assert!(matches!(&loads[..], [note] if note.starts_with(four) && note.ends_with(" and 2 more")), "{loads:?}");
}

#[test]
fn a_different_machine_in_each_run_is_a_note() {
    let mut runs = steady();
    (0..).zip(&mut runs).for_each(|(number, run)| run.machine = Some(machine(&format!("host-{number}"))));
    let found = history_of(runs).unwrap();
    assert_eq!(found.notes, ["the load came from 20 machines, so some changes may be differences between these"]);
    assert_eq!(found.runs.len(), 20);
}

#[test]
fn no_valid_run_and_no_start_time_are_errors() {
    let mut runs = steady();
    runs.iter_mut().for_each(make_invalid);
    let text = history_of(runs).unwrap_err().to_string();
    assert!(text.contains("no run is valid: run-0.json, for example (The generator was late)"), "{text}");
    let mut runs = steady();
    runs[1].started_at = "yesterday".to_owned();
    let text = history_of(runs).unwrap_err().to_string();
    assert!(text.contains("run-1.json has no start time"), "{text}");
}
