//! Tests with servers that satisfy the model's assumptions. The predictions must agree with the true values and with
//! the measurements.

use super::*;
use brimful_core::model::IdleCost;
use brimful_core::survey::{Level, LevelPurpose};
use brimful_model::{Method, saturation_rate, solve};

const SATURATION: f64 = 0.01;
/// Tolerated relative error of a mean response time. At 90 % load, twice this error is tolerated if service times vary
/// strongly, because the capacity is then known less precisely.
const RESPONSE: f64 = 0.03;

fn cpu(servers: u32, scv: f64) -> Station {
    Station { name: "cpu".to_owned(), servers, scv, scheduling: Scheduling::Fcfs, ..Station::default() }
}

fn station(name: &str, kind: StationKind) -> Station {
    Station { name: name.to_owned(), kind, ..Station::default() }
}

/// Asserts that the predictions agree with the true values of the simulated server, and with the survey's measurements.
fn is_predicted_well(mut bench: Simulated, mix: &[f64], level_s: f64) {
    let survey = bench.survey(mix, level_s);
    assert!(survey.verdict.valid && survey.stopped.is_none(), "{:#?}", survey.verdict);
    let at = |rate: f64| {
        let mut model = bench.server.clone();
        model.classes.iter_mut().zip(mix).for_each(|(class, share)| class.rate = Some(rate * share));
        model
    };
    let (truth, bottleneck) = saturation_rate(&at(1.0)).unwrap();
    assert_eq!(bottleneck, "cpu");
    let predicted = survey.saturation_rate.predicted.unwrap();
    let off = |predicted: f64, truth: f64| (predicted / truth - 1.0).abs();
    assert!(off(predicted, truth) < SATURATION, "predicted {predicted}, true value {truth}");
    let error = survey.saturation_rate.error.unwrap();
    assert!(error.abs() < SATURATION, "{:?}", survey.saturation_rate);

    let held_out: Vec<_> =
        survey.levels.iter().filter(|level| level.role == LevelPurpose::HeldOut && level.workload == "mix").collect();
    assert_eq!(held_out.len(), 5);
    for level in held_out {
        let response = level.response_time_s;
        let truth = solve(&at(level.fraction * predicted), Method::Auto).unwrap().mean_response_time;
        let predicted = level.steady_response_s.unwrap();
        let is_uncertain = bench.server.stations[0].scv > 1.0 && level.fraction > 0.85;
        let tolerance = if is_uncertain { 2.0 * RESPONSE } else { RESPONSE };
        assert!(off(predicted, truth) < tolerance, "{}: predicted {predicted}, true value {truth}", level.fraction);
        let half_width = response.measured_ci95_half_width.unwrap() / response.measured.unwrap();
        // The survey may explain variable service times by a host with variable speed. So either the total error or the
        // error without the part caused by the host's speed must be small.
        let error = response.error.unwrap().abs().min(response.model_error().unwrap().abs());
        assert!(
            error < tolerance + half_width || response.is_within_interval() == Some(true),
            "{}: {response:?}",
            level.fraction
        );
    }
}

#[test]
fn one_worker() {
    is_predicted_well(Simulated::single_class(cpu(1, 0.25), 0.001), &[1.0], 200.0);
}

#[test]
fn several_workers() {
    is_predicted_well(Simulated::single_class(cpu(4, 1.0), 0.004), &[1.0], 800.0);
}

#[test]
fn several_classes() {
    let bench = Simulated::new(vec![cpu(1, 0.25)], vec![vec![0.000_8, 0.001_6]]);
    is_predicted_well(bench, &[0.75, 0.25], 200.0);
}

/// Expects that the survey uses the service demands and the variability of service times that the Server Module
/// measures.
#[test]
fn several_classes_measured_by_the_server_module() {
    let mut bench = Simulated::new(vec![cpu(1, 0.25)], vec![vec![0.000_8, 0.001_6]]);
    bench.module = Some(SimulatedModule { outside_s: 0.000_3, workers: None });
    let survey = bench.survey(&[0.75, 0.25], 200.0);
    let inside = survey.module_measurements.unwrap();
    assert!((inside.scv.unwrap() - 0.25).abs() < 0.01 && !inside.takes_turns, "{inside:?}");
    assert!(inside.scv_ci95_half_width.is_some_and(|half| half < 0.02) && inside.workers.is_none(), "{inside:?}");
    let scv = survey.model.stations[0].scv;
    assert!((scv - 0.25).abs() < 0.05, "the fitted scv is not the measured one: {scv}");
    for (demand, truth) in survey.demands.iter().zip([0.000_8, 0.001_6]) {
        assert!((demand.seconds / truth - 1.0).abs() < SATURATION, "{demand:?}");
    }
    is_predicted_well(bench, &[0.75, 0.25], 200.0);
}

