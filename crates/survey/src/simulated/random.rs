//! Servers of all kinds, drawn at random: how far off predictions are over all of them, and how many of the intervals
//! hold that were to hold nine times in ten.

use super::*;
use brimful_core::model::IdleCost;
use brimful_core::survey::{Comparison, Role};

/// How many servers. Each takes a second or two.
const SERVERS: u64 = 16;

/// One of them: it may pay for waking up, vary in its service, spend time elsewhere, and be short of places there.
pub(super) fn server(seed: u64) -> Simulated {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut between = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
    let demand = between(0.000_3, 0.002);
    let waking = IdleCost { seconds: demand * between(0.0, 1.0), power: if between(0.0, 1.0) < 0.7 { 1 } else { 2 } };
    let cpu = Station {
        name: "cpu".to_owned(),
        scheduling: Scheduling::Fcfs,
        scv: between(0.0, 1.5),
        idle_cost: Some(waking),
        ..Station::default()
    };
    let elsewhere = Station { name: "elsewhere".to_owned(), kind: StationKind::Delay, ..Station::default() };
    let (stations, demands) = if between(0.0, 1.0) < 0.25 {
        let places = between(2.0, 6.0) as u32;
        // Full at 60 to 80 % of the CPU.
        let held = f64::from(places) * demand / between(0.6, 0.8);
        let pool =
            Station { name: "pool".to_owned(), servers: places, scheduling: Scheduling::Fcfs, ..Station::default() };
        (vec![cpu, pool], vec![vec![demand], vec![held]])
    } else {
        (vec![cpu, elsewhere], vec![vec![demand], vec![demand * between(0.05, 1.5)]])
    };
    Simulated::new(stations, demands)
}

pub(super) fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

#[test]
fn predictions_are_close_and_as_many_intervals_hold_as_should() {
    let (mut saturation, mut response, mut utilization) = (Vec::new(), Vec::new(), Vec::new());
    let (mut held, mut all) = (0.0, 0.0);
    for seed in 1..=SERVERS {
        let survey = server(seed).survey(&[1.0], 8.0);
        assert!(survey.stopped.is_none(), "{seed}: {:?}", survey.stopped);
        let mut see = |comparison: &Comparison| {
            held += f64::from(u8::from(comparison.holds().unwrap()));
            all += 1.0;
        };
        see(&survey.saturation_rate);
        saturation.push(survey.saturation_rate.error.unwrap().abs());
        for level in survey.levels.iter().filter(|level| level.role == Role::HeldOut) {
            let percentiles = level.response_percentiles_s;
            [level.response_time_s, level.utilization, percentiles.p50, percentiles.p95].iter().for_each(&mut see);
            if level.workload == "mix" {
                utilization.push(level.utilization.error.unwrap().abs());
                if (level.fraction - 0.8).abs() < 1e-9 {
                    response.push(level.response_time_s.error.unwrap().abs());
                }
            }
        }
    }
    let share = held / all;
    assert!((0.75..=0.98).contains(&share), "{share} of {all} intervals hold");
    for (errors, median, worst) in [(saturation, 0.02, 0.1), (response, 0.1, 0.25), (utilization, 0.02, 0.15)] {
        let found = (quantile(errors.clone(), 0.5), quantile(errors, 1.0));
        assert!(found.0 < median && found.1 < worst, "{found:?} where {median} and {worst} are allowed");
    }
}
