//! The `Survey` document: the predictions of a server's performance, the subsequent measurements, and the errors of the
//! predictions.
//!
//! Scripts rely on the field names. Times are seconds, rates are per second, utilizations and CPU shares are fractions
//! between 0 and 1.

mod connections;

pub use connections::Connections;

use crate::JsonSchema;
use crate::model::Model;
use crate::record::{Machine, ReasonCode, Verdict};
use crate::server::CpuShares;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`Survey::schema`].
pub const SCHEMA: &str = "brimful.survey/1";

/// The results of one survey, which measures a server, fits a model, and tests the model's predictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Survey {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// The brimful command that made the survey, with its arguments.
    pub command: Vec<String>,
    /// Labels of the survey, from `--label`: name and value of each label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The machine that generated the load. Absent in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Seed of the random numbers of the load.
    pub seed: u64,
    /// URL of the measured server.
    pub url: String,
    /// A sentence that states the server's capacity, or that the capacity could not be determined.
    pub headline: String,
    /// The server's capacity: the throughput at saturation, in calls per second.
    pub saturation_rate: Comparison,
    /// For each objective, the highest rate of calls at which the server meets it.
    #[serde(default)]
    pub objectives: Vec<RateUnderObjective>,
    /// Results at each load level, which is a period at one offered load, in increasing order of load.
    pub levels: Vec<Level>,
    /// Service demands of one request, by station and class.
    pub demands: Vec<Demand>,
    /// Measured maximum of the rate, in calls per second, that this client can generate before the client itself
    /// becomes the limit.
    pub client_max_rate: Option<f64>,
    /// Verdict on whether the survey's measurements can be trusted.
    pub verdict: Verdict,
    /// The queueing network model that made the predictions. It was fitted before the measurements that test it. Its
    /// demands describe a busy server, as in `demands`. The rates of its classes have the proportions of the mix, and
    /// their sum is 0.7 of the predicted saturation rate. The model has no stations if the survey ended before the
    /// model was fitted.
    pub model: Model,
    /// The load level at which the survey stopped early, and the reason; absent if the survey was completed.
    pub stopped: Option<Stopped>,
    /// Numbers of the CPUs on which the server runs.
    pub server_cpus: Vec<usize>,
    /// Numbers of the CPUs on which the load generator runs.
    pub client_cpus: Vec<usize>,
    /// Share of the server's CPU time that was in use before the survey generated load.
    pub background: Option<f64>,
    /// Extra cost of a call at an idle server, in seconds. At higher loads, the extra cost is multiplied by a power of
    /// the idle fraction of the server's CPUs; `model` contains the exponent.
    pub wakeup_s: Option<f64>,
    /// Formulas that were fitted to describe how the cost of a call depends on the load, each with its cross-validation
    /// error. The formula with the smallest error is first; the model uses it.
    #[serde(rename = "laws")]
    #[serde(default)]
    pub cost_formulas: Vec<CostFormula>,
    /// Throughput at each number of clients during calibration, in increasing order of the number of clients. These
    /// values describe the server as a flow-equivalent station (Chandy, Herzog & Woo 1975).
    #[serde(default)]
    pub throughput_by_clients: Vec<ThroughputByClients>,
    /// The bottleneck: the station of the model that limits the server's throughput. It is `cpu`, `disk` with a name,
    /// `workers` (the processes or threads that serve calls), `lock or backend` (which serves one call at a time), or
    /// `backend pool` (which serves several calls at a time). If the server's processes cannot be observed, it is
    /// `server`.
    #[serde(default)]
    pub bottleneck: Option<String>,
    /// Explanation for the user of the evidence for the bottleneck.
    #[serde(default)]
    pub bottleneck_evidence: Option<String>,
    /// CPU demand of an average call of the mix in each program of the server, in decreasing order. Programs that share
    /// CPUs are one station of the model.
    #[serde(default)]
    pub programs: Vec<ProgramDemand>,
    /// The Server Module's measurements during calibration. Present only if the demands of the classes are based on
    /// them. This requires that the module has the same classes as the load.
    #[serde(rename = "inside")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_measurements: Option<ModuleMeasurements>,
    /// Speed of the server in each block (period) of calibration, in order, relative to the mean: 0.9 is ten percent
    /// slower.
    #[serde(default)]
    pub speed_by_block: Vec<f64>,
    /// How the loads of the survey used connections.
    #[serde(default)]
    pub connections: Connections,
    /// Load and delays that calibration caused on the server.
    #[serde(rename = "inflicted")]
    #[serde(default)]
    pub calibration_impact: Option<CalibrationImpact>,
    /// Pauses of the server that are longer than its calls explain; absent if none were observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<ServerPauses>,
    /// Throughput of the overloaded server with and without a connection pool, if both were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
    /// Predictions and measurements for a changed server, if the user requested a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIf>,
    /// Duration of the survey, in seconds.
    #[serde(default)]
    pub elapsed_s: Option<f64>,
    /// Path of the HTML report, if one was written.
    pub report: Option<String>,
}

