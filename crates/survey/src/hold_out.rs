//! Measures the held-out load levels. Each was predicted before, and the fit does not use its measurement.

use crate::baseline::ClientLimit;
use crate::calibration::Calibration;
use crate::level::{HostConditions, LevelContext};
use crate::predicted::{PredictedLevel, Predictions};
use crate::runner::{Halt, Runner};
use crate::trial::Trial;
use brimful_core::counts::Counts;
use brimful_core::quantity::{self, count, percent};
use brimful_core::survey::LevelPurpose;
use brimful_estimate::{ResponseSummary, ServerFit};

/// Number of TLS handshakes per call from which a note is written. A handshake costs the server as much CPU time as
/// many calls.
const MIN_NOTED_HANDSHAKES: f64 = 0.002;
/// With more handshakes per call than this, each call is assumed to open its own connection on purpose, and no note is
/// needed.
const DELIBERATE_HANDSHAKES: f64 = 0.5;

/// Measures all held-out load levels. Loads above `--max-load` are left out if this limit also applies after
/// calibration.
pub(crate) fn measure_held_out_levels(
    runner: &mut Runner<'_>,
    calibration: &Calibration,
    client: &ClientLimit,
    predictions: &Predictions,
) -> Result<(), Halt> {
    let impact_limits = runner.setup.impact_limits;
    for level in &predictions.levels {
        if impact_limits.applies_after_calibration && level.fraction > impact_limits.max_load {
            let load = quantity::whole_percent(level.fraction);
            runner.note(format!("left out, because it exceeds --max-load: {} at {load}", level.name));
        } else {
            measure_held_out(runner, calibration, client, level)?;
        }
    }
    Ok(())
}

fn measure_held_out(
    runner: &mut Runner<'_>,
    calibration: &Calibration,
    client: &ClientLimit,
    level: &PredictedLevel,
) -> Result<(), Halt> {
    let load = quantity::whole_percent(level.fraction);
    runner.begin(format!("held out: {}, {load}, {}", level.name, quantity::rate(level.rate)), level.duration);
    let saturation = level.rate / level.fraction;
    client.check(runner, level.rate, saturation)?;
    let ((trial, response), speed) = calibration.anchor.measure_between_anchors(runner, level.duration, |runner| {
        let trial = runner.measure_level(&level.workload, level.duration)?;
        if let Some(text) = handshake_note(&trial.record.counts) {
            runner.note(text);
        }
        let response = response_on_this_host(runner, &calibration.fit, level, &trial)?;
        Ok((trial, response))
    })?;
    let context = LevelContext {
        role: LevelPurpose::HeldOut,
        workload: &level.name,
        saturation,
        predicted: Some(&level.prediction),
        expected: Some(&level.expected),
        host_conditions: HostConditions { speed, response },
    };
    runner.record_level(&trial, &level.workload, &context)
}

/// The response times that the model predicts for the arrivals of this measurement, at the measured speed of the host.
fn response_on_this_host(
    runner: &Runner<'_>,
    fit: &ServerFit,
    level: &PredictedLevel,
    trial: &Trial,
) -> Result<Option<ResponseSummary>, Halt> {
    let mix = level.workload.mix();
    let arrivals = runner.bench.schedule(&level.workload, level.duration, trial.record.seed)?;
    let Some(course) = fit.host_slowness_over_time(&trial.record, level.rate, &mix, &arrivals) else {
        return Ok(None);
    };
    Ok(fit.replay(level.rate, &mix, &course, &arrivals)?)
}

/// A note if TLS handshakes took place during a measurement, because the server closed connections. Connections are
/// opened before each load, because the model does not describe the cost of handshakes.
fn handshake_note(counts: &Counts) -> Option<String> {
    let per_call = counts.handshakes as f64 / counts.completed as f64;
    (MIN_NOTED_HANDSHAKES..DELIBERATE_HANDSHAKES).contains(&per_call).then(|| {
        format!(
            "{} TLS handshakes for {} calls ({}), because the server closes connections (nginx after \
             keepalive_requests, Apache after MaxKeepAliveRequests): the model does not know their cost, and calls wait \
             for them",
            count(counts.handshakes),
            count(counts.completed),
            percent(per_call),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note_of(handshakes: u64, completed: u64) -> Option<String> {
        handshake_note(&Counts { handshakes, completed, ..Counts::default() })
    }

    #[test]
    fn handshakes_are_noted_if_they_are_many_but_fewer_than_one_per_call() {
        let note = note_of(1_200, 60_000).unwrap();
        assert!(note.starts_with("1,200 TLS handshakes for 60,000 calls (2"), "{note}");
        assert!(note.contains("the server closes connections"), "{note}");
        // Four cases without a note: no TLS, 12 connections that remain open, one connection per call, and no completed
        // call.
        for (handshakes, completed) in [(0, 60_000), (12, 60_000), (60_000, 60_000), (5, 0)] {
            assert_eq!(note_of(handshakes, completed), None, "{handshakes} of {completed}");
        }
    }
}
