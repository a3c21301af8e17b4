//! The `Survey` document: predictions, the measurements that followed, and the errors of the predictions.
//!
//! The field names are an interface that scripts rely on. Times are seconds, rates are per second, utilizations and CPU
//! shares are fractions between 0 and 1.

use crate::model::Model;
use crate::quantity::count;
use crate::record::{Machine, ReasonCode, Verdict};
use crate::server::CpuShares;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Identifier of the document's schema, and the value of [`Survey::schema`].
pub const SCHEMA: &str = "brimful.survey/1";

/// The results of one survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Survey {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Labels of the survey, from `--label`: the name of each label, and its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The machine that generated the load. Absent in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Seed of all randomness.
    pub seed: u64,
    /// URL of the surveyed server.
    pub url: String,
    /// A sentence that states the server's capacity, or states that the capacity was not determined.
    pub headline: String,
    /// The server's capacity, in calls per second.
    pub saturation_rate: Comparison,
    /// Highest rate of calls at which the server meets each objective.
    #[serde(default)]
    pub objectives: Vec<RateUnderObjective>,
    /// The load levels, in the order of their offered load.
    pub levels: Vec<Level>,
    /// Service demands of one request.
    pub demands: Vec<Demand>,
    /// Highest measured rate that this client can generate without being the limit, in calls per second.
    pub client_max_rate: Option<f64>,
    /// Verdict on whether the survey's measurements can be trusted.
    pub verdict: Verdict,
    /// The model behind the predictions, fitted before any held-out level was measured. Its demands describe a busy
    /// server, as in `demands`. Its rates have the proportions of the mix, and their sum is 0.7 of the predicted
    /// saturation rate. It has no stations if the survey ended before the fit.
    pub model: Model,
    /// The level at which the survey stopped early, with the reason; absent if the survey was completed.
    pub stopped: Option<Stopped>,
    /// Numbers of the server's CPUs.
    pub server_cpus: Vec<usize>,
    /// Numbers of the client's CPUs.
    pub client_cpus: Vec<usize>,
    /// Share of the server's CPU time that was in use before any load.
    pub background: Option<f64>,
    /// Extra cost of a call at an idle server, in seconds. At other loads, it is multiplied by a power of the idle
    /// share of the server's CPUs; the model contains the exponent.
    pub wakeup_s: Option<f64>,
    /// The laws that were tried for the dependence of a call's cost on the load, each with its cross-validation error.
    /// The best law is first; the model uses it.
    #[serde(default)]
    pub laws: Vec<Law>,
    /// Throughput by number of clients during calibration, in increasing order of the number of clients. These values
    /// describe the server as a flow-equivalent station (Chandy, Herzog & Woo 1975).
    #[serde(default)]
    pub throughput_by_clients: Vec<ByClients>,
    /// The station of the model that limits the server: `cpu`; `disk` and a name; `workers`, the processes or threads
    /// that calls occupy; `lock or backend`, which serves one call at a time; or `backend pool`, which serves several.
    /// For a black-box server, it is `server`.
    #[serde(default)]
    pub bottleneck: Option<String>,
    /// Explanation for people of the evidence for the bottleneck.
    #[serde(default)]
    pub bottleneck_evidence: Option<String>,
    /// CPU demand of a call of the mix by program, in decreasing order. Programs that share CPUs are one station of the
    /// model.
    #[serde(default)]
    pub programs: Vec<ProgramDemand>,
    /// The Server Module's measurements during calibration. Absent unless the demands of the classes are based on these
    /// measurements. This requires a server whose module has the same classes as the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<InsideServer>,
    /// Speed of the server in each block of calibration, in order, relative to the mean: 0.9 is ten percent slower.
    #[serde(default)]
    pub speed_by_block: Vec<f64>,
    /// The connections that the loads used.
    #[serde(default)]
    pub connections: Connections,
    /// Load and delays that calibration caused on the server.
    #[serde(default)]
    pub inflicted: Option<Inflicted>,
    /// Pauses of the server that are longer than its calls explain; absent if none were observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<ServerPauses>,
    /// Throughput of the overloaded server by connection policy, if both policies were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
    /// A change of the server that was predicted and then measured, if the user requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIf>,
    /// Duration of the survey, in seconds.
    #[serde(default)]
    pub elapsed_s: Option<f64>,
    /// Path of the report, if one was written.
    pub report: Option<String>,
}

