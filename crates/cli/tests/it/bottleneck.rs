//! What a survey of the reference server names as full, where it is known what that is. Only on a machine that had nothing
//! else to do is anything said: CPUs that others use are full, too.

use crate::documents;
use crate::program::{Running, brimful, own_machine};
use brimful_core::record::ReasonCode;
use brimful_core::survey::Survey;

/// Surveys it with its CPU to itself; `None` where other work, or a client that was the limit, leaves nothing to say.
/// On a machine that is busy for a moment calls take too long, and a survey says so and has no model: it is tried again.
fn survey_of(options: &[&str]) -> Option<Survey> {
    let _machine = own_machine();
    let serve = ["target", "--listen", "127.0.0.1:0", "--cpus", "0"];
    let mut target = Running::start(brimful(&[&serve[..], options].concat()));
    let url = target.stdout_line().trim_end().trim_start_matches("listening on ").to_owned();
    let pid = target.pid().to_string();
    let how =
        ["survey", &url, "--process", &pid, "--server-cpus", "0", "--cpus", "1", "--json", "--report", "/dev/null"];
    let short = ["--level", "300ms", "--max-load", "100%", "--timeout", "1s"];
    let of_model = |code| matches!(code, ReasonCode::ModelRefuted | ReasonCode::ServerErrors);
    let mut verdict = None;
    for _ in 0..3 {
        let done = Running::start(brimful(&[&how[..], &short].concat())).finish().exits(&[0, 1, 3, 4]);
        let survey = documents::survey(&done.stdout);
        if !survey.verdict.reasons.iter().all(|reason| of_model(reason.code)) {
            return None;
        }
        if survey.bottleneck.is_some() {
            return Some(survey);
        }
        let failed = survey.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::ServerErrors);
        verdict = Some((survey.verdict, survey.headline));
        if !failed {
            break;
        }
    }
    panic!("no model: {verdict:?}");
}

fn is_full(survey: &Survey, names: &[&str], how: &str) {
    let (name, why) = (survey.bottleneck.as_deref().unwrap(), survey.bottleneck_evidence.as_deref().unwrap());
    assert!(names.contains(&name) && why.contains(how), "{name}: {why}");
    assert!(survey.saturation_rate.error.unwrap().abs() < 0.15, "{:?}", survey.saturation_rate);
    assert!(survey.model.stations.iter().any(|station| station.name == name), "{:?}", survey.model.stations);
}

#[test]
fn a_lock() {
    let Some(survey) = survey_of(&["--service", "a=300us+sleep:2ms", "--workers", "16", "--pool", "1"]) else { return };
    is_full(&survey, &["lock or backend"], "one call at a time, by elimination");
}

/// Whether it is held on the CPUs as well, so short a time does not tell.
#[test]
fn a_pool_of_four() {
    let Some(survey) = survey_of(&["--service", "a=400us+sleep:4ms", "--workers", "16", "--pool", "4"]) else { return };
    is_full(&survey, &["workers", "backend pool"], "4 ");
}

#[test]
fn threads_that_sleep() {
    // The target also has a main thread and one for signals: among eighteen, sixteen workers are told more surely than
    // eight among ten.
    let Some(survey) = survey_of(&["--service", "a=200us+sleep:8ms", "--workers", "16"]) else { return };
    is_full(&survey, &["workers"], " at a time, as many as ");
}
