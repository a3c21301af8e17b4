//! Predictions for a server with a CPU quota. When the quota of a period is exhausted, the operating system stops the
//! server until the next period.

use super::blocks::ServerFacts;
use super::model_fit::ModelFit;
use super::prediction_interval::PredictedValue;
use crate::EstimateError;
use brimful_core::model::Station;
use brimful_model::{Quota, QuotaResponseTimes, simulate_quota};

/// Number of calls that are simulated to estimate the mean response time.
const CALLS: usize = 40_000;

/// The predicted capacity of a server with a CPU quota.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuotaPrediction {
    /// Saturation rate of the mix with the quota, in calls per second.
    pub saturation: f64,
    /// Prediction interval of the saturation rate with the quota, for a host whose speed varies as during calibration.
    pub saturation_interval: Option<PredictedValue>,
    /// Utilization of all CPUs by the server's processes at saturation, 0 to 1.
    pub utilization: f64,
}

/// The server's capacity with the quota. The CPU cost of a call at saturation is assumed to be the same as without the
/// quota. `unlimited` is the predicted saturation rate without the quota.
pub(super) fn capacity(
    fit: &ModelFit,
    facts: &ServerFacts,
    quota: Quota,
    unlimited: Option<PredictedValue>,
) -> QuotaPrediction {
    let demand: f64 = facts.mix.iter().zip(&fit.cpu.demands).map(|(share, demand)| share * demand).sum();
    let free = fit.saturation(&facts.mix);
    let saturation = ((quota.servers - facts.idle_busy).max(0.0) / demand).min(free);
    let scale = |figure: PredictedValue| PredictedValue {
        median: figure.median * saturation / free,
        interval90: figure.interval90.map(|rate| rate * saturation / free),
    };
    QuotaPrediction {
        saturation,
        saturation_interval: unlimited.map(scale),
        utilization: ((facts.idle_busy + saturation * demand) / f64::from(facts.servers)).min(1.0),
    }
}

/// Mean response times at the CPUs, with and without the quota. The same calls are simulated in both cases.
///
/// # Errors
/// If the model cannot be solved.
pub(super) fn response_times(
    fit: &ModelFit,
    facts: &ServerFacts,
    quota: Quota,
    rate: f64,
    seed: u64,
) -> Result<QuotaResponseTimes, EstimateError> {
    let cpu = Station { scv: fit.service_scv, ..fit.cpu.station.clone() };
    let rates: Vec<f64> = facts.mix.iter().map(|share| rate * share).collect();
    Ok(simulate_quota(&cpu, &fit.cpu.demands, &rates, quota, CALLS, seed)?)
}
