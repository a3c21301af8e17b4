//! Tests calibration with bursty arrivals, with loads beyond saturation, with an outlier, and with invalid input.

use super::records::{calibrate_records, near, record, runs, set_cores};
use brimful_core::model::Model;
use brimful_model::{
    Method, ModelError, Scenario, SimulationOptions, WhatIfOptions, headroom, saturation_rate, simulate, solve, what_if,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::{Value, json};

/// A run with bursty arrivals: 4 times the mean rate for a fifth of the time. A request needs `cost` times the CPU time
/// that it needs at a constant rate.
fn in_bursts(rate: f64, cost: f64) -> Value {
    let mut r = record("/", &[("light", rate)]);
    for (i, stretch) in r["intervals"].as_array_mut().unwrap().iter_mut().enumerate() {
        stretch["offered"] = json!(if i % 5 == 0 { 4 * rate as u64 } else { rate as u64 / 4 });
    }
    set_cores(&mut r, 0.02 + rate * 0.001 * cost);
    r
}

/// A run with a constant rate of calls.
fn even(rate: f64) -> Value {
    record("/", &[("light", rate)])
}

fn past_saturation(offered: f64, completed: f64) -> Value {
    let mut r = record("/", &[("light", completed)]);
    r["rates"]["offered"] = json!(offered);
    r
}

fn of_clients(n: u32, completed: f64) -> Value {
    let mut r = record("/", &[("light", completed)]);
    r["workload"] = json!({ "class": [{ "name": "light", "path": "/" }], "load": { "clients": n } });
    r["response_time_us"]["mean"] = json!(f64::from(n) / completed * 1e6);
    r
}

#[test]
fn bursty_runs_show_only_the_cost_of_bursts() {
    let records = [even(100.0), even(200.0), even(400.0), in_bursts(200.0, 1.2), in_bursts(300.0, 1.2), even(0.1)];
    let c = calibrate_records(&records).unwrap();
    assert_eq!((c.used.as_slice(), c.idle.as_slice()), (&[0, 1, 2][..], &[5][..]));
    assert_eq!(c.left_out.iter().map(|l| l.record).collect::<Vec<_>>(), [3, 4]);
    assert!(c.left_out[0].reason.contains("bursts"), "{:?}", c.left_out);
    assert!(near(c.model.demands[0][0], 0.001, 1e-3), "{:?}", c.model.demands);
    let of: Vec<(usize, bool, f64)> = c.bursts.runs.iter().map(|r| (r.record, r.bursty, r.b)).collect();
    assert_eq!(of, [(0, false, 0.0), (1, false, 0.0), (2, false, 0.0), (3, true, 0.2), (4, true, 0.2)]);
    let burst = &c.bursts.runs[3];
    assert!(near(burst.factors.a.unwrap(), 4.0, 1e-9) && burst.dispersion[0].index > 100.0, "{burst:?}");
    let demand = c.bursts.demand.unwrap();
    assert!(near(demand.without_bursts.value, 0.001, 1e-3) && near(demand.alpha.value, 0.001, 1e-2), "{demand:?}");
    assert_eq!(c.bursts.measured_at_b, 0.0);
    let (rate, _) = saturation_rate(&c.model).unwrap();
    assert!(near(c.bursts.saturation_rate.unwrap(), rate / 1.2, 1e-2), "{:?}", c.bursts);
    assert!(c.warnings.iter().any(|w| w.contains("20.0 % more in the bursts")), "{:?}", c.warnings);
}

#[test]
fn bursty_runs_are_used_if_there_are_no_others() {
    let c = calibrate_records(&[in_bursts(100.0, 1.0), in_bursts(200.0, 1.0), record("/", &[])]).unwrap();
    assert_eq!((c.used.as_slice(), c.bursts.measured_at_b), (&[0, 1][..], 0.2));
    assert_eq!(c.bursts.demand, None, "one level of burstiness does not determine the cost of bursts");
}

#[test]
fn the_knee_is_found_in_runs_past_saturation_too() {
    let mut records: Vec<Value> = (1..=9).map(|i| even(100.0 * f64::from(i))).collect();
    records.push(record("/", &[]));
    let light = calibrate_records(&records[..3]).unwrap().knee;
    assert!(light.usl.is_none() && light.usl_absent.unwrap().contains("--clients"));
    let straight = calibrate_records(&records).unwrap();
    assert_eq!(straight.knee.knee, None);
    assert!(straight.knee.knee_absent.unwrap().contains("past saturation"));
    for beyond in [1000.0, 1100.0, 1200.0, 1300.0, 1400.0, 1500.0] {
        records.push(past_saturation(beyond, 900.0));
    }
    let c = calibrate_records(&records).unwrap();
    assert_eq!((c.knee.knee.map(|k| k.load), c.left_out.len(), c.knee.measured.len()), (Some(900.0), 6, 15));
    assert!(!c.warnings.iter().any(|w| w.contains("bend")), "{:?}", c.warnings);
    // Throughput never exceeds 500 requests per second, although the CPU could complete more. So the limit is not the
    // CPU.
    let mut held_up: Vec<Value> = (1..=5).map(|i| even(100.0 * f64::from(i))).collect();
    held_up.extend([600.0, 700.0, 800.0, 900.0, 1000.0].map(|offered| past_saturation(offered, 500.0)));
    let c = calibrate_records(&held_up).unwrap();
    assert!(c.warnings.iter().any(|w| w.contains("bends at 500")), "{:?}", c.warnings);
}

#[test]
fn closed_runs_yield_the_scalability_law() {
    let law = |n: f64| 100.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.001 * n * (n - 1.0));
    let c = calibrate_records(&[1, 2, 4, 8, 16, 32].map(|n| of_clients(n, law(f64::from(n)).round()))).unwrap();
    let usl = c.knee.usl.unwrap();
    assert!(near(usl.gamma.value, 100.0, 0.02) && near(usl.alpha.value, 0.1, 0.1), "{usl:?}");
    assert!(c.bursts.runs.is_empty(), "the burstiness of closed runs is not measured");
    assert_eq!(c.response, None);
}

