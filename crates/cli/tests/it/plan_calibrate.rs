//! Tests `brimful plan calibrate`: a model is calibrated from Records of a simulated server whose demands are known.

use crate::plan::{
    Files, assert_same_keys_as_example, check_golden, embedded_document, json, numbers, path_argument, plan,
};
use crate::program::{Running, brimful, lock_machine_shared};
use serde_json::{Value, json};
use std::fs;

/// Length of the load, in seconds.
const SECONDS: f64 = 20.0;

/// Time for which the server is still watched after the load, because a response is pending, in seconds.
const DRAIN: f64 = 10.0;

/// The Record of a simulated run with these rates of the classes. A light request needs 1 ms of CPU time, a heavy
/// request needs 5 ms.
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
    // The values of the seconds vary around their exact mean, in different ways for the load generator and the server.
    let wobble = |i: u32| 1.0 + 0.05 * f64::from(i % 4 % 3) - 0.0375;
    let course = (0..(SECONDS + DRAIN) as u32).map(|i| {
        let share = if f64::from(i) < SECONDS { 1.0 } else { 0.0 };
        json!({ "t_s": i, "length_s": 1.0, "offered": (rate * share) as u64, "sent": (rate * share) as u64, "errors": 0,
            "completed": (completed * share * wobble(i)) as u64, "p50_us": null, "p99_us": null })
    });
    let course: Vec<Value> = course.collect();
    let cores = 0.01 + busy.min(0.98);
    let work = (0..(SECONDS + DRAIN) as u32).map(|i| {
        let work = if f64::from(i) < SECONDS { busy.min(0.98) * wobble(i / 4 + i) } else { 0.0 };
        json!({ "t_s": i, "length_s": 1.0, "process_cores": 0.01 + work })
    });
    let before = json!({ "t_s": -0.5, "length_s": 0.5, "process_cores": 0.9 });
    let work: Vec<Value> = std::iter::once(before).chain(work).collect();
    let all = counts(completed);
    if rate > 0.0 {
        record["response_time_us"] = summary.clone();
        record["response_mean_ci95_us"] = json!(mean * 0.02);
    }
    record["rates"]["offered"] = json!(rate);
    record["rates"]["completed"] = json!(completed);
    record["counts"] = all;
    (record["window_s"], record["duration_s"]) = (json!(SECONDS), json!(SECONDS + DRAIN));
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

/// Writes the Records of a set of runs that suffices for a calibration. Returns their paths.
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
fn the_model_fitted_to_records_can_be_solved() {
    let files = Files::new();
    let runs = runs(&files);
    let out = path_argument(&files.path("model.json"));
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
    let machine = lock_machine_shared();
    let mut beside = brimful(&[&["plan", "calibrate"], &relative[..]].concat());
    beside.current_dir(files.path(""));
    check_golden("plan-calibrate.txt", &Running::start(beside).finish().exits(&[0]).stdout);
    let html = path_argument(&files.path("page.html"));
    let mut beside = brimful(&[&["plan", "calibrate", "--json", "--html", &html], &relative[..]].concat());
    beside.current_dir(files.path(""));
    let printed = Running::start(beside).finish().exits(&[0]).stdout;
    assert_eq!(embedded_document("calibration", &html), serde_json::from_str::<Value>(&printed).unwrap());
    assert_same_keys_as_example("calibration.json", &serde_json::from_str(&printed).unwrap());
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
    // The calibration document contains the model, so it can be used as one.
    let whole = files.write("calibration.json", calibration.to_string());
    assert_eq!(json(&["solve", &whole]), solved);
}

#[test]
fn the_cross_checks_use_the_runs_of_one_mix() {
    let files = Files::new();
    let mut runs = runs(&files);
    for factor in [1.8, 2.0, 2.2, 4.0] {
        let rates = [("light", 200.0 * factor), ("heavy", 50.0 * factor)];
        runs.push(files.write(&format!("mix{factor}.json"), record(&rates).to_string()));
    }
    let checks = &json(&calibrate(&runs, &[]))["knee"];
    assert_eq!(checks["measured"].as_array().unwrap().len(), 7, "{checks}");
    let knee = checks["knee"]["throughput"].as_f64().expect("the calibration has a knee");
    assert!((knee / 545.0 - 1.0).abs() < 0.05, "{checks}");
}

