//! The survey's document: what was predicted, what was then measured, and how far apart they are.
//!
//! The field names are an interface that scripts rely on. Times are seconds, rates are per second, utilizations and CPU
//! shares are fractions between 0 and 1.

use crate::model::Model;
use crate::quantity::count;
use crate::record::{ReasonCode, Verdict};
use crate::server::CpuShares;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The value of [`Survey::schema`].
pub const SCHEMA: &str = "brimful.survey/1";

/// One survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Survey {
    /// [`SCHEMA`].
    pub schema: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The version of brimful that made it.
    pub brimful_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Seed of all randomness.
    pub seed: u64,
    /// What was surveyed.
    pub url: String,
    /// What the server can take, or that this was not determined.
    pub headline: String,
    /// The server's capacity, in calls per second.
    pub saturation_rate: Comparison,
    /// The load levels, in the order of their offered load.
    pub levels: Vec<Level>,
    /// What one request costs.
    pub demands: Vec<Demand>,
    /// The highest rate this client was found to offer without being the limit itself.
    pub client_max_rate: Option<f64>,
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// The model that the predictions are of, fitted before any held-out level was measured. Its demands are those of a
    /// busy server, which `demands` has too; its rates come to 0.7 of the predicted saturation rate in the proportions of
    /// the mix. Without stations if the survey ended before there was a model.
    pub model: Model,
    /// Where the survey stopped, if it did not reach its end.
    pub stopped: Option<Stopped>,
    /// The server's CPUs.
    pub server_cpus: Vec<usize>,
    /// The client's CPUs.
    pub client_cpus: Vec<usize>,
    /// Share of the server's CPUs that was busy before any load.
    pub background: Option<f64>,
    /// What a call costs the server beyond its demand when it finds it idle: this times a power, the model's, of the
    /// share of time in which the server's CPUs are idle.
    pub wakeup_s: Option<f64>,
    /// How the cost of a call might depend on the load, and how far off each of these laws is at a calibration level that
    /// it was not fitted to. The best comes first and is the model's.
    #[serde(default)]
    pub laws: Vec<Law>,
    /// What came of so many clients at once during calibration, in the order of their number: the server seen from outside
    /// (Chandy, Herzog & Woo 1975).
    #[serde(default)]
    pub throughput_by_clients: Vec<ByClients>,
    /// What is full when the server takes no more: a station of the model. `cpu`; `disk` and a name; `workers` whom calls
    /// occupy, processes or threads; `lock or backend`, one call at a time; `backend pool`, several. A server that is a
    /// black box is `server`.
    #[serde(default)]
    pub bottleneck: Option<String>,
    /// Why that is believed, for people.
    #[serde(default)]
    pub bottleneck_evidence: Option<String>,
    /// The programs in which a call of the mix spends its CPU time, the costliest first. Programs that share CPUs are one
    /// station of the model.
    #[serde(default)]
    pub programs: Vec<ProgramDemand>,
    /// What the server itself measured of its requests during calibration, where the demands of the classes stand on
    /// that: it has the Server Module, with the classes of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<InsideServer>,
    /// How fast the server was in each block of calibration, in turn, over its mean: 0.9 is a tenth slower.
    #[serde(default)]
    pub speed_by_block: Vec<f64>,
    /// Which connections the loads used.
    #[serde(default)]
    pub connections: Connections,
    /// What calibration did to the server.
    #[serde(default)]
    pub inflicted: Option<Inflicted>,
    /// What a change of the server did, in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIf>,
    /// How long the survey took.
    #[serde(default)]
    pub elapsed_s: Option<f64>,
    /// Path of the report, if one was written.
    pub report: Option<String>,
}

/// Which connections the loads of a survey used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Connections that an open load had at most at once: calls that found all of them taken waited for one. Absent where
    /// each such call opened a connection more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// Connections that the server serves at a time, where the survey met that limit: calls on further connections wait
    /// until one of these is closed, though it is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_at_once: Option<u64>,
    /// Whether each call had a connection of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_call_each: bool,
    /// Whether that is because the server closes each connection after its answer.
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

/// A change of the server that was predicted, then made, measured and undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// What was changed, as on the command line: `quota=50%`.
    pub change: String,
    /// CPUs that the server then had.
    pub cpus: f64,
    /// The period of the quota, in seconds: when it is used up, the server stops until the next.
    pub period_s: f64,
    /// The server's capacity then, in calls per second.
    pub saturation_rate: Comparison,
    /// Of the server's CPUs by the server's processes at that rate.
    pub utilization: Comparison,
    /// Half of the predicted rate, offered to measure the mean response time.
    pub offered: f64,
    /// Mean response time there. It is predicted more roughly than that of levels: from a simulation of the quota.
    pub response_time_s: Comparison,
    /// Speed of the server just before and after over that during calibration.
    pub host_speed: Option<f64>,
    /// Whether these figures can be trusted.
    pub verdict: Verdict,
}

