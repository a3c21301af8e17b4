//! Tests with servers that violate the model's assumptions. They expect that the predictions are good nevertheless, or
//! that the verdict of the survey is not valid.

use super::*;
use brimful_core::model::IdleCost;
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::survey::{Level, LevelPurpose};

/// Surveys the server and returns the reasons of the verdict. Asserts good predictions if the verdict is valid.
fn reasons_against(bench: &mut Simulated, level_s: f64) -> Vec<Reason> {
    let survey = bench.survey(&[1.0], level_s);
    assert_eq!(survey.headline.starts_with("Not determined"), !survey.has_valid_measurements(), "{}", survey.headline);
    if survey.verdict.valid {
        assert!(survey.saturation_rate.error.unwrap().abs() < 0.1, "{:?}", survey.saturation_rate);
        for level in survey.levels.iter().filter(|level| level.role == LevelPurpose::HeldOut && level.fraction < 0.85) {
            let response = level.response_time_s;
            let (error, of_model) = (response.error.unwrap().abs(), response.model_error().unwrap().abs());
            let noise = response.measured_ci95_half_width.unwrap_or(0.0) / response.measured.unwrap();
            assert!(error.min(of_model) < 0.3 + noise, "{response:?}");
        }
    }
    survey.verdict.reasons
}

/// Asserts that the verdict has a reason with this code, and with this text in its message.
fn has_reason(bench: &mut Simulated, level_s: f64, code: ReasonCode, text: &str) {
    let reasons = reasons_against(bench, level_s);
    let has_reason = reasons.iter().any(|reason| reason.code == code && reason.message.contains(text));
    assert!(has_reason, "no reason {code:?} with «{text}»: {reasons:#?}");
}

fn is_predicted_well(bench: &mut Simulated, level_s: f64) {
    let reasons = reasons_against(bench, level_s);
    assert!(reasons.is_empty(), "{reasons:#?}");
}

#[test]
fn calls_that_contend_for_a_resource() {
    let contention = IdleCost { seconds: -0.000_5, power: 1 };
    has_its_capacity_predicted(
        &mut Simulated::single_class(Station { idle_cost: Some(contention), ..cpu(1) }, 0.001),
        "cpu",
    );
}

#[test]
fn demands_that_grow_only_near_saturation() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.under_load = Box::new(|model, rate| model.demands[0][0] *= 1.0 + 0.4 * (rate / 800.0).min(1.0).powi(8));
    has_its_capacity_predicted(&mut bench, "cpu");
}

/// Expects good predictions for a server with rare pauses. A pause has the same effect on response times as a very long
/// call, so the fit may represent pauses by variable service times.
#[test]
fn pauses_of_the_server_itself() {
    let mut bench = Simulated::single_class(cpu(1), 0.001).with_other_work(1.0, 0.03);
    bench.own_work = true;
    is_predicted_well(&mut bench, 100.0);
}

/// Expects that the CPU time of the server's own background work reduces the predicted capacity.
#[test]
fn housekeeping() {
    let mut bench = Simulated::single_class(cpu(1), 0.001).with_other_work(50.0, 0.002);
    bench.own_work = true;
    let saturation = bench.survey(&[1.0], 60.0).saturation_rate;
    assert!(saturation.error.unwrap().abs() < 0.04, "{saturation:?}");
}

#[test]
fn pauses_that_come_with_the_calls() {
    let mut bench = Simulated::single_class(cpu(1), 0.001).with_other_work(0.0, 0.02);
    bench.own_work = true;
    bench.under_load = Box::new(|model, rate| model.classes[1].rate = Some(0.005 * rate.min(900.0)));
    is_predicted_well(&mut bench, 100.0);
}

#[test]
fn other_work_that_is_always_there() {
    let reasons = reasons_against(&mut Simulated::single_class(cpu(1), 0.001).with_other_work(10.0, 0.008), 100.0);
    // Background work makes about half of the calls wait. So the distribution of response times has two peaks, and the
    // median, which is between them, is hard to predict. No other reason is permitted.
    let of_median =
        |reason: &Reason| reason.code == ReasonCode::ModelRefuted && reason.message.contains("half of the calls");
    assert!(reasons.iter().all(of_median), "{reasons:#?}");
}

