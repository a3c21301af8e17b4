//! All predictions of a survey, made before any of the predicted levels is measured.

use crate::SurveyError;
use crate::bench::Bench;
use crate::calibration::Calibration;
use crate::design::anchor_duration;
use crate::duration::RUN_SET_UP;
use crate::objective::{PredictedObjective, predict_objectives};
use crate::runner::{Halt, Runner};
use crate::setup::{Setup, times, with_load};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_estimate::{ExpectedLevel, LevelTime, PredictedValue, Prediction, ServerFit};

/// Approximate time that it takes to compute the predictions.
pub(crate) const PREDICTING: Nanos = Nanos::from_secs(1);
/// The held-out levels of the calibrated mix: load as a fraction of the saturation rate, and length in units of
/// `--level`. Queues near saturation fluctuate slowly, so high loads last longer.
const HELD_OUT: [(f64, f64); 2] = [(0.5, 1.0), (0.7, 1.5)];
/// The held-out levels of a thorough survey, which also measures an unseen mix and bursts.
const HELD_OUT_THOROUGH: [(f64, f64); 5] = [(0.3, 1.0), (0.5, 1.0), (0.7, 1.5), (0.8, 2.0), (0.9, 2.0)];
/// Load and length of the held-out level of a mix that calibration did not measure. The load is a fraction of that
/// mix's own saturation rate.
const UNSEEN: (f64, f64) = (0.6, 1.0);
/// Load and length of the held-out level of bursts. The load is the mean rate as a fraction of the saturation rate.
const BURSTS: (f64, f64) = (0.5, 1.0);
const BURSTS_NAME: &str = "bursts";
/// Arrivals of the bursts: 1.6 times the mean rate for 200 ms on average, then 0.4 times the mean rate for the same
/// time.
pub(crate) const ON_OFF: &str = "mmpp:1.6,50%,200ms";
/// Length of the closed level that measures the saturation rate, in units of `--level`.
const SATURATION: f64 = 1.0;

/// The model's predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// The saturation rate, in calls per second.
    pub saturation: f64,
    /// The saturation rate on a host whose speed varies as it did during calibration, averaged over
    /// `saturation_level_duration`.
    pub saturation_interval: Option<PredictedValue>,
    /// Duration for which the saturation rate will be measured.
    pub saturation_level_duration: Nanos,
    /// The predictions of the held-out levels.
    pub levels: Vec<PredictedLevel>,
    /// Time from the end of calibration to the end of the last level, the one that measures the saturation rate.
    pub levels_last: Nanos,
    /// The predictions of the rates under the objectives.
    pub objectives: Vec<PredictedObjective>,
}

/// A held-out level, before its measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedLevel {
    /// `mix`, `unseen mix` or `bursts`.
    pub name: String,
    /// The level's rate as a fraction of the saturation rate of its mix.
    pub fraction: f64,
    /// The level's rate, in calls per second.
    pub rate: f64,
    /// Duration for which the level will be measured.
    pub duration: Nanos,
    /// The workload that will be offered.
    pub workload: Workload,
    /// The prediction for a host of constant speed. It has no response times for bursts.
    pub prediction: Prediction,
    /// The prediction for a host whose speed varies as it did during calibration.
    pub expected: ExpectedLevel,
}