/// The highest rate of calls that the server can sustain while it meets an objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RateUnderObjective {
    /// The objective as the user wrote it, like `p99<50ms`.
    pub objective: String,
    /// The limit: seconds for a time, a fraction for a share of errors. Absent if the limit is a multiple of the value
    /// at light load and this value was not measured.
    pub limit: Option<f64>,
    /// The limit divided by the value at light load, if the limit is relative, as in `p99<10x`.
    #[serde(rename = "times_light_load")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub light_load_factor: Option<f64>,
    /// Value of the objective's measure at light load, in the unit of `limit`.
    pub light_load: Option<f64>,
    /// The highest rate at which the objective is met, in calls per second.
    pub rate: Comparison,
    /// The 90 % confidence interval of the measured rate.
    pub measured_interval90: Option<[f64; 2]>,
    /// Whether the server meets the objective, and up to which rate.
    pub outcome: ObjectiveOutcome,
    /// The periods of constant load from which the rate was estimated, in order.
    pub slices: Vec<ObjectiveSlice>,
}

/// Whether the server meets an objective of a survey, and up to which rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveOutcome {
    /// Unknown: the rate was not measured, or too few calls were measured.
    #[default]
    Undecided,
    /// The objective is met at rates up to the measured rate.
    MetUpToRate,
    /// The objective is met at all rates up to the server's capacity, so the measured rate is the capacity.
    MetUpToCapacity,
    /// The objective is missed even at light load.
    MissedAtLightLoad,
}

/// Results of one period of constant load, compared with an objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveSlice {
    /// Offered load of the period, in calls per second.
    pub rate: f64,
    /// Number of calls to which the objective applies.
    pub calls: u64,
    /// Number of calls, of those in `calls`, that violated the limit or had no expected answer.
    #[serde(rename = "beyond")]
    pub violations: u64,
    /// Value of the objective's measure: a time in seconds, or a fraction of errors.
    pub figure: Option<f64>,
}

/// Statistics of pauses, in which the server completes no call although calls are in progress, for example because of
/// garbage collection or scheduling. Pauses are detected as gaps between completed calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerPauses {
    /// Rate of the pauses that occur independently of the load, per second.
    pub per_second: f64,
    /// Rate of the additional pauses that calls cause, per call.
    pub per_call: f64,
    /// Mean length of a pause, in seconds.
    pub mean_s: f64,
    /// Length of the longest pause, in seconds.
    pub longest_s: f64,
    /// Number of observed pauses, from which the other fields are estimated.
    #[serde(rename = "seen")]
    pub observed: u64,
}

/// Throughput of an overloaded server with and without a connection pool, at the same offered load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overload {
    /// Offered load of both runs, in calls per second.
    pub offered: f64,
    /// Throughput with a connection pool, in calls completed per second: calls wait for a free connection. The value is
    /// the mean of two runs, one before and one after the run without a pool.
    pub pooled: f64,
    /// Difference between the throughputs of the two runs with the pool, in calls completed per second.
    #[serde(default)]
    pub pooled_difference: f64,
    /// Throughput without a pool, in calls completed per second: a call opens a further connection if no connection is
    /// idle.
    pub unlimited: f64,
    /// Number of connections that were opened in the run without a pool.
    pub connections: u64,
}

