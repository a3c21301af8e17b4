//! The term of the utilization law that makes demands depend on the load. [`super::load`] explains the shapes.

use super::observation::Observation;
use brimful_core::model::IdleCost;
use serde::{Serialize, Serializer};
use std::fmt;

/// The dependence of the cost of a request on the load. Documents use the names `per_second`, `idle^2` and `busy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadShape {
    /// A constant number of busy servers as soon as there are requests.
    PerSecond,
    /// Additional seconds per request, proportional to the idle share of the servers raised to this power.
    Idle(u32),
    /// Additional seconds per request, proportional to the servers' utilization.
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
    /// Creates the servers of a station. `others` is the utilization by other work, which is not part of the busy
    /// servers of an observation.
    pub(crate) fn new(count: u32, others: f64) -> Self {
        Self { count: f64::from(count.max(1)), free: 1.0 - others }
    }

    /// I: the idle share of the servers' time when `busy` servers are busy.
    fn idle(self, busy: f64) -> f64 {
        (self.free - busy / self.count).clamp(0.0, 1.0)
    }
}

/// The load-dependent term of the utilization law, without its weight w.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadTerm {
    /// How the term depends on the load.
    pub shape: LoadShape,
    /// The servers of the station.
    pub servers: StationServers,
}

impl LoadTerm {
    /// The value of the term for the throughput and busy servers of an observation.
    pub(crate) fn at_observation(self, o: &Observation) -> f64 {
        self.at(o.throughput.iter().sum(), o.busy)
    }

    /// The value of the term for this number of requests per second and of busy servers.
    pub(crate) fn at(self, rate: f64, busy: f64) -> f64 {
        match self.shape {
            LoadShape::PerSecond if rate > 0.0 => 1.0,
            LoadShape::PerSecond => 0.0,
            shape => rate * shape.per_request(self.servers.idle(busy)),
        }
    }
}

impl LoadShape {
    /// Increase of each request's demand per unit of the weight w, if this share of the servers' time is idle.
    fn per_request(self, idle: f64) -> f64 {
        match self {
            LoadShape::PerSecond => 0.0,
            LoadShape::Idle(power) => idle.powi(power as i32),
            LoadShape::Busy => 1.0 - idle,
        }
    }

    /// Increase of each request's demand per unit of the weight w at this idle share, relative to saturation.
    pub(crate) fn beyond_saturation(self, idle: f64) -> f64 {
        self.per_request(idle) - self.per_request(0.0)
    }

    /// The term as the `IdleCost` of a model whose demands are valid at saturation. `None` for
    /// [`LoadShape::PerSecond`], which is part of the background of the model.
    pub(crate) fn idle_cost(self, weight: f64) -> Option<IdleCost> {
        match self {
            LoadShape::PerSecond => None,
            LoadShape::Idle(power) => Some(IdleCost { seconds: weight, power }),
            LoadShape::Busy => Some(IdleCost { seconds: -weight, power: 1 }),
        }
    }

    /// The effect of the term at saturation, per unit of the weight w: the increase of each request's demand, and the
    /// increase of the number of servers that background work keeps busy.
    pub(crate) fn at_saturation(self) -> (f64, f64) {
        (self.per_request(0.0), if self == LoadShape::PerSecond { 1.0 } else { 0.0 })
    }
}
