//! Builds the survey's document from the results of the phases, however far the survey came.

use crate::baseline::{ClientLimit, IdleServer};
use crate::calibration::Calibration;
use crate::connections::ConnectionUse;
use crate::judge;
use crate::predictions::Predictions;
use crate::runner::{Halt, RunLog};
use crate::saturation::Saturation;
use crate::setup::Setup;
use brimful_core::Nanos;
use brimful_core::quantity;
use brimful_core::survey::{Comparison, Demand, Level, Role, SCHEMA, Stopped, Survey, WhatIf};
use brimful_estimate::ServerFit;
use brimful_estimate::server::OPERATING_SHARE;
use brimful_target::ReferenceCpuTimes;

/// From this share on, the part of an error that the host's speed caused is stated beside the answer.
const NOTABLE: f64 = 0.05;

/// The results of each phase. A phase that the survey did not finish has its default value.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub connections: ConnectionUse,
    pub client: ClientLimit,
    pub idle: IdleServer,
    pub calibration: Option<Calibration>,
    pub predictions: Option<Predictions>,
    pub saturation: Option<Saturation>,
    pub what_if: Option<WhatIf>,
}

/// Builds the document. `halt` is the reason why the survey ended early, if it did.
pub(crate) fn document(setup: &Setup, findings: Findings, mut log: RunLog, halt: Option<&Halt>) -> Survey {
    log.doubts.extend(log.throttled.take().map(|throttled| throttled.reason));
    log.levels.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let saturation = saturation_rate(&findings);
    let fit = findings.calibration.as_ref().map(|calibration| &calibration.fit);
    let full = fit.filter(|fit| fit.bottleneck() != fit.station());
    let full = full.map(|fit| format!("{}: {}", fit.bottleneck(), fit.evidence()));
    let mut survey = Survey {
        schema: SCHEMA.to_owned(),
        started_at: humantime::format_rfc3339_millis(setup.header.started_at).to_string(),
        brimful_version: setup.header.version.clone(),
        command: setup.header.command.clone(),
        seed: setup.seed,
        url: setup.header.url.clone(),
        headline: String::new(),
        saturation_rate: saturation,
        demands: fit.map(|fit| demands(setup, &findings, fit)).unwrap_or_default(),
        client_max_rate: findings.client.max_rate,
        verdict: judge::verdict(&log, saturation, full.as_deref(), halt),
        model: fit.map(ServerFit::model).unwrap_or_default(),
        stopped: halt.map(|halt| stopped(halt, &log.step)),
        server_cpus: setup.server_cpus.clone(),
        client_cpus: setup.client_cpus.clone(),
        background: findings.idle.background,
        wakeup_s: fit.map(|fit| fit.wakeup.value),
        laws: fit.map(|fit| fit.laws().to_vec()).unwrap_or_default(),
        throughput_by_clients: fit.map(ServerFit::throughput_by_clients).unwrap_or_default(),
        bottleneck: fit.map(|fit| fit.bottleneck().to_owned()),
        bottleneck_evidence: fit.map(|fit| fit.evidence().to_owned()),
        programs: fit.map(|fit| fit.programs(&findings.idle.programs)).unwrap_or_default(),
        inside: fit.and_then(ServerFit::inside),
        speed_by_block: fit.map(ServerFit::speed_by_block).unwrap_or_default(),
        connections: findings.connections.summary,
        inflicted: findings.calibration.as_ref().map(|calibration| calibration.impact),
        what_if: findings.what_if,
        elapsed_s: None,
        report: None,
        levels: log.levels,
    };
    survey.headline = headline(&survey);
    survey
}

fn stopped(halt: &Halt, step: &str) -> Stopped {
    match halt {
        Halt::Stopped(_, stopped) => stopped.clone(),
        Halt::Error(error) => Stopped { level: step.to_owned(), reason: error.to_string() },
    }
}

/// Compares the predicted capacity with the measured one.
fn saturation_rate(findings: &Findings) -> Comparison {
    let predicted = findings.calibration.as_ref().map(|calibration| calibration.fit.saturation());
    let spread = findings.predictions.as_ref().and_then(|predictions| predictions.saturation_interval);
    let measured = findings.saturation.as_ref();
    let host_speed = measured.and_then(|measured| measured.host_speed);
    let comparison = Comparison {
        interval90: spread.map(|spread| spread.interval90),
        measured_ci95_half_width: measured.and_then(|measured| measured.ci95_half_width),
        ..Comparison::new(predicted, measured.map(|measured| measured.rate))
    };
    comparison.with_host_prediction(predicted.zip(host_speed).map(|(rate, speed)| rate * speed))
}

/// The demands at the CPUs, followed by the demands at the bottleneck if the bottleneck is another station.
fn demands(setup: &Setup, findings: &Findings, fit: &ServerFit) -> Vec<Demand> {
    let truth = findings.saturation.as_ref().and_then(|saturation| saturation.reference_cpu_times.as_ref());
    let mut at_cpus = Vec::new();
    let mut at_bottleneck = Vec::new();
    for (index, class) in setup.workload.classes.iter().enumerate() {
        at_cpus.extend(fit.demands.get(index).map(|demand| Demand {
            station: fit.station().to_owned(),
            class: class.name.clone(),
            seconds: demand.value,
            ci95_half_width: demand.ci95_half_width,
            truth: truth.and_then(|(before, after)| true_demand(before, after, &class.name)),
        }));
        at_bottleneck.extend(fit.holding_time(index).map(|demand| Demand {
            station: fit.bottleneck().to_owned(),
            class: class.name.clone(),
            seconds: demand.value,
            ci95_half_width: demand.ci95_half_width,
            truth: None,
        }));
    }
    at_cpus.append(&mut at_bottleneck);
    at_cpus
}