/// A change of the server's configuration whose effects were predicted and then measured. Afterwards, the change was
/// undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The change to the server, written as on the command line, for example `quota=50%`.
    pub change: String,
    /// Number of CPUs that the changed server can use.
    pub cpus: f64,
    /// Period of the CPU quota in seconds. A server that has used up its quota is throttled until the next period.
    pub period_s: f64,
    /// Capacity of the changed server, in calls per second.
    pub saturation_rate: Comparison,
    /// Utilization of the server's CPUs by its processes while the server is saturated.
    pub utilization: Comparison,
    /// The rate, in calls per second, at which the mean response time was measured: half of the predicted capacity.
    pub offered: f64,
    /// Mean response time at the rate `offered`, in seconds. This prediction comes from a simulation of the quota, and
    /// is less accurate than the predictions for the unchanged server.
    pub response_time_s: Comparison,
    /// Speed of the host just before and after the measurements of the changed server, relative to its speed during
    /// calibration.
    pub host_speed: Option<f64>,
    /// Verdict on whether the measurements of the changed server can be trusted.
    pub verdict: Verdict,
}

/// A formula for the dependence of a call's cost on the load, with the error of its fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Law")]
pub struct CostFormula {
    /// Name of the formula: `constant`; `idle^1` for an extra cost proportional to the idle fraction of the server,
    /// `idle^2` for one proportional to its square, and so on; `busy` for a cost that increases with the load.
    pub name: String,
    /// Cross-validation error: root mean square of the relative prediction errors for measurements that are left out of
    /// the fit, one offered load at a time.
    pub left_out_error: f64,
}

/// CPU demand of an average call of the mix in one program of the server, measured at saturation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramDemand {
    /// Name of the program, such as `nginx`.
    pub name: String,
    /// CPU time of an average call in this program, in seconds.
    pub demand_s: f64,
    /// Half-width of the 95 % confidence interval of `demand_s`, from the variation between periods of measurement.
    pub ci95_half_width: Option<f64>,
    /// CPU time of a call in this program divided by its CPU time in all programs, 0 to 1.
    pub share: f64,
    /// Number of processes of the program.
    pub processes: u64,
}

/// Throughput with a constant number of clients without think time: each client sends its next call when its previous
/// call is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ByClients")]
pub struct ThroughputByClients {
    /// Number of clients that send calls at the same time.
    pub clients: u64,
    /// Throughput with this number of clients, in calls per second.
    pub throughput: f64,
    /// Half-width of the 95 % confidence interval of `throughput`, from the variation between periods of measurement.
    pub ci95_half_width: Option<f64>,
    /// Utilization of the server's CPUs by its processes; absent if the processes cannot be observed.
    pub utilization: Option<f64>,
}

/// The Server Module's measurements during calibration. The demand of a class is computed from them: the CPU time
/// within the phases of a request, plus an equal share of the CPU time outside of all phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "InsideServer")]
pub struct ModuleMeasurements {
    /// Number of requests whose CPU time was sampled.
    pub sampled: u64,
    /// Squared coefficient of variation of a request's CPU time within its class. All classes have the same value,
    /// which is computed from the second moments of all classes.
    pub scv: Option<f64>,
    /// Half-width of the 95 % confidence interval of `scv`.
    pub scv_ci95_half_width: Option<f64>,
    /// Whether the server has more workers than CPUs, so that workers take turns on the CPUs. If so, the variability of
    /// the service times in the model is fitted to the waiting times and does not describe the measured service times.
    pub takes_turns: bool,
    /// Maximum number of workers; absent if it does not limit the number of calls in service.
    pub workers: Option<u64>,
    /// Mean number of busy workers while the server was saturated.
    pub workers_busy: Option<f64>,
}

/// Load and delays that calibration caused on a server, which may also have other users, and their permitted bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Inflicted")]
pub struct CalibrationImpact {
    /// Mean load over all of calibration, including pauses: utilization of the server's CPUs by its processes. If the
    /// processes cannot be observed, the throughput as a share of the server's capacity replaces the utilization.
    pub mean_load: f64,
    /// Permitted upper bound of `mean_load`.
    #[serde(default)]
    pub max_load: Option<f64>,
    /// Maximum number of simultaneous clients during calibration.
    #[serde(rename = "most_clients")]
    pub max_clients: u64,
    /// Longest response time of a calibration call, in seconds. It is an upper bound of the delay that calibration
    /// caused for other users' calls.
    pub longest_wait_s: f64,
    /// Permitted upper bound of `longest_wait_s`, in seconds. Calibration does not add further clients if twice the
    /// mean response time exceeds this bound.
    #[serde(default)]
    pub max_delay_s: Option<f64>,
}