/// The highest rate of calls at which an objective is met in the long run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RateUnderObjective {
    /// The objective with its limit, like `p99<50ms`.
    pub objective: String,
    /// The limit: seconds for a time, a fraction for a share of errors. Absent if the limit is a multiple of the value
    /// at light load, and this value is missing.
    pub limit: Option<f64>,
    /// The limit divided by the value at light load, for an objective with a relative limit like `p99<10x`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_light_load: Option<f64>,
    /// Value of the limited measure at light load, in the unit of `limit`.
    pub light_load: Option<f64>,
    /// The rate, in calls per second.
    pub rate: Comparison,
    /// Bounds that contain the measured rate with a probability of 90 %.
    pub measured_interval90: Option<[f64; 2]>,
    /// Whether the server meets the objective, and up to which rate.
    pub outcome: ObjectiveOutcome,
    /// The slices of load from which the rate was estimated, in order.
    pub slices: Vec<ObjectiveSlice>,
}

/// Whether the server meets an objective of a survey, and up to which rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveOutcome {
    /// The rate was not measured, or too few calls were measured to decide.
    #[default]
    Undecided,
    /// The objective is met up to the measured rate.
    MetUpToRate,
    /// The objective is met up to the server's capacity, so the capacity is the rate.
    MetUpToCapacity,
    /// Light load already misses the objective.
    MissedAtLightLoad,
}

/// A slice of load at one rate, compared with an objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveSlice {
    /// Offered load, in calls per second.
    pub rate: f64,
    /// Number of calls that the objective concerns.
    pub calls: u64,
    /// Number of these calls that took longer than the limit or had no expected answer.
    pub beyond: u64,
    /// Value of the limited measure: a time in seconds, or a share of errors.
    pub figure: Option<f64>,
}

/// The connections that the loads of a survey used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Size of the connection pool of open loads: a call waited if all connections were busy. Absent if such a call
    /// opened another connection instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// Number of connections that the server serves at a time, if the survey reached this limit. Calls on further
    /// connections wait until a served connection is closed, even if all served connections are idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_at_once: Option<u64>,
    /// Whether each call used a new connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_call_each: bool,
    /// Whether each call used a new connection because the server closes each connection after its answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed_by_server: bool,
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |number: u64| if number == 1 { "connection" } else { "connections" };
        match (self.closed_by_server, self.served_at_once) {
            (true, Some(served)) => write!(
                f,
                "This server closes each connection after its answer, and answered only {} of those that were opened at \
                 once: the survey opens a new connection for each call, ",
                count(served)
            )?,
            (true, None) => write!(
                f,
                "This server closes each connection after its answer: the survey opens a new one for each call, "
            )?,
            (false, Some(served)) => {
                write!(f, "This server serves {} {} at a time: the survey uses ", count(served), plural(served))?;
            }
            (false, None) if self.one_call_each => f.write_str("Each call has a connection of its own, ")?,
            (false, None) if self.most.is_some() => f.write_str("The survey uses a pool of ")?,
            (false, None) => f.write_str("The survey opens ")?,
        }
        match self.most {
            Some(most) if self.one_call_each => write!(f, "{} at once at most", count(most))?,
            Some(most) if self.served_at_once.is_some() => write!(f, "{}", count(most))?,
            Some(most) => write!(f, "at most {} {}, for which calls wait", count(most), plural(most))?,
            None => f.write_str("as many connections at once as there are calls under way")?,
        }
        f.write_str(".")
    }
}

/// Pauses in which the server completes no call although calls are in progress, for example because of garbage
/// collection or scheduling. They appear as gaps between completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerPauses {
    /// Pauses per second, whatever the load.
    pub per_second: f64,
    /// Additional pauses per call.
    pub per_call: f64,
    /// Mean length of a pause, in seconds.
    pub mean_s: f64,
    /// Length of the longest pause, in seconds.
    pub longest_s: f64,
    /// Number of observed pauses, from which the rates and lengths are estimated.
    pub seen: u64,
}

/// Throughput of an overloaded server by connection policy, at the same offered load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overload {
    /// Offered load, in calls per second.
    pub offered: f64,
    /// Calls completed per second if calls wait for one of the pool's connections: the mean of two runs, one before and
    /// one after the run without a pool.
    pub pooled: f64,
    /// Difference of the two runs with the pool, in calls completed per second.
    #[serde(default)]
    pub pooled_difference: f64,
    /// Calls completed per second if each call that finds no idle connection opens another.
    pub unlimited: f64,
    /// Number of connections that were opened without a pool.
    pub connections: u64,
}

/// A change of the server whose effect was predicted and then measured. The change was undone afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The change, as on the command line: `quota=50%`.
    pub change: String,
    /// Number of CPUs of the changed server.
    pub cpus: f64,
    /// Period of the quota, in seconds: when the quota is exhausted, the server is throttled until the next period.
    pub period_s: f64,
    /// Capacity of the changed server, in calls per second.
    pub saturation_rate: Comparison,
    /// Utilization of the server's CPUs by its processes at the measured capacity.
    pub utilization: Comparison,
    /// The rate at which the mean response time was measured: half of the predicted capacity.
    pub offered: f64,
    /// Mean response time at `offered`. This prediction is less accurate than the predictions for the levels, because
    /// it comes from a simulation of the quota.
    pub response_time_s: Comparison,
    /// Speed of the server's host just before and after the change, relative to its speed during calibration.
    pub host_speed: Option<f64>,
    /// Verdict on whether the measurements of the changed server can be trusted.
    pub verdict: Verdict,
}

