//! The method of a survey: the sequence of its phases. It warms the server up, measures the client's maximum rate,
//! calibrates the server, fits a model and announces all predictions. Only then does it measure the predicted load
//! levels. Each phase is a function in a separate file. The method uses only a [`Bench`] to load the server and to
//! wait.

use crate::SurveyError;
use crate::baseline::{find_client_limit, watch_idle};
use crate::bench::Bench;
use crate::calibration::calibrate;
use crate::connections::choose_connections;
use crate::document::{Findings, document};
use crate::duration::estimated_duration;
use crate::first_look::measure_initially;
use crate::hold_out::measure_held_out_levels;
use crate::objective::{predicted_only, search_rates};
use crate::overload::measure_overload;
use crate::predictions::{PREDICTION_TIME, predict_all};
use crate::runner::{Halt, Runner, SurveyEvent};
use crate::saturation::{leave_out_saturation, measure_saturation};
use crate::setup::Setup;
use crate::warm_server_up::warm_server_up;
use crate::what_if::{measure_change, try_change};
use brimful_core::survey::Survey;

/// Surveys a server. Once the first load level is measured, the result is always a document. If the survey ended early,
/// the document states why.
///
/// # Errors
/// [`SurveyError`] if the survey fails before the first load level is measured.
pub(crate) fn run_survey(
    setup: &Setup,
    bench: &mut dyn Bench,
    listener: &mut dyn FnMut(SurveyEvent),
) -> Result<Survey, SurveyError> {
    let mut runner = Runner::new(setup, bench, listener);
    let mut findings = Findings::default();
    let halt = run_phases(&mut runner, &mut findings).err();
    let log = runner.log;
    match halt {
        Some(Halt::Error(error)) if log.levels.is_empty() => Err(error),
        halt => Ok(document(setup, findings, log, halt.as_ref())),
    }
}

fn run_phases(runner: &mut Runner<'_>, findings: &mut Findings) -> Result<(), Halt> {
    let setup = runner.setup;
    let first = measure_initially(runner)?;
    findings.connections = choose_connections(runner, &first)?;
    let change = try_change(runner)?;
    let duration = estimated_duration(setup, &findings.connections, first.rate, change);
    runner.announce(SurveyEvent::EstimatedDuration(duration));
    let warm_rate = warm_server_up(runner, &findings.connections)?;
    findings.client = find_client_limit(runner, first.response, warm_rate)?;
    findings.idle = watch_idle(runner)?;
    let client = &findings.client;

    let calibration = calibrate(runner, first.rate, client.limit, &findings.idle, &mut findings.connections)?;
    let calibration = &*findings.calibration.insert(calibration);

    runner.begin("the predictions".to_owned(), PREDICTION_TIME);
    let predictions = predict_all(runner, calibration)?;
    let predictions = &*findings.predictions.insert(predictions);
    findings.objectives = predicted_only(&predictions.objectives);
    runner.announce(SurveyEvent::Predicted(predictions.clone()));

    measure_held_out_levels(runner, calibration, client, predictions)?;
    if setup.impact_limits.applies_after_calibration {
        runner.note(
            "the capacity itself is not measured, because it exceeds --max-load; light load does not show whether anything \
             saturates before the CPUs do"
                .to_owned(),
        );
        return Ok(());
    }
    if !calibration.is_saturated {
        return leave_out_saturation(runner, calibration, client, predictions.saturation);
    }
    findings.saturation = measure_saturation(runner, calibration, client, predictions)?;
    let capacity = findings.saturation.as_ref().map_or(predictions.saturation, |saturation| saturation.rate);
    search_rates(runner, &predictions.objectives, capacity, &mut findings.objectives)?;
    findings.overload = measure_overload(runner, calibration, client, &findings.connections)?;
    if let Some(change) = change {
        findings.what_if = Some(measure_change(runner, calibration, change, predictions.levels_duration)?);
    }
    Ok(())
}