/// A law that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Law {
    /// Its name: `constant`, or `idle^1` for a cost that fades with the idleness of the server, `idle^2` with its square, and
    /// so on; `busy` for one that grows with the load.
    pub name: String,
    /// Root mean square of its relative error at the levels left out, each in turn.
    pub left_out_error: f64,
}

/// What a call of the mix costs in one of the server's programs while clients leave it no rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramDemand {
    /// The program's name.
    pub name: String,
    /// CPU seconds of a call.
    pub demand_s: f64,
    /// Half width of its 95 % confidence interval, by the blocks.
    pub ci95_half_width: Option<f64>,
    /// Of the CPU time of a call in all programs, 0..1.
    pub share: f64,
    /// How many processes it has.
    pub processes: u64,
}

/// Throughput of so many clients, each calling again as soon as it is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ByClients {
    /// How many.
    pub clients: u64,
    /// Calls per second.
    pub throughput: f64,
    /// Half width of its 95 % confidence interval, by the blocks.
    pub ci95_half_width: Option<f64>,
    /// Of the server's CPUs by the server's processes, if those can be seen.
    pub utilization: Option<f64>,
}

/// What a server measured of its own requests during calibration: how its classes differ, whose demands are CPU time within
/// the phases of a request and an equal share of what the server used outside of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InsideServer {
    /// Requests whose CPU time was measured.
    pub sampled: u64,
    /// Squared coefficient of variation of the CPU time of a request of a class, over classes by their second moments.
    pub scv: Option<f64>,
    /// Half width of its 95 % confidence interval.
    pub scv_ci95_half_width: Option<f64>,
    /// Whether its workers are more than its CPUs and take turns there: then the model's variability is not that of
    /// service, but fitted to how long calls waited.
    pub takes_turns: bool,
    /// How many workers it may have, where it serves no more calls at a time.
    pub workers: Option<u64>,
    /// How many of them were busy while clients left it no rest.
    pub workers_busy: Option<f64>,
}

/// What calibration did to a server that others use, too, and what it was allowed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inflicted {
    /// Mean load over all of calibration, rests included: of the server's CPUs by its processes, or where those cannot be
    /// seen, throughput as a share of what the server can take.
    pub mean_load: f64,
    /// What that was to stay below.
    #[serde(default)]
    pub max_load: Option<f64>,
    /// The most clients at once.
    pub most_clients: u64,
    /// The longest response time of calibration's calls: so long a stranger's call may have had to wait for ours.
    pub longest_wait_s: f64,
    /// What that was to stay below, in so far as the server's own speed decides it.
    #[serde(default)]
    pub max_delay_s: Option<f64>,
}

/// A prediction beside its measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What the model said beforehand.
    pub predicted: Option<f64>,
    /// Between which figures 90 % of such measurements lie, as it said beforehand, on a host as variable as calibration
    /// saw it.
    #[serde(default)]
    pub interval90: Option<[f64; 2]>,
    /// What was then measured.
    pub measured: Option<f64>,
    /// predicted ÷ measured − 1, signed.
    pub error: Option<f64>,
    /// What of the error is the host's: it was faster or slower then than during calibration.
    #[serde(default)]
    pub error_drift: Option<f64>,
    /// Half width of the measurement's 95 % confidence interval (batch means).
    pub measured_ci95_half_width: Option<f64>,
}

/// One load level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// The planned load over the saturation rate as it was known when the level was planned.
    pub fraction: f64,
    /// Offered load, calls per second; for a closed level, what its clients came to.
    pub offered: f64,
    /// What the level is for.
    pub role: Role,
    /// What was requested: `mix`, or the name of the one class.
    pub workload: String,
    /// Clients of a closed level; open levels have none.
    pub clients: Option<u64>,
    /// How long load was offered.
    pub window_s: f64,
    /// Whole responses per second.
    pub throughput: Comparison,
    /// Mean response time, from due to last byte. Predicted on a host as variable as calibration saw it.
    pub response_time_s: Comparison,
    /// The same as predicted on a host that keeps its speed, which is what the model by itself says.
    #[serde(default)]
    pub steady_response_s: Option<f64>,
    /// Speed of the server just before and after this level over that during calibration, with as many clients: 0.9 is a
    /// tenth slower.
    #[serde(default)]
    pub host_speed: Option<f64>,
    /// Percentiles of the response time.
    pub response_percentiles_s: Percentiles,
    /// Of the server's CPUs by the server's processes.
    pub utilization: Comparison,
    /// Where the time of the server's CPUs went.
    pub cpu: Option<CpuShares>,
    /// Share of the calls that failed or were answered with an error of the server (5xx).
    pub error_share: f64,
    /// Median lateness of the generator.
    pub lateness_p50_s: Option<f64>,
    /// 99th percentile of the same.
    pub lateness_p99_s: Option<f64>,
    /// Whether this level can be trusted.
    pub verdict: Verdict,
    /// Share and cost of each class in this level.
    pub classes: Vec<LevelClass>,
}