#[test]
fn one_level_many_times_does_not_tell_demands_from_background() {
    let records: Vec<Value> = [199.0, 200.0, 201.0, 200.0].map(even).into();
    let c = calibrate_records(&records).unwrap();
    assert!(near(c.model.demands[0][0], 0.0011, 0.01), "the background is charged to requests: {:?}", c.model.demands);
    assert!(c.warnings.iter().any(|w| w.contains("no Record shows the idle server")), "{:?}", c.warnings);
}

#[test]
fn classes_that_always_come_together_share_a_demand() {
    let mixes = [100.0, 200.0, 300.0].map(|x| record("/", &[("light", x), ("heavy", x / 4.0)]));
    let c = calibrate_records(&mixes).unwrap();
    assert_eq!(c.merged.len(), 1);
    assert!(near(c.merged[0].joint_demand_s, 0.0018, 1e-6) && near(c.model.demands[0][0], 0.0018, 1e-6), "{c:?}");
    assert!(c.warnings.iter().any(|w| w.contains("measure each of them alone")), "{:?}", c.warnings);
}

#[test]
fn impossible_records_are_rejected() {
    for (key, value, words) in [
        ("/schema", json!("brimful.record/99"), "`brimful.record/99`"),
        ("/window_s", json!(-5.0), "window_s is -5"),
        ("/duration_s", json!(-1.0), "duration_s is -1"),
        ("/rates/completed", json!(1e308), "more than the 4000"),
        ("/server/process/0/cores", json!(-0.5), "nginx"),
        ("/server/process/0/cores", json!(1e308), "no more than 1 were watched"),
        ("/server/process/0/cores", json!(1.2), "1.2 CPUs"),
        ("/server/intervals/0/length_s", json!(-1e9), "the length"),
        ("/server/intervals/3/process_cores", json!(-0.1), "in cores"),
        ("/server/intervals/3/process_cores", json!(1e308), "no more than 1 were watched"),
        ("/server/cpu/idle", json!(-3.0), "from 0 to 1"),
    ] {
        let mut records = runs();
        *records[1].pointer_mut(key).unwrap() = value;
        let error = calibrate_records(&records).unwrap_err().to_string();
        assert!(error.starts_with("record 2: ") && error.contains(words), "{key}: {error}");
        assert!(error.contains("measure again"), "the message lacks the advice: {error}");
    }
}

