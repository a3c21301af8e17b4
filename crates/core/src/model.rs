//! The `Model` document (JSON or TOML): a queueing network. Times are seconds, rates are per second.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network of stations visited by classes of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// Where requests spend time.
    pub stations: Vec<Station>,
    /// Who visits.
    pub classes: Vec<Class>,
    /// Service demand in seconds, stations × classes: total time one request of the class needs at the station.
    pub demands: Vec<Vec<f64>>,
    /// Half widths of the demands' 95 % confidence intervals in seconds, stations × classes, as calibration found them. Empty,
    /// or 0 where one is not known: it is then taken as exact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demand_ci95_half_width: Vec<Vec<f64>>,
    /// How the errors of the classes' demands at one station hang together: stations × classes × classes, correlation
    /// coefficients as calibration found them. Empty: they are independent. Those of two stations always are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demand_correlation: Vec<Vec<Vec<f64>>>,
    /// Classes whose demands at a station are known only together. Their rates keep these proportions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joint_demands: Vec<JointDemand>,
}

/// Classes that were measured only together: their demands at the station come from that of their mean request by a rule
/// of proportion, which holds while they come in these proportions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JointDemand {
    /// The station's name.
    pub station: String,
    /// The classes' names, at least two.
    pub classes: Vec<String>,
    /// The classes' shares of the requests among them; together 1.
    pub shares: Vec<f64>,
}

/// One station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Its name.
    pub name: String,
    /// Whether requests queue at it.
    #[serde(rename = "type")]
    pub kind: StationKind,
    /// Parallel servers of a queueing station.
    #[serde(default = "one")]
    pub servers: u32,
    /// Service rate with 1, 2, … requests present, over the rate at which the demands hold; the last holds for any more.
    /// For a station whose speed depends on its load; empty means that it does not, beyond what `servers` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_multipliers: Vec<f64>,
    /// The order of service.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Squared coefficient of variation of the service times of each class by itself; 1 is exponential, 0 deterministic. What
    /// all classes together come to follows from their demands and rates. Processor sharing does not feel it.
    #[serde(default = "exponential")]
    pub scv: f64,
    /// In place of `scv`: that of the service times of all requests together, at the rates of the open classes. At least
    /// what the classes' unequal demands come to by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_scv: Option<f64>,
    /// Share of the station's capacity that other work takes (between 0 and 1), as calibration measured it.
    #[serde(default)]
    pub background: f64,
    /// What a request costs more, or less, while the servers are partly idle; the demands are then those at saturation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_cost: Option<IdleCost>,
}

/// How the demands of a queue depend on its load: on average a request of each class that visits needs `seconds`·I^`power`
/// more than its demand, with I the share (0 to 1) of the station's capacity that nobody uses, neither requests nor other
/// work. Above 0 it is paid by those who find servers idle: at one server and power 1, all of it by each of them, and
/// nothing by who waits (Welch 1964). Below 0 all requests pay alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleCost {
    /// In seconds, at an idle station, and as variable as service is. Above 0 for a server that has to wake up; below, where
    /// requests get in one another's way, and cost less the fewer there are.
    pub seconds: f64,
    /// How fast it fades as the load grows: 1 with the idleness, 2 with its square, and so on up to 4.
    pub power: u32,
}

impl Default for Station {
    /// One exponential server that does nothing else, without a name.
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
    /// They do.
    #[default]
    Queue,
    /// They do not: each is delayed by its demand and by no other.
    Delay,
}

/// The order of service at a queueing station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// Processor sharing: product form, whatever the distribution of service times.
    #[default]
    Ps,
    /// First come, first served: all classes wait alike.
    Fcfs,
    /// The most urgent class first, but whoever is in service is served to the end (head of the line). First come, first
    /// served among equals.
    Priority,
    /// The same, but who is more urgent interrupts; the interrupted resumes where it was (preemptive resume).
    Preemptive,
}

/// One class of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Whether its requests come from outside.
    #[serde(rename = "type")]
    pub kind: ClassKind,
    /// Arrivals per second of an open class.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Customers of a closed class.
    #[serde(default)]
    pub population: Option<u32>,
    /// Think time of a closed class, in seconds.
    #[serde(default)]
    pub think: f64,
    /// Urgency at stations that serve by priority: the smaller, the sooner.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: u32,
}

/// Whether a class is fed from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClassKind {
    /// Requests arrive at a rate, whatever the server does.
    #[default]
    Open,
    /// A fixed number of customers circulate.
    Closed,
}

fn one() -> u32 {
    1
}

fn exponential() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands over a reference.
fn is_zero(priority: &u32) -> bool {
    *priority == 0
}