#[test]
fn several_stations() {
    let elsewhere = [station("disk", StationKind::Queue), station("network", StationKind::Delay)];
    let stations = [cpu(1, 0.25)].into_iter().chain(elsewhere).collect();
    is_predicted_well(Simulated::new(stations, vec![vec![0.001], vec![0.000_1], vec![0.002]]), &[1.0], 200.0);
}

/// Expects correct percentiles at all loads if the delay outside of the server is exponentially distributed.
#[test]
fn percentiles_near_saturation_if_the_delay_elsewhere_varies() {
    let stations = vec![cpu(1, 0.25), station("network", StationKind::Delay)];
    let mut bench = Simulated::new(stations, vec![vec![0.001], vec![0.002]]);
    let survey = bench.survey(&[1.0], 100.0);
    let held_out = survey.levels.iter().filter(|level| level.role == LevelPurpose::HeldOut);
    for level in held_out {
        let percentiles = level.response_percentiles_s;
        for figure in [percentiles.p50, percentiles.p95, percentiles.p99] {
            let error = figure.error.unwrap();
            assert!(error.abs() < 0.12, "{} at {}: {figure:?}", level.workload, level.fraction);
        }
    }
}

#[test]
fn demands_that_fall_with_load_and_constant_other_work() {
    let waking = IdleCost { seconds: 0.000_5, power: 2 };
    let cpu = Station { idle_cost: Some(waking), background: 0.05, ..cpu(1, 0.25) };
    is_predicted_well(Simulated::single_class(cpu, 0.001), &[1.0], 200.0);
}

#[test]
fn variable_service_and_workers_that_share_a_cpu() {
    is_predicted_well(Simulated::single_class(cpu(1, 2.0), 0.001), &[1.0], 400.0);
    let shared = Station { scheduling: Scheduling::Ps, ..cpu(1, 2.0) };
    is_predicted_well(Simulated::single_class(shared, 0.001), &[1.0], 400.0);
}

/// Expects that the predictions are announced before any predicted load level is offered, and that the document
/// contains the same predictions.
#[test]
fn predictions_are_announced_before_they_are_measured() {
    let mut bench = Simulated::single_class(cpu(1, 1.0), 0.001);
    let offered = bench.offered.clone();
    let mut announced = None;
    let survey = bench.survey_with(&[1.0], 5.0, &mut |step| match step {
        SurveyEvent::Predicted(predictions) => {
            assert!(announced.is_none());
            announced = Some((offered.borrow().len(), predictions));
        }
        SurveyEvent::Level(level) => assert_eq!(level.role == LevelPurpose::Calibration, announced.is_none()),
        SurveyEvent::Begin(..) | SurveyEvent::EstimatedDuration(_) | SurveyEvent::Note(_) => {}
    });
    let (before, predictions) = announced.unwrap();
    assert_eq!(survey.saturation_rate.predicted, Some(predictions.saturation));
    let rates = |loads: &[Load]| -> Vec<f64> {
        // Only open loads have a rate. The loads that measure the host's speed are closed.
        let rate = |load: &Load| if let Load::Open { rate, .. } = load { Some(rate.0) } else { None };
        loads.iter().filter_map(rate).collect()
    };
    let predicted: Vec<f64> = predictions.levels.iter().map(|level| level.rate).collect();
    let (before, after) = (rates(&bench.offered.borrow()[..before]), rates(&bench.offered.borrow()[before..]));
    assert!(before.iter().all(|rate| !predicted.contains(rate)), "{before:?}");
    assert_eq!(after[..predicted.len()], predicted);
    for predicted in &predictions.levels {
        let same =
            |level: &&Level| level.workload == predicted.name && (level.fraction - predicted.fraction).abs() < 1e-9;
        let level = survey.levels.iter().filter(|level| level.role == LevelPurpose::HeldOut).find(same).unwrap();
        assert_eq!(level.response_time_s.predicted, Some(predicted.expected.response.median));
        assert_eq!(level.response_time_s.interval90, Some(predicted.expected.response.interval90));
        assert_eq!(level.steady_response_s, predicted.prediction.response);
        assert_eq!(level.utilization.predicted, Some(predicted.expected.utilization.median));
    }
}
