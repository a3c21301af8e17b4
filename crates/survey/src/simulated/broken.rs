//! Servers that are not as the model takes them to be: either the predictions are good nonetheless, or it is said.

use super::full::has_its_capacity_predicted;
use super::*;
use brimful_core::model::IdleCost;
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::survey::{Level, Role};

pub(super) fn cpu(servers: u32) -> Station {
    Station { name: "cpu".to_owned(), servers, scheduling: Scheduling::Fcfs, ..Station::default() }
}

/// What the survey says against itself. One that says nothing is not far off.
fn said(bench: &mut Simulated, level_s: f64) -> Vec<Reason> {
    let survey = bench.survey(&[1.0], level_s);
    assert_eq!(survey.headline.starts_with("Not determined"), !survey.is_measured_well(), "{}", survey.headline);
    if survey.verdict.valid {
        assert!(survey.saturation_rate.error.unwrap().abs() < 0.1, "{:?}", survey.saturation_rate);
        for level in survey.levels.iter().filter(|level| level.role == Role::HeldOut && level.fraction < 0.85) {
            let response = level.response_time_s;
            let (error, of_model) = (response.error.unwrap().abs(), response.error_of_model().unwrap().abs());
            let noise = response.measured_ci95_half_width.unwrap_or(0.0) / response.measured.unwrap();
            assert!(error.min(of_model) < 0.3 + noise, "{response:?}");
        }
    }
    survey.verdict.reasons
}

/// Asserts that the survey says this, with this in its message.
fn says(bench: &mut Simulated, level_s: f64, code: ReasonCode, what: &str) {
    let reasons = said(bench, level_s);
    let said = reasons.iter().any(|reason| reason.code == code && reason.message.contains(what));
    assert!(said, "no {code:?} with «{what}»: {reasons:#?}");
}

fn is_predicted_well(bench: &mut Simulated, level_s: f64) {
    let reasons = said(bench, level_s);
    assert!(reasons.is_empty(), "{reasons:#?}");
}

#[test]
fn calls_that_get_in_one_anothers_way() {
    let contention = IdleCost { seconds: -0.000_5, power: 1 };
    has_its_capacity_predicted(&mut Simulated::single(Station { idle_cost: Some(contention), ..cpu(1) }, 0.001), "cpu");
}

#[test]
fn demands_that_grow_only_near_saturation() {
    let mut bench = Simulated::single(cpu(1), 0.001);
    bench.under_load = Box::new(|model, rate| model.demands[0][0] *= 1.0 + 0.4 * (rate / 800.0).min(1.0).powi(8));
    has_its_capacity_predicted(&mut bench, "cpu");
}

/// To the mean response time a pause is a call that takes long: they come out as variability of service.
#[test]
fn pauses_of_the_server_itself() {
    let mut bench = Simulated::single(cpu(1), 0.001).with_other_work(1.0, 0.03);
    bench.own_work = true;
    is_predicted_well(&mut bench, 100.0);
}

/// What the server does by itself is no capacity for calls.
#[test]
fn housekeeping() {
    let mut bench = Simulated::single(cpu(1), 0.001).with_other_work(50.0, 0.002);
    bench.own_work = true;
    let saturation = bench.survey(&[1.0], 60.0).saturation_rate;
    assert!(saturation.error.unwrap().abs() < 0.04, "{saturation:?}");
}

#[test]
fn pauses_that_come_with_the_calls() {
    let mut bench = Simulated::single(cpu(1), 0.001).with_other_work(0.0, 0.02);
    bench.own_work = true;
    bench.under_load = Box::new(|model, rate| model.classes[1].rate = Some(0.005 * rate.min(900.0)));
    is_predicted_well(&mut bench, 100.0);
}

#[test]
fn other_work_that_is_always_there() {
    let reasons = said(&mut Simulated::single(cpu(1), 0.001).with_other_work(10.0, 0.008), 100.0);
    // Calls wait for it or not, about half of them each, so that the median is between the two, where hardly any is.
    let of_median =
        |reason: &Reason| reason.code == ReasonCode::ModelRefuted && reason.message.contains("half of the calls");
    assert!(reasons.iter().all(of_median), "{reasons:#?}");
}

