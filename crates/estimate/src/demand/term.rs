//! The term of the utilization law that makes demands depend on the load. [`super::load`] explains its shapes.

use super::observation::Observation;
use brimful_core::model::IdleCost;
use serde::{Serialize, Serializer};
use std::fmt;

/// How the demand of a request depends on the load. Documents contain the names `per_second`, `idle^2` and `busy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadShape {
    /// A constant number of additional servers is busy as soon as there are requests.
    PerSecond,
    /// The additional demand of a request is proportional to a power of the servers' idle share. The field is the
    /// exponent.
    Idle(u32),
    /// The additional demand of a request is proportional to the servers' utilization.
    Busy,
}

impl fmt::Display for LoadShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadShape::PerSecond => f.write_str("per_second"),
            LoadShape::Idle(power) => write!(f, "idle^{power}"),
            LoadShape::Busy => f.write_str("busy"),
        }
    }
}

impl Serialize for LoadShape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The servers of a station, and the share of their time that other work leaves free.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StationServers {
    /// Number of servers.
    pub(crate) count: f64,
    free: f64,
}

impl StationServers {
    /// Creates the servers of a station. `others` is the utilization by other work, which observations of the station
    /// do not include.
    pub(crate) fn new(count: u32, others: f64) -> Self {
        Self { count: f64::from(count.max(1)), free: 1.0 - others }
    }

    /// The share of time in which a server is idle, if `busy` servers of the station are busy on average.
    fn idle(self, busy: f64) -> f64 {
        (self.free - busy / self.count).clamp(0.0, 1.0)
    }
}

/// The load-dependent term of the utilization law, without its weight w.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadTerm {
    /// The shape of the dependence on the load.
    pub shape: LoadShape,
    /// The servers of the station.
    pub servers: StationServers,
}

impl LoadTerm {
    /// The value of the term at the throughput and the number of busy servers of an observation.
    pub(crate) fn at_observation(self, o: &Observation) -> f64 {
        self.at(o.throughput.iter().sum(), o.busy)
    }

    /// The value of the term at `rate` requests per second, with `busy` busy servers.
    pub(crate) fn at(self, rate: f64, busy: f64) -> f64 {
        match self.shape {
            LoadShape::PerSecond if rate > 0.0 => 1.0,
            LoadShape::PerSecond => 0.0,
            shape => rate * shape.per_request(self.servers.idle(busy)),
        }
    }
}

impl LoadShape {
    /// Increase of the demand of a request, per unit of the weight w, if the servers are idle for this share of the
    /// time.
    fn per_request(self, idle: f64) -> f64 {
        match self {
            LoadShape::PerSecond => 0.0,
            LoadShape::Idle(power) => idle.powi(power as i32),
            LoadShape::Busy => 1.0 - idle,
        }
    }

    /// Difference between the demand of a request at this idle share and at saturation, per unit of the weight w.
    pub(crate) fn beyond_saturation(self, idle: f64) -> f64 {
        self.per_request(idle) - self.per_request(0.0)
    }

    /// The term in the form of the model (`IdleCost`), whose demands are valid at saturation. `None` for
    /// [`LoadShape::PerSecond`], which the model represents as background work.
    pub(crate) fn idle_cost(self, weight: f64) -> Option<IdleCost> {
        match self {
            LoadShape::PerSecond => None,
            LoadShape::Idle(power) => Some(IdleCost { seconds: weight, power }),
            LoadShape::Busy => Some(IdleCost { seconds: -weight, power: 1 }),
        }
    }

    /// The effect of the term at saturation, per unit of the weight w: the increase of each request's demand in
    /// seconds, and the increase of the number of servers that background work keeps busy.
    pub(crate) fn at_saturation(self) -> (f64, f64) {
        (self.per_request(0.0), if self == LoadShape::PerSecond { 1.0 } else { 0.0 })
    }
}
