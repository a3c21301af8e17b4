//! The term of a load-dependent demand; [`super::load`] says what it stands for.

use super::Observation;
use brimful_core::model::IdleCost;
use schemars::JsonSchema;
use serde::Serialize;

/// How the cost of a request depends on the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// So many busy servers as soon as there are requests, however many.
    PerSecond,
    /// Seconds per request, fading with the square of the server's idleness.
    Idle,
    /// Seconds per request, growing with the server's utilization.
    Busy,
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
        let idle = self.servers.idle(busy);
        match self.shape {
            Shape::PerSecond if rate > 0.0 => 1.0,
            Shape::PerSecond => 0.0,
            Shape::Idle => rate * idle.powi(2),
            Shape::Busy => rate * (1.0 - idle),
        }
    }
}

impl Shape {
    /// The term as a Model has it beside demands at saturation; what is fixed is background there.
    pub(crate) fn idle_cost(self, weight: f64) -> Option<IdleCost> {
        match self {
            Shape::PerSecond => None,
            Shape::Idle => Some(IdleCost { seconds: weight, power: 2 }),
            Shape::Busy => Some(IdleCost { seconds: -weight, power: 1 }),
        }
    }

    /// What the term adds to each request, and to what is busy without requests, when the servers are busy all the time:
    /// times w.
    pub(crate) fn at_saturation(self) -> (f64, f64) {
        match self {
            Shape::PerSecond => (0.0, 1.0),
            Shape::Idle => (0.0, 0.0),
            Shape::Busy => (1.0, 0.0),
        }
    }
}