#[test]
fn other_work_that_comes_later() {
    // Once the calibration is over: its levels go up to 600/s.
    let later = |share: f64| {
        let mut bench = Simulated::single(cpu(1), 0.001).with_other_work(0.0, 0.01);
        bench.under_load =
            Box::new(move |model, rate| model.classes[1].rate = Some(if rate > 650.0 { share / 0.01 } else { 0.0 }));
        bench
    };
    says(&mut later(0.3), 20.0, ReasonCode::OtherWork, "Something other than the server");
    // So little that it is not noticed by itself: whatever is said, no valid survey is far off.
    said(&mut later(0.13), 20.0);
}

#[test]
fn a_client_that_is_the_limit() {
    for (share, level) in [(0.65, "held out: mix, 70 %"), (0.95, "saturation")] {
        let mut bench = Simulated::single(cpu(1), 0.001);
        bench.client_max = Some(1000.0 * share);
        says(&mut bench, 20.0, ReasonCode::BeyondClientMax, level);
        let most = |load: &Load| if let Load::Open { rate, .. } = load { rate.0 } else { 0.0 };
        assert!(bench.offered.borrow().iter().map(most).all(|rate| rate < 1000.1 * share));
    }
    // Calibration goes no higher than it may, and what is predicted is not measured.
    let mut bench = Simulated::single(cpu(1), 0.001);
    bench.client_max = Some(400.0);
    says(
        &mut bench,
        20.0,
        ReasonCode::BeyondClientMax,
        "to its saturation takes some 3 CPUs like these for the generator",
    );
}

#[test]
fn a_client_whose_limit_was_not_found_is_judged_level_by_level() {
    let mut bench = Simulated::single(cpu(1), 0.001);
    (bench.client_max, bench.client_may_offer_more) = (Some(400.0), true);
    let survey = bench.survey(&[1.0], 20.0);
    assert!(survey.verdict.reasons.iter().all(|reason| reason.code != ReasonCode::BeyondClientMax), "{survey:#?}");
    assert!(survey.saturation_rate.measured.is_some_and(|rate| rate > 900.0), "{:?}", survey.saturation_rate);
}

#[test]
fn calls_that_fail_under_load() {
    let reset = End::Reset { sent: true };
    for end in [reset, End::Completed { status: 503 }] {
        let mut bench = Simulated::single(cpu(1), 0.001);
        bench.fails = Box::new(move |rate, number| (rate > 750.0 && number % 5 == 0).then_some(end));
        says(&mut bench, 20.0, ReasonCode::ServerErrors, "of the calls failed");
        // Beyond saturation it is no wonder.
        bench.fails = Box::new(move |rate, number| ((1050.0..1e9).contains(&rate) && number % 5 == 0).then_some(end));
        is_predicted_well(&mut bench, 60.0);
    }
}

#[test]
fn a_quota_that_throttles_is_named() {
    let closed: fn(f64) -> f64 = |rate| if rate.is_infinite() { 0.4 } else { 0.0 };
    let at_90: fn(f64) -> f64 = |rate| if (850.0..950.0).contains(&rate) { 0.02 } else { 0.0 };
    for (stopped, said) in [(closed, "for 40.0 % of the time"), (at_90, "for 2.0 % of the time")] {
        let mut bench = Simulated::single(cpu(1), 0.001);
        bench.stopped = Box::new(stopped);
        let survey = bench.survey(&[1.0], 20.0);
        let [reason] = survey.verdict.reasons.as_slice() else { panic!("{:#?}", survey.verdict) };
        assert_eq!(reason.code, ReasonCode::Throttled);
        assert!(
            reason.message.contains(said) && reason.message.contains("0.500 CPUs of /sys/fs/cgroup/web"),
            "{reason:?}"
        );
        assert!(survey.headline.starts_with("Not determined"), "{}", survey.headline);
    }
    // A moment of it says nothing.
    let mut bench = Simulated::single(cpu(1), 0.001);
    bench.stopped = Box::new(|_| 0.005);
    is_predicted_well(&mut bench, 60.0);
}

