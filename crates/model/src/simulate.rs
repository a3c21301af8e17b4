//! A discrete-event simulation of a [`Model`]: an independent check of the formulas, and a solution where no formula is
//! valid.
//!
//! Requests of a class visit each station where the class has a demand once, in the model's order. In product-form
//! networks (processor sharing, delays, FCFS with exponential service and equal demands), the number and the order of
//! visits do not affect the result. In other networks, they may affect it. Background work with the share b slows a
//! queue to 1 − b of its rate. Think times are exponential. With an [`idle_cost`](brimful_core::model::IdleCost) above
//! 0, requests that find idle servers take longer, in proportion to the share of idle servers ([`crate::wakeup`]). An
//! `idle_cost` below 0 is part of every demand. Interrupted stations stop at random times ([`crate::interruptions`]).
//!
//! A run ends when its results are precise enough, or at its limit of events or of time; [`Run`] states the precision.
//! `simulate/intervals.rs` explains the warm-up and the confidence intervals. The seed determines the result. Memory is
//! limited: the statistics are kept for at most 512 slices of the simulated time, and at most a million requests may be
//! present at once. An open network that cannot keep up soon exceeds this limit, which is an error.
//!
//! Times are in seconds, rates per second. Matrices are stations × classes.

mod arrivals;
mod calendar;
mod follow;
mod histogram;
mod intervals;
mod layout;
mod queue;
mod record;
mod result;
mod service;
mod statistics;
mod world;

pub use arrivals::Arrivals;
pub use follow::{SimulationInterval, simulate_intervals};
pub use result::{Ended, Run, Simulation};
pub(crate) use service::Sampler;
pub use service::Service;
pub use statistics::ResponseTime;
pub use world::SimulatedRequest;

use crate::ModelError;
use brimful_core::model::Model;
use layout::Layout;
use record::Record;
use result::result;
use statistics::RunStatistics;
use world::World;

/// Options of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationOptions {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Arrival process of each class; ignored for closed classes. If the list is empty, all classes have Poisson
    /// arrivals.
    pub arrivals: Vec<Arrivals>,
    /// Family of the service time distributions of each station. If the list is empty, all stations have
    /// [`Service::Standard`].
    pub service: Vec<Service>,
    /// The run ends when the 95 % confidence intervals of every class's throughput and mean response time are narrow
    /// enough: their half widths, divided by the values, do not exceed this number. `None` lets the run continue to its
    /// limit of events or of time.
    pub precision: Option<f64>,
    /// Maximum number of events: arrivals, departures, ends of think times, and beginnings and ends of interruptions.
    pub events: u64,
    /// Maximum simulated time, in seconds.
    pub time_s: Option<f64>,
}

impl Default for SimulationOptions {
    /// By default, a run ends at a precision of 2 %, or after 20 million events, which take a few seconds.
    fn default() -> Self {
        SimulationOptions {
            seed: 1,
            arrivals: Vec::new(),
            service: Vec::new(),
            precision: Some(0.02),
            events: 20_000_000,
            time_s: None,
        }
    }
}

/// Simulates a network of open and closed classes.
///
/// # Errors
/// When the model or the options are invalid, an open network cannot keep up, or there are too few events for a result.
/// A result that is less precise than requested is not an error; its [`Run::caveats`] say so.
pub fn simulate(model: &Model, options: &SimulationOptions) -> Result<Simulation, ModelError> {
    let layout = Layout::new(model, options)?;
    let mut world = World::new(&layout, options.seed);
    let mut record = Record::new(&layout, options.time_s);
    let ended = loop {
        let end = record.next_end();
        if options.time_s.is_some_and(|limit| end > limit * (1.0 + 1e-9)) {
            break Ended::Time;
        }
        if end > layout.max_time() {
            break Ended::Resolution;
        }
        if !world.run(end, options.events)? {
            break Ended::Events;
        }
        record.close(&mut world);
        if record.is_due_for_check()
            && end >= layout.min_time()
            && options.precision.is_some_and(|wanted| RunStatistics::new(&layout, &record).reaches(wanted))
        {
            break Ended::Precision;
        }
    };
    result(&layout, &world, &record, options, ended)
}
