//! Tests which data each demand is derived from, and how often confidence intervals contain the true demand.

use super::records::{calibrate_records, calibrate_with_options, demand, near, record, runs, set_cores};
use brimful_core::model::Model;
use brimful_estimate::calibrate::Source;
use brimful_estimate::demand::LoadShape;
use brimful_estimate::{Attribution, CalibrateOptions, ScvBasis};
use brimful_model::{Interval90, Method, Scenario, WhatIfOptions, solve, what_if};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::{Value, json};

fn sources(of: &[Value]) -> Vec<Source> {
    calibrate_records(of).unwrap().uncertainty[0].iter().map(|u| u.source).collect()
}

/// Adds measurements of the Server Module (a plug-in of the web server) to a Record. `heavy` and `light` are the CPU
/// times of the two classes in the processing phases of a request, in seconds. Each request takes another 0.3 ms
/// outside of its phases.
fn measured_inside(mut r: Value, heavy: f64, light: f64) -> Value {
    let class = |name: &str, mean: f64| {
        let completed = r["classes"][name]["counts"]["completed"].as_u64().unwrap_or(0);
        json!({ "name": name, "requests": completed,
            "cpu_us": { "count": 100, "mean": mean * 1e6, "stddev": mean * 0.2e6 },
            "demand_us": { "mean": (mean + 0.0003) * 1e6, "ci95_half_width": 1.96 * mean * 0.02e6, "stddev": mean * 0.2e6 } })
    };
    let classes = [class("heavy", heavy), class("light", light)];
    r["server"]["module"] = json!({ "servers": [{ "name": "nginx/1.22.1", "workers": 1 }], "classes": classes });
    r
}

/// Sets the mean response size of one class, in bytes.
fn sized(mut r: Value, class: &str, bytes: f64) -> Value {
    let completed = r["classes"][class]["counts"]["completed"].as_f64().unwrap();
    r["classes"][class]["bytes"] = json!({ "received": (completed * bytes) as u64, "sent": 0 });
    r
}

#[test]
fn each_demand_states_its_source() {
    use Source::{Proportional, Regression, SingleClassRun};
    let all = runs();
    assert_eq!(sources(&all), [SingleClassRun; 2]);
    let heavier = record("/", &[("light", 50.0), ("heavy", 80.0)]);
    assert_eq!(sources(&[all[0].clone(), all[3].clone(), heavier.clone()]), [Regression; 2]);
    assert_eq!(sources(&[all[0].clone(), all[1].clone(), all[3].clone(), heavier]), [Regression, SingleClassRun]);
    assert_eq!(sources(&[all[0].clone(), all[3].clone(), all[4].clone()]), [Proportional; 2]);
    let elsewhere = calibrate_records(&all).unwrap().uncertainty.pop().unwrap();
    assert_eq!(elsewhere[0].source, Source::ResponseTimes);
}

#[test]
fn figures_of_the_module_take_precedence() {
    // All runs have the same mix, so a regression alone could not distinguish the classes. Each request takes 0.3 ms
    // outside of its processing phases.
    let mix = [(100.0, 25.0), (200.0, 50.0), (300.0, 75.0)].map(|(light, heavy)| {
        let mut r = record("/", &[("light", light), ("heavy", heavy)]);
        set_cores(&mut r, 0.02 + 0.0013 * light + 0.0053 * heavy);
        measured_inside(r, 0.005, 0.001)
    });
    let c = calibrate_records(&[vec![record("/", &[])], mix.to_vec()].concat()).unwrap();
    assert!(c.uncertainty[0].iter().all(|u| u.source == Source::Direct) && c.merged.is_empty(), "{c:?}");
    assert!(near(c.model.demands[0][0], 0.0053, 1e-6) && near(c.model.demands[0][1], 0.0013, 1e-6), "{:?}", c.model);
    // The half width is 2.3 % of the demand of 5 ms: 300 samples have a relative standard deviation of 0.2.
    let ci = c.uncertainty[0][0].fit_ci95.unwrap();
    assert!(near((ci.high - ci.low) / 2.0, 1.96 * 0.2 * 0.005 / 300f64.sqrt(), 0.05), "{ci:?}");
    assert!(c.warnings.is_empty(), "{:?}", c.warnings);
}

#[test]
fn a_module_that_reports_too_much_cpu_time_causes_a_warning() {
    let records: Vec<Value> = runs().into_iter().map(|r| measured_inside(r, 0.010, 0.002)).collect();
    let c = calibrate_records(&records).unwrap();
    assert!(c.warnings.iter().any(|w| w.contains("Server Module")), "{:?}", c.warnings);
    let one_class = measured_inside(record("/", &[("light", 100.0), ("other", 10.0)]), 0.005, 0.001);
    let c = calibrate_records(&[record("/", &[]), one_class]).unwrap();
    assert_ne!(c.uncertainty[0][0].source, Source::Direct, "the module has no figures of the class `other`");
    let said = c.warnings.iter().find(|w| w.contains("Server Module")).unwrap();
    assert!(said.contains("no class other, only heavy, light") && said.contains("module install nginx"), "{said}");
}

