//! Tests `brimful compare` on Records with known metrics, and on Records of real loads.

use crate::documents;
use crate::plan::{Files, check_golden, check_golden_file};
use crate::program::{Done, Running, brimful, run, start_target, words};
use brimful_core::comparison::{LimitOutcome, MetricComparison, ServerComparison, Variability};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Relative deviations of five runs from their mean.
const DEVIATIONS: [f64; 5] = [-0.012, 0.008, 0.0, 0.014, -0.01];

/// A Record of a run with this throughput. Response times and CPU time are proportional to `time`.
pub fn record(number: usize, throughput: f64, time: f64) -> Value {
    let mut record: Value = serde_json::from_str(include_str!("../data/idle.record.json")).unwrap();
    let completed = (throughput * 20.0).round() as u64;
    record["started_at"] = json!(format!("2026-11-27T10:{number:02}:00Z"));
    record["started_monotonic_ns"] = json!(number);
    record["brimful_version"] = json!("0.1.0");
    record["machine"] = json!({"host": "client", "kernel": "6.1.0", "cpu_model": "Xeon"});
    record["server_software"] = json!("nginx/1.22.1");
    record["labels"] = json!({"commit": if number < 20 { "abc123" } else { "def456" }, "run": number.to_string()});
    record["workload"] = json!({
        "class": [{"name": "page", "weight": 1.0, "method": "GET", "path": "/"}],
        "load": {"clients": 8, "think_s": 0.0},
    });
    record["rates"]["completed"] = json!(throughput);
    record["counts"]["scheduled"] = json!(completed);
    record["counts"]["completed"] = json!(completed);
    record["verdict"]["error_share"] = json!(0.0);
    let us = |times: f64| 1_000.0 * time * times;
    record["response_time_us"] = json!({
        "count": completed, "mean": us(1.0), "min": us(0.5), "p50": us(0.9), "p90": us(1.8), "p95": us(2.2),
        "p99": us(4.0), "p999": us(7.0), "max": us(11.0), "stddev": us(0.4),
    });
    record["server"]["process"][0]["cpu_s"] = json!(completed as f64 * 150e-6 * time);
    record
}

/// Five runs of A, with 4,000 calls per second, in the directory `a`, and five runs of B in the directory `b`. The
/// throughput of B is that of A times `throughput`, and B's response times are those of A times `time`.
fn replications(throughput: f64, time: f64) -> Files {
    let files = Files::new();
    for (side, first, throughput, time) in [("a", 10, 1.0, 1.0), ("b", 20, throughput, time)] {
        fs::create_dir(files.path(side)).unwrap();
        for (number, deviation) in DEVIATIONS.into_iter().enumerate() {
            let record = record(first + number, 4_000.0 * throughput * (1.0 + deviation), time / (1.0 + deviation));
            files.write(&format!("{side}/{number}.json"), record.to_string());
        }
    }
    files
}

/// Runs `compare` in the directory of these files. Lines have 80 columns.
fn compare_in(files: &Files, args: &[&str]) -> Done {
    let mut command = brimful(&[&["compare"], args].concat());
    command.current_dir(files.path("")).env("COLUMNS", "80").env("NO_COLOR", "1");
    Running::start(command).finish()
}

fn compared_in(files: &Files, args: &[&str]) -> ServerComparison {
    documents::document(&compare_in(files, &[args, &["--json"]].concat()).exits(&[0, 1]).stdout)
}

fn figure<'a>(compared: &'a ServerComparison, name: &str) -> &'a MetricComparison {
    compared.figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("{name}: {compared:#?}"))
}

