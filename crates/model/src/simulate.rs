//! A discrete-event simulation of a [`Model`]: an independent check of the formulas, and an answer where there is none.
//!
//! Requests of a class visit, once each and in the model's order, the stations where it has a demand. How a demand is
//! split into visits, and in which order, makes no difference to product-form networks (processor sharing, delays, FCFS
//! with exponential service and equal demands); to others it may. `background` slows a queue to 1 − b of its rate.
//! Think times are exponential. An [`idle_cost`](brimful_core::model::IdleCost) above 0 is paid by those who find
//! servers idle, in proportion to their share ([`crate::exceptional`]); one below 0 is part of every demand.
//!
//! A run ends when it is precise enough, or has used up its events or its time; what it was then worth is in [`Run`].
//! How warm-up is found and intervals are made: `simulate/intervals.rs`. One seed, one result. Memory is bounded: by a
//! million requests present, of which an open network that cannot keep up soon has more, and is refused; and by 512
//! slices of time.
//!
//! Times are seconds, rates per second, matrices stations × classes.

mod arrivals;
mod calendar;
mod figures;
mod follow;
mod histogram;
mod intervals;
mod layout;
mod queue;
mod record;
mod result;
mod service;
mod world;

pub use arrivals::Arrivals;
pub use figures::ResponseTime;
pub use follow::{Episode, follow};
pub use result::{Ended, Run, Simulation};
pub(crate) use service::Sampler;
pub use service::Service;
pub use world::Passage;

use crate::ModelError;
use brimful_core::model::Model;
use figures::Figures;
use layout::Layout;
use record::Record;
use result::result;
use world::World;

/// How to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationOptions {
    /// What chance is made of.
    pub seed: u64,
    /// By class, how the requests of open ones come (what is given for closed ones has no effect). Empty: Poisson.
    pub arrivals: Vec<Arrivals>,
    /// By station, the family of its service times. Empty: the standard one of each scv.
    pub service: Vec<Service>,
    /// The run ends when every class's throughput and mean response time are known to within this share of themselves,
    /// at 95 % confidence; `None` to use up the events or the time.
    pub precision: Option<f64>,
    /// The most events, where a request at one station is one: arrivals, departures, ends of think times.
    pub events: u64,
    /// The most simulated time, in seconds.
    pub time_s: Option<f64>,
}

impl Default for SimulationOptions {
    /// To within 2 %, or 20 million events: some seconds.
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
/// Errors: what does not fit together, a number that cannot be, an open network that cannot keep up, or too few events
/// for any result. A result that is not as precise as asked is no error; its [`Run::caveats`] say so.
pub fn simulate(model: &Model, options: &SimulationOptions) -> Result<Simulation, ModelError> {
    let layout = Layout::new(model, options)?;
    let mut world = World::new(&layout, options.seed);
    let mut record = Record::new(&layout, options.time_s);
    let ended = loop {
        let end = record.next_end();
        if options.time_s.is_some_and(|limit| end > limit * (1.0 + 1e-9)) {
            break Ended::Time;
        }
        if end > layout.finest() {
            break Ended::Resolution;
        }
        if !world.run(end, options.events)? {
            break Ended::Events;
        }
        record.close(&mut world);
        if record.is_worth_a_look()
            && options.precision.is_some_and(|wanted| Figures::new(&layout, &record).reach(wanted))
        {
            break Ended::Precision;
        }
    };
    result(&layout, &world, &record, options, ended)
}