#[test]
fn figures_of_the_module_are_compared_with_the_regression() {
    let inside = |r: Value| measured_inside(r, 0.0047, 0.0007);
    let c = calibrate_records(&runs().into_iter().map(inside).collect::<Vec<_>>()).unwrap();
    let compared = c.inside.unwrap();
    let [heavy, light] = compared.classes.as_slice() else { panic!("{compared:?}") };
    assert!(near(heavy.demand_s, 0.005, 1e-6) && near(light.demand_s, 0.001, 1e-6), "{compared:?}");
    assert!(near(heavy.regression_s.unwrap(), 0.005, 1e-6) && near(heavy.ratio.unwrap(), 1.0, 1e-6), "{heavy:?}");
    assert!(heavy.regression_ci95.is_some() && heavy.ci95.is_some() && compared.no_regression.is_none());
    assert!(near(light.measured_s.unwrap(), 0.001, 1e-9) && light.sampled == 300, "{light:?}");
    assert_eq!(c.model.demands[0], [heavy.demand_s, light.demand_s]);
    // Both runs have the same mix, so a regression cannot distinguish the classes, but the module can.
    let mixes: Vec<Value> = runs().drain(3..).map(inside).collect();
    let c = calibrate_records(&mixes).unwrap();
    let compared = c.inside.unwrap();
    assert!(compared.classes.iter().all(|class| class.regression_s.is_none() && class.ci95.is_some()), "{compared:?}");
    // The Server Module counted 9,000 requests of the class `light`, but the load completed only 4,000. The module's
    // class contains other requests, so its measurements are not used.
    let mut busy = inside(record("/", &[("light", 200.0)]));
    busy["server"]["module"]["classes"][1]["requests"] = json!(9_000);
    let c = calibrate_records(&[runs().remove(0), busy]).unwrap();
    assert!(
        c.inside.is_none() && c.warnings.iter().any(|w| w.contains("it counted 9,000 requests")),
        "{:?}",
        c.warnings
    );
}

#[test]
fn a_disagreement_causes_a_warning() {
    // The Server Module's measurements of the two classes are swapped, so they contradict the regression.
    let c =
        calibrate_records(&runs().into_iter().map(|r| measured_inside(r, 0.0007, 0.0047)).collect::<Vec<_>>()).unwrap();
    assert!(c.warnings.iter().any(|w| w.contains("by regression over the runs")), "{:?}", c.warnings);
}

#[test]
fn a_single_run_has_intervals_by_its_samples() {
    let c = calibrate_records(&[measured_inside(record("/", &[("light", 100.0), ("heavy", 25.0)]), 0.0047, 0.0007)])
        .unwrap();
    let light = c.uncertainty[0][1].fit_ci95.unwrap();
    assert!(near((light.high - light.low) / 2.0, 1.96 * 0.0007 * 0.02, 1e-6), "{light:?}");
    let heavy = c.model.demands[0][0] - c.model.demands[0][1];
    assert!(near(heavy, 0.004, 1e-9), "the difference of the demands is the module's");
}

#[test]
fn the_variability_of_service_is_measured_where_no_workers_take_turns() {
    let with_workers = |workers: u64| {
        let inside = |r: Value| {
            let mut r = measured_inside(r, 0.0047, 0.0007);
            r["server"]["module"]["servers"][0]["workers"] = json!(workers);
            r
        };
        calibrate_records(&runs().into_iter().map(inside).collect::<Vec<_>>()).unwrap()
    };
    let c = with_workers(1);
    let (inside, response) = (c.inside.unwrap(), c.response.unwrap());
    // A heavy request takes 4.7 ms in its processing phases, with a relative standard deviation of 0.2, and 0.3 ms
    // outside of them. A light request takes 0.7 ms and 0.3 ms.
    let (second, of_means) = (50.0 * 0.94_f64.powi(2) + 200.0 * 0.14_f64.powi(2), 50.0 * 25.0 + 200.0);
    assert!(near(inside.scv.unwrap(), second / of_means, 1e-3), "{inside:?}");
    assert_eq!((response.basis, Some(response.scv)), (ScvBasis::Measured, inside.scv));
    assert_eq!(c.model.stations[0].scv, response.scv);
    assert!(response.scv_standard_error.is_some_and(|error| error > 0.0 && error < 0.01), "{response:?}");
    let c = with_workers(8);
    assert_ne!(
        c.response.unwrap().basis,
        ScvBasis::Measured,
        "with eight workers on one CPU, the variability is not the measured one"
    );
}