#[test]
fn other_work_that_comes_later() {
    // The background work starts at rates above 650/s. The highest rate of calibration is 600/s, so calibration does
    // not observe this work.
    let later = |share: f64| {
        let mut bench = Simulated::single_class(cpu(1), 0.001).with_other_work(0.0, 0.01);
        bench.under_load =
            Box::new(move |model, rate| model.classes[1].rate = Some(if rate > 650.0 { share / 0.01 } else { 0.0 }));
        bench
    };
    has_reason(&mut later(0.3), 20.0, ReasonCode::OtherWork, "Something other than the server");
    // This background work is too small to be detected. The verdict may be valid or not; if it is valid, the
    // predictions must be good.
    reasons_against(&mut later(0.13), 20.0);
}

#[test]
fn a_client_that_is_the_limit() {
    for (share, level) in [(0.65, "held out: mix, 70 %"), (0.95, "saturation")] {
        let mut bench = Simulated::single_class(cpu(1), 0.001);
        bench.client_max = Some(1000.0 * share);
        has_reason(&mut bench, 20.0, ReasonCode::BeyondClientMax, level);
        let most = |load: &Load| if let Load::Open { rate, .. } = load { rate.0 } else { 0.0 };
        assert!(bench.offered.borrow().iter().map(most).all(|rate| rate < 1000.1 * share));
    }
    // The maximum rate of the client is above the rates of calibration and below those of the predicted load levels.
    // The survey must stop before it measures these load levels.
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.client_max = Some(400.0);
    has_reason(&mut bench, 20.0, ReasonCode::BeyondClientMax, "needs about 3 CPUs like these for the generator");
}

#[test]
fn a_client_whose_limit_was_not_found_is_judged_level_by_level() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.client_max = Some(400.0);
    bench.client_may_offer_more = true;
    let survey = bench.survey(&[1.0], 20.0);
    assert!(survey.verdict.reasons.iter().all(|reason| reason.code != ReasonCode::BeyondClientMax), "{survey:#?}");
    assert!(survey.saturation_rate.measured.is_some_and(|rate| rate > 900.0), "{:?}", survey.saturation_rate);
}

#[test]
fn calls_that_fail_under_load() {
    let reset = End::Reset { sent: true };
    for end in [reset, End::Completed { status: 503 }] {
        let mut bench = Simulated::single_class(cpu(1), 0.001);
        bench.fails = Box::new(move |rate, number| (rate > 750.0 && number % 5 == 0).then_some(end));
        has_reason(&mut bench, 20.0, ReasonCode::ServerErrors, "of the calls failed");
        // Failures above the saturation rate are expected, so the verdict remains valid.
        bench.fails = Box::new(move |rate, number| ((1050.0..1e9).contains(&rate) && number % 5 == 0).then_some(end));
        is_predicted_well(&mut bench, 60.0);
    }
}

#[test]
fn a_quota_that_throttles_is_named() {
    let closed: fn(f64) -> f64 = |rate| if rate.is_infinite() { 0.4 } else { 0.0 };
    let at_90: fn(f64) -> f64 = |rate| if (850.0..950.0).contains(&rate) { 0.02 } else { 0.0 };
    for (throttled, text) in [(closed, "for 40.0 % of the time"), (at_90, "for 2.0 % of the time")] {
        let mut bench = Simulated::single_class(cpu(1), 0.001);
        bench.throttled = Box::new(throttled);
        let survey = bench.survey(&[1.0], 20.0);
        let [reason] = survey.verdict.reasons.as_slice() else { panic!("{:#?}", survey.verdict) };
        assert_eq!(reason.code, ReasonCode::Throttled);
        assert!(
            reason.message.contains(text) && reason.message.contains("0.500 CPUs of /sys/fs/cgroup/web"),
            "{reason:?}"
        );
        assert!(survey.headline.starts_with("Not determined"), "{}", survey.headline);
    }
    // A quota that stops the server for 0.5 % of the time has little effect.
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.throttled = Box::new(|_| 0.005);
    is_predicted_well(&mut bench, 60.0);
}