/// A prediction of a quantity, its measurement, and the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The predicted value.
    pub predicted: Option<f64>,
    /// The 90 % prediction interval: it contains a measurement with a probability of 90 % if the speed of the host
    /// varies as it did during calibration.
    #[serde(default)]
    pub interval90: Option<[f64; 2]>,
    /// The measured value.
    pub measured: Option<f64>,
    /// Relative error of the prediction: predicted ÷ measured − 1.
    pub error: Option<f64>,
    /// The part of `error` that is due to a host that is faster or slower than during calibration.
    #[serde(default)]
    pub error_drift: Option<f64>,
    /// Half-width of the 95 % confidence interval of `measured` (method of batch means).
    pub measured_ci95_half_width: Option<f64>,
}

/// Predictions and measurements at one load level of a survey: a period at one offered load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Planned load divided by the saturation rate that was predicted or measured when the level was planned.
    pub fraction: f64,
    /// Offered load in calls per second; for a level with a constant number of clients, the rate at which the clients
    /// made calls.
    pub offered: f64,
    /// Purpose of the load level: calibration, test of the model, or overload.
    pub role: LevelPurpose,
    /// The requests of the load: `mix` (all classes), or the name of a single class.
    pub workload: String,
    /// Number of clients of a closed load; absent for open loads.
    pub clients: Option<u64>,
    /// Length of the window in which load was offered, in seconds.
    pub window_s: f64,
    /// Complete responses per second.
    pub throughput: Comparison,
    /// Mean response time, from when a call was due to the last byte of its response, in seconds. The prediction
    /// assumes that the host's speed varies as it did during calibration.
    pub response_time_s: Comparison,
    /// Mean response time predicted for a host of constant speed, in seconds.
    #[serde(default)]
    pub steady_response_s: Option<f64>,
    /// Speed of the server's host just before and after this load level, relative to its speed during calibration with
    /// the same number of clients: 0.9 is ten percent slower.
    #[serde(default)]
    pub host_speed: Option<f64>,
    /// Change of the host's speed during the load level: the speed just after the level minus the speed just before it,
    /// relative to the speed during calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_speed_change: Option<f64>,
    /// Percentiles of the response time, in seconds.
    pub response_percentiles_s: ResponsePercentiles,
    /// Utilization of the server's CPUs by its processes.
    pub utilization: Comparison,
    /// Shares of the time of the server's CPUs: user mode, kernel, idle and stolen by the hypervisor.
    pub cpu: Option<CpuShares>,
    /// Share of the calls that failed or were answered with an error of the server (5xx).
    pub error_share: f64,
    /// Median lateness of the generator in seconds: the time from when a call was due to when it began.
    pub lateness_p50_s: Option<f64>,
    /// 99th percentile of the generator's lateness in seconds.
    pub lateness_p99_s: Option<f64>,
    /// Verdict on whether the measurements at this load level can be trusted.
    pub verdict: Verdict,
    /// Throughput and response time of each class at this load level.
    pub classes: Vec<LevelClass>,
}

/// Throughput and response time of one class at one load level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelClass {
    /// Name of the class.
    pub name: String,
    /// Complete responses per second.
    pub throughput: f64,
    /// Mean response time, in seconds.
    pub response_time_s: Comparison,
}

/// Percentiles of the response time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsePercentiles {
    /// Median of the response time.
    #[serde(deserialize_with = "measured_alone")]
    pub p50: Comparison,
    /// 95th percentile of the response time.
    #[serde(deserialize_with = "measured_alone")]
    pub p95: Comparison,
    /// 99th percentile of the response time.
    #[serde(deserialize_with = "measured_alone")]
    pub p99: Comparison,
}