#[test]
fn a_rate_limiter_stops_calibration_and_is_named() {
    let mut bench = Simulated::single(cpu(1), 0.001);
    // It lets 500 of 1,000 calls a second pass.
    let too_many = End::Completed { status: 429 };
    bench.fails = Box::new(move |rate, number| (rate > 550.0 && number % 2 == 0).then_some(too_many));
    let survey = bench.survey(&[1.0], 20.0);
    let [reason] = survey.verdict.reasons.as_slice() else { panic!("{:#?}", survey.verdict) };
    assert_eq!(reason.code, ReasonCode::RateLimited);
    assert!(["at about 4", "at about 5"].iter().any(|about| reason.message.contains(about)), "{}", reason.message);
    assert!(survey.model.stations.is_empty(), "nothing was fitted to it");
    // One that is above what calibration needs marks the levels that it concerns.
    bench.fails = Box::new(move |rate, number| ((750.0..1e9).contains(&rate) && number % 5 == 0).then_some(too_many));
    let survey = bench.survey(&[1.0], 20.0);
    let limited = |level: &&Level| level.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::RateLimited);
    assert_eq!(survey.levels.iter().filter(limited).count(), 2, "80 and 90 %: {:#?}", survey.levels);
}

#[test]
fn a_server_that_dies_leaves_what_was_measured() {
    let mut bench = Simulated::single(cpu(1), 0.001);
    bench.lives = 30;
    let survey = bench.survey(&[1.0], 2.0);
    assert_eq!(survey.verdict.reasons[0].code, ReasonCode::ServerDied);
    assert!(!survey.levels.is_empty() && survey.model.stations.is_empty(), "{survey:#?}");
    assert!(survey.stopped.is_some_and(|stopped| stopped.level.starts_with("calibration, block")));
}

#[test]
fn half_the_cpus_are_predicted_made_measured_and_given_back() {
    let mut bench = Simulated::single(cpu(2), 0.002);
    bench.change = Some(Change::Quota(0.5));
    let survey = bench.survey(&[1.0], 20.0);
    let what_if = survey.what_if.unwrap();
    assert_eq!((&*what_if.change, what_if.cpus, bench.share), ("quota=50%", 1.0, 1.0));
    let capacity = what_if.saturation_rate;
    assert!((capacity.predicted.unwrap() / 500.0 - 1.0).abs() < 0.02, "{capacity:?}");
    assert!(capacity.error.unwrap().abs() < 0.05 && capacity.interval90.is_some(), "{capacity:?}");
    let busy = what_if.utilization;
    assert!((busy.predicted.unwrap() - 0.5).abs() < 0.02 && busy.error.unwrap().abs() < 0.03, "{busy:?}");
    // The simulated CPUs are slower, and do not stop and go: what that does is tested with the model of it.
    let response = what_if.response_time_s;
    assert!(response.predicted.unwrap() >= 0.002 && response.measured.is_some(), "{response:?}");
    assert!((what_if.offered / 250.0 - 1.0).abs() < 0.02 && what_if.verdict.valid, "{:?}", what_if.verdict);
    assert!(survey.verdict.valid, "{:?}", survey.verdict);
}

#[test]
fn a_change_that_may_not_be_made_ends_the_survey_before_anything_is_measured() {
    let mut bench = Simulated::single(cpu(1), 0.001);
    (bench.change, bench.immovable) = (Some(Change::Quota(0.5)), true);
    let setup = bench.setup(&[1.0], 20.0);
    assert!(conduct(&setup, &mut bench, &mut |_| ()).is_err_and(|error| error.to_string() == "not here"));
    let setup = Setup { lenient: true, ..setup };
    let mut notes = Vec::new();
    let mut news = |step| notes.extend(if let Step::Note(text) = step { Some(text) } else { None });
    let survey = conduct(&setup, &mut bench, &mut news).unwrap();
    assert_eq!(survey.what_if, None);
    assert!(notes.iter().any(|note| note == "left out in the end: what if quota=50%: not here"), "{notes:#?}");
    assert!(survey.verdict.valid);
}