/// A run without load, and runs whose CPU time varies by about 1 %. In the run with load that has the index `odd`,
/// `cpus` more CPUs are busy than the requests explain.
fn with_cron_job(odd: Option<usize>, cpus: f64, seed: u64) -> Vec<Value> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut noise = || 0.01 * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
    let mixes = [(200.0, 0.0), (0.0, 60.0), (100.0, 25.0), (300.0, 75.0), (200.0, 50.0), (400.0, 20.0)];
    let loads = mixes.into_iter().enumerate().map(|(i, (light, heavy))| {
        let rates: Vec<(&str, f64)> = [("light", light), ("heavy", heavy)].into_iter().filter(|c| c.1 > 0.0).collect();
        let mut r = record("/", &rates);
        let more = if odd == Some(i) { cpus } else { 0.0 };
        set_cores(&mut r, 0.02 + more + (0.001 * light + 0.005 * heavy) * (1.0 + noise()));
        r
    });
    std::iter::once(record("/", &[])).chain(loads).collect()
}

#[test]
fn the_odd_run_is_reported() {
    let mut named = 0;
    for (odd, seed) in (0..6).flat_map(|odd| (0..5).map(move |seed| (odd, seed))) {
        let found = calibrate_records(&with_cron_job(Some(odd), 0.3, seed)).unwrap().odd;
        assert!(found.is_none_or(|f| f.record == odd + 1 && f.busy > f.expected), "{odd} {found:?}");
        named += u32::from(found.is_some());
    }
    assert!(named >= 27, "only {named} of 30 odd runs were found");
    let odd = calibrate_records(&with_cron_job(Some(3), 0.3, 1)).unwrap().odd.unwrap();
    assert!(odd.p < 0.05 && near(odd.busy - odd.expected, 0.3, 0.2), "{odd:?}");
    let said = odd.warning("high.json");
    assert!(said.starts_with("high.json disagrees") && said.contains("cron"), "{said}");
}

#[test]
fn runs_that_agree_are_not_reported() {
    let named =
        (0..100).filter(|seed| calibrate_records(&with_cron_job(None, 0.0, *seed)).unwrap().odd.is_some()).count();
    assert!(named <= 10, "{named} false alarms in 100; 5 are expected");
    assert_eq!(calibrate_records(&runs()).unwrap().odd, None, "rounding errors do not make an odd run");
    let two_agree = [record("/", &[]), even(100.0), even(200.0)];
    assert_eq!(calibrate_records(&two_agree).unwrap().odd, None);
}

/// A model from runs with a constant mix: 1 heavy request (5 ms) for every 4 light requests (1 ms).
fn of_one_mix() -> Model {
    let mixes = [50.0, 100.0, 200.0, 300.0].map(|x| record("/", &[("light", x), ("heavy", x / 4.0)]));
    calibrate_records(&[vec![record("/", &[])], mixes.to_vec()].concat()).unwrap().model
}

fn asked(model: &Model, changes: &[&str]) -> Result<f64, ModelError> {
    let changes = changes.iter().map(|change| change.parse().unwrap()).collect();
    let found = what_if(model, &Scenario { changes, ..Scenario::default() }, &WhatIfOptions::default())?;
    Ok(found.after.unwrap().stations[0].saturation_rate)
}