/// One class at one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelClass {
    /// Its name.
    pub name: String,
    /// Whole responses per second.
    pub throughput: f64,
    /// Mean response time.
    pub response_time_s: Comparison,
}

/// Percentiles of a response time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Median.
    #[serde(deserialize_with = "measured_alone")]
    pub p50: Comparison,
    /// 95th.
    #[serde(deserialize_with = "measured_alone")]
    pub p95: Comparison,
    /// 99th.
    #[serde(deserialize_with = "measured_alone")]
    pub p99: Comparison,
}

/// Before anything was predicted of percentiles, a document had what was measured by itself.
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

/// What a level is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The model was fitted to it.
    Calibration,
    /// The model was tested on it, and had never seen it.
    HeldOut,
    /// Above what the server can take.
    PastSaturation,
}

/// The fitted service demand of one class at one station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// The station.
    pub station: String,
    /// The class.
    pub class: String,
    /// The demand, in seconds per request.
    pub seconds: f64,
    /// Half width of its 95 % confidence interval.
    pub ci95_half_width: Option<f64>,
    /// The true demand, where the server tells it: CPU time per call by its own account, while it was saturated.
    pub truth: Option<f64>,
}

/// Where and why a survey stopped early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// At which level.
    pub level: String,
    /// Why.
    pub reason: String,
}

impl Survey {
    /// Whether what was measured holds: at most the model is refuted.
    pub fn is_measured_well(&self) -> bool {
        self.verdict.reasons.iter().all(|reason| reason.code == ReasonCode::ModelRefuted)
    }
}

impl Comparison {
    /// A measurement with nothing to compare.
    pub fn measured(value: f64) -> Comparison {
        Comparison { measured: Some(value), ..Comparison::default() }
    }

    /// Both, with the signed error; no error where the measurement is zero.
    pub fn of(predicted: Option<f64>, measured: Option<f64>) -> Comparison {
        let error = match (predicted, measured) {
            (Some(p), Some(m)) if m != 0.0 => Some(p / m - 1.0),
            _ => None,
        };
        Comparison { predicted, measured, error, ..Comparison::default() }
    }

    /// Beside what would have been predicted of the host as it then was.
    #[must_use]
    pub fn given_host(self, predicted: Option<f64>) -> Comparison {
        let of_model = Comparison::of(predicted, self.measured).error;
        Comparison { error_drift: self.error.zip(of_model).map(|(error, of_model)| error - of_model), ..self }
    }

    /// Whether the measurement lies in the interval that was predicted; `None` without both.
    pub fn holds(&self) -> Option<bool> {
        let ([low, high], measured) = self.interval90.zip(self.measured)?;
        Some((low..=high).contains(&measured))
    }

    /// What of the error is the model's own.
    pub fn error_of_model(&self) -> Option<f64> {
        Some(self.error? - self.error_drift.unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_older_documents_are_read() {
        let old: Percentiles = serde_json::from_str(r#"{"p50": 0.001, "p95": 0.02, "p99": null}"#).unwrap();
        assert_eq!((old.p50.measured, old.p95.predicted, old.p99.measured), (Some(0.001), None, None));
        let new: Percentiles = serde_json::from_value(serde_json::to_value(old).unwrap()).unwrap();
        assert_eq!(new, old);
    }

    #[test]
    fn an_error_is_parted_into_the_models_and_the_hosts() {
        // The host was a tenth slower than during calibration, and of that host 99 would have been predicted.
        let comparison = Comparison { interval90: Some([95.0, 115.0]), ..Comparison::of(Some(110.0), Some(100.0)) };
        let comparison = comparison.given_host(Some(99.0));
        let near = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-12;
        assert!(near(comparison.error, 0.1) && near(comparison.error_drift, 0.11));
        assert!(near(comparison.error_of_model(), -0.01) && comparison.holds() == Some(true));
        assert_eq!(Comparison::measured(1.0).holds(), None);
    }
}
