//! Tests surveys with strict limits on their impact, whose loads have only one or a few clients. The capacity is then
//! extrapolated.

use super::random::{quantile, server};
use super::*;
use brimful_model::saturation_rate;

const SERVERS: usize = 32;

#[test]
fn the_interval_of_an_extrapolated_capacity_is_wide_enough() {
    // Use only servers whose second station is a delay, not a pool: a pool that is never full does not affect the
    // measurements.
    let bound_by_cpu = (1..).map(server).filter(|bench| bench.server.stations[1].kind == StationKind::Delay);
    let mut held = 0;
    let mut widths = Vec::new();
    for (seed, mut bench) in bound_by_cpu.take(SERVERS).enumerate() {
        bench.seed = seed as u64;
        bench.max_delay = Some(Nanos::from_micros(100));
        let survey = bench.survey(&[1.0], 8.0);
        assert!(survey.stopped.is_none() && survey.saturation_rate.measured.is_none(), "{:?}", survey.stopped);
        let mut model = bench.server.clone();
        model.classes[0].rate = Some(1.0);
        let (truth, _) = saturation_rate(&model).unwrap();
        let [low, high] = survey.saturation_rate.interval90.unwrap();
        held += usize::from((low..=high).contains(&truth));
        widths.push((high - low) / 2.0 / truth);
    }
    let width = quantile(widths, 0.5);
    assert!(
        5 * held >= 4 * SERVERS && width < 0.4,
        "{held} of {SERVERS} intervals contain the true value; the median half width is {width}"
    );
}

#[test]
fn the_reported_impact_is_the_measured_one() {
    let service = Station { name: "cpu".to_owned(), scheduling: Scheduling::Fcfs, scv: 0.25, ..Station::default() };
    let mut bench = Simulated::single_class(service, 0.001).with_other_work(10.0, 0.002);
    bench.own_work = true;
    let impact = bench.survey(&[1.0], 8.0).calibration_impact.unwrap();
    // Calibration begins with the first load of a single client after the first measurement and the warm-up. Each of
    // the calibration loads is followed by a pause.
    let is_single = |load: &Load| matches!(load, Load::Closed { clients: 1, .. });
    let start = 1 + bench.offered.borrow()[1..].iter().position(is_single).unwrap();
    let calibration = &bench.worked[start..start + bench.rested.len()];
    let rested: f64 = bench.rested.iter().map(|rest| rest.as_secs_f64()).sum();
    let loaded: f64 = calibration.iter().map(|(seconds, _)| seconds).sum();
    let work: f64 = calibration.iter().map(|(_, work)| work).sum();
    let truth = (work + 10.0 * 0.002 * rested) / (loaded + rested);
    assert!((impact.mean_load - truth).abs() < 0.01, "{impact:?}, true mean load {truth}");
    assert!(impact.max_load == Some(0.5) && truth < 0.5, "{truth}");
    // Calls take 1 ms, so with n clients the mean response time is n ms. The longest one must exceed the mean.
    let mean = impact.max_clients as f64 * 0.001;
    assert!((mean..2.0 * mean).contains(&impact.longest_wait_s), "{impact:?}");
    assert_eq!(impact.max_delay_s, Some(0.2));
}
