//! `brimful plan calibrate`: Records of a server whose demands are known become its model.

use crate::plan::{Files, example, json, numbers, page_of, plan, reviewed, word};
use crate::program::{Running, brimful, share_machine};
use serde_json::{Value, json};
use std::fs;

const SECONDS: f64 = 20.0;

/// What a run at these rates by class would have recorded: 1 ms of one CPU for a light request, 5 ms for a heavy one.
fn record(rates: &[(&str, f64)]) -> Value {
    let mut record: Value = serde_json::from_str(include_str!("../data/idle.record.json")).unwrap();
    let busy: f64 = rates.iter().map(|(class, x)| x * demand(class)).sum();
    let rate: f64 = rates.iter().map(|(_, x)| x).sum();
    let completed = rate.min(rate / (busy / 0.98).max(1.0));
    let counts = |rate: f64| {
        let mut counts = record["counts"].clone();
        for key in ["scheduled", "sent", "completed"] {
            counts[key] = json!((rate * SECONDS) as u64);
        }
        counts["status"]["2xx"] = counts["completed"].clone();
        counts
    };
    let mean = 1e6 * (0.002 + busy.min(0.98) / rate.max(1e-9) / (1.0 - busy.min(0.98)));
    let summary = json!({ "count": 1, "mean": mean, "min": mean, "p50": mean, "p90": mean, "p95": mean, "p99": mean,
        "p999": mean, "max": mean, "stddev": 0.0 });
    let of = |x: f64| {
        json!({ "counts": counts(x), "response_time_us": summary, "service_time_us": null,
        "first_byte_us": null, "lateness_us": null })
    };
    let classes: serde_json::Map<String, Value> =
        rates.iter().map(|(class, x)| ((*class).to_owned(), of(x * completed / rate))).collect();
    let (all, course) = (
        counts(completed),
        (0..20)
            .map(|i| {
                let wobble = 1.0 + 0.05 * f64::from(i % 3) - 0.05;
                json!({ "t_s": i, "length_s": 1.0, "offered": rate as u64, "sent": rate as u64, "errors": 0,
            "completed": (completed * wobble) as u64, "p50_us": null, "p99_us": null })
            })
            .collect::<Vec<_>>(),
    );
    let cores = 0.01 + busy.min(0.98);
    let work = (0..20)
        .map(|i| {
            let wobble = 1.0 + 0.05 * f64::from((i + i / 7 % 2) % 3) - 0.05;
            json!({ "t_s": i, "length_s": 1.0, "process_cores": 0.01 + busy.min(0.98) * wobble })
        })
        .collect::<Vec<_>>();
    if rate > 0.0 {
        record["response_time_us"] = summary.clone();
        record["response_mean_ci95_us"] = json!(mean * 0.02);
    }
    record["rates"]["offered"] = json!(rate);
    record["rates"]["completed"] = json!(completed);
    record["counts"] = all;
    record["classes"] = Value::Object(classes);
    record["intervals"] = json!(course);
    record["server"]["intervals"] = json!(work);
    record["server"]["process"][0] = json!({ "name": "nginx", "cpu_s": cores * SECONDS, "cores": cores });
    record["server"]["cpu"] = json!({ "user": cores, "system": 0.0, "idle": 1.0 - cores, "steal": 0.0 });
    record
}

fn demand(class: &str) -> f64 {
    if class == "heavy" { 0.005 } else { 0.001 }
}

/// The runs of a careful person, in files.
fn runs(files: &Files) -> Vec<String> {
    [
        ("idle", &[][..]),
        ("light", &[("light", 300.0)]),
        ("heavy", &[("heavy", 60.0)]),
        ("low", &[("light", 100.0), ("heavy", 25.0)]),
        ("high", &[("light", 300.0), ("heavy", 75.0)]),
        ("past", &[("light", 800.0), ("heavy", 200.0)]),
    ]
    .map(|(name, rates)| files.write(&format!("{name}.json"), record(rates).to_string()))
    .to_vec()
}

