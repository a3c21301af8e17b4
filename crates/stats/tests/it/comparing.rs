//! Tests which runs can be compared, and the sentence that states the differences.

use crate::compared_runs::{machine, make_invalid, named, record, survey};
use brimful_core::Nanos;
use brimful_core::comparison::{ServerComparison, Variability};
use brimful_core::record::{Record, ShardOrigin};
use brimful_core::tls::NegotiatedTls;
use brimful_core::workload::{Load, Workload};
use brimful_stats::{Run, Side, StatsError, compare};

/// Relative deviations of three runs from their mean.
const DEVIATIONS: [f64; 3] = [-0.01, 0.0, 0.01];

/// Three runs of one side. The numbers of the runs begin with `first`.
fn runs(first: u64, throughput: f64, time_us: f64) -> Vec<Record> {
    let run =
        |(number, deviation): (u64, &f64)| record(number, throughput * (1.0 + deviation), time_us / (1.0 + deviation));
    (first..).zip(&DEVIATIONS).map(run).collect()
}

fn side(name: &str, records: Vec<Record>) -> Side {
    let runs = records.into_iter().map(|record| named(record.started_monotonic_ns, record)).collect();
    Side { name: name.to_owned(), runs }
}

fn compared(a: Vec<Record>, b: Vec<Record>) -> Result<ServerComparison, StatsError> {
    compare(side("a", a), side("b", b), &[])
}

/// Compares runs of one server after `change` was applied to each run of side B.
fn compared_after(change: impl Fn(&mut Record)) -> Result<ServerComparison, StatsError> {
    let mut changed = runs(10, 1_000.0, 500.0);
    changed.iter_mut().for_each(change);
    compared(runs(0, 1_000.0, 500.0), changed)
}

fn error(result: Result<ServerComparison, StatsError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn runs_of_other_loads_classes_or_kinds_are_refused() {
    let other_load = |record: &mut Record| {
        record.workload.as_mut().unwrap().load = Some(Load::Closed { clients: 8, think: Nanos::ZERO });
    };
    let text = error(compared_after(other_load));
    assert!(text.contains("run-0.json and run-10.json cannot be compared: their loads differ: null and"), "{text}");

    let text = error(compared_after(|record| record.workload = Some(Workload::single_class("GET", "/other"))));
    assert!(text.contains("their requests differ"), "{text}");

    let text = error(compared_after(|record| record.workload.as_mut().unwrap().classes[0].name = "search".to_owned()));
    assert!(text.contains("their classes differ: ") && text.contains(" and search"), "{text}");

    let surveys = Side { name: "b".to_owned(), runs: vec![("b.json".to_owned(), Run::Survey(Box::new(survey())))] };
    let text = error(compare(side("a", runs(0, 1_000.0, 500.0)), surveys, &[]));
    assert!(text.contains("one is a Record and the other a survey"), "{text}");

    let mut other = survey();
    other.model.classes[0].name = "another".to_owned();
    let [a, b] = [survey(), other].map(|survey| Side {
        name: "side".to_owned(),
        runs: vec![("survey.json".to_owned(), Run::Survey(Box::new(survey)))],
    });
    let text = error(compare(a, b, &[]));
    assert!(text.contains("their classes differ: ") && text.contains(" and another"), "{text}");
}

#[test]
fn a_record_without_a_workload_is_compared_with_any_other() {
    assert!(compared_after(|record| record.workload = None).unwrap().warnings.is_empty());
}

#[test]
fn invalid_runs_are_left_out_unless_a_side_has_no_other() {
    let mut one_invalid = runs(10, 1_000.0, 500.0);
    make_invalid(&mut one_invalid[1]);
    let compared_runs = compared(runs(0, 1_000.0, 500.0), one_invalid).unwrap();
    assert_eq!(compared_runs.b.documents.len(), 2);
    assert_eq!(compared_runs.warnings, ["run-11.json is left out: it is not valid (The generator was late)"]);

    let text = error(compared_after(make_invalid));
    assert!(text.contains("run-10.json is not valid (The generator was late), and b has no valid run"), "{text}");
}

#[test]
fn copies_of_a_run_are_refused_on_one_side_and_named_on_two() {
    let mut twice = runs(10, 1_000.0, 500.0);
    twice[2] = twice[0].clone();
    let text = error(compared(runs(0, 1_000.0, 500.0), twice));
    assert!(text.contains("run-10.json and run-10.json are the same run: give each run of a side once"), "{text}");

    let both = compared(runs(0, 1_000.0, 500.0), runs(0, 1_000.0, 500.0)).unwrap();
    assert_eq!(both.warnings, ["run-0.json and run-0.json are the same run"]);
}

#[test]
fn incomplete_runs_are_named_in_warnings() {
    let warning = |change: &dyn Fn(&mut Record)| {
        let mut changed = runs(10, 1_000.0, 500.0);
        change(&mut changed[0]);
        compared(runs(0, 1_000.0, 500.0), changed).unwrap().warnings
    };
    assert_eq!(warning(&|record| record.interrupted = true), ["run-10.json was interrupted after 20.0 s"]);
    let stopped = warning(&|record| record.stopped_by = Some("errors>5%".to_owned()));
    assert_eq!(stopped, ["run-10.json was stopped by errors>5% after 20.0 s"]);
    let lost = ShardOrigin { index: 1, total: 2, lost_at_s: Some(3.0), ..ShardOrigin::default() };
    assert_eq!(warning(&|record| record.shards = vec![lost.clone()]), ["run-10.json lacks 1 part of the load"]);
    let failing = warning(&|record| record.verdict.failing = Some(true));
    assert_eq!(failing, ["most calls of run-10.json failed: its times are those of the others"]);
}

#[test]
fn other_test_conditions_are_named_in_warnings() {
    let warnings = compared_after(|record| record.machine = Some(machine("laptop"))).unwrap().warnings;
    let machines = "the load came from different machines: of A from client (Linux 6.1.0, Xeon), of B from laptop";
    assert!(matches!(&warnings[..], [warning] if warning.starts_with(machines)), "{warnings:?}");

    let warnings = compared_after(|record| {
        record.brimful_version = Some("0.0.9".to_owned());
        record.tls = Some(NegotiatedTls { version: "TLS 1.3".to_owned(), ..NegotiatedTls::default() });
    });
    let warnings = warnings.unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("TLS settings: A no TLS, B TLS 1.3")), "{warnings:?}");
    assert!(warnings.iter().any(|warning| warning.contains("different versions of brimful")), "{warnings:?}");
}