impl Predictions {
    /// Makes all predictions, from the fit of calibration.
    pub(crate) fn new(runner: &Runner<'_>, calibration: &Calibration) -> Result<Predictions, Halt> {
        let setup = runner.setup;
        let fit = &calibration.fit;
        let mix = &setup.workload;
        let bench = &*runner.bench;
        let saturation = fit.saturation();
        let anchor = anchor_duration(setup, calibration.anchor.clients, saturation);
        let mut timetable = Timetable { anchor, elapsed: PREDICTING };
        let mut levels = Vec::new();
        for (fraction, length) in held_out(setup) {
            let workload = with_load(mix, Load::poisson(Rate(fraction * saturation)));
            let time = timetable.next(times(*length, setup.level));
            levels.push(predict(fit, bench, "mix", *fraction, workload, time)?);
        }
        if let Some(unseen) = unseen_mix(mix).filter(|_| setup.thorough) {
            let (fraction, length) = UNSEEN;
            let rate = fraction * fit.saturation_for_mix(&unseen.mix());
            let workload = with_load(&unseen, Load::poisson(Rate(rate)));
            let time = timetable.next(times(length, setup.level));
            levels.push(predict(fit, bench, "unseen mix", fraction, workload, time)?);
        }
        if setup.thorough {
            let (fraction, length) = BURSTS;
            let arrivals = ON_OFF.to_owned();
            let workload = with_load(mix, Load::Open { rate: Rate(fraction * saturation), arrivals });
            let time = timetable.next(times(length, setup.level));
            levels.push(predict(fit, bench, BURSTS_NAME, fraction, workload, time)?);
        }
        let saturation_level_duration = saturation_duration(setup.level);
        let saturation_interval = fit.predict_saturation(&mix.mix(), timetable.next(saturation_level_duration));
        let levels_last = timetable.elapsed;
        let objectives = predict_objectives(runner, calibration, levels_last)?;
        Ok(Predictions { saturation, saturation_interval, saturation_level_duration, levels, levels_last, objectives })
    }
}

/// The loads and durations of the held-out levels; they do not depend on the model.
pub(crate) fn planned_levels(setup: &Setup) -> Vec<(f64, Nanos)> {
    let unseen = unseen_mix(&setup.workload).map(|_| UNSEEN);
    let thorough = unseen.into_iter().chain([BURSTS]).filter(|_| setup.thorough);
    let levels = held_out(setup).iter().copied().chain(thorough);
    levels.map(|(fraction, length)| (fraction, times(length, setup.level))).collect()
}

/// The held-out levels of the calibrated mix.
fn held_out(setup: &Setup) -> &'static [(f64, f64)] {
    if setup.thorough { &HELD_OUT_THOROUGH } else { &HELD_OUT }
}

/// Duration for which the saturation rate will be measured.
pub(crate) fn saturation_duration(level: Nanos) -> Nanos {
    times(SATURATION, level)
}

/// Computes the times of consecutive levels, each of which is measured between two anchors.
struct Timetable {
    /// Duration of an anchor.
    anchor: Nanos,
    /// Time from the end of calibration to the end of the last level so far.
    elapsed: Nanos,
}

impl Timetable {
    /// The time of the next level, for its duration.
    fn next(&mut self, duration: Nanos) -> LevelTime {
        let anchor = self.anchor.min(duration) + RUN_SET_UP;
        let start = self.elapsed + anchor;
        self.elapsed = start + duration + RUN_SET_UP + anchor;
        LevelTime { ahead_s: start.as_secs_f64(), seconds: duration.as_secs_f64() }
    }
}

fn predict(
    fit: &ServerFit,
    bench: &dyn Bench,
    name: &str,
    fraction: f64,
    workload: Workload,
    time: LevelTime,
) -> Result<PredictedLevel, SurveyError> {
    let rate = if let Some(Load::Open { rate, .. }) = &workload.load { rate.0 } else { 0.0 };
    let mix = workload.mix();
    let mut failure = None;
    // These seeds differ from the seeds of the measured level, so that the prediction does not use the same arrivals.
    let mut arrivals = |seed: u64, seconds: f64| {
        let seed = seed.wrapping_mul(0x9e37_79b9);
        bench.schedule(&workload, Nanos::from_secs_f64(seconds), seed).unwrap_or_else(|error| {
            failure = Some(error);
            Vec::new()
        })
    };
    let expected = fit.predict_level(rate, &mix, time, &mut arrivals);
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

/// The mix with the shares of its classes in reverse order, or with unequal shares if the reversal changes nothing.
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