#[test]
fn a_rate_limiter_stops_calibration_and_is_named() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    // At rates above 550/s, the server answers every second call with 429.
    let too_many = End::Completed { status: 429 };
    bench.fails = Box::new(move |rate, number| (rate > 550.0 && number % 2 == 0).then_some(too_many));
    let survey = bench.survey(&[1.0], 20.0);
    let [reason] = survey.verdict.reasons.as_slice() else { panic!("{:#?}", survey.verdict) };
    assert_eq!(reason.code, ReasonCode::RateLimited);
    assert!(["at about 4", "at about 5"].iter().any(|about| reason.message.contains(about)), "{}", reason.message);
    assert!(survey.model.stations.is_empty(), "no model was fitted");
    // The server's rate limit is now above the rates of calibration. So only the load levels above the limit are not
    // valid.
    bench.fails = Box::new(move |rate, number| ((750.0..1e9).contains(&rate) && number % 5 == 0).then_some(too_many));
    let survey = bench.survey(&[1.0], 20.0);
    let limited = |level: &&Level| level.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::RateLimited);
    assert_eq!(
        survey.levels.iter().filter(limited).count(),
        2,
        "only the levels at 80 and 90 % are limited: {:#?}",
        survey.levels
    );
}

#[test]
fn the_levels_before_a_servers_death_are_reported() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.lives = 30;
    let survey = bench.survey(&[1.0], 2.0);
    assert_eq!(survey.verdict.reasons[0].code, ReasonCode::ServerDied);
    assert!(!survey.levels.is_empty() && survey.model.stations.is_empty(), "{survey:#?}");
    assert!(survey.stopped.is_some_and(|stopped| stopped.level.starts_with("calibration, block")));
}

#[test]
fn a_quota_is_predicted_made_measured_and_undone() {
    let mut bench = Simulated::single_class(cpu(2), 0.002);
    bench.change = Some(Change::Quota(0.5));
    let survey = bench.survey(&[1.0], 20.0);
    let what_if = survey.what_if.unwrap();
    assert_eq!((&*what_if.change, what_if.cpus, bench.cpu_share), ("quota=50%", 1.0, 1.0));
    let capacity = what_if.saturation_rate;
    assert!((capacity.predicted.unwrap() / 500.0 - 1.0).abs() < 0.02, "{capacity:?}");
    assert!(capacity.error.unwrap().abs() < 0.05 && capacity.interval90.is_some(), "{capacity:?}");
    let busy = what_if.utilization;
    assert!((busy.predicted.unwrap() - 0.5).abs() < 0.02 && busy.error.unwrap().abs() < 0.03, "{busy:?}");
    // The simulation of a quota only makes the CPUs slower, so the response time is not compared with its prediction.
    // Tests of `brimful-model` simulate a quota that stops and resumes the server.
    let response = what_if.response_time_s;
    assert!(response.predicted.unwrap() >= 0.002 && response.measured.is_some(), "{response:?}");
    assert!((what_if.offered / 250.0 - 1.0).abs() < 0.02 && what_if.verdict.valid, "{:?}", what_if.verdict);
    assert!(survey.verdict.valid, "{:?}", survey.verdict);
}

#[test]
fn a_change_that_the_host_refuses_ends_the_survey_before_anything_is_measured() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.change = Some(Change::Quota(0.5));
    bench.refuses_quota = true;
    let setup = bench.setup(&[1.0], 20.0);
    assert!(run_survey(&setup, &mut bench, &mut |_| ()).is_err_and(|error| error.to_string() == "not here"));
    let change = Some(PlannedChange { change: Change::Quota(0.5), optional: true });
    let setup = Setup { change, ..setup };
    let mut notes = Vec::new();
    let mut listener = |step| notes.extend(if let SurveyEvent::Note(text) = step { Some(text) } else { None });
    let survey = run_survey(&setup, &mut bench, &mut listener).unwrap();
    assert_eq!(survey.what_if, None);
    assert!(notes.iter().any(|note| note == "left out in the end: what if quota=50%: not here"), "{notes:#?}");
    assert!(survey.verdict.valid);
}
