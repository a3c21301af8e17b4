//! All that a survey predicts, before any of it is measured.

use crate::SurveyError;
use crate::bench::Bench;
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_estimate::{ExpectedLevel, PredictedFigure, Prediction, ServerFit};

/// Levels that are predicted first, and how many times as long as `--level` each lasts: queues near saturation fluctuate
/// for long, so their means need more calls.
const HELD_OUT: [(f64, f64); 5] = [(0.3, 1.0), (0.5, 1.0), (0.7, 1.5), (0.8, 2.0), (0.9, 2.0)];
/// A mix that calibration never saw, at this share of what would saturate the server.
const UNSEEN: (f64, f64) = (0.6, 1.0);
/// Bursts: at this mean share of the saturation rate, calls come on and off.
const BURSTS: (f64, f64) = (0.5, 1.0);
const BURSTS_NAME: &str = "bursts";
/// On for a while and off for as long on average, at 1.6 and 0.4 times the mean rate.
pub(crate) const ON_OFF: &str = "mmpp:1.6,50%,200ms";
/// How many times as long as `--level` the closed level lasts that finds the saturation rate.
const SATURATION: f64 = 1.0;

/// What the model says beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// The rate at which the server saturates.
    pub saturation: f64,
    /// The same on a host as variable as calibration saw it, over the time for which it is measured.
    pub saturation_spread: Option<PredictedFigure>,
    /// How long that is measured.
    pub saturation_lasts: Nanos,
    /// The held-out levels.
    pub levels: Vec<Predicted>,
}

/// A held-out level before it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// `mix`, `unseen mix` or `bursts`.
    pub name: String,
    /// Its rate as a fraction of the saturation rate of its mix.
    pub fraction: f64,
    /// Calls per second.
    pub rate: f64,
    /// How long it will be measured.
    pub lasts: Nanos,
    /// What will be offered.
    pub workload: Workload,
    /// What will come of it on a host that keeps its speed; of response times in bursts the model by itself says nothing.
    pub prediction: Prediction,
    /// The same on a host as variable as calibration saw it.
    pub expected: ExpectedLevel,
}

impl Predictions {
    /// Of a fitted server that was calibrated under this mix; a level of one share lasts as long as `level`.
    pub(crate) fn of(
        fit: &ServerFit,
        mix: &Workload,
        level: Nanos,
        bench: &dyn Bench,
    ) -> Result<Predictions, SurveyError> {
        let saturation = fit.saturation();
        let poisson = |workload: &Workload, rate| offered(workload, Load::poisson(Rate(rate)));
        let mut levels = Vec::new();
        for (fraction, length) in HELD_OUT {
            let rate = fraction * saturation;
            levels.push(predict(fit, bench, ("mix", fraction), poisson(mix, rate), times(length, level))?);
        }
        if let Some(unseen) = unseen(mix) {
            let rate = UNSEEN.0 * fit.saturation_of(&unseen.mix());
            let lasts = times(UNSEEN.1, level);
            levels.push(predict(fit, bench, ("unseen mix", UNSEEN.0), poisson(&unseen, rate), lasts)?);
        }
        let rate = Rate(BURSTS.0 * saturation);
        let bursts = offered(mix, Load::Open { rate, arrivals: ON_OFF.to_owned() });
        levels.push(predict(fit, bench, (BURSTS_NAME, BURSTS.0), bursts, times(BURSTS.1, level))?);
        let saturation_lasts = saturation_lasts(level);
        let saturation_spread = fit.expect_saturation(&mix.mix(), saturation_lasts.as_secs_f64());
        Ok(Predictions { saturation, saturation_spread, saturation_lasts, levels })
    }
}

/// What a held-out level is a share of its mix's saturation rate, and how long it lasts.
pub(crate) fn planned(mix: &Workload, level: Nanos) -> Vec<(f64, Nanos)> {
    let of_unseen = unseen(mix).map(|_| UNSEEN);
    let all = HELD_OUT.into_iter().chain(of_unseen).chain([BURSTS]);
    all.map(|(fraction, length)| (fraction, times(length, level))).collect()
}

/// How long the capacity is measured.
pub(crate) fn saturation_lasts(level: Nanos) -> Nanos {
    times(SATURATION, level)
}

fn predict(
    fit: &ServerFit,
    bench: &dyn Bench,
    (name, fraction): (&str, f64),
    workload: Workload,
    lasts: Nanos,
) -> Result<Predicted, SurveyError> {
    let rate = if let Some(Load::Open { rate, .. }) = &workload.load { rate.0 } else { 0.0 };
    let mix = workload.mix();
    let mut failed = None;
    // Seeds of their own: what will be offered is another draw of the same load.
    let mut arrivals = |seed: u64, seconds: f64| {
        bench.schedule(&workload, Nanos::from_secs_f64(seconds), seed.wrapping_mul(0x9e37_79b9)).unwrap_or_else(
            |error| {
                failed = Some(error);
                Vec::new()
            },
        )
    };
    let expected = fit.expect_level(rate, &mix, lasts.as_secs_f64(), &mut arrivals);
    if let Some(error) = failed {
        return Err(error);
    }
    let mut prediction = fit.predict_mix(rate, &mix)?;
    if name == BURSTS_NAME {
        (prediction.response, prediction.class_response) = (None, None);
    }
    Ok(Predicted { name: name.to_owned(), fraction, rate, lasts, prediction, expected: expected?, workload })
}

fn offered(workload: &Workload, load: Load) -> Workload {
    Workload { load: Some(load), ..workload.clone() }
}

/// The shares of the classes the other way round, or where that changes nothing, unequal.
fn unseen(mix: &Workload) -> Option<Workload> {
    if mix.classes.len() < 2 {
        return None;
    }
    let mut unseen = mix.clone();
    let shares: Vec<f64> = mix.mix().into_iter().rev().collect();
    let same = shares.iter().zip(mix.mix()).all(|(a, b)| (a - b).abs() < 0.05);
    for (index, (class, share)) in unseen.classes.iter_mut().zip(shares).enumerate() {
        class.weight = if same { (index + 1) as f64 } else { share };
    }
    Some(unseen)
}

/// So many times as long.
pub(crate) fn times(length: f64, level: Nanos) -> Nanos {
    Nanos::from_secs_f64(length.max(0.0) * level.as_secs_f64())
}
