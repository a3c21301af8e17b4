//! Tests the highest rates that meet performance objectives. They are predicted first, and then measured by a search.

use super::pauses::pausing_server;
use super::random::{number_of_servers, quantile, server};
use super::*;
use brimful_core::survey::{ObjectiveOutcome, RateUnderObjective};
use brimful_core::{Slo, SloSpec};

const SERVERS: u64 = 12;

/// Surveys a server with these performance objectives, and returns the highest rate for each.
fn survey_under(bench: &mut Simulated, objectives: &[&str]) -> Vec<RateUnderObjective> {
    survey_for(4.0, bench, objectives)
}

fn survey_for(level_s: f64, bench: &mut Simulated, objectives: &[&str]) -> Vec<RateUnderObjective> {
    let objectives = objectives.iter().map(|text| text.parse::<SloSpec>().unwrap()).collect();
    let setup = Setup { objectives, thorough: false, ..bench.setup(&[1.0], level_s) };
    run_survey(&setup, bench, &mut |_| ()).unwrap().objectives
}

/// Asserts bounds of the median and of the maximum relative error of predicted rates, over random servers. Also asserts
/// that at least three quarters of the 90 % intervals contain the measured rate.
fn rates_are_predicted(server: fn(u64) -> Simulated, [max_median, max_error]: [f64; 2]) {
    let servers = number_of_servers(SERVERS);
    let mut errors = Vec::new();
    let mut held = 0;
    for seed in 1..=servers {
        let found = survey_for(8.0, &mut server(seed), &["p99<10x"]).remove(0);
        let answered = [ObjectiveOutcome::MetUpToRate, ObjectiveOutcome::MetUpToCapacity];
        assert!(answered.contains(&found.outcome), "server {seed}: {found:?}");
        errors.push(found.rate.error.unwrap().abs());
        held += u64::from(found.rate.is_within_interval().unwrap());
        let [low, high] = found.measured_interval90.unwrap();
        assert!((low..=high).contains(&found.rate.measured.unwrap()), "server {seed}: {found:?}");
    }
    let median = quantile(errors.clone(), 0.5);
    let worst = quantile(errors, 1.0);
    println!("median error {median}, worst {worst}, {held} of {servers} intervals hold");
    assert!(median < max_median && worst < max_error, "median error {median}, worst {worst}");
    assert!(4 * held >= 3 * servers, "{held} of {servers} intervals hold");
}

#[test]
fn rates_are_predicted_and_their_intervals_hold() {
    rates_are_predicted(server, [0.04, 0.25]);
}

/// Expects a wide prediction interval that contains the measured rate. If the limit of the objective is about as long
/// as the server's pauses, the objective is missed at nearly all rates or at almost none, so the rate is uncertain.
#[test]
fn rates_of_pausing_servers_are_predicted_and_their_intervals_hold() {
    rates_are_predicted(pausing_server, [0.06, f64::INFINITY]);
}

#[test]
fn a_stricter_objective_permits_less_traffic() {
    let rates = survey_under(&mut server(3), &["p99<2x", "p95<4x", "mean<20x"]);
    let measured: Vec<f64> = rates.iter().map(|found| found.rate.measured.unwrap()).collect();
    assert!(measured[0] < measured[1] && measured[1] < measured[2], "{measured:?}");
}

#[test]
fn an_objective_that_light_load_misses_is_not_searched_for() {
    let found = survey_under(&mut server(3), &["p99<100us"]).remove(0);
    assert_eq!(found.outcome, ObjectiveOutcome::MissedAtLightLoad);
    assert!(found.light_load.unwrap() > 1e-4 && found.rate.measured.is_none() && found.slices.is_empty(), "{found:?}");
}

#[test]
fn an_objective_that_is_never_missed_is_met_up_to_the_capacity() {
    let found = survey_under(&mut server(3), &["p50<2000s", "errors<50%"]);
    for found in found {
        assert_eq!(found.outcome, ObjectiveOutcome::MetUpToCapacity, "{found:?}");
        assert!(found.rate.measured.is_some());
    }
}

#[test]
fn a_gentle_survey_only_predicts_the_rate() {
    let mut bench = server(3);
    bench.max_delay = Some(Nanos::from_millis(500));
    let found = survey_under(&mut bench, &["p99<10x"]).remove(0);
    assert_eq!(found.outcome, ObjectiveOutcome::Undecided);
    assert!(found.rate.predicted.is_some() && found.rate.measured.is_none(), "{found:?}");
    assert!(found.objective.parse::<Slo>().is_ok());
}
