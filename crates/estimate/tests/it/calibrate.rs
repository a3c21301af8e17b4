//! Tests calibration: the demands of the model, which Records are used, and which warnings are issued.

mod records;
mod sources;
mod trouble;

use crate::demand::invalid_number;
use brimful_core::counts::WireBytes;
use brimful_core::record::Record;
use brimful_core::server::{CpuShares, Module, ModuleClass, Sampled};
use brimful_estimate::demand::LoadShape;
use brimful_estimate::{Attribution, CalibrateOptions, Resampling, calibrate};
use brimful_model::saturation_rate;
use proptest::prelude::*;
use records::{calibrate_records, near, record, runs, set_cores};
use serde_json::{Value, json};

#[test]
fn records_of_a_server_become_its_model() {
    let c = calibrate_records(&runs()).unwrap();
    assert_eq!((c.used.as_slice(), c.idle.as_slice(), c.left_out.len()), (&[1, 2, 3, 4][..], &[0][..], 0));
    let names: Vec<&str> = c.model.stations.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["cpu", "sda", "elsewhere"], "an idle disk is not a station");
    let classes: Vec<(&str, f64)> = c.model.classes.iter().map(|k| (k.name.as_str(), k.rate.unwrap())).collect();
    assert_eq!(classes, [("heavy", 50.0), ("light", 200.0)]);
    // Besides CPU time, a response takes 5 ms: 0.2 ms at the disk, and 4.8 ms at the delay station `elsewhere`.
    for (row, (expected, within)) in
        c.model.demands.iter().zip([([0.005, 0.001], 1e-9), ([0.0002; 2], 1e-9), ([0.0048; 2], 0.03)])
    {
        assert!(row.iter().zip(expected).all(|(d, e)| near(*d, e, within)), "{:?}", c.model.demands);
    }
    assert!(near(c.model.stations[0].background, 0.03, 1e-9));
    assert!(near(c.model.stations[1].background, 0.03, 1e-9) && near(c.background.value, 0.02, 1e-9));
    let (rate, station) = saturation_rate(&c.model).unwrap();
    assert!(station == "cpu" && near(rate, 0.97 / (0.8 * 0.001 + 0.2 * 0.005), 1e-9), "{rate}");
    assert_eq!((c.load_dependence, c.warnings.as_slice(), c.merged.len()), (None, &[][..], 0));
    let known = c.uncertainty[0][0];
    let bootstrap = known.bootstrap_ci95.unwrap();
    assert!(bootstrap.low < 0.005 && 0.005 < bootstrap.high && bootstrap.high - bootstrap.low < 0.001, "{known:?}");
    let fit = known.fit_ci95.unwrap();
    assert!(known.ci95 == Some(bootstrap) && fit.high - fit.low < 1e-9, "{known:?}");
    assert!(near(c.model.demand_ci95_half_width[0][0], (bootstrap.high - 0.005).max(0.005 - bootstrap.low), 1e-9));
    assert_eq!((c.cpu_draws.len(), c.cpu_draws[0].len()), (100, 2));
}

#[test]
fn a_call_that_hangs_changes_no_demand() {
    // The rates grow during the run. So the demands would be wrong if CPU time and completed calls came from different
    // periods.
    let until = |end_s: f64| {
        let [light, heavy] = [("light", 100.0), ("heavy", 20.0)].map(|(class, rate)| {
            let mut r = record("/", &[(class, rate)]);
            r["duration_s"] = json!(end_s);
            for i in 0..20 {
                let factor = 0.5 + f64::from(i) / 19.0;
                r["intervals"][i as usize]["completed"] = json!(rate * factor * 100.0);
                r["server"]["intervals"][i as usize + 1]["process_cores"] = json!(0.02 + 0.1 * factor);
            }
            for i in r["intervals"].as_array_mut().unwrap() {
                i["completed"] = json!(i["completed"].as_f64().unwrap() as u64);
            }
            for list in ["/intervals", "/server/intervals"] {
                r.pointer_mut(list).unwrap().as_array_mut().unwrap().retain(|i| i["t_s"].as_f64().unwrap() < end_s);
            }
            r
        });
        calibrate_records(&[record("/", &[]), light, heavy]).unwrap().model.demands[0].clone()
    };
    for end_s in [20.0, 23.0, 30.0] {
        let demands = until(end_s);
        assert!(near(demands[0], 0.005, 1e-9) && near(demands[1], 0.001, 1e-9), "ended at {end_s} s: {demands:?}");
    }
}