/// The CPU seconds per call of the class that the reference server reports for the level at saturation. A saturated
/// server does not sleep, so the cost of waking up is not included. The fit did not use this level.
fn true_demand(before: &ReferenceCpuTimes, after: &ReferenceCpuTimes, class: &str) -> Option<f64> {
    let after = after.classes.get(class)?;
    let (requests, cpu_s) = before.classes.get(class).map_or((0, 0.0), |before| (before.requests, before.cpu_s));
    let calls = after.requests.saturating_sub(requests);
    (calls > 0).then(|| (after.cpu_s - cpu_s) / calls as f64)
}

/// A sentence with the capacity, and with the duration of a call at a load at which servers usually run.
fn headline(survey: &Survey) -> String {
    let saturation = survey.saturation_rate;
    let predicted = saturation.predicted.map(|rate| format!("predicted {}", quantity::rate(rate)));
    let measured = saturation.measured.map(|rate| format!("measured {}", quantity::rate(rate)));
    let Some(capacity) = saturation.measured.or(saturation.predicted) else {
        return "Not determined: the survey ended before it could say what the server can take.".to_owned();
    };
    if !survey.is_measured_well() {
        let figures: Vec<String> = predicted.into_iter().chain(measured).collect();
        return format!(
            "Not determined: the survey is not valid, so do not rely on the most that the server can take: {}.",
            figures.join(" and ")
        );
    }
    let basis = match (predicted.filter(|_| measured.is_some()), saturation.error) {
        (Some(predicted), Some(error)) => {
            let hosts = saturation.error_drift.filter(|drift| drift.abs() > NOTABLE).map_or(String::new(), |drift| {
                let part = quantity::signed_percent(drift);
                format!("; {part} of that is the host's, whose speed was another one then")
            });
            format!("{predicted}, {}{hosts}", quantity::signed_percent(error))
        }
        _ => "as the model predicts; it was not measured".to_owned(),
    };
    let at_operating = survey.levels.iter().filter(|level| level.role == Role::HeldOut && level.verdict.valid);
    let at_operating = at_operating.min_by(|a, b| off_operating(a).total_cmp(&off_operating(b)));
    let response = at_operating.and_then(|level| {
        let mean = Nanos::from_secs_f64(level.response_time_s.measured?).to_rounded_string();
        Some(format!(" At {} a call took {mean} on average.", quantity::rate(level.offered)))
    });
    let refuted = if survey.verdict.valid { "" } else { " Do not plan with its model, which the measurements refute." };
    format!("This server can take {} ({basis}).{}{refuted}", quantity::rate(capacity), response.unwrap_or_default())
}

/// The distance of a level from the load at which servers usually run.
fn off_operating(level: &Level) -> f64 {
    (level.fraction - OPERATING_SHARE).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::record::{Reason, ReasonCode, Verdict};

    fn example() -> Survey {
        serde_json::from_str(include_str!("../../../web/example.survey.json")).unwrap()
    }

    #[test]
    fn a_response_time_stands_beside_the_load_at_which_it_was_measured() {
        let mut survey = example();
        assert_eq!(
            headline(&survey),
            "This server can take 372/s (predicted 370/s, −0.6 %). At 259/s a call took 8.92 ms on average."
        );
        // The sentence states the rate that the level was offered, however far the measured capacity is from the
        // predicted one.
        survey.saturation_rate = Comparison::new(Some(370.0), Some(300.0));
        assert!(headline(&survey).ends_with(" At 259/s a call took 8.92 ms on average."), "{}", headline(&survey));
        survey.saturation_rate = Comparison::new(Some(370.0), Some(300.0)).with_host_prediction(Some(310.0));
        assert!(headline(&survey).contains("+23.3 %; +20.0 % of that is the host's, "), "{}", headline(&survey));
        // A level with a doubtful verdict is not quoted.
        let doubt = Reason { code: ReasonCode::GeneratorLate, message: "Late.".to_owned() };
        let quoted = survey.levels.iter_mut().find(|level| level.fraction == 0.7);
        quoted.unwrap().verdict = Verdict::from_reasons(vec![doubt]);
        assert!(headline(&survey).ends_with(" At 278/s a call took 10.8 ms on average."), "{}", headline(&survey));
    }

    #[test]
    fn a_survey_that_is_not_valid_determines_nothing() {
        let survey = example();
        let doubt = Reason { code: ReasonCode::OtherWork, message: "Something else ran.".to_owned() };
        let doubtful = Survey { verdict: Verdict::from_reasons(vec![doubt]), ..survey };
        let say = |saturation_rate| headline(&Survey { saturation_rate, ..doubtful.clone() });
        assert_eq!(
            say(doubtful.saturation_rate),
            "Not determined: the survey is not valid, so do not rely on the most that the server can take: \
             predicted 370/s and measured 372/s."
        );
        for saturation in [Comparison::new(Some(370.0), None), Comparison::default()] {
            assert!(say(saturation).starts_with("Not determined: the survey "), "{}", say(saturation));
        }
    }

    #[test]
    fn a_refuted_model_leaves_the_measured_capacity() {
        let why = Reason { code: ReasonCode::ModelRefuted, message: "Far off.".to_owned() };
        let survey = Survey {
            verdict: Verdict::from_reasons(vec![why]),
            saturation_rate: Comparison::new(Some(300.0), Some(490.0)),
            ..example()
        };
        assert_eq!(
            headline(&survey),
            "This server can take 490/s (predicted 300/s, −38.8 %). At 259/s a call took 8.92 ms on \
             average. Do not plan with its model, which the measurements refute."
        );
    }
}
