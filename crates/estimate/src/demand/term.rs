//! The term of the utilization law for demands that depend on the load. [`super::load`] explains the shapes.

use super::observation::Observation;
use brimful_core::model::IdleCost;
use serde::{Serialize, Serializer};
use std::fmt;

/// The dependence of the cost of a request on the load. Documents use the names `per_second`, `idle^2` and `busy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A constant number of busy servers as soon as there are requests.
    PerSecond,
    /// Additional seconds per request, proportional to this power of the server's idleness.
    Idle(u32),
    /// Additional seconds per request, proportional to the server's utilization.
    Busy,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::PerSecond => f.write_str("per_second"),
            Shape::Idle(power) => write!(f, "idle^{power}"),
            Shape::Busy => f.write_str("busy"),
        }
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The servers of a station, and the share of them that is free of other work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Servers {
    pub(crate) count: f64,
    free: f64,
}

impl Servers {
    /// Creates the servers of a station. `others` is the utilization by other work, which observations do not count as
    /// busy.
    pub(crate) fn new(count: u32, others: f64) -> Self {
        Self { count: f64::from(count.max(1)), free: 1.0 - others }
    }

    /// I: the idle share of the capacity when `busy` servers are busy.
    fn idle(self, busy: f64) -> f64 {
        (self.free - busy / self.count).clamp(0.0, 1.0)
    }
}

/// A term of the utilization law, without its weight w.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    pub shape: Shape,
    pub servers: Servers,
}

impl Term {
    /// The value of the term at an observation.
    pub(crate) fn at_observation(self, o: &Observation) -> f64 {
        self.at(o.throughput.iter().sum(), o.busy)
    }

    /// The value of the term at this many requests per second and busy servers.
    pub(crate) fn at(self, rate: f64, busy: f64) -> f64 {
        match self.shape {
            Shape::PerSecond if rate > 0.0 => 1.0,
            Shape::PerSecond => 0.0,
            shape => rate * shape.per_request(self.servers.idle(busy)),
        }
    }
}

impl Shape {
    /// Amount that the term adds to the demand of each request if this share of the servers is idle, without the
    /// weight.
    fn per_request(self, idle: f64) -> f64 {
        match self {
            Shape::PerSecond => 0.0,
            Shape::Idle(power) => idle.powi(power as i32),
            Shape::Busy => 1.0 - idle,
        }
    }

    /// Amount that the term adds to the demand of each request at this idle share, minus the amount at saturation.
    pub(crate) fn beyond_saturation(self, idle: f64) -> f64 {
        self.per_request(idle) - self.per_request(0.0)
    }

    /// The term as the idle cost of a model whose demands are those at saturation. `None` for a constant term, which is
    /// part of the model's background.
    pub(crate) fn idle_cost(self, weight: f64) -> Option<IdleCost> {
        match self {
            Shape::PerSecond => None,
            Shape::Idle(power) => Some(IdleCost { seconds: weight, power }),
            Shape::Busy => Some(IdleCost { seconds: -weight, power: 1 }),
        }
    }

    /// Amounts that the term adds at saturation to the demand of each request, and to the number of servers that
    /// background work keeps busy, without the weight.
    pub(crate) fn at_saturation(self) -> (f64, f64) {
        (self.per_request(0.0), if self == Shape::PerSecond { 1.0 } else { 0.0 })
    }
}
