//! Computes the predictions of a survey, before any of the predicted load levels is measured.

use crate::SurveyError;
use crate::bench::Bench;
use crate::calibration::Calibration;
use crate::design::{RUN_SET_UP, anchor_duration};
use crate::objective::predict_objectives;
use crate::predicted::{PredictedLevel, Predictions};
use crate::runner::{Halt, Runner};
use crate::setup::{Setup, times, with_load};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_estimate::{MeasurementTime, ServerFit};

/// Approximate time to compute the predictions.
pub(crate) const PREDICTION_TIME: Nanos = Nanos::from_secs(1);
/// The load levels of the mix that test the predictions: rate as a share of the saturation rate, and duration in units
/// of `--level`. Queues near saturation fluctuate slowly, so heavier loads last longer.
const HELD_OUT: [(f64, f64); 2] = [(0.5, 1.0), (0.7, 1.5)];
/// The load levels of the mix that test the predictions in a thorough survey, like [`HELD_OUT`].
const HELD_OUT_THOROUGH: [(f64, f64); 5] = [(0.3, 1.0), (0.5, 1.0), (0.7, 1.5), (0.8, 2.0), (0.9, 2.0)];
/// The load of a mix that calibration did not measure: rate as a share of this mix's saturation rate, and duration in
/// units of `--level`.
const UNSEEN_MIX: (f64, f64) = (0.6, 1.0);
/// The load with bursty arrivals that tests the predictions: mean rate as a share of the saturation rate, and duration
/// in units of `--level`.
const BURSTY_LOAD: (f64, f64) = (0.5, 1.0);
const BURSTS_NAME: &str = "bursts";
/// Bursty arrivals: 1.6 times the mean rate for 200 ms on average, then 0.4 times the mean rate for 200 ms on average.
pub(crate) const ON_OFF: &str = "mmpp:1.6,50%,200ms";
/// Duration of the load that measures the saturation rate, in units of `--level`.
const SATURATION_DURATION: f64 = 1.0;

/// Computes all predictions with the calibrated model.
pub(crate) fn predict_all(runner: &Runner<'_>, calibration: &Calibration) -> Result<Predictions, Halt> {
    let setup = runner.setup;
    let fit = &calibration.fit;
    let mix = &setup.workload;
    let bench = &*runner.bench;
    let saturation = fit.saturation();
    let anchor = anchor_duration(setup, calibration.anchor.clients, saturation);
    let mut timetable = Timetable { anchor, elapsed: PREDICTION_TIME };
    let mut levels = Vec::new();
    for (fraction, length) in held_out(setup) {
        let workload = with_load(mix, Load::poisson(Rate(fraction * saturation)));
        let time = timetable.next(times(*length, setup.level_duration));
        levels.push(predict(fit, bench, "mix", *fraction, workload, time)?);
    }
    if let Some(unseen) = unseen_mix(mix).filter(|_| setup.thorough) {
        let (fraction, length) = UNSEEN_MIX;
        let rate = fraction * fit.saturation_for_mix(&unseen.mix());
        let workload = with_load(&unseen, Load::poisson(Rate(rate)));
        let time = timetable.next(times(length, setup.level_duration));
        levels.push(predict(fit, bench, "unseen mix", fraction, workload, time)?);
    }
    if setup.thorough {
        let (fraction, length) = BURSTY_LOAD;
        let arrivals = ON_OFF.to_owned();
        let workload = with_load(mix, Load::Open { rate: Rate(fraction * saturation), arrivals });
        let time = timetable.next(times(length, setup.level_duration));
        levels.push(predict(fit, bench, BURSTS_NAME, fraction, workload, time)?);
    }
    let saturation_level_duration = saturation_duration(setup.level_duration);
    let saturation_interval = fit.predict_saturation(&mix.mix(), timetable.next(saturation_level_duration));
    let levels_duration = timetable.elapsed;
    let objectives = predict_objectives(runner, calibration, levels_duration)?;
    Ok(Predictions { saturation, saturation_interval, saturation_level_duration, levels, levels_duration, objectives })
}