/// A law for the dependence of a call's cost on the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Law {
    /// Name of the law: `constant`; `idle^1` for an extra cost that is proportional to the idle share of the server,
    /// `idle^2` to the square of the idle share, and so on; `busy` for a cost that grows with the load.
    pub name: String,
    /// Cross-validation error: root mean square of the relative errors when one level at a time is left out of the fit.
    pub left_out_error: f64,
}

/// CPU demand of an average call of the mix in one of the server's programs, while the server is saturated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramDemand {
    /// The program's name.
    pub name: String,
    /// CPU time of an average call in this program, in seconds.
    pub demand_s: f64,
    /// Half width of the 95 % confidence interval of `demand_s`, from the variation between blocks.
    pub ci95_half_width: Option<f64>,
    /// Share of a call's total CPU time that is spent in this program, 0 to 1.
    pub share: f64,
    /// Number of processes of the program.
    pub processes: u64,
}

/// Throughput with a certain number of clients. Each client sends its next call as soon as its previous call is
/// answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ByClients {
    /// Number of clients.
    pub clients: u64,
    /// Throughput, in calls per second.
    pub throughput: f64,
    /// Half width of the 95 % confidence interval of `throughput`, from the variation between blocks.
    pub ci95_half_width: Option<f64>,
    /// Utilization of the server's CPUs by its processes, if the processes can be observed.
    pub utilization: Option<f64>,
}

/// The Server Module's measurements during calibration. The demand of a class follows from them: the CPU time within
/// the phases of a request, plus an equal share of the CPU time outside of all phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InsideServer {
    /// Number of requests whose CPU time was measured.
    pub sampled: u64,
    /// Squared coefficient of variation of the CPU time of a request within its class. It is one value for all classes,
    /// which follows from their second moments.
    pub scv: Option<f64>,
    /// Half width of the 95 % confidence interval of `scv`.
    pub scv_ci95_half_width: Option<f64>,
    /// Whether the server has more workers than CPUs, so that workers share the CPUs. If so, the variability in the
    /// model does not describe service times but is fitted to the calls' waiting times.
    pub takes_turns: bool,
    /// Highest number of workers; absent if it does not limit the number of calls in service.
    pub workers: Option<u64>,
    /// Mean number of busy workers while the server was saturated.
    pub workers_busy: Option<f64>,
}

/// Load and delays that calibration caused on a server that may have other users, with their permitted bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inflicted {
    /// Mean load over all of calibration, including pauses: utilization of the server's CPUs by its processes. If the
    /// processes cannot be observed, the throughput as a share of the server's capacity replaces the utilization.
    pub mean_load: f64,
    /// Permitted bound of `mean_load`.
    #[serde(default)]
    pub max_load: Option<f64>,
    /// Highest number of clients at once.
    pub most_clients: u64,
    /// Longest response time of a calibration call, which bounds the delay of other users' calls.
    pub longest_wait_s: f64,
    /// Permitted bound of `longest_wait_s`. Calibration stops adding clients when twice the mean response time exceeds
    /// this bound.
    #[serde(default)]
    pub max_delay_s: Option<f64>,
}

/// A prediction and its measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The value that the model predicts.
    pub predicted: Option<f64>,
    /// Bounds that contain 90 % of the measurements, as predicted for a host whose speed varies as during calibration.
    #[serde(default)]
    pub interval90: Option<[f64; 2]>,
    /// The measured value.
    pub measured: Option<f64>,
    /// Relative error of the prediction: predicted ÷ measured − 1.
    pub error: Option<f64>,
    /// The part of the error that is due to the host being faster or slower than during calibration.
    #[serde(default)]
    pub error_drift: Option<f64>,
    /// Half width of the measurement's 95 % confidence interval (batch means).
    pub measured_ci95_half_width: Option<f64>,
}

