//! Builds the survey's document from the results of its phases, even if the survey ended early.

use crate::baseline::{ClientLimit, IdleServer};
use crate::calibration::Calibration;
use crate::connections::ConnectionUse;
use crate::judge;
use crate::objective;
use crate::predicted::Predictions;
use crate::runner::{Halt, RunLog};
use crate::saturation::Saturation;
use crate::setup::Setup;
use brimful_core::quantity;
use brimful_core::survey::{Comparison, Demand, Overload, RateUnderObjective, SCHEMA, Stopped, Survey, WhatIf};
use brimful_estimate::ServerFit;
use brimful_target::ReferenceCpuTimes;

/// The results of each phase of a survey. Phases that did not finish have default values.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The connections that the loads use.
    pub connections: ConnectionUse,
    /// The maximum rate of this client.
    pub client: ClientLimit,
    /// Measurements of the server without load.
    pub idle: IdleServer,
    /// The fitted model, and other results of calibration.
    pub calibration: Option<Calibration>,
    /// The predictions of the load levels that are measured after calibration, and of the capacity.
    pub predictions: Option<Predictions>,
    /// The measured capacity.
    pub saturation: Option<Saturation>,
    /// For each objective, the highest rate at which the server meets it.
    pub objectives: Vec<RateUnderObjective>,
    /// The throughput of the overloaded server, with and without a connection pool.
    pub overload: Option<Overload>,
    /// The predicted and measured effect of a change of the server.
    pub what_if: Option<WhatIf>,
}

/// Builds the document. `halt` is the reason why the survey ended early; `None` if it did not.
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
        labels: Default::default(),
        machine: None,
        seed: setup.seed,
        url: setup.header.url.clone(),
        headline: String::new(),
        saturation_rate: saturation,
        objectives: findings.objectives.clone(),
        demands: fit.map(|fit| demands(setup, &findings, fit)).unwrap_or_default(),
        client_max_rate: findings.client.max_rate,
        verdict: judge::verdict(&log, saturation, full.as_deref(), halt),
        model: fit.map(ServerFit::model).unwrap_or_default(),
        stopped: halt.map(|halt| stopped(halt, &log.step)),
        server_cpus: setup.server_cpus.clone(),
        client_cpus: setup.client_cpus.clone(),
        background: findings.idle.background,
        wakeup_s: fit.map(|fit| fit.wakeup.value),
        cost_formulas: fit.map(|fit| fit.laws().to_vec()).unwrap_or_default(),
        throughput_by_clients: fit.map(ServerFit::throughput_by_clients).unwrap_or_default(),
        bottleneck: fit.map(|fit| fit.bottleneck().to_owned()),
        bottleneck_evidence: fit.map(|fit| fit.evidence().to_owned()),
        programs: fit.map(|fit| fit.programs(&findings.idle.programs)).unwrap_or_default(),
        module_measurements: fit.and_then(ServerFit::module_measurements),
        speed_by_block: fit.map(ServerFit::speed_by_block).unwrap_or_default(),
        connections: findings.connections.summary,
        calibration_impact: findings.calibration.as_ref().map(|calibration| calibration.impact),
        pauses: fit.and_then(ServerFit::pauses),
        overload: findings.overload,
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

/// The service demands at the CPUs. If another station is the bottleneck, they are followed by the demands at that
/// station.
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
            true_seconds: truth.and_then(|(before, after)| true_demand(before, after, &class.name)),
        }));
        at_bottleneck.extend(fit.holding_time(index).map(|demand| Demand {
            station: fit.bottleneck().to_owned(),
            class: class.name.clone(),
            seconds: demand.value,
            ci95_half_width: demand.ci95_half_width,
            true_seconds: None,
        }));
    }
    at_cpus.append(&mut at_bottleneck);
    at_cpus
}

