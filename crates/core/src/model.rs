//! The `Model` document (JSON or TOML): a queueing network. Times are in seconds, rates are per second.

use crate::JsonSchema;
use crate::number::is_default;
use serde::{Deserialize, Serialize};

/// A queueing network: stations, and classes of requests that visit the stations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// The stations of the network: queues or delays at which requests spend time.
    pub stations: Vec<Station>,
    /// The classes of requests that visit the stations.
    pub classes: Vec<ModelClass>,
    /// Service demands in seconds, stations × classes: the total time that one request of the class needs at the
    /// station.
    pub demands: Vec<Vec<f64>>,
    /// Half-widths of the 95 % confidence intervals of `demands`, in seconds, stations × classes, from calibration. If
    /// a value is missing or 0, the demand is treated as exact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demand_ci95_half_width: Vec<Vec<f64>>,
    /// Correlation coefficients between the estimation errors of the classes' demands at each station, stations ×
    /// classes × classes, from calibration. If empty, the errors are treated as independent. Errors at different
    /// stations are always treated as independent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demand_correlation: Vec<Vec<Vec<f64>>>,
    /// Groups of classes whose demands at a station were not measured separately. The model is valid only if the rates
    /// of these classes have the measured proportions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joint_demands: Vec<JointDemand>,
}

/// A group of classes whose demands at a station were measured only together, as a mean per request. The mean was
/// divided among the classes by a proportional rule, which is valid only for the measured `shares`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JointDemand {
    /// Name of the station at which the demands were measured together.
    pub station: String,
    /// Names of the classes, at least two.
    pub classes: Vec<String>,
    /// Fraction of the group's requests that belong to each class; the sum is 1.
    pub shares: Vec<f64>,
}

/// A station of the network: a queue with one or more servers, or a pure delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Name of the station; no other station of the model has this name.
    pub name: String,
    /// Whether requests queue at the station.
    #[serde(rename = "type")]
    pub kind: StationKind,
    /// Number of parallel servers of a queueing station.
    #[serde(default = "one")]
    pub servers: u32,
    /// Service rate of a load-dependent station with 1, 2, … requests present. A rate of 1 is the rate at which a
    /// request takes its demand. The last value also applies to more requests. If empty, the service rate depends on
    /// the number of requests only through `servers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_multipliers: Vec<f64>,
    /// The order in which the station serves requests.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Squared coefficient of variation of the service times within each class: 1 for exponential times, 0 for constant
    /// times. It has no effect under processor sharing. The value over all classes is computed from this value and the
    /// classes' demands and rates.
    #[serde(default = "exponential")]
    pub scv: f64,
    /// Squared coefficient of variation of the service times of all requests together, at the rates of the open
    /// classes. If present, it replaces `scv`. It must not be less than the variation that the classes' different mean
    /// demands alone cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_scv: Option<f64>,
    /// Fraction of the station's capacity that is used by work outside the model, between 0 and 1, from calibration.
    #[serde(default)]
    pub background: f64,
    /// Change of the service demands while some servers of the station are idle. If present, `demands` are the demands
    /// at saturation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_cost: Option<IdleCost>,
    /// Interruptions of the station, such as pauses for garbage collection. A station without this field is never
    /// interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptions: Option<Interruptions>,
}

/// Dependence of a station's demands on its load. A request of each visiting class needs on average `seconds`·I^`power`
/// more than its demand, where I is the idle fraction (0 to 1) of the station's capacity. Work outside the model counts
/// as used capacity.
///
/// If `seconds` is positive, only requests that arrive while a server is idle pay the extra cost. With one server and
/// power 1, a request that arrives at an idle server pays the whole extra cost, and a request that waits pays nothing
/// (Welch 1964). If `seconds` is negative, all requests save the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleCost {
    /// Mean extra cost of a request at an idle station, in seconds. Its distribution is that of the service time. It is
    /// positive if a server has to wake up. It is negative if concurrent requests slow each other down, so that a
    /// request costs less under light load.
    pub seconds: f64,
    /// Exponent of the idle fraction, 1 to 4. With exponent 2, the extra cost is proportional to the square of the idle
    /// fraction.
    pub power: u32,
}

/// Interruptions of a queueing station. During an interruption, all servers of the station stop, and requests wait.
/// Interrupted requests then resume, and no service is lost. Interruptions begin at random times, whether requests are
/// present or not, but never during another interruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interruptions {
    /// Mean number of interruptions per second that does not depend on the load.
    #[serde(default)]
    pub per_second: f64,
    /// Mean number of interruptions per request that visits the station, in addition to `per_second`. They add to the
    /// rate of interruptions, but begin at random times, independently of the individual requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub per_call: f64,
    /// Mean length of an interruption, in seconds.
    pub mean_length: f64,
    /// Squared coefficient of variation of the lengths: 0 for equal lengths, 1 for exponential lengths.
    #[serde(default, skip_serializing_if = "is_default")]
    pub length_scv: f64,
}

impl Default for Station {
    /// A queueing station without a name, with one server, exponential service times, and no work outside the model.
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
            interruptions: None,
        }
    }
}

/// Whether requests queue at a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StationKind {
    /// Requests queue and share the servers.
    #[default]
    Queue,
    /// A pure delay: each request stays for its own demand and never queues.
    Delay,
}

/// The order in which a station serves its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// Processor sharing. With such stations, a network has a product-form solution for every distribution of the
    /// service times.
    #[default]
    Ps,
    /// First come, first served. The mean wait is the same for all classes.
    Fcfs,
    /// Non-preemptive priority (head of the line): the most urgent class first, without interrupting a request in
    /// service. First come, first served within a class.
    Priority,
    /// Preemptive-resume priority: the most urgent class first, interrupting less urgent requests, which later resume.
    Preemptive,
}

/// A class of requests that have the same demands and arrive in the same way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelClass {
    /// Name of the class; no other class of the model has this name.
    pub name: String,
    /// Whether the class is open or closed.
    #[serde(rename = "type")]
    pub kind: ClassKind,
    /// Requests per second of an open class.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Number of customers of a closed class.
    #[serde(default)]
    pub population: Option<u32>,
    /// Think time of a closed class, in seconds.
    #[serde(default)]
    pub think: f64,
    /// Priority at stations that serve by priority; a smaller number is more urgent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: u32,
}

/// Whether a class is open or closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClassKind {
    /// Open: requests arrive from outside at a rate that does not depend on the server.
    #[default]
    Open,
    /// Closed: a fixed number of customers circulate in the network.
    Closed,
}

fn one() -> u32 {
    1
}

fn exponential() -> f64 {
    1.0
}