/// The loads (as shares of the saturation rate) and the durations of all predicted load levels. They do not depend on
/// the model.
pub(crate) fn planned_levels(setup: &Setup) -> Vec<(f64, Nanos)> {
    let unseen = unseen_mix(&setup.workload).map(|_| UNSEEN_MIX);
    let thorough = unseen.into_iter().chain([BURSTY_LOAD]).filter(|_| setup.thorough);
    let levels = held_out(setup).iter().copied().chain(thorough);
    levels.map(|(fraction, length)| (fraction, times(length, setup.level_duration))).collect()
}

/// The loads and durations of the predicted load levels of the mix.
fn held_out(setup: &Setup) -> &'static [(f64, f64)] {
    if setup.thorough { &HELD_OUT_THOROUGH } else { &HELD_OUT }
}

/// Duration of the load that measures the saturation rate.
pub(crate) fn saturation_duration(level_duration: Nanos) -> Nanos {
    times(SATURATION_DURATION, level_duration)
}

/// Computes the start times of the load levels, each of which is measured between two anchors (short loads that measure
/// the host's speed).
struct Timetable {
    /// Maximum duration of an anchor.
    anchor: Nanos,
    /// Time from the end of calibration to the end of the last load level so far.
    elapsed: Nanos,
}

impl Timetable {
    /// The start and the duration of the next load level.
    fn next(&mut self, duration: Nanos) -> MeasurementTime {
        let anchor = self.anchor.min(duration) + RUN_SET_UP;
        let start = self.elapsed + anchor;
        self.elapsed = start + duration + RUN_SET_UP + anchor;
        MeasurementTime { ahead_s: start.as_secs_f64(), seconds: duration.as_secs_f64() }
    }
}

fn predict(
    fit: &ServerFit,
    bench: &dyn Bench,
    name: &str,
    fraction: f64,
    workload: Workload,
    time: MeasurementTime,
) -> Result<PredictedLevel, SurveyError> {
    let rate = if let Some(Load::Open { rate, .. }) = &workload.load { rate.0 } else { 0.0 };
    let mix = workload.mix();
    let mut failure = None;
    // Use other seeds than the later measurements, so that the predictions do not use the arrivals of these
    // measurements.
    let mut arrivals = |seed: u64, seconds: f64| {
        let seed = seed.wrapping_mul(0x9e37_79b9);
        bench.schedule(&workload, Nanos::from_secs_f64(seconds), seed).unwrap_or_else(|error| {
            failure = Some(error);
            Vec::new()
        })
    };
    let expected = fit.predict_measurement(rate, &mix, time, &mut arrivals);
    if let Some(error) = failure {
        return Err(error);
    }
    let mut prediction = fit.predict_mix(rate, &mix)?;
    if name == BURSTS_NAME {
        prediction.response = None;
        prediction.class_response_times = None;
    }
    let duration = Nanos::from_secs_f64(time.seconds);
    Ok(PredictedLevel { name: name.to_owned(), fraction, rate, duration, prediction, expected: expected?, workload })
}

/// A mix that calibration did not measure: the shares of the classes in reverse order. If that is the same mix, the
/// classes have the weights 1, 2, 3, … instead. `None` for a single class.
fn unseen_mix(mix: &Workload) -> Option<Workload> {
    if mix.classes.len() < 2 {
        return None;
    }
    let mut unseen = mix.clone();
    let shares: Vec<f64> = mix.mix().into_iter().rev().collect();
    let is_symmetric = shares.iter().zip(mix.mix()).all(|(reversed, share)| (reversed - share).abs() < 0.05);
    for (index, (class, share)) in unseen.classes.iter_mut().zip(shares).enumerate() {
        class.weight = if is_symmetric { (index + 1) as f64 } else { share };
    }
    Some(unseen)
}