/// The CPU time per call of a class, in seconds, as the reference server itself reported it for the measurement of the
/// capacity. It is independent of the fit. A saturated server is never idle, so it excludes the cost of waking up.
fn true_demand(before: &ReferenceCpuTimes, after: &ReferenceCpuTimes, class: &str) -> Option<f64> {
    let after = after.classes.get(class)?;
    let (requests, cpu_s) = before.classes.get(class).map_or((0, 0.0), |before| (before.requests, before.cpu_s));
    let calls = after.requests.saturating_sub(requests);
    (calls > 0).then(|| (after.cpu_s - cpu_s) / calls as f64)
}

/// The main result in one or two sentences: the capacity, and the highest rate that meets each objective.
fn headline(survey: &Survey) -> String {
    let saturation = survey.saturation_rate;
    let Some(capacity) = saturation.measured.or(saturation.predicted) else {
        return "Not determined: the survey ended before it could say what the server can take.".to_owned();
    };
    if !survey.has_valid_measurements() {
        let predicted = saturation.predicted.map(|rate| format!("predicted {}", quantity::rate(rate)));
        let measured = saturation.measured.map(|rate| format!("measured {}", quantity::rate(rate)));
        let figures: Vec<String> = predicted.into_iter().chain(measured).collect();
        return format!(
            "Not determined: the survey is not valid, so do not rely on the most that the server can take: {}.",
            figures.join(" and ")
        );
    }
    let capacity = quantity::rate(capacity);
    let takes = match saturation.measured {
        Some(_) => format!("This server takes {capacity}."),
        None => format!("This server takes {capacity}, as the model predicts; it was not measured."),
    };
    let refuted =
        (!survey.verdict.valid).then(|| "Do not plan with its model, which the measurements refute.".to_owned());
    let answers = survey.objectives.iter().filter_map(objective::sentence);
    [takes].into_iter().chain(answers).chain(refuted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::record::{Reason, ReasonCode, Verdict};
    use brimful_core::survey::ObjectiveOutcome;

    fn example() -> Survey {
        serde_json::from_str(include_str!("../../../web/example.survey.json")).unwrap()
    }

    #[test]
    fn the_headline_is_the_answer() {
        let mut survey = example();
        survey.objectives = vec![RateUnderObjective {
            objective: "p99<50ms".to_owned(),
            outcome: ObjectiveOutcome::MetUpToRate,
            rate: Comparison::new(Some(310.0), Some(300.0)),
            ..RateUnderObjective::default()
        }];
        assert_eq!(
            headline(&survey),
            "This server takes 372/s. Keep it below 300/s if 99 % of calls are to take less than 50 ms."
        );
        let mut say = |outcome, measured| {
            survey.objectives[0].outcome = outcome;
            survey.objectives[0].rate = Comparison::new(Some(310.0), measured);
            headline(&survey).trim_start_matches("This server takes 372/s. ").to_owned()
        };
        assert_eq!(
            say(ObjectiveOutcome::MetUpToCapacity, Some(372.0)),
            "Even at that rate, 99 % of calls take less than 50 ms."
        );
        assert_eq!(
            say(ObjectiveOutcome::MissedAtLightLoad, None),
            "Even at light load, more than 1 % of calls take longer than 50 ms."
        );
        assert_eq!(
            say(ObjectiveOutcome::Undecided, None),
            "By its model, keep it below 310/s if 99 % of calls are to take less than 50 ms; that was not measured."
        );
        survey.objectives[0].measured_interval90 = Some([150.0, 310.0]);
        assert_eq!(
            headline(&survey).trim_start_matches("This server takes 372/s. "),
            "The rate below which 99 % of calls take less than 50 ms is between 150/s and 310/s: this host was too unsteady \
             to measure it more precisely."
        );
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
            objectives: Vec::new(),
            ..example()
        };
        assert_eq!(
            headline(&survey),
            "This server takes 490/s. Do not plan with its model, which the measurements refute."
        );
    }
}