/// Predictions and measurements at one load level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Planned load as a share of the saturation rate that was known when the level was planned.
    pub fraction: f64,
    /// Offered load in calls per second; for a closed level, the rate at which its clients made calls.
    pub offered: f64,
    /// Purpose of the level.
    pub role: Role,
    /// The requests of the level: `mix`, or the name of a single class.
    pub workload: String,
    /// Number of clients of a closed level; absent for open levels.
    pub clients: Option<u64>,
    /// Length of the window in which load was offered, in seconds.
    pub window_s: f64,
    /// Complete responses per second.
    pub throughput: Comparison,
    /// Mean time from when a call was due to the last byte of its response, in seconds. The prediction is for a host
    /// whose speed varies as during calibration.
    pub response_time_s: Comparison,
    /// Mean response time that the model predicts for a host of constant speed, in seconds.
    #[serde(default)]
    pub steady_response_s: Option<f64>,
    /// Speed of the server's host just before and after this level, relative to its speed during calibration with the
    /// same number of clients: 0.9 is ten percent slower.
    #[serde(default)]
    pub host_speed: Option<f64>,
    /// Speed of the server's host just after this level minus its speed just before, relative to its speed during
    /// calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_speed_change: Option<f64>,
    /// Percentiles of the response time, in seconds.
    pub response_percentiles_s: ResponsePercentiles,
    /// Utilization of the server's CPUs by its processes.
    pub utilization: Comparison,
    /// Shares of time of the server's CPUs in user mode, in the kernel, idle and stolen.
    pub cpu: Option<CpuShares>,
    /// Share of the calls that failed or were answered with an error of the server (5xx).
    pub error_share: f64,
    /// Median lateness of the generator, in seconds.
    pub lateness_p50_s: Option<f64>,
    /// 99th percentile of the generator's lateness, in seconds.
    pub lateness_p99_s: Option<f64>,
    /// Verdict on whether this level's measurements can be trusted.
    pub verdict: Verdict,
    /// Throughput and response time of each class at this level.
    pub classes: Vec<LevelClass>,
}

/// Results of one class at one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelClass {
    /// Name of the class.
    pub name: String,
    /// Complete responses per second.
    pub throughput: f64,
    /// Mean response time, in seconds.
    pub response_time_s: Comparison,
}

/// Percentiles of a response time, in seconds.
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

/// Reads a comparison, or a bare measurement as in documents of versions that did not predict percentiles.
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

/// Purpose of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The model was fitted to measurements of this level.
    Calibration,
    /// The model was tested against this level, and was not fitted to it.
    HeldOut,
    /// The load of this level exceeds the server's capacity.
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
    /// Half width of the 95 % confidence interval of the demand.
    pub ci95_half_width: Option<f64>,
    /// The true demand, if the server reports it: CPU time per call, by the server's own accounting while the server
    /// was saturated.
    pub truth: Option<f64>,
}

/// The level at which a survey stopped early, with the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// The level at which the survey stopped.
    pub level: String,
    /// The reason why the survey stopped.
    pub reason: String,
}

impl Survey {
    /// Whether the measurements are valid. They may be valid even if they refute the model.
    pub fn is_measured_well(&self) -> bool {
        self.verdict.reasons.iter().all(|reason| reason.code == ReasonCode::ModelRefuted)
    }
}

impl Comparison {
    /// A measurement without a prediction.
    pub fn measured(value: f64) -> Comparison {
        Comparison { measured: Some(value), ..Comparison::default() }
    }

    /// Creates a comparison of prediction and measurement, with the relative error unless the measurement is zero.
    pub fn new(predicted: Option<f64>, measured: Option<f64>) -> Comparison {
        let error = match (predicted, measured) {
            (Some(p), Some(m)) if m != 0.0 => Some(p / m - 1.0),
            _ => None,
        };
        Comparison { predicted, measured, error, ..Comparison::default() }
    }

    /// Splits the error into a part due to the model and a part due to the host. `predicted` is the prediction for the
    /// host's actual speed.
    #[must_use]
    pub fn with_host_prediction(self, predicted: Option<f64>) -> Comparison {
        let model_error = Comparison::new(predicted, self.measured).error;
        let error_drift = self.error.zip(model_error).map(|(error, model_error)| error - model_error);
        Comparison { error_drift, ..self }
    }

    /// Whether the measurement is within the predicted interval; `None` if the measurement or the interval is missing.
    pub fn is_within_interval(&self) -> Option<bool> {
        let ([low, high], measured) = self.interval90.zip(self.measured)?;
        Some((low..=high).contains(&measured))
    }

    /// The part of the error that is due to the model.
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
        // The host was ten percent slower than during calibration. For a host of this speed, the model predicts 99.
        let comparison = Comparison { interval90: Some([95.0, 115.0]), ..Comparison::new(Some(110.0), Some(100.0)) };
        let comparison = comparison.with_host_prediction(Some(99.0));
        let near = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-12;
        assert!(near(comparison.error, 0.1) && near(comparison.error_drift, 0.11));
        assert!(near(comparison.model_error(), -0.01) && comparison.is_within_interval() == Some(true));
        assert_eq!(Comparison::measured(1.0).is_within_interval(), None);
    }
}
