//! Converts a validated model into tables for the simulation.
//!
//! A request that finds all servers idle takes an additional service time of w·Iᵖ⁻¹, where w and p are the seconds and
//! the power of the station's [`IdleCost`](brimful_core::model::IdleCost). The idle share I follows from the law of
//! [`crate::idle_law`], for the mean rates of the open classes and the throughputs of the closed classes. These
//! throughputs are computed by the Linearizer.
//!
//! Background work b slows every server of a station to 1 − b of its nominal rate. A delay has no capacity and no
//! background work.
//!
//! An interrupted station stops with the rate ν' of [`crate::interruptions`], for lengths of the family
//! [`Service::Standard`]. If a closed class causes interruptions, ν' follows from its throughput by the Linearizer.

use super::SimulationOptions;
use super::arrivals::{Arrivals, Source};
use super::queue::{Capacity, Discipline};
use super::service::{Sampler, Service};
use crate::ModelError;
use crate::interruptions::InterruptionLoad;
use crate::network::{Network, servers};
use crate::station::max_speed;
use crate::under_load;
use brimful_core::model::{self, Model, Scheduling, StationKind};
use brimful_core::number::NumberError;

/// Maximum number of requests present. With more requests, the simulation ends with an error: the network is saturated.
pub(super) const MAX_PRESENT: usize = 1_000_000;

/// A run has at least about this number of interruptions of each station, unless it reaches its limit of events or
/// time.
const MIN_INTERRUPTIONS: f64 = 100.0;

/// A model in the form that the simulation needs.
pub(super) struct Layout {
    pub(super) stations: Vec<Station>,
    pub(super) classes: Vec<Class>,
    /// Requests per second that all classes together would complete if no request had to wait.
    pub(super) rate: f64,
}

/// A station in the form that the simulation needs.
pub(super) struct Station {
    pub(super) name: String,
    pub(super) discipline: Discipline,
    /// Draws random service times with a mean of 1.
    pub(super) sampler: Sampler,
    /// Maximum number of seconds of demand that the station can serve per second, on average; ∞ for a delay.
    pub(super) capacity: f64,
    /// Divisor of the utilization: the number of servers; 1 for a delay.
    pub(super) servers: f64,
    /// For each class: demand of a request that finds all servers busy, in seconds.
    pub(super) demands: Vec<f64>,
    /// Additional demand of a request that finds all servers idle, in seconds. If only a share of the servers is idle,
    /// the additional demand is this value times the share.
    pub(super) waking: f64,
    /// For each class: the station that the class visits next; `None` after its last station.
    pub(super) next: Vec<Option<usize>>,
    /// The interruptions of the station; `None` if it is never interrupted.
    pub(super) interruptions: Option<Interruptions>,
}

/// The interruptions of a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interruptions {
    /// Mean time from the end of one interruption to the beginning of the next, in seconds.
    pub(super) between_s: f64,
    /// Mean length of an interruption, in seconds.
    pub(super) length_s: f64,
    /// Draws random lengths with a mean of 1.
    pub(super) sampler: Sampler,
}

/// A class in the form that the simulation needs.
pub(super) struct Class {
    /// The arrivals of an open class with a rate above 0; `None` for any other class.
    pub(super) source: Option<Source>,
    /// Number of customers of a closed class; 0 for an open class.
    pub(super) population: u32,
    /// Mean think time in seconds; 0 for an open class.
    pub(super) think: f64,
    /// Index of the first station that the class visits.
    pub(super) first: usize,
    /// Sum of the class's demands at all stations, in seconds.
    pub(super) demand: f64,
}

impl Layout {
    /// Converts a model. Returns an error if its open classes saturate a station.
    pub(super) fn new(model: &Model, options: &SimulationOptions) -> Result<Layout, ModelError> {
        check_options(model, options)?;
        Layout::from_network(&under_load::network(model)?, options)
    }

    /// Converts a model whose open classes may saturate stations.
    pub(super) fn unchecked_stability(model: &Model, options: &SimulationOptions) -> Result<Layout, ModelError> {
        check_options(model, options)?;
        let network = Network::unchecked_stability(model)?;
        if network.closed().next().is_some() {
            return Layout::from_network(&under_load::network(model)?, options);
        }
        Layout::from_network(&network, options)
    }

    fn from_network(network: &Network<'_>, options: &SimulationOptions) -> Result<Layout, ModelError> {
        let model = network.model;
        let lines = urgency(&model.classes);
        let service = |i: usize| options.service.get(i).copied().unwrap_or_default();
        let arrivals = |c: usize| options.arrivals.get(c).copied().unwrap_or_default();
        let station = |i: usize| Station::new(network, i, service(i), &lines);
        let class = |c: usize| Class::new(network, c, arrivals(c));
        let stations = (0..model.stations.len()).map(station).collect::<Result<_, _>>()?;
        let classes: Vec<Class> = (0..model.classes.len()).map(class).collect::<Result<_, _>>()?;
        let closed: f64 = classes.iter().map(|class| f64::from(class.population) / (class.think + class.demand)).sum();
        let rate = closed + network.rates.iter().sum::<f64>();
        if rate <= 0.0 {
            return Err(ModelError::Inconsistent(
                "no class sends any request: give one a rate above 0 or a population".into(),
            ));
        }
        Ok(Layout { stations, classes, rate })
    }

