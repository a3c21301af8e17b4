//! Builds Records (documents of runs) of a simulated server with known demands.

use brimful_core::record::Record;
use brimful_estimate::EstimateError;
use brimful_estimate::{CalibrateOptions, Calibrated, Resampling, calibrate};
use serde_json::{Value, json};

/// Duration of the period in which load is offered, in seconds.
const SECONDS: f64 = 20.0;

/// Duration of the monitoring after the load, in seconds.
const DRAIN: f64 = 10.0;

/// Builds a Record of requests to `path`. The server has known demands, and background work keeps 0.02 CPUs busy.
/// `rates` are the calls per second of each class. The server is also monitored for some time before and after the
/// load.
pub fn record(path: &str, rates: &[(&str, f64)]) -> Value {
    let counts = |completed: f64| {
        let n = completed as u64;
        let zero = ["connect_attempts", "established", "abandoned", "refused", "reset", "reset_before_sending"];
        let zero =
            zero.into_iter().chain(["timed_out", "malformed", "client_limited", "in_flight_at_end", "unsent_at_end"]);
        let mut counts: Value = zero.map(|key| (key.to_owned(), json!(0))).collect::<serde_json::Map<_, _>>().into();
        counts["status"] = json!({ "2xx": n, "3xx": 0, "4xx": 0, "5xx": 0 });
        for key in ["scheduled", "sent", "completed"] {
            counts[key] = json!(n);
        }
        counts
    };
    let summary = |mean: f64| {
        json!({ "count": 1, "mean": mean, "min": mean, "p50": mean, "p90": mean, "p95": mean, "p99": mean,
            "p999": mean, "max": mean, "stddev": 0.0 })
    };
    let rate: f64 = rates.iter().map(|(_, x)| x).sum();
    let work: f64 = rates.iter().map(|(class, x)| x * demand(class)).sum();
    let cores = 0.02 + work;
    // Mean response time in µs: one CPU with processor sharing, plus 5 ms outside of the CPU.
    let response = |class: &str| 1e6 * (0.005 + demand(class) + work / (1.0 - work) * work / rate.max(1e-9));
    let mean = rates.iter().map(|(class, x)| x / rate * response(class)).sum::<f64>();
    let classes: serde_json::Map<String, Value> = rates
        .iter()
        .map(|(class, x)| {
            let of = json!({ "counts": counts(x * SECONDS), "response_time_us": summary(response(class)),
                "service_time_us": null, "first_byte_us": null, "lateness_us": null });
            ((*class).to_owned(), of)
        })
        .collect();
    // Completed calls and CPU usage vary between seconds, independently of each other, but their means over the run are
    // exact.
    let wobble = |i: u32| 1.0 + 0.1 * f64::from(i % 4 % 3) - 0.075;
    let intervals: Vec<Value> = (0..(SECONDS + DRAIN) as u32)
        .map(|i| {
            let rate = if f64::from(i) < SECONDS { rate } else { 0.0 };
            json!({ "t_s": i, "length_s": 1.0, "offered": rate as u64, "sent": rate as u64, "errors": 0,
                "completed": (rate * wobble(i)) as u64, "p50_us": null, "p99_us": null })
        })
        .collect();
    let before = json!({ "t_s": -0.5, "length_s": 0.5, "process_cores": 0.9 });
    let course = (0..(SECONDS + DRAIN) as u32).map(|i| {
        let work = if f64::from(i) < SECONDS { work * wobble(i / 4 + i) } else { 0.0 };
        json!({ "t_s": i, "length_s": 1.0, "process_cores": 0.02 + work })
    });
    let course: Vec<Value> = std::iter::once(before).chain(course).collect();
    json!({
        "schema": "brimful.record/1", "started_at": "2000-01-01T00:00:00Z", "started_monotonic_ns": 0,
        "duration_s": SECONDS + DRAIN, "window_s": SECONDS, "command": ["brimful", "load"],
        "target": format!("http://server:8080{path}"), "seed": 1, "interrupted": false,
        "verdict": { "valid": true, "reasons": [] },
        "rates": { "offered": rate, "sent": rate, "connect_attempts": 0.0, "established": 0.0, "completed": rate },
        "counts": counts(rate * SECONDS),
        "response_time_us": if rate > 0.0 { summary(mean) } else { Value::Null }, "response_mean_ci95_us": mean * 0.02,
        "service_time_us": null, "connect_time_us": null, "first_byte_us": null, "lateness_us": null,
        "bytes": { "received": 0, "sent": 0 },
        "reply_rate": { "samples": 0, "min": null, "mean": null, "max": null, "stddev": null, "ci95_half_width": null },
        "classes": classes, "intervals": intervals, "hdr": {}, "hdr_value_unit": "ns",
        "generator": { "cpu_user_s": 0.0, "cpu_system_s": 0.0, "busy": 0.0, "threads": 1, "max_open_connections": 1,
            "engine": "epoll", "max_rate": null },
        "server": {
            "cpus": [0], "cpu": { "user": cores + 0.01, "system": 0.0, "idle": 0.99 - cores, "steal": 0.0 },
            "process": [{ "name": "nginx", "cpu_s": cores * SECONDS, "cores": cores }],
            "disks": { "sda": { "utilization": 0.03 + 0.0002 * rate }, "sdb": { "utilization": 0.001 } },
            "intervals": course,
        },
        "calibration": null,
    })
}

/// CPU demand of a class, in seconds.
pub fn demand(class: &str) -> f64 {
    match class {
        "light" => 0.001,
        "heavy" => 0.005,
        _ => 0.002,
    }
}

/// Calibrates a model with default options.
pub fn calibrate_records(records: &[Value]) -> Result<Calibrated, EstimateError> {
    calibrate_with_options(records, CalibrateOptions::default())
}

/// Calibrates a model with these options, but with only 100 bootstrap draws, to save time.
pub fn calibrate_with_options(records: &[Value], options: CalibrateOptions) -> Result<Calibrated, EstimateError> {
    let records: Vec<Record> = records.iter().map(|r| serde_json::from_value(r.clone()).unwrap()).collect();
    calibrate(&records, CalibrateOptions { resampling: Resampling { draws: 100, seed: 1 }, ..options })
}

/// Changes the mean number of CPUs that the server's processes keep busy in a Record.
pub fn set_cores(record: &mut Value, cores: f64) {
    let was = record["server"]["process"][0]["cores"].as_f64().unwrap();
    record["server"]["process"][0]["cores"] = json!(cores);
    for stretch in record["server"]["intervals"].as_array_mut().unwrap() {
        stretch["process_cores"] = json!(stretch["process_cores"].as_f64().unwrap() * cores / was);
    }
}

/// A run without load, a run of each class alone, and two runs with the same mix of classes.
pub fn runs() -> Vec<Value> {
    vec![
        record("/", &[]),
        record("/", &[("light", 200.0)]),
        record("/", &[("heavy", 60.0)]),
        record("/", &[("light", 100.0), ("heavy", 25.0)]),
        record("/", &[("light", 300.0), ("heavy", 75.0)]),
    ]
}

/// Whether `a` differs from `b` by at most the relative error `within`.
pub fn near(a: f64, b: f64, within: f64) -> bool {
    (a - b).abs() <= within * b.abs()
}