fn calibrate<'a>(runs: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    ["calibrate"].into_iter().chain(runs.iter().map(String::as_str)).chain(more.iter().copied()).collect()
}

#[test]
fn records_become_a_model_that_is_solved_as_it_is() {
    let files = Files::new();
    let runs = runs(&files);
    let out = word(&files.path("model.json"));
    let text = plan(&calibrate(&runs, &["--out", &out])).exits(&[0]).stdout;
    assert!(text.starts_with("cpu is the bottleneck: 550 req/s"), "{text}");
    for words in [
        "cpu        heavy  5.00 ms",
        "records     5 of 6 used",
        "past.json: past saturation",
        "idle.json: the idle server",
        "condition",
        "USL         ",
        "Kneedle     ",
    ] {
        assert!(text.contains(words), "{words:?} was expected in\n{text}");
    }
    let relative: Vec<&str> = runs.iter().map(|run| run.rsplit('/').next().unwrap()).collect();
    let machine = share_machine();
    let mut beside = brimful(&[&["plan", "calibrate"], &relative[..]].concat());
    beside.current_dir(files.path(""));
    reviewed("plan-calibrate.txt", &Running::start(beside).finish().exits(&[0]).stdout);
    let html = word(&files.path("page.html"));
    let mut beside = brimful(&[&["plan", "calibrate", "--json", "--html", &html], &relative[..]].concat());
    beside.current_dir(files.path(""));
    let printed = Running::start(beside).finish().exits(&[0]).stdout;
    assert_eq!(page_of("calibration", &html), serde_json::from_str::<Value>(&printed).unwrap());
    example("calibration.json", &serde_json::from_str(&printed).unwrap());
    drop(machine);

    let model: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    for (demand, truth) in numbers(&model["demands"][0]).into_iter().zip([0.005, 0.001]) {
        assert!((demand / truth - 1.0).abs() < 0.02, "{model}");
    }
    assert!(numbers(&model["demand_ci95_half_width"][0]).iter().all(|half| *half > 0.0), "{model}");
    let solved = json(&["solve", &out]);
    let calibration = json(&calibrate(&runs, &[]));
    assert_eq!(solved["saturation_rate"], calibration["saturation"]["rate"]);
    assert_eq!(calibration["model"], model);
    // What was calibrated holds its model too.
    let whole = files.write("calibration.json", calibration.to_string());
    assert_eq!(json(&["solve", &whole]), solved);
}

#[test]
fn the_cross_checks_take_the_runs_of_one_mix() {
    let files = Files::new();
    let mut runs = runs(&files);
    for factor in [1.8, 2.0, 2.2, 4.0] {
        let rates = [("light", 200.0 * factor), ("heavy", 50.0 * factor)];
        runs.push(files.write(&format!("mix{factor}.json"), record(&rates).to_string()));
    }
    let checks = &json(&calibrate(&runs, &[]))["knee"];
    assert_eq!(checks["measured"].as_array().unwrap().len(), 7, "{checks}");
    let knee = checks["knee"]["throughput"].as_f64().expect("a knee");
    assert!((knee / 545.0 - 1.0).abs() < 0.05, "{checks}");
}

#[test]
fn what_cannot_be_calibrated_says_why() {
    let files = Files::new();
    let runs = runs(&files);
    plan(&["calibrate"]).fails(2, "<RECORDS>");
    plan(&["calibrate", &files.write("a.json", "{}")]).fails(2, "is not a Record");
    plan(&["calibrate", &files.write("b.json", "{")]).fails(2, "EOF while parsing");
    plan(&calibrate(&runs[..1], &[])).fails(2, "measure");
    let mut other = record(&[("light", 100.0)]);
    other["target"] = json!("http://elsewhere:80/");
    let other = files.write("other.json", other.to_string());
    plan(&["calibrate", &runs[1], &other]).fails(2, "2 ");
    plan(&calibrate(&runs, &["--servers", "0"])).fails(2, "--servers");
    plan(&calibrate(&runs, &["--out", "/no/such/place"])).fails(3, "choose another place with --out");
}