#[test]
fn completions_and_cpu_time_are_of_the_same_window() {
    // The monitor's samples are at 0.4 s, 1.4 s, and so on, so they do not coincide with the ends of the window in
    // which load is offered. 200 calls are completed after this window.
    let mut r = record("/", &[("light", 100.0)]);
    r["classes"]["light"]["counts"]["completed"] = json!(2200);
    for i in 0..30u32 {
        let rate = if i < 20 { 100 + 5 * i } else { 20 };
        r["intervals"][i as usize]["completed"] = json!(rate);
    }
    let completed: u32 = (0..20).map(|i| 100 + 5 * i).sum();
    r["classes"]["light"]["counts"]["completed"] = json!(completed + 200);
    r["rates"]["completed"] = json!(f64::from(completed) / 20.0);
    r["rates"]["offered"] = r["rates"]["completed"].clone();
    let mean = |i: i32| if (0..20).contains(&i) { 0.001 * f64::from(100 + 5 * i) } else { 0.0 };
    let course = (-1..25).map(|i| {
        let (now, next) = (mean(i), mean(i + 1));
        json!({ "t_s": f64::from(i) + 0.4, "length_s": 1.0, "process_cores": 0.02 + 0.6 * now + 0.4 * next })
    });
    r["server"]["intervals"] = json!(course.collect::<Vec<_>>());
    let c = calibrate_records(&[record("/", &[]), r]).unwrap();
    assert!(near(c.model.demands[0][0], 0.001, 1e-9), "{:?}", c.model.demands);
    // The samples in the window extend from 0.4 s to 19.4 s.
    assert!(near(c.runs[0].rate, (f64::from(completed) - 0.4 * 100.0 - 0.6 * 195.0) / 19.0, 1e-9), "{:?}", c.runs);
}

#[test]
fn one_mix_gives_one_demand_and_says_so() {
    let c = calibrate_records(&[record("/", &[("light", 100.0), ("heavy", 25.0)])]).unwrap();
    assert_eq!(c.merged[0].classes, ["heavy", "light"]);
    assert!(near(c.merged[0].joint_demand_s, 0.245 / 125.0, 1e-9) && near(c.merged[0].shares[1], 0.8, 1e-9), "{c:?}");
    for words in ["no Record shows the idle server", "as many unknowns as runs", "heavy, light"] {
        assert!(c.warnings.iter().any(|w| w.contains(words)), "{:?}", c.warnings);
    }
}

#[test]
fn without_an_idle_record_its_own_work_is_fitted() {
    let c = calibrate_records(&runs()[1..]).unwrap();
    assert!(near(c.background.value, 0.02, 1e-6) && near(c.model.demands[0][1], 0.001, 1e-6), "{c:?}");
}

#[test]
fn loads_without_classes_are_told_apart_by_their_paths() {
    let c = calibrate_records(&[record("/a", &[("all", 100.0)]), record("/b", &[("all", 200.0)]), record("/", &[])])
        .unwrap();
    let names: Vec<&str> = c.model.classes.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names, ["/a", "/b"]);
    let c = calibrate_records(&[record("/a", &[("all", 100.0)]), record("/a", &[("all", 200.0)])]).unwrap();
    assert_eq!((c.model.classes.len(), c.model.classes[0].name.as_str()), (1, "all"));
}

#[test]
fn unusable_records_are_listed() {
    let mut records = runs();
    records[1]["verdict"] = json!({ "valid": false, "reasons": [{ "code": "generator_cpu", "message": "Too slow." }] });
    records[2]["rates"]["completed"] = json!(50.0);
    records[3]["server"] = Value::Null;
    let c = calibrate_records(&records).unwrap();
    assert_eq!((c.used, c.left_out.iter().map(|l| l.record).collect::<Vec<_>>()), (vec![4], vec![1, 2, 3]));
    for (left, word) in c.left_out.iter().zip(["Too slow.", "past saturation", "--watch"]) {
        assert!(left.reason.contains(word), "{left:?}");
    }
    assert!(c.warnings.iter().any(|w| w.contains("no more than 0.32 of 1 CPUs")), "{:?}", c.warnings);
    let error = calibrate_records(&records[..4]).unwrap_err().to_string();
    assert!(error.contains("record 2: the run is invalid") && error.contains("record 4"), "{error}");
    assert!(calibrate_records(&[]).unwrap_err().to_string().contains("measure the server"));
}

#[test]
fn cpu_time_of_late_calls_is_used() {
    let mut records = runs();
    for r in &mut records[1..] {
        r["verdict"] = json!({ "valid": false, "reasons": [{ "code": "generator_late", "message": "Too late." }] });
    }
    let c = calibrate_records(&records).unwrap();
    assert_eq!((c.used.len(), c.response), (4, None), "response times of late runs are not used");
    assert!(near(c.model.demands[0][0], 0.005, 1e-9), "{:?}", c.model.demands);
    assert!(c.warnings.iter().any(|w| w.contains("in 4 of the runs")), "{:?}", c.warnings);
}

#[test]
fn records_of_different_servers_are_rejected() {
    for (key, value, word) in [
        ("/target", json!("http://other:8080/"), "other:8080"),
        ("/server/cpus", json!([0, 1]), "[0, 1]"),
        ("/server/process/0/name", json!("apache2"), "apache2"),
    ] {
        let mut records = runs();
        *records[3].pointer_mut(key).unwrap() = value;
        let error = calibrate_records(&records).unwrap_err().to_string();
        assert!(error.contains("records 1 and 4") && error.contains(word), "{error}");
    }
}

