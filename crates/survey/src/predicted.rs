//! The predictions of a survey.

use brimful_core::workload::Workload;
use brimful_core::{Nanos, Slo, SloSpec};
use brimful_estimate::{PredictedMeasurement, PredictedValue, Prediction};
use std::fmt;

/// All predictions of a survey, and the durations of the measurements that will test them.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// Predicted saturation rate, in calls per second.
    pub saturation: f64,
    /// Predicted saturation rate with its prediction interval, for a host whose speed varies as during calibration.
    pub saturation_interval: Option<PredictedValue>,
    /// Duration of the load that will measure the saturation rate.
    pub saturation_level_duration: Nanos,
    /// The predictions of the load levels that will be measured after calibration.
    pub levels: Vec<PredictedLevel>,
    /// Time from the end of calibration to the end of the measurement of the saturation rate, which is the last one.
    pub levels_duration: Nanos,
    /// The predicted highest rates that meet the objectives.
    pub objectives: Vec<PredictedObjective>,
}

/// The prediction of a load level that is measured after calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedLevel {
    /// Name of the workload in the document: `mix`, `unseen mix` or `bursts`.
    pub name: String,
    /// The offered rate, as a share of the saturation rate of the same mix.
    pub fraction: f64,
    /// The offered rate, in calls per second.
    pub rate: f64,
    /// Duration for which the load level will be measured.
    pub duration: Nanos,
    /// The workload that will be offered.
    pub workload: Workload,
    /// The prediction for a host with constant speed. For bursty arrivals, it has no response times.
    pub prediction: Prediction,
    /// The prediction for a host whose speed varies as during calibration.
    pub expected: PredictedMeasurement,
}

/// An objective, the value of its metric at light load, and the predicted highest rate that meets it.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedObjective {
    /// The objective as the user wrote it.
    pub spec: SloSpec,
    /// The objective with an absolute limit. `None` if the limit is relative to the value at light load, and that value
    /// is unknown.
    pub slo: Option<Slo>,
    /// The value of the objective's metric at light load: a response time in seconds, or the share of failed calls.
    pub light_load: Option<f64>,
    /// Whether the server misses the objective even at light load.
    pub is_missed_at_light_load: bool,
    /// The predicted highest rate that meets the objective, in calls per second. `None` if the objective limits the
    /// share of failed calls, which the model does not predict, or if the server misses the objective at light load.
    pub rate: Option<PredictedValue>,
}

impl fmt::Display for PredictedObjective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.slo {
            Some(slo) => slo.fmt(f),
            None => self.spec.fmt(f),
        }
    }
}