#[test]
fn a_joint_demand_is_shared_equally_or_by_bytes() {
    let mixes = [100.0, 200.0].map(|x| {
        let r = record("/", &[("light", x), ("heavy", x / 4.0)]);
        sized(sized(r, "light", 1_000.0), "heavy", 16_000.0)
    });
    let records = [vec![record("/", &[])], mixes.to_vec()].concat();
    let by =
        |attribution| calibrate_with_options(&records, CalibrateOptions { attribution, ..Default::default() }).unwrap();
    let alike = by(Attribution::Requests);
    assert!(near(alike.model.demands[0][0], 0.0018, 1e-9) && near(alike.model.demands[0][1], 0.0018, 1e-9));
    // Four light requests send 1 kB each, and one heavy request sends 16 kB. So the four light requests have a fifth of
    // the joint CPU time of 5 × 1.8 ms, and the heavy request has the rest.
    let bytes = by(Attribution::Bytes);
    assert!(near(bytes.model.demands[0][0], 0.0072, 1e-9) && near(bytes.model.demands[0][1], 0.00045, 1e-9));
    assert!(near(bytes.merged[0].joint_demand_s, 0.0018, 1e-9));
    assert!(
        near(bytes.saturation.rate, alike.saturation.rate, 1e-9),
        "the rule of attribution does not change the saturation rate"
    );
    let unsized_records: Vec<Value> = runs().drain(3..).collect();
    let c = calibrate_with_options(
        &unsized_records,
        CalibrateOptions { attribution: Attribution::Bytes, ..Default::default() },
    )
    .unwrap();
    assert!(c.warnings.iter().any(|w| w.contains("how many bytes")), "{:?}", c.warnings);
}

#[test]
fn three_sizes_make_a_line() {
    let of = |path: &str, bytes: f64| {
        let mut r = record(path, &[("all", 100.0)]);
        set_cores(&mut r, 0.02 + 100.0 * (0.0005 + 2e-8 * bytes));
        sized(r, "all", bytes)
    };
    let c = calibrate_records(&[record("/", &[]), of("/a", 1e3), of("/b", 5e4), of("/c", 1e5), of("/d", 2e5)]).unwrap();
    let sizes = c.sizes.unwrap();
    assert_eq!(sizes.classes, ["/a", "/b", "/c", "/d"]);
    assert!(
        near(sizes.fit.per_request_s.value, 0.0005, 1e-6) && near(sizes.fit.per_byte_s.value, 2e-8, 1e-6),
        "{sizes:?}"
    );
    assert_eq!(
        calibrate_records(&[record("/", &[]), of("/a", 1e3), of("/b", 5e4)]).unwrap().sizes,
        None,
        "two sizes do not determine a fit"
    );
}

#[test]
fn load_dependence_is_shown_and_bounded() {
    for shape in [LoadShape::Idle(2), LoadShape::Busy] {
        let mut records = vec![record("/", &[])];
        for i in 1..=8 {
            let u = 0.1 * f64::from(i);
            let cost = match shape {
                // The CPUs are busy 3 % of the time without load: 2 % by the server, and 1 % by other programs.
                LoadShape::Idle(_) => 0.001 + 0.0006 * (1.0 - u - 0.03).powi(2),
                _ => 0.001 + 0.0006 * (u + 0.03),
            };
            let mut r = record("/", &[("light", (u / cost).round())]);
            let busy = 0.02 + (u / cost).round() * cost * (1.0 + 0.002 * f64::from(i % 3 - 1));
            set_cores(&mut r, busy);
            records.push(r);
        }
        let c = calibrate_records(&records).unwrap();
        assert_eq!(c.load_dependence.as_ref().map(|l| l.shape), Some(shape), "{c:?}");
        let truth = if shape == LoadShape::Idle(2) { 0.001 } else { 0.0016 };
        let ci = c.uncertainty[0][0].fit_ci95.unwrap();
        assert!(ci.low < truth && truth < ci.high && ci.high - ci.low < 0.1 * truth, "{shape:?} {ci:?}");
        let (first, last) = (c.demand_curve.first().unwrap(), c.demand_curve.last().unwrap());
        assert!(near(last.demand_s, c.model.demands[0][0], 1e-6), "{first:?} {last:?}");
        assert_eq!(first.demand_s > last.demand_s, shape == LoadShape::Idle(2));
        assert!(c.runs.iter().all(|r| near(r.measured_s, r.fitted_s, 0.01)), "{:?}", c.runs);
        // At the rate of each run, the solution of the model has the demand that was fitted to the run.
        for run in &c.runs {
            let mut model = c.model.clone();
            model.classes[0].rate = Some(run.rate);
            let solved = solve(&model, Method::Auto).unwrap();
            assert!(near(solved.utilization[0][0] / run.rate, run.fitted_s, 1e-6), "{shape:?} {run:?} {solved:?}");
        }
        let saturation = c.saturation.ci95.unwrap();
        assert!(saturation.low < 0.97 / truth && 0.97 / truth < saturation.high, "{saturation:?}");
    }
}

