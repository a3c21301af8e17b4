//! All that a survey predicts, before any of it is measured.

use crate::SurveyError;
use brimful_core::Nanos;
use brimful_estimate::{Prediction, ServerFit};

/// Levels that are predicted first, and how many times as long as a calibration run each lasts: queues near saturation
/// fluctuate for long, so their means need more calls.
const HELD_OUT: [(f64, f64); 5] = [(0.3, 1.0), (0.5, 1.5), (0.7, 3.0), (0.8, 3.0), (0.9, 3.0)];

/// What the model says beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// The rate at which the server saturates.
    pub saturation: f64,
    /// The held-out levels.
    pub levels: Vec<Predicted>,
}

/// A held-out level before it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// Its rate as a fraction of the saturation rate.
    pub fraction: f64,
    /// Calls per second.
    pub rate: f64,
    /// How long it will be measured.
    pub lasts: Nanos,
    /// What will come of it.
    pub prediction: Prediction,
}

impl Predictions {
    /// Of a fitted server; a calibration run lasts as long as `level`.
    pub(crate) fn of(fit: &ServerFit, level: Nanos) -> Result<Predictions, SurveyError> {
        let saturation = fit.saturation();
        let predicted = |(fraction, length)| {
            let rate = fraction * saturation;
            Ok(Predicted { fraction, rate, lasts: times(length, level), prediction: fit.predict(rate)? })
        };
        let levels = HELD_OUT.into_iter().map(predicted).collect::<Result<_, SurveyError>>()?;
        Ok(Predictions { saturation, levels })
    }
}

/// So many times as long as a calibration run.
pub(crate) fn times(length: f64, level: Nanos) -> Nanos {
    Nanos::from_secs_f64(length * level.as_secs_f64())
}