#[test]
fn classes_known_only_jointly_stay_in_proportion() {
    let model = of_one_mix();
    let joint = &model.joint_demands[0];
    assert_eq!(
        (joint.station.as_str(), joint.classes.as_slice()),
        ("cpu", &["heavy".to_owned(), "light".to_owned()][..])
    );
    assert!(near(joint.shares[0], 0.2, 1e-9) && near(joint.shares[1], 0.8, 1e-9), "{joint:?}");
    let known = 0.97 / 0.0018;
    for changes in [&[][..], &["rate=0.5x"], &["heavy.rate=0.5x", "light.rate=0.5x"], &["cpu.background=3%"]] {
        assert!(near(asked(&model, changes).unwrap(), known, 1e-3), "{changes:?}");
    }
    assert!(near(asked(&model, &["cpu.demand=0.5x"]).unwrap(), 2.0 * known, 1e-3));
    for changes in [
        &["heavy.rate=4x"][..],
        &["light.rate=0"],
        &["light.rate=1..100:3"],
        &["heavy.demand=0.5x"],
        &["cpu.heavy.demand=+1ms"],
        &["cpu.heavy.demand=5ms"],
        &["cpu.heavy.demand=5ms", "heavy.rate=4x"],
        &["cpu.scheduling=priority", "heavy.priority=1"],
    ] {
        let error = asked(&model, changes).unwrap_err();
        assert!(matches!(error, ModelError::ChangedJointShares { .. }), "{changes:?}: {error}");
        assert!(error.to_string().contains("`heavy` 20.0 %, `light` 80.0 %"), "{error}");
    }
    let wanted = ["cpu.heavy.demand=5ms", "cpu.light.demand=1ms", "light.rate=10", "heavy.rate=10"];
    let disk =
        model.joint_demands.iter().find(|joint| joint.station == "sda").expect("the disk's demands are joint too");
    assert_eq!(disk.shares, joint.shares);
    let all_wanted = wanted.into_iter().chain(["sda.heavy.demand=0.2ms", "sda.light.demand=0.2ms"]).collect::<Vec<_>>();
    assert!(near(asked(&model, &all_wanted).unwrap(), 0.97 / 0.003, 1e-3));
}

#[test]
fn a_new_class_does_not_copy_a_joint_demand() {
    let model = of_one_mix();
    let class = |text: &str| Scenario { classes: vec![text.parse().unwrap()], ..Scenario::default() };
    let client = Scenario { clients: vec!["heavy:speed=1Mbps,size=1KB".parse().unwrap()], ..Scenario::default() };
    for scenario in [class("more:rate=1,like=heavy"), class("more:rate=1,like=light,cpu=2x,sda=1ms"), client] {
        assert!(matches!(scenario.apply(&model), Err(ModelError::ChangedJointShares { .. })), "{scenario:?}");
    }
    for text in ["more:rate=1,cpu=2ms", "more:rate=1,like=light,cpu=2ms,sda=1ms"] {
        assert!(class(text).apply(&model).and_then(|model| solve(&model, Method::Auto)).is_ok(), "{text}");
    }
}

#[test]
fn a_model_that_changes_their_proportion_is_rejected_by_all_solvers() {
    let mut model = of_one_mix();
    assert!(solve(&model, Method::Auto).is_ok());
    model.classes[0].rate = Some(300.0);
    assert!(matches!(solve(&model, Method::Auto), Err(ModelError::ChangedJointShares { .. })));
    assert!(matches!(saturation_rate(&model), Err(ModelError::ChangedJointShares { .. })));
    let objective = "mean<1s".parse().unwrap();
    assert!(matches!(headroom(&model, Method::Auto, &objective), Err(ModelError::ChangedJointShares { .. })));
    assert!(matches!(simulate(&model, &SimulationOptions::default()), Err(ModelError::ChangedJointShares { .. })));
    model.joint_demands[0].shares.pop();
    assert!(solve(&model, Method::Auto).unwrap_err().to_string().contains("joint_demands needs"));
}