#[test]
fn several_runs_of_each_side_give_a_sentence_and_a_table() {
    let files = replications(1.08, 0.9);
    let text = compare_in(&files, &["a", "b"]).exits(&[0]).stdout;
    check_golden("compare.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 80) && !text.contains('\x1b'), "{text}");
    check_golden_file("compare.md", &compare_in(&files, &["a", "b", "--markdown"]).exits(&[0]).stdout);
    let compared = compared_in(&files, &["a", "b"]);
    assert_eq!((compared.variability, compared.a.documents.len()), (Variability::BetweenRuns, 5));
    let throughput = figure(&compared, "throughput");
    let [low, high] = throughput.interval95.unwrap();
    assert!(throughput.differs && low < 0.08 && 0.08 < high && high - low < 0.05, "{throughput:?}");
    // The label `run` differs between the runs of a side, so only the common label `commit` is shown.
    assert_eq!(compared.a.labels.into_iter().collect::<Vec<_>>(), [("commit".to_owned(), "abc123".to_owned())]);
}

#[test]
fn files_on_both_sides_of_vs_are_as_good_as_directories() {
    let files = replications(1.08, 0.9);
    let a = ["a/0.json", "a/1.json", "a/2.json", "a/3.json", "a/4.json"];
    let both = compared_in(&files, &[&a[..], &["vs", "b"]].concat());
    assert_eq!(both.figures, compared_in(&files, &["a", "b"]).figures);
    compare_in(&files, &["a/0.json", "a/1.json", "b"]).fails(2, "put `vs` between those of A and those of B");
}

#[test]
fn equal_servers_are_equal_up_to_a_bound_and_never_without_one() {
    let compared = compared_in(&replications(1.0, 1.0), &["a", "b"]);
    assert!(compared.figures.iter().all(|figure| !figure.differs), "{compared:#?}");
    let bound = compared.no_other_difference_above.unwrap();
    assert!(bound > 0.0 && bound < 0.05, "{bound}");
    assert_eq!(compared.headline, "No figure of B differs by more than 2 % from that of A.");
}

#[test]
fn a_side_of_one_run_has_the_variability_of_the_other() {
    let files = replications(1.08, 0.9);
    let compared = compared_in(&files, &["a/2.json", "vs", "b"]);
    let both = compared_in(&files, &["a", "b"]);
    let width = |compared: &ServerComparison| {
        let [low, high] = figure(compared, "throughput").interval95.unwrap();
        high - low
    };
    assert_eq!(compared.variability, Variability::BetweenRuns);
    assert!(width(&compared) > 1.5 * width(&both), "{} and {}", width(&compared), width(&both));
}

#[test]
fn a_limit_is_exceeded_kept_or_not_known() {
    let files = replications(0.92, 1.1);
    let compare = |limits: &[&str]| {
        let flags: Vec<&str> = limits.iter().flat_map(|limit| ["--max-regression", limit]).collect();
        compare_in(&files, &[&["a", "b", "--json"], &flags[..]].concat())
    };
    for (limit, code, outcome) in [
        ("p99:5%", 1, LimitOutcome::Exceeded),
        ("p99:20%", 0, LimitOutcome::Kept),
        ("p99:10%", 0, LimitOutcome::NotKnown),
        ("throughput:2%", 1, LimitOutcome::Exceeded),
        ("errors:1%", 0, LimitOutcome::Kept),
    ] {
        let done = compare(&[limit]).exits(&[code]);
        let compared: ServerComparison = documents::document(&done.stdout);
        assert_eq!(compared.limits[0].outcome, outcome, "{limit}: {:?}", compared.limits);
    }
    assert_eq!(compare(&["p99:20%", "cpu:3%"]).code, 1);
    compare(&["p12:5%"]).fails(2, "these are: throughput, mean, p50, p90, p99, p99.9, errors, cpu");
    let done = compare_in(&files, &["a", "b", "--max-regression", "p99:10%"]).exits(&[0]);
    assert!(words(&done.stdout).contains("Limit p99:10% not known, more or longer runs are needed"), "{}", done.stdout);
}

#[test]
fn one_run_of_each_side_says_what_is_not_known() {
    let (_target, url) = start_target(&["--service", "page=200us"]);
    let files = Files::new();
    let url = format!("{}/page", url.trim_end_matches('/'));
    for name in ["a.json", "b.json"] {
        let path = files.write(name, "");
        // On a busy machine, the load generator may be late, so several exit codes are accepted.
        run(&["load", &url, "-c", "2", "-d", "3s", "--interval", "100ms", "--watch", "-q", "--out", &path])
            .exits(&[0, 4]);
        let mut record: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        record["verdict"]["valid"] = json!(true);
        record["verdict"]["reasons"] = json!([]);
        files.write(name, record.to_string());
    }
    let compared = compared_in(&files, &["a.json", "b.json"]);
    assert_eq!(compared.variability, Variability::WithinRuns);
    for name in ["throughput", "mean", "errors", "p50", "p90"] {
        let figure = figure(&compared, name);
        let [low, high] = figure.interval95.unwrap_or_else(|| panic!("{name} has no interval"));
        let difference = figure.difference.unwrap();
        assert!(low <= difference && difference <= high && low < high, "{figure:?}");
    }
    let text = words(&compare_in(&files, &["a.json", "b.json"]).exits(&[0]).stdout);
    assert!(text.contains("differences between runs are not known"), "{text}");
    // A run does not differ from itself: all differences are zero, even if the intervals are wide.
    let text = words(&compare_in(&files, &["a.json", "a.json"]).exits(&[0]).stdout);
    assert!(text.contains("WARNING: a.json and a.json are the same run.") && !text.contains("* <0.001"), "{text}");
}

/// Compares a changed copy of a run of A with B. The copy is written to `changed.json`.
fn compare_changed(change: impl FnOnce(&mut Value)) -> Done {
    let files = replications(1.0, 1.0);
    let mut changed = record(10, 4_000.0, 1.0);
    change(&mut changed);
    files.write("changed.json", changed.to_string());
    compare_in(&files, &["changed.json", "vs", "b"])
}

#[test]
fn unlike_runs_are_refused_with_their_names_and_the_reason() {
    compare_changed(|record| record["workload"]["load"] = json!({"clients": 9, "think_s": 0.0}))
        .fails(2, "changed.json and b/0.json cannot be compared: their loads differ");
    compare_changed(|record| record["workload"]["class"][0]["path"] = json!("/other"))
        .fails(2, "changed.json and b/0.json cannot be compared: their requests differ");
    compare_changed(|record| record["schema"] = json!("brimful.record/2")).fails(2, "it is a `brimful.record/2`");
    compare_changed(|record| {
        record["verdict"] = json!({"valid": false, "reasons": [{"code": "generator_late", "message": "Late. Wait."}]});
    })
    .fails(2, "changed.json is not valid (Late), and changed.json has no valid run");
    let files = replications(1.0, 1.0);
    compare_in(&files, &["a/0.json", "a/0.json", "vs", "b"]).fails(2, "a/0.json and a/0.json are the same run");
    let text = fs::read_to_string(files.path("a/0.json")).unwrap();
    files.write("cut.json", &text[..text.len() / 2]);
    compare_in(&files, &["cut.json", "vs", "b"]).fails(2, "cut.json is not a Record or survey that this version reads");
    compare_in(&files, &["missing.json", "b"]).fails(2, "cannot read missing.json");
    fs::create_dir(files.path("empty")).unwrap();
    compare_in(&files, &["empty", "b"]).fails(2, "empty has no Record or survey");
    let survey = fs::read_to_string(example_survey()).unwrap();
    files.write("survey.json", survey);
    compare_in(&files, &["survey.json", "vs", "b"]).fails(2, "one is a Record and the other a survey");
}

#[test]
fn other_differences_between_the_runs_are_warnings() {
    let warning = |change: fn(&mut Value)| words(&compare_changed(change).exits(&[0]).stdout);
    for (change, expected) in [
        (
            (|record| record["machine"]["host"] = json!("other")) as fn(&mut Value),
            "came from different machines: of A from other",
        ),
        (|record| record["brimful_version"] = json!("0.0.9"), "different versions of brimful: A 0.0.9, B 0.1.0"),
        (|record| record["interrupted"] = json!(true), "changed.json was interrupted after 20.0 s"),
        (|record| record["stopped_by"] = json!("p99>1s for 5s"), "changed.json was stopped by p99>1s for 5s"),
        (|record| record["server"] = Value::Null, "different ways of watching the server: A not its processes"),
        (|record| record["verdict"]["failing"] = json!(true), "most calls of changed.json failed"),
    ] {
        let text = warning(change);
        assert!(text.contains("WARNING: ") && text.contains(expected), "{expected}: {text}");
    }
    // Runs of different lengths can be compared without a warning.
    let text = warning(|record| record["window_s"] = json!(40.0));
    assert!(!text.contains("WARNING"), "{text}");
    // A run that is not valid is left out if others are valid.
    let files = replications(1.0, 1.0);
    let mut invalid = record(15, 100.0, 9.0);
    invalid["verdict"] = json!({"valid": false, "reasons": [{"code": "generator_late", "message": "Late. Wait."}]});
    files.write("a/5.json", invalid.to_string());
    let compared = compared_in(&files, &["a", "b"]);
    assert_eq!(compared.a.documents.len(), 5);
    assert_eq!(compared.warnings, ["a/5.json is left out: it is not valid (Late)"]);
}

#[test]
fn a_record_of_an_old_version_has_figures_without_intervals() {
    let files = replications(1.08, 0.9);
    for name in ["a/0.json", "b/0.json"] {
        let mut record: Value = serde_json::from_str(&fs::read_to_string(files.path(name)).unwrap()).unwrap();
        for key in ["brimful_version", "machine", "server_software", "labels", "workload"] {
            record.as_object_mut().unwrap().remove(key);
        }
        files.write(name, record.to_string());
    }
    let compared = compared_in(&files, &["a/0.json", "b/0.json"]);
    let p99 = figure(&compared, "p99");
    assert!((p99.difference.unwrap() + 0.1).abs() < 0.01 && p99.interval95.is_none(), "{p99:?}");
    assert!(compared.headline.starts_with("A and B cannot be distinguished"), "{}", compared.headline);
}

#[test]
fn hostile_names_cannot_control_any_output() {
    let files = replications(1.0, 1.0);
    let name = "a/\u{1b}[2J|<b>@all`.json";
    let mut hostile = record(15, 4_000.0, 1.0);
    hostile["server_software"] = json!("x\u{1b}]0;t\u{7}|\n# title <img src=x> @all [l](http://e) **b**");
    files.write(name, hostile.to_string());
    let args = [name, "vs", "b"];
    for flags in [&[][..], &["--markdown"], &["--json"]] {
        let done = compare_in(&files, &[&args[..], flags].concat()).exits(&[0]);
        assert!(!done.stdout.contains(['\x1b', '\x07', '\u{9b}']), "{}", done.stdout);
    }
    compare_in(&files, &[&args[..], &["--html", "page.html"]].concat()).exits(&[0]);
    let page = fs::read_to_string(files.path("page.html")).unwrap();
    assert!(page.contains("brimful.comparison/1") && !page.contains("<img src=x>"));
    let markdown = compare_in(&files, &[&args[..], &["--markdown"]].concat()).stdout;
    for markup in ["<b>", "<img", "@all", "`", "\n# ", "](", "http://"] {
        assert!(!markdown.contains(markup), "{markup}: {markdown}");
    }
}

fn example_survey() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/example.survey.json")
}

#[test]
fn surveys_are_compared_by_capacity_rate_and_demands() {
    let files = Files::new();
    let mut survey: Value = serde_json::from_str(&fs::read_to_string(example_survey()).unwrap()).unwrap();
    files.write("a.json", survey.to_string());
    let measured = survey["saturation_rate"]["measured"].as_f64().unwrap();
    survey["saturation_rate"]["measured"] = json!(2.0 * measured);
    survey["started_at"] = json!("2027-01-01T00:00:00Z");
    files.write("b.json", survey.to_string());
    let compared = compared_in(&files, &["a.json", "b.json"]);
    let capacity = figure(&compared, "capacity");
    assert!(capacity.differs && (capacity.difference.unwrap() - 1.0).abs() < 1e-9, "{capacity:?}");
    assert!(compared.headline.starts_with("B's capacity is 100 % higher"), "{}", compared.headline);
    let others: Vec<&str> = compared.figures[1..].iter().map(|figure| figure.name.as_str()).collect();
    assert!(others.iter().any(|name| name.starts_with("rate p")), "{others:?}");
    assert!(compared.figures[1..].iter().all(|figure| !figure.differs), "{compared:#?}");
}