/// Deserialises a comparison. Documents of older versions contain only the measured number, without a prediction.
fn measured_alone<'de, D: Deserializer<'de>>(reader: D) -> Result<Comparison, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Alone(Option<f64>),
        Both(Comparison),
    }
    Ok(match Either::deserialize(reader)? {
        Either::Alone(measured) => Comparison { measured, ..Comparison::default() },
        Either::Both(comparison) => comparison,
    })
}

/// Purpose of a load level of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Role")]
pub enum LevelPurpose {
    /// Calibration: the model was fitted to the measurements at this load level.
    Calibration,
    /// Test: the model's predictions were compared with the measurements at this load level, and the model was not
    /// fitted to them.
    HeldOut,
    /// Overload: the offered load exceeds the server's capacity.
    PastSaturation,
}

/// The fitted service demand of one class at one station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// Name of the station.
    pub station: String,
    /// Name of the class.
    pub class: String,
    /// The demand, in seconds per request.
    pub seconds: f64,
    /// Half-width of the 95 % confidence interval of the demand, in seconds.
    pub ci95_half_width: Option<f64>,
    /// The true demand in seconds per request, if the server reports it: the server's own measurement of the CPU time
    /// per call at saturation.
    #[serde(rename = "truth")]
    pub true_seconds: Option<f64>,
}

/// The load level at which a survey stopped early, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// Description of the load level.
    pub level: String,
    /// The reason why the survey stopped.
    pub reason: String,
}

impl Survey {
    /// Whether the measurements are valid. Valid measurements may still refute the model.
    pub fn has_valid_measurements(&self) -> bool {
        self.verdict.reasons.iter().all(|reason| reason.code == ReasonCode::ModelRefuted)
    }
}

impl Comparison {
    /// Creates a comparison without a prediction.
    pub fn measured(value: f64) -> Comparison {
        Comparison { measured: Some(value), ..Comparison::default() }
    }

    /// Creates a comparison and computes the relative error, unless the measurement is zero.
    pub fn new(predicted: Option<f64>, measured: Option<f64>) -> Comparison {
        let error = match (predicted, measured) {
            (Some(p), Some(m)) if m != 0.0 => Some(p / m - 1.0),
            _ => None,
        };
        Comparison { predicted, measured, error, ..Comparison::default() }
    }

    /// Determines the part of the error that is due to the host. `predicted` is the prediction for the actual speed of
    /// the host.
    #[must_use]
    pub fn with_host_prediction(self, predicted: Option<f64>) -> Comparison {
        let model_error = Comparison::new(predicted, self.measured).error;
        let error_drift = self.error.zip(model_error).map(|(error, model_error)| error - model_error);
        Comparison { error_drift, ..self }
    }

    /// Whether the measurement is within the prediction interval; `None` if the measurement or the interval is missing.
    pub fn is_within_interval(&self) -> Option<bool> {
        let ([low, high], measured) = self.interval90.zip(self.measured)?;
        Some((low..=high).contains(&measured))
    }

    /// The part of `error` that is due to the model and not to the host's speed.
    pub fn model_error(&self) -> Option<f64> {
        Some(self.error? - self.error_drift.unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_older_documents_are_read() {
        let old: ResponsePercentiles = serde_json::from_str(r#"{"p50": 0.001, "p95": 0.02, "p99": null}"#).unwrap();
        assert_eq!((old.p50.measured, old.p95.predicted, old.p99.measured), (Some(0.001), None, None));
        let new: ResponsePercentiles = serde_json::from_value(serde_json::to_value(old).unwrap()).unwrap();
        assert_eq!(new, old);
    }

    #[test]
    fn an_error_is_parted_into_the_models_and_the_hosts() {
        // At the speed of calibration, the prediction is 110. The host was ten percent slower than during calibration,
        // so the prediction for its actual speed is 99.
        let comparison = Comparison { interval90: Some([95.0, 115.0]), ..Comparison::new(Some(110.0), Some(100.0)) };
        let comparison = comparison.with_host_prediction(Some(99.0));
        let near = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-12;
        assert!(near(comparison.error, 0.1) && near(comparison.error_drift, 0.11));
        assert!(near(comparison.model_error(), -0.01) && comparison.is_within_interval() == Some(true));
        assert_eq!(Comparison::measured(1.0).is_within_interval(), None);
    }
}
