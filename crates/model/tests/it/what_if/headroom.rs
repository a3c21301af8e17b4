//! Tests objectives, and the largest load at which they are met.

use super::{apply, terminals};
use crate::paper::server;
use brimful_core::model::{Model, ModelClass, Scheduling, Station};
use brimful_model::{Headroom, LoadLimit, Method, headroom, solve};

/// An M/M/1 queue served in the order of arrival, with a mean service time of 0.1 s.
fn queue(rate: f64) -> Model {
    let station = Station { name: "cpu".into(), scheduling: Scheduling::Fcfs, ..Station::default() };
    let class = ModelClass { name: "api".into(), rate: Some(rate), ..ModelClass::default() };
    Model { stations: vec![station], classes: vec![class], demands: vec![vec![0.1]], ..Model::default() }
}

fn of(model: &Model, slo: &str) -> Headroom {
    headroom(model, Method::Auto, &slo.parse().unwrap()).unwrap()
}

fn rate(model: &Model, slo: &str) -> f64 {
    let found = of(model, slo);
    let LoadLimit::Rate(rate) = found.until else { panic!("{found:?}") };
    rate
}

#[test]
fn the_headroom_of_mm1_matches_its_formula() {
    // Formulas of M/M/1: R = S/(1 − ρ), and the 95th percentile of the response time is R·ln 20.
    for present in [2.0, 9.0, 25.0] {
        let model = queue(present);
        assert!((rate(&model, "mean<500ms") - 8.0).abs() < 1e-6);
        let expected = 10.0 - f64::ln(20.0);
        assert!((rate(&model, "p95<1s") - expected).abs() < 1e-4);
        assert!((rate(&model, "api:p95<1s") - expected).abs() < 1e-4);
        assert!((rate(&model, "cpu.utilization<70%") - 7.0).abs() < 1e-6);
        assert!((rate(&model, "utilization<70%") - 7.0).abs() < 1e-6);
        let now = of(&model, "mean<500ms");
        assert_eq!(now.met, present < 8.0);
        assert_eq!(now.now.is_some(), present < 10.0, "an overloaded station has no present measure");
    }
    assert_eq!(of(&queue(2.0), "mean<500ms").to_string(), "mean<500ms holds up to 8.000 requests/s");
    assert_eq!(of(&queue(2.0), "mean<100ms").until, LoadLimit::Never);
    assert_eq!(of(&queue(2.0), "mean<99ms").to_string(), "mean<99ms does not hold even without load");
}

#[test]
fn background_counts_for_utilization() {
    let mut model = queue(2.0);
    model.stations[0].background = 0.3;
    assert!((rate(&model, "cpu.utilization<70%") - 4.0).abs() < 1e-6);
    assert_eq!(of(&model, "cpu.utilization<30%").until, LoadLimit::Never);
    assert!((of(&model, "cpu.utilization<70%").now.unwrap() - 0.5).abs() < 1e-12);
}

#[test]
fn the_papers_server_has_little_headroom() {
    let model = server(1.0);
    let limit = rate(&model, "class4:mean<1s");
    let at = |rate: f64| solve(&apply(&model, &[&format!("rate={rate}")]), Method::Auto).unwrap().response_time[3];
    assert!(at(limit) < 1.0 && at(limit * 1.000_001) > 1.0, "{limit}");
    assert_eq!(
        of(&model, "class4:p95<1s").until,
        LoadLimit::Never,
        "5 % of the requests take longer even without queueing"
    );
    assert!(rate(&model, "class4:p95<2s") < rate(&model, "class4:mean<2s"));
    assert!(rate(&model, "p50<1s") > limit, "less than half of the requests are of class 4");
    let (mean, tail) = (rate(&model, "mean<100ms"), rate(&model, "mean<1h"));
    assert!(mean < tail && tail < 123.2501 && tail > 123.24, "{mean} {tail}");
}

#[test]
fn an_objective_without_queues_is_always_met() {
    let mut model = queue(2.0);
    model.stations[0].kind = brimful_core::model::StationKind::Delay;
    assert_eq!(of(&model, "mean<1s").until, LoadLimit::Always);
    assert_eq!(of(&model, "mean<1s").to_string(), "mean<1s holds at any load");
    assert_eq!(of(&model, "mean<1ms").until, LoadLimit::Never);
    assert_eq!(of(&model, "p50<1s").until, LoadLimit::Always);
}

#[test]
fn closed_classes_grow_by_customers() {
    let mut model = terminals();
    model.classes.remove(1);
    model.demands.iter_mut().for_each(|row| row.truncate(1));
    for slo in ["mean<500ms", "p95<1s", "users:p50<300ms", "cpu.utilization<80%"] {
        let found = of(&model, slo);
        let LoadLimit::Population(most) = found.until else { panic!("{found:?}") };
        let met = |n: f64| of(&apply(&model, &[&format!("users.population={n}")]), slo).met;
        assert!(met(most) && !met(most + 1.0), "{slo}: {most}");
    }
    assert_eq!(of(&model, "mean<150ms").until, LoadLimit::Never, "a lone request takes 0.16 s");
    assert_eq!(
        of(&model, "disk 0.utilization<60%").until,
        LoadLimit::Always,
        "the CPU saturates before the disk reaches 60 %"
    );
    let found = of(&model, "mean<500ms").to_string();
    assert!(found.ends_with(" customers"), "{found}");
}

#[test]
fn in_mixed_networks_the_open_classes_grow() {
    let model = terminals();
    let limit = rate(&model, "users:mean<1s");
    let at = |rate: f64| solve(&apply(&model, &[&format!("rate={rate}")]), Method::Auto).unwrap().response_time[0];
    assert!(at(limit) < 1.0 && at(limit * 1.000_001) > 1.0 && limit < 5.0, "{limit}");
}
