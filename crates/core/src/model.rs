//! The `Model` document (JSON or TOML): a queueing network. Times are seconds, rates are per second.

use crate::number::is_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network of stations visited by classes of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// The stations, where requests spend time.
    pub stations: Vec<Station>,
    /// Classes of requests that visit the stations.
    pub classes: Vec<ModelClass>,
    /// Service demands in seconds, stations × classes: the total time that one request of the class needs at the
    /// station.
    pub demands: Vec<Vec<f64>>,
    /// Half widths of the demands' 95 % confidence intervals in seconds, stations × classes, from calibration. A demand
    /// whose half width is missing or 0 is treated as exact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demand_ci95_half_width: Vec<Vec<f64>>,
    /// Correlation coefficients of the errors of the classes' demands at each station, stations × classes × classes,
    /// from calibration. If empty, the errors are independent; errors of different stations are always independent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demand_correlation: Vec<Vec<Vec<f64>>>,
    /// Classes whose demands at a station are known only together. Their rates must keep the measured proportions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joint_demands: Vec<JointDemand>,
}

/// Classes that were measured only together. Their demands at the station are derived from the demand of their mean
/// request by a proportional rule, which is valid only for the measured shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JointDemand {
    /// The station's name.
    pub station: String,
    /// The classes' names, at least two.
    pub classes: Vec<String>,
    /// Share of each class in the requests of these classes; the sum is 1.
    pub shares: Vec<f64>,
}

/// A station of the network: a queue with one or more servers, or a delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Name of the station.
    pub name: String,
    /// Whether requests queue at the station.
    #[serde(rename = "type")]
    pub kind: StationKind,
    /// Number of parallel servers of a queueing station.
    #[serde(default = "one")]
    pub servers: u32,
    /// Service rate of a station with load-dependent speed, with 1, 2, … requests present, relative to the rate that
    /// the demands assume. The last value also applies to more requests. If empty, the speed depends on the load only
    /// through `servers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_multipliers: Vec<f64>,
    /// The order in which the station serves requests.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Squared coefficient of variation of the service times within each class: 1 for exponential, 0 for deterministic
    /// times. The value for all classes together follows from their demands and rates. It has no effect under processor
    /// sharing.
    #[serde(default = "exponential")]
    pub scv: f64,
    /// Squared coefficient of variation of the service times of all requests together, at the rates of the open
    /// classes; replaces `scv`. It must be at least the value that the classes' mean demands alone imply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_scv: Option<f64>,
    /// Share of the station's capacity that other work uses (between 0 and 1), from calibration.
    #[serde(default)]
    pub background: f64,
    /// Additional (or, if negative, saved) cost of a request while some servers are idle. If it is set, `demands` are
    /// the demands at saturation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_cost: Option<IdleCost>,
}

/// Dependence of a queue's demands on its load. On average, a request of each visiting class needs `seconds`·I^`power`
/// more than its demand. I is the idle share (0 to 1) of the station's capacity, used neither by requests nor by other
/// work.
///
/// If `seconds` is positive, only requests that find idle servers pay the extra cost. With one server and power 1, a
/// request that finds the server idle pays the whole extra cost, and a request that waits pays nothing (Welch 1964). If
/// `seconds` is negative, all requests save the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleCost {
    /// Extra cost at an idle station, in seconds. The extra cost varies like the service time. It is positive for a
    /// server that has to wake up, and negative if concurrent requests slow each other down, so that a request costs
    /// less under light load.
    pub seconds: f64,
    /// Exponent of the idle share, 1 to 4. With exponent 2, the extra cost is proportional to the square of the idle
    /// share.
    pub power: u32,
}

impl Default for Station {
    /// A queueing station with one server, exponential service times, no name, and no other work.
    fn default() -> Self {
        Self {
            name: String::new(),
            kind: StationKind::Queue,
            servers: one(),
            rate_multipliers: Vec::new(),
            scheduling: Scheduling::Ps,
            scv: exponential(),
            total_scv: None,
            background: 0.0,
            idle_cost: None,
        }
    }
}

/// Whether requests queue at a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StationKind {
    /// Requests queue for the servers.
    #[default]
    Queue,
    /// Each request is delayed by its own demand and never queues.
    Delay,
}

/// The order of service at a queueing station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// Processor sharing. The station has a product form for every distribution of service times.
    #[default]
    Ps,
    /// First come, first served. The wait is the same for all classes.
    Fcfs,
    /// The most urgent class first, without interrupting a request in service (head of the line). First come, first
    /// served within a class.
    Priority,
    /// The most urgent class first, interrupting less urgent requests, which resume where they stopped (preemptive
    /// resume).
    Preemptive,
}

/// A class of requests, which have the same demands and arrive in the same way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelClass {
    /// Name of the class.
    pub name: String,
    /// Whether the class's requests arrive from outside the network.
    #[serde(rename = "type")]
    pub kind: ClassKind,
    /// Arrivals per second of an open class.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Number of customers of a closed class.
    #[serde(default)]
    pub population: Option<u32>,
    /// Think time of a closed class, in seconds.
    #[serde(default)]
    pub think: f64,
    /// Urgency at stations that serve by priority; smaller numbers are served first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: u32,
}

/// Whether the requests of a class arrive from outside the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClassKind {
    /// Requests arrive at a rate that is independent of the server.
    #[default]
    Open,
    /// A fixed number of customers circulate in the network.
    Closed,
}

fn one() -> u32 {
    1
}

fn exponential() -> f64 {
    1.0
}