#[test]
fn the_run_with_a_cron_job_is_named() {
    let files = Files::new();
    let mut runs = runs(&files);
    let mut cron = record(&[("light", 200.0), ("heavy", 50.0)]);
    cron["server"]["process"][0]["cores"] = json!(0.46 + 0.3);
    for interval in cron["server"]["intervals"].as_array_mut().unwrap() {
        interval["process_cores"] = json!(interval["process_cores"].as_f64().unwrap() + 0.3);
    }
    runs.push(files.write("cron.json", cron.to_string()));
    for (light, heavy) in [(150.0, 20.0), (250.0, 30.0), (50.0, 70.0), (100.0, 5.0)] {
        let good = record(&[("light", light), ("heavy", heavy)]);
        runs.push(files.write(&format!("{light}.json"), good.to_string()));
    }
    let said = plan(&calibrate(&runs, &[])).exits(&[0]).stdout;
    assert!(said.contains("cron.json disagrees with the other runs"), "{said}");
    runs.retain(|run| !run.contains("cron"));
    let said = plan(&calibrate(&runs, &[])).exits(&[0]).stdout;
    assert!(!said.contains("disagrees"), "{said}");
}

#[test]
fn classes_of_a_single_mix_keep_their_joint_demand_in_plans() {
    let files = Files::new();
    let runs: Vec<String> = [0.0, 100.0, 200.0, 300.0]
        .map(|light| {
            let rates = [("light", light), ("heavy", light / 4.0)];
            files.write(&format!("{light}.json"), record(if light > 0.0 { &rates } else { &[] }).to_string())
        })
        .to_vec();
    let out = path_argument(&files.path("model.json"));
    plan(&calibrate(&runs, &["--out", &out])).exits(&[0]);
    let solved = plan(&["solve", &out]).exits(&[0]);
    assert!(solved.stdout.contains("were measured only together") && !solved.stderr.contains("not read"), "{solved:?}");
    plan(&["what-if", &out, "--set", "rate=0.5x"]).exits(&[0]);
    plan(&["what-if", &out, "--set", "heavy.rate=4x"]).fails(2, "measure each class alone");
    let days: String =
        (1..=60).map(|day| format!("2024-{:02}-{:02},{}\n", (day + 30) / 31, (day - 1) % 31 + 1, 1000 + day)).collect();
    let history = files.write("history.csv", format!("time,requests\n{days}"));
    let asked = files.write("configurations.csv", "name,price,set\nas it is,1,\nhalf,2,cpu.heavy.demand=0.5x\n");
    plan(&["forecast", &history, "--model", &out]).exits(&[0]);
    plan(&["forecast", &history, "--model", &out, "--configurations", &asked]).fails(2, "measure each class alone");
}

#[test]
fn a_single_run_has_no_interval_and_says_so() {
    let files = Files::new();
    let runs = runs(&files);
    let out = path_argument(&files.path("model.json"));
    let text = plan(&calibrate(&runs[1..2], &["--out", &out])).exits(&[0]).stdout;
    assert!(text.contains("not known  runs of it alone"), "{text}");
    let (first, _) = text.split_once('\n').unwrap();
    assert!(!first.contains('–') && !first.contains('('), "{first}");
    let found = json(&calibrate(&runs[1..2], &[]));
    assert!(found["uncertainty"][0][0]["ci95"].is_null() && found["saturation"]["ci95"].is_null(), "{found:#}");
    assert!(found["model"].get("demand_ci95_half_width").is_none(), "{found:#}");
    // If the demands have no intervals, the predictions must have none.
    let solved = plan(&["solve", &out]).exits(&[0]).stdout;
    assert!(!solved.contains("90 %"), "{solved}");
}

#[test]
fn records_that_cannot_be_calibrated_are_refused_with_the_reason() {
    let files = Files::new();
    let runs = runs(&files);
    plan(&["calibrate"]).fails(2, "<RECORDS>");
    plan(&["calibrate", &files.write("a.json", "{}")]).fails(2, "is not a Record");
    plan(&["calibrate", &files.write("b.json", "{")]).fails(2, "EOF while parsing");
    plan(&calibrate(&runs[..1], &[])).fails(2, "measure");
    let mut other = record(&[("light", 100.0)]);
    other["target"] = json!("http://elsewhere:80/");
    let other = files.write("other.json", other.to_string());
    let mut future = record(&[("light", 100.0)]);
    future["schema"] = json!("brimful.record/99");
    let future = files.write("future.json", future.to_string());
    plan(&["calibrate", &runs[1], &future]).fails(2, "`brimful.record/99`");
    let mut impossible = record(&[("light", 100.0)]);
    impossible["window_s"] = json!(-5.0);
    let impossible = files.write("impossible.json", impossible.to_string());
    plan(&["calibrate", &runs[1], &impossible]).fails(2, "impossible.json");
    plan(&["calibrate", &runs[1], &other]).fails(2, "2 ");
    plan(&calibrate(&runs, &["--servers", "0"])).fails(2, "--servers");
    plan(&calibrate(&runs, &["--out", "/no/such/place"])).fails(3, "choose another place with --out");
}