#[test]
fn other_work_and_a_busy_idle_server_cause_warnings() {
    let mut records = runs();
    records[4]["server"]["cpu"]["idle"] = json!(0.0);
    set_cores(&mut records[0], 0.37);
    let warnings = calibrate_records(&records).unwrap().warnings;
    assert!(warnings.iter().any(|w| w.contains("other work")), "{warnings:?}");
    assert!(warnings.iter().any(|w| w.contains("37 % of the CPUs is busy without any request")), "{warnings:?}");
}

#[test]
fn a_server_with_a_wake_up_cost_is_modelled_at_saturation() {
    let mut records = vec![record("/", &[])];
    for rate in [25.0, 50.0, 100.0, 200.0, 300.0, 400.0] {
        let mut r = record("/", &[("light", rate)]);
        set_cores(&mut r, 0.02 + rate * 0.001 + 0.05);
        records.push(r);
    }
    let c = calibrate_records(&records).unwrap();
    assert_eq!(c.load_dependence.as_ref().map(|l| l.shape), Some(LoadShape::PerSecond), "{c:?}");
    let (rate, _) = saturation_rate(&c.model).unwrap();
    assert!(near(rate, 0.92 / 0.001, 0.01), "{rate} {c:?}");
    assert!(c.warnings.iter().any(|w| w.contains("at saturation")), "{:?}", c.warnings);
}

#[test]
fn halved_cpu_times_halve_the_demands() {
    let halved = |mut r: Value| {
        let cores = r["server"]["process"][0]["cores"].as_f64().unwrap();
        set_cores(&mut r, 0.5 * cores);
        r
    };
    let (whole, half) = (
        calibrate_records(&runs()).unwrap(),
        calibrate_records(&runs().into_iter().map(halved).collect::<Vec<_>>()).unwrap(),
    );
    for class in 0..2 {
        assert!(near(half.model.demands[0][class], 0.5 * whole.model.demands[0][class], 1e-9));
        let (a, b) =
            (whole.uncertainty[0][class].bootstrap_ci95.unwrap(), half.uncertainty[0][class].bootstrap_ci95.unwrap());
        assert!(near(b.low, 0.5 * a.low, 1e-6) && near(b.high, 0.5 * a.high, 1e-6), "{a:?} {b:?}");
    }
}

proptest! {
    #[test]
    fn any_figures_in_a_record_get_an_answer_or_an_error(
        edits in prop::collection::vec((0..5usize, prop::sample::select(EDITS.to_vec()), invalid_number()), 1..6),
        servers in prop::option::of(0..3u32),
        attribution in prop::sample::select(vec![Attribution::Requests, Attribution::Bytes]),
    ) {
        let mut records: Vec<Record> = runs().into_iter().map(|r| serde_json::from_value(r).unwrap()).collect();
        for (record, edit, value) in edits {
            edit(&mut records[record], value);
        }
        let resampling = Resampling { draws: 10, seed: 1 };
        match calibrate(&records, CalibrateOptions { servers, attribution, resampling }) {
            Ok(c) => {
                let fine = c.model.demands.iter().flatten().all(|d| d.is_finite() && *d >= 0.0);
                prop_assert!(fine, "{:?}", c.model);
                let widths = c.model.demand_ci95_half_width.iter().flatten();
                prop_assert!(widths.clone().all(|w| *w >= 0.0), "{:?}", c.uncertainty);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// A function that sets one field of a Record to this number.
type Edit = fn(&mut Record, f64);

const EDITS: [Edit; 16] = [
    |r, x| r.duration_s = x,
    |r, x| r.window_s = x,
    |r, x| r.rates.offered = x,
    |r, x| r.rates.completed = x,
    |r, x| r.response_mean_ci95_us = Some(x),
    |r, x| r.response_time_us.iter_mut().for_each(|s| s.mean = x),
    |r, x| r.intervals[5].length_s = x,
    |r, x| r.intervals[0].offered = x as u64,
    |r, x| r.classes.values_mut().for_each(|c| c.counts.completed = x as u64),
    |r, x| r.classes.values_mut().for_each(|c| c.bytes = Some(WireBytes { received: x as u64, sent: 0 })),
    |r, x| r.server.iter_mut().for_each(|s| s.process[0].cores = x),
    |r, x| r.server.iter_mut().for_each(|s| s.kernel.cpu = Some(CpuShares { idle: x, ..CpuShares::default() })),
    |r, x| r.server.iter_mut().for_each(|s| s.intervals[3].length_s = x),
    |r, x| r.server.iter_mut().for_each(|s| s.intervals[4].process_cores = Some(x)),
    |r, x| r.server.iter_mut().flat_map(|s| s.kernel.disks.values_mut()).for_each(|d| d.utilization = x),
    |r, x| {
        let cpu_us = Some(Sampled { count: x as u64, mean: x, stddev: x });
        let class = |name: &str| ModuleClass { name: name.to_owned(), cpu_us, ..ModuleClass::default() };
        let module = Module { classes: vec![class("light"), class("heavy")], ..Module::default() };
        r.server.iter_mut().for_each(|s| s.module = Some(module.clone()));
    },
];