#[test]
fn the_interval_of_the_prediction_spans_equally_good_fits() {
    // Measurements of one nginx worker with responses of 1,294 bytes: requests per second, and CPU µs per request. The
    // highest measured rate is a third of the maximum of 60,000 requests per second.
    let records = [(0.0, 0.0), (2e3, 37.6), (5e3, 25.3), (10e3, 20.0), (20e3, 19.0)].map(|(rate, us): (f64, f64)| {
        let mut r = record("/", if rate > 0.0 { &[("light", 1.0)] } else { &[] });
        for key in ["/rates/offered", "/rates/completed"] {
            *r.pointer_mut(key).unwrap() = json!(rate);
        }
        if rate > 0.0 {
            r["classes"]["light"]["counts"]["completed"] = json!((rate * 20.0) as u64);
        }
        (r["response_time_us"], r["server"]["disks"]) = (Value::Null, json!({}));
        set_cores(&mut r, 1e-5 + rate * us * 1e-6);
        r
    });
    let c = calibrate_records(&records).unwrap();
    assert_eq!(c.load_dependence.as_ref().map(|l| l.shape), Some(LoadShape::PerSecond));
    let ci = c.saturation.ci95.unwrap();
    assert!(near(c.saturation.rate, 60e3, 0.08) && ci.low < 60e3 && 60e3 < ci.high, "{:?}", c.saturation);
}

#[test]
fn intervals_cover_the_truth_at_their_level() {
    const TRIALS: u64 = 150;
    let (mut held, mut saturation_held) = ([0, 0], 0);
    for seed in 0..TRIALS {
        let mut rng = Pcg64::seed_from_u64(seed);
        // The CPU time of runs has a relative standard deviation of 1 %, in addition to the variation of the seconds
        // within a run.
        let mut noise = |size: f64| size * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
        let records: Vec<Value> = runs()
            .into_iter()
            .map(|mut r| {
                let cores = r["server"]["process"][0]["cores"].as_f64().unwrap();
                set_cores(&mut r, 0.02 + (cores - 0.02) * (1.0 + noise(0.01)));
                r
            })
            .collect();
        let c = calibrate_records(&records).unwrap();
        for (class, name) in ["heavy", "light"].into_iter().enumerate() {
            let ci = c.uncertainty[0][class].ci95.unwrap();
            held[class] += u64::from(ci.low <= demand(name) && demand(name) <= ci.high);
        }
        let ci = c.saturation.ci95.unwrap();
        saturation_held += u64::from(ci.low <= 0.97 / 0.0018 && 0.97 / 0.0018 <= ci.high);
    }
    let share = |held: u64| held as f64 / TRIALS as f64;
    assert!(
        held.into_iter().chain([saturation_held]).all(|h| share(h) > 0.88),
        "{held:?} {saturation_held} of {TRIALS}"
    );
}

#[test]
fn errors_of_demands_from_mixes_are_negatively_correlated() {
    let mut rng = Pcg64::seed_from_u64(7);
    let mixes = [(100.0, 60.0), (200.0, 50.0), (300.0, 40.0), (150.0, 80.0), (350.0, 60.0), (250.0, 20.0)];
    let records = mixes.map(|(light, heavy)| {
        let mut r = record("/", &[("light", light), ("heavy", heavy)]);
        let noise = 1.0 + 0.02 * (rng.random::<f64>() - 0.5);
        set_cores(&mut r, 0.02 + (0.001 * light + 0.005 * heavy) * noise);
        r
    });
    let c = calibrate_records(&[vec![record("/", &[])], records.to_vec()].concat()).unwrap();
    let correlation = &c.model.demand_correlation;
    assert_eq!(correlation.len(), c.model.stations.len());
    assert!(correlation[0][0][1] < -0.5 && correlation[0][0][0] == 1.0, "{correlation:?}");
    let width = |model: &Model| {
        let found = what_if(model, &Scenario::default(), &WhatIfOptions::default()).unwrap().before;
        let Interval90 { lower, upper } = found.intervals.unwrap().saturation_rate;
        upper.unwrap() - lower.unwrap()
    };
    let independent = Model { demand_correlation: Vec::new(), ..c.model.clone() };
    assert!(width(&c.model) < 0.7 * width(&independent), "{} {}", width(&c.model), width(&independent));
    let read: Model = serde_json::from_str(&serde_json::to_string(&c.model).unwrap()).unwrap();
    assert_eq!(read, c.model);
}