#[test]
fn the_headline_names_the_main_differences_first_and_counts_the_others() {
    let faster = compared(runs(0, 1_000.0, 500.0), runs(10, 1_100.0, 400.0)).unwrap();
    assert_eq!(faster.variability, Variability::BetweenRuns);
    let headline = &faster.headline;
    assert!(headline.starts_with("B takes 10 % more requests per second ("), "{headline}");
    assert!(headline.contains("its p99 is 20 % shorter (") && headline.contains("more figures differ"), "{headline}");

    let slower = compared(runs(0, 1_000.0, 500.0), runs(10, 900.0, 500.0)).unwrap().headline;
    assert!(slower.starts_with("B takes 10 % fewer requests per second ("), "{slower}");
    assert!(slower.contains("; no other figure differs by more than "), "{slower}");
}

#[test]
fn equal_servers_have_a_bound_and_single_runs_have_none() {
    let equal = compared(runs(0, 1_000.0, 500.0), runs(10, 1_000.0, 500.0)).unwrap().headline;
    assert!(equal.starts_with("No figure of B differs by more than "), "{equal}");

    let noisy = |first| vec![record(first, 200.0, 500.0), record(first + 1, 2_000.0, 5_000.0)];
    let unknown = compared(noisy(0), noisy(10)).unwrap().headline;
    assert!(
        unknown.starts_with("A and B cannot be distinguished: their figures could differ by more than"),
        "{unknown}"
    );

    let single = compared(vec![record(0, 1_000.0, 500.0)], vec![record(10, 1_000.0, 500.0)]).unwrap();
    assert_eq!(single.variability, Variability::WithinRuns);
    assert!(single.headline.contains(" vary is not known."), "{}", single.headline);
}

#[test]
fn a_failed_call_in_a_hundred_is_stated_in_percentage_points() {
    let failing = compared_after(|record| record.verdict.error_share = Some(0.01)).unwrap().headline;
    assert!(failing.starts_with("B's share of failed calls is 1 % higher, in percentage points"), "{failing}");
}

#[test]
fn surveys_are_compared_by_capacity_and_demands() {
    let surveys = |scale: f64| {
        let survey = |number: u64| {
            let mut survey = survey();
            survey.seed = number + (scale * 100.0) as u64;
            let deviation = 1.0 + 0.01 * number as f64;
            survey.saturation_rate.measured = Some(4_000.0 * scale * deviation);
            survey.demands.iter_mut().for_each(|demand| demand.seconds *= deviation / scale);
            (format!("survey-{number}.json"), Run::Survey(Box::new(survey)))
        };
        Side { name: "surveys".to_owned(), runs: (0..3).map(survey).collect() }
    };
    let headline = compare(surveys(1.0), surveys(1.5), &[]).unwrap().headline;
    assert!(headline.starts_with("B's capacity is 50 % higher (") && headline.contains("demand of "), "{headline}");
}
