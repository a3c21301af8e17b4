//! The term of a load-dependent demand; [`super::load`] says what it stands for.

use super::Observation;
use brimful_core::model::IdleCost;
use serde::{Serialize, Serializer};
use std::fmt;

/// How the cost of a request depends on the load: what rivals a constant one. In documents it goes by its name:
/// `per_second`, `idle^2`, `busy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many busy servers as soon as there are requests, however many.
    PerSecond,
    /// Seconds per request, fading with this power of the server's idleness.
    Idle(u32),
    /// Seconds per request, growing with the server's utilization.
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

/// The servers of a station, and what of them the station's own work and that of requests can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Servers {
    pub(crate) count: f64,
    free: f64,
}

impl Servers {
    /// `others`: share of the capacity that is busy besides what an observation counts as busy.
    pub(crate) fn new(count: u32, others: f64) -> Self {
        Self { count: f64::from(count.max(1)), free: 1.0 - others }
    }

    /// I when so many of them are busy.
    fn idle(self, busy: f64) -> f64 {
        (self.free - busy / self.count).clamp(0.0, 1.0)
    }
}

/// A term of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    pub shape: Shape,
    pub servers: Servers,
}

impl Term {
    /// At an observation, over w.
    pub(crate) fn of(self, o: &Observation) -> f64 {
        self.at(o.throughput.iter().sum(), o.busy)
    }

    pub(crate) fn at(self, rate: f64, busy: f64) -> f64 {
        match self.shape {
            Shape::PerSecond if rate > 0.0 => 1.0,
            Shape::PerSecond => 0.0,
            shape => rate * shape.per_request(self.servers.idle(busy)),
        }
    }
}

impl Shape {
    /// What is added to each request when this share of the servers is idle: times w.
    fn per_request(self, idle: f64) -> f64 {
        match self {
            Shape::PerSecond => 0.0,
            Shape::Idle(power) => idle.powi(power as i32),
            Shape::Busy => 1.0 - idle,
        }
    }

    /// The same over what is added at saturation.
    pub(crate) fn beyond_saturation(self, idle: f64) -> f64 {
        self.per_request(idle) - self.per_request(0.0)
    }

    /// The term as a Model has it beside demands at saturation; what is fixed is background there.
    pub(crate) fn idle_cost(self, weight: f64) -> Option<IdleCost> {
        match self {
            Shape::PerSecond => None,
            Shape::Idle(power) => Some(IdleCost { seconds: weight, power }),
            Shape::Busy => Some(IdleCost { seconds: -weight, power: 1 }),
        }
    }

    /// What the term adds to each request, and to what is busy without requests, when the servers are busy all the
    /// time: times w.
    pub(crate) fn at_saturation(self) -> (f64, f64) {
        (self.per_request(0.0), if self == Shape::PerSecond { 1.0 } else { 0.0 })
    }
}
