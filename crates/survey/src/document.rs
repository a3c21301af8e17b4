//! The survey's document, from what was predicted and what was measured, however far the survey came.

use crate::found::{Found, Halt, Setup};
use crate::judge;
use brimful_core::Nanos;
use brimful_core::quantity;
use brimful_core::survey::{Comparison, Demand, Level, Role, SCHEMA, Stopped, Survey};
use brimful_core::workload::RequestClass;
use brimful_estimate::ServerFit;
use brimful_estimate::server::OPERATING_SHARE;

/// From here on an error of the host's is told with the answer.
const NOTABLE: f64 = 0.05;

/// Sums up. `halt` is what ended the survey early, if anything did.
pub(crate) fn document(setup: &Setup, mut found: Found, halt: Option<&Halt>) -> Survey {
    found.doubts.extend(found.throttled.take().map(|throttled| throttled.reason));
    found.levels.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let predicted = found.fit.as_ref().map(ServerFit::saturation);
    let saturation = Comparison {
        interval90: found.saturation_interval,
        measured_ci95_half_width: found.saturation.and_then(|(_, ci)| ci),
        ..Comparison::new(predicted, found.saturation.map(|(rate, _)| rate))
    };
    let saturation = saturation.given_host(predicted.zip(found.saturation_speed).map(|(rate, speed)| rate * speed));
    let full = found.fit.as_ref().filter(|fit| fit.bottleneck() != fit.station());
    let full = full.map(|fit| format!("{}: {}", fit.bottleneck(), fit.evidence()));
    let mut survey = Survey {
        schema: SCHEMA.to_owned(),
        started_at: humantime::format_rfc3339_millis(setup.started_at).to_string(),
        brimful_version: setup.version.clone(),
        command: setup.command.clone(),
        seed: setup.seed,
        url: setup.url.clone(),
        headline: String::new(),
        saturation_rate: saturation,
        demands: demands(setup, &found),
        client_max_rate: found.client_max,
        verdict: judge::verdict(&found.levels, &found.doubts, saturation, full.as_deref(), halt, &found.step),
        model: found.fit.as_ref().map(ServerFit::model).unwrap_or_default(),
        stopped: halt.map(|halt| stopped(halt, &found.step)),
        server_cpus: setup.server_cpus.clone(),
        client_cpus: setup.client_cpus.clone(),
        background: found.background,
        wakeup_s: found.fit.as_ref().map(|fit| fit.wakeup.value),
        laws: found.fit.as_ref().map(|fit| fit.laws().to_vec()).unwrap_or_default(),
        throughput_by_clients: found.fit.as_ref().map(ServerFit::throughput_by_clients).unwrap_or_default(),
        bottleneck: found.fit.as_ref().map(|fit| fit.bottleneck().to_owned()),
        bottleneck_evidence: found.fit.as_ref().map(|fit| fit.evidence().to_owned()),
        programs: found.fit.as_ref().map(|fit| fit.programs(&found.idle_programs)).unwrap_or_default(),
        inside: found.fit.as_ref().and_then(ServerFit::inside),
        speed_by_block: found.fit.as_ref().map(ServerFit::speed_by_block).unwrap_or_default(),
        connections: found.connections,
        inflicted: found.inflicted,
        what_if: found.what_if,
        elapsed_s: None,
        report: None,
        levels: found.levels,
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

/// At the CPUs, and at what is full if it is something else.
fn demands(setup: &Setup, found: &Found) -> Vec<Demand> {
    let Some(fit) = &found.fit else { return Vec::new() };
    let classes = || setup.workload.classes.iter().enumerate();
    let held = |(index, class): (usize, &Class)| {
        let held = fit.holding_time(index)?;
        Some(Demand {
            station: fit.bottleneck().to_owned(),
            class: class.name.clone(),
            seconds: held.value,
            ci95_half_width: held.ci95_half_width,
            truth: None,
        })
    };
    classes().filter_map(|class| demand(fit, found, class)).chain(classes().filter_map(held)).collect()
}

fn demand(fit: &ServerFit, found: &Found, (index, class): (usize, &RequestClass)) -> Option<Demand> {
    let fitted = fit.demands.get(index)?;
    Some(Demand {
        station: fit.station().to_owned(),
        class: class.name.clone(),
        seconds: fitted.value,
        ci95_half_width: fitted.ci95_half_width,
        truth: true_demand(found, &class.name),
    })
}

/// What the reference server really spent on a call of the class while it was saturated, so without the overhead of a
/// server that sleeps and wakes; the fit has not seen that level.
fn true_demand(found: &Found, class: &str) -> Option<f64> {
    let (before, after) = found.truth.as_ref()?;
    let after = after.classes.get(class)?;
    let (requests, cpu_s) = before.classes.get(class).map_or((0, 0.0), |c| (c.requests, c.cpu_s));
    let calls = after.requests.saturating_sub(requests);
    (calls > 0).then(|| (after.cpu_s - cpu_s) / calls as f64)
}

/// What the server can take, and how long a call takes at the load at which that was measured.
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
            format!("{predicted} beforehand, {}{hosts}", quantity::signed_percent(error))
        }
        _ => "as the model predicts; it was not measured".to_owned(),
    };
    let at_operating = survey.levels.iter().filter(|level| level.role == Role::HeldOut && level.verdict.valid);
    let at_operating = at_operating.min_by(|a, b| off_operating(a).total_cmp(&off_operating(b)));
    let response = at_operating.and_then(|level| {
        let mean = Nanos::from_secs_f64(level.response_time_s.measured?).rounded();
        Some(format!(" At {} a call took {mean} on average.", quantity::rate(level.offered)))
    });
    let refuted = if survey.verdict.valid { "" } else { " Do not plan with its model, which the measurements refute." };
    format!("This server can take {} ({basis}).{}{refuted}", quantity::rate(capacity), response.unwrap_or_default())
}

/// How far a level is from the load that a server is run at.
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
            "This server can take 372/s (predicted 370/s beforehand, −0.6 %). At 259/s a call took 8.92 ms on average."
        );
        // However far the measured capacity is from the predicted one, the level was offered what it was.
        survey.saturation_rate = Comparison::new(Some(370.0), Some(300.0));
        assert!(headline(&survey).ends_with(" At 259/s a call took 8.92 ms on average."), "{}", headline(&survey));
        survey.saturation_rate = Comparison::new(Some(370.0), Some(300.0)).given_host(Some(310.0));
        assert!(headline(&survey).contains("+23.3 %; +20.0 % of that is the host's, "), "{}", headline(&survey));
        // A level in doubt is not quoted.
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
            "This server can take 490/s (predicted 300/s beforehand, −38.8 %). At 259/s a call took 8.92 ms on \
             average. Do not plan with its model, which the measurements refute."
        );
    }
}