    /// The simulated time, in seconds, after which each station has had about [`MIN_INTERRUPTIONS`] interruptions. In a
    /// shorter run, the effect of rare interruptions would be known only roughly, and the intervals would not show it.
    pub(super) fn min_time(&self) -> f64 {
        let interruptions = self.stations.iter().filter_map(|station| station.interruptions);
        interruptions.map(|it| MIN_INTERRUPTIONS / it.rate()).fold(0.0, f64::max)
    }

    /// Limit of the simulated time, in seconds. At this time, the rounding error of the clock is a thousandth of the
    /// service of the shortest request.
    pub(super) fn max_time(&self) -> f64 {
        self.classes.iter().map(|c| c.demand).fold(f64::INFINITY, f64::min) * 1e-3 / f64::EPSILON
    }
}

impl Station {
    fn new(network: &Network<'_>, index: usize, service: Service, lines: &[usize]) -> Result<Station, ModelError> {
        let model = network.model;
        let station = &model.stations[index];
        let following =
            |class: usize| (index + 1..model.stations.len()).find(|next| network.nominal[*next][class] > 0.0);
        let queues = station.kind == StationKind::Queue;
        let wakes = network.waking[index] > 0.0;
        Ok(Station {
            name: station.name.clone(),
            discipline: discipline(station, lines),
            sampler: Sampler::new(service, network.scv[index], &station.name)?,
            capacity: if queues { max_speed(station) * network.available(index) } else { f64::INFINITY },
            servers: servers(station),
            demands: if wakes { model.demands[index].clone() } else { network.nominal[index].clone() },
            waking: network.waking[index] * network.available(index),
            next: (0..model.classes.len()).map(following).collect(),
            interruptions: network.interrupted[index].as_ref().map(Interruptions::new).transpose()?,
        })
    }
}

impl Interruptions {
    fn new(load: &InterruptionLoad) -> Result<Interruptions, ModelError> {
        let sampler = Sampler::new(Service::Standard, load.scv, "")?;
        Ok(Interruptions { between_s: 1.0 / load.hazard, length_s: load.mean, sampler })
    }

    /// Mean number of interruptions per second.
    fn rate(&self) -> f64 {
        1.0 / (self.between_s + self.length_s)
    }
}

impl Class {
    fn new(network: &Network<'_>, index: usize, arrivals: Arrivals) -> Result<Class, ModelError> {
        let (class, demands) = (&network.model.classes[index], &network.nominal);
        let first = demands.iter().position(|row| row[index] > 0.0);
        let first = first.ok_or_else(|| ModelError::NoDemand { class: class.name.clone() })?;
        let (rate, population) = (network.rates[index], network.population[index]);
        Ok(Class {
            source: if rate > 0.0 { Some(Source::new(arrivals, rate, &class.name)?) } else { None },
            population,
            think: if population > 0 { class.think } else { 0.0 },
            first,
            demand: demands.iter().map(|row| row[index]).sum(),
        })
    }

    /// Whether the class sends any requests.
    pub(super) fn sends(&self) -> bool {
        self.source.is_some() || self.population > 0
    }
}

fn check_options(model: &Model, options: &SimulationOptions) -> Result<(), ModelError> {
    let (stations, classes) = (model.stations.len(), model.classes.len());
    let lists = [
        ("arrival processes", options.arrivals.len(), classes),
        ("service distributions", options.service.len(), stations),
    ];
    for (what, given, need) in lists {
        if given != 0 && given != need {
            return Err(ModelError::Inconsistent(format!("{given} {what} are given where {need} are needed, or none")));
        }
    }
    let customers: u64 = model.classes.iter().filter_map(|class| class.population).map(u64::from).sum();
    if customers > MAX_PRESENT as u64 {
        let (what, value) = ("the population of all closed classes".into(), customers as f64);
        return Err(ModelError::Number(NumberError { what, value, requirement: "at most 1,000,000 in a simulation" }));
    }
    let limits = [("the precision asked for", options.precision), ("the simulated time", options.time_s)];
    for (what, limit) in limits {
        if let Some(value) = limit.filter(|limit| limit.is_nan() || *limit <= 0.0) {
            return Err(ModelError::Number(NumberError { what: what.into(), value, requirement: "above 0" }));
        }
    }
    Ok(())
}

/// Rank of each class among the distinct priorities; 0 is the most urgent.
fn urgency(classes: &[model::ModelClass]) -> Vec<usize> {
    let mut priorities: Vec<u32> = classes.iter().map(|c| c.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    classes.iter().map(|c| priorities.partition_point(|p| *p < c.priority)).collect()
}

fn discipline(station: &model::Station, lines: &[usize]) -> Discipline {
    if station.kind == StationKind::Delay {
        return Discipline::delay(lines.len());
    }
    let left = 1.0 - station.background;
    let capacity = match &station.rate_multipliers {
        none if none.is_empty() => Capacity::Servers(left, servers(station)),
        rates => Capacity::Table(rates.iter().map(|rate| rate * left).collect()),
    };
    let queue = |slots, lines, preemptive| Discipline { slots, capacity, lines, preemptive };
    let (one_line, slots) = (vec![0; lines.len()], station.servers as usize);
    match station.scheduling {
        Scheduling::Ps => queue(usize::MAX, one_line, false),
        Scheduling::Fcfs => queue(slots, one_line, false),
        Scheduling::Priority => queue(slots, lines.to_vec(), false),
        Scheduling::Preemptive => queue(slots, lines.to_vec(), true),
    }
}
