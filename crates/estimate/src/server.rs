//! From the calibration of a survey to a model, and from the model to predictions. Times are seconds, rates per second.
//!
//! One queueing station stands for the server's CPUs, one for whatever else is full when they are not (a pool of
//! workers, a lock, a disk), and one delay station for all else. What clients who leave the server no rest get done is
//! measured, not extrapolated: with so many present, the server as seen from outside (Chandy, Herzog & Woo 1975). What
//! a call costs more at leisure is one of several laws ([`law`]), and the one that says best what it was not fitted to.
//! Where the server has the Server Module, how classes differ is what that measured of them ([`inside`]), else what each
//! costs by itself. Mean response times then give the delay and the variability of service. Predictions are solutions of the model, so
//! whoever solves it gets the same; how far measurements may be off them is found by drawing blocks of calibration anew
//! ([`variable`]).

mod blocks;
mod drift;
mod full;
mod host;
mod inside;
mod law;
mod programs;
mod quota;
mod responses;
mod variable;

pub use blocks::{Block, Piece, Place};
pub use host::Answered;
pub use programs::ProgramSeen;
pub use quota::Limited;
pub use variable::{Expected, Spread};

use self::blocks::{Pooled, Replayed, pool};
use self::drift::Drift;
use self::full::Full;
use self::inside::SeenInside;
use self::law::Cost;
use crate::EstimateError;
use crate::correlation::of_covariance;
use crate::demand::joint_demands;
use crate::least_squares::t95;
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_core::survey::{ByClients, Law};
use brimful_model::correlation::identity;
use brimful_model::{Estimate, Method, ModelError, solve_open, station_demands};
use std::collections::BTreeMap;

/// Where the model stands, as a share of the saturation rate: the load a server can be run at with room for peaks. At
/// saturation itself an open network has no solution.
pub const OPERATING: f64 = 0.7;

/// What is known of the server besides the blocks.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Shares of the classes in the mix, summing to one.
    pub mix: Vec<f64>,
    /// What does the work: its CPUs, or where those cannot be seen, the whole server.
    pub station: String,
    /// CPUs that the server can use at once; 1 where they cannot be seen.
    pub servers: u32,
    /// Busy servers without load, by the server's processes.
    pub idle_busy: f64,
    /// Share of the servers' capacity that requests cannot have.
    pub background: f64,
    /// Whether the most clients got no more done than half as many, so that something is full.
    pub filled: bool,
    /// Connections that the server serves at a time, where the most clients had all of them.
    pub served_at_once: Option<u32>,
}

/// A fitted server.
#[derive(Clone, Debug)]
pub struct ServerFit {
    facts: ServerFacts,
    blocks: Vec<Vec<Replayed>>,
    places: BTreeMap<Place, Pooled>,
    once: Once,
    /// The same from blocks drawn anew.
    again: Vec<Once>,
    /// Of the host.
    drift: Drift,
    /// Seconds per request, by class.
    pub demands: Vec<Estimate>,
    /// What a request costs more on an idle server, in seconds.
    pub wakeup: Estimate,
}

/// What one set of blocks says.
#[derive(Clone, Debug)]
struct Once {
    /// Without rates.
    network: Model,
    /// The CPUs, whether requests wait there or for something around them, and the classes' demands there.
    cpu: (Station, Vec<f64>),
    /// Whether the classes' demands stand on what the server itself measured.
    inside: bool,
    /// Squared coefficient of variation of what a call of a class needs: of this the differences between stretches of
    /// few calls are made, whatever the queues look like.
    service_scv: f64,
    /// Percentiles of response times, 50, 95 and 99, over what the network says of them.
    shape: [f64; 3],
    laws: Vec<Law>,
    bottleneck: String,
    evidence: String,
}

/// What the model says of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Requests completed per second.
    pub throughput: f64,
    /// Mean response time; none where the queue would grow without end.
    pub response: Option<f64>,
    /// The same by class.
    pub class_response: Option<Vec<f64>>,
    /// Of the servers, by the server's processes.
    pub utilization: f64,
}

impl ServerFit {
    /// Fits a model to the blocks; the seed is that of drawing them anew.
    ///
    /// # Errors
    /// When they do not say enough.
    pub fn new(facts: ServerFacts, blocks: Vec<Block>, seed: u64) -> Result<Self, EstimateError> {
        // What the calls do in the model depends on how much they need, which does not depend on how long they took.
        let plain = |piece| Replayed { piece, modelled: None, shape: None };
        let mut blocks: Vec<Vec<Replayed>> =
            blocks.into_iter().map(|block| block.into_iter().map(plain).collect()).collect();
        let demands = Once::fit(&facts, &pool(&blocks), None)?;
        for replayed in blocks.iter_mut().flatten() {
            replayed.modelled = demands.modelled(&facts, &replayed.piece);
        }
        let fitted = Once::fit(&facts, &pool(&blocks), None)?;
        for replayed in blocks.iter_mut().flatten() {
            replayed.shape = fitted.shape_of(&facts, &replayed.piece);
        }
        let places = pool(&blocks);
        let once = Once { shape: responses::shape(&places), ..fitted };
        let again = variable::anew(&facts, &blocks, seed);
        let spread = |of: &dyn Fn(&Once) -> f64| variable::half_width95(again.iter().map(of));
        let estimate = |of: &dyn Fn(&Once) -> f64| Estimate { value: of(&once), ci95_half_width: spread(of) };
        let demands: Vec<Estimate> =
            (0..facts.classes.len()).map(|class| estimate(&|once| once.cpu.1[class])).collect();
        let wakeup = estimate(&|once| once.cpu.0.idle_cost.map_or(0.0, |cost| cost.seconds));
        let drift = Drift::of(&once, &facts, &places, &blocks);
        let mut fit = Self { facts, blocks, places, once, again, drift, demands, wakeup };
        fit.note_uncertainty();
        Ok(fit)
    }

    /// Writes into the model how well its demands are known.
    fn note_uncertainty(&mut self) {
        let stations = self.once.network.stations.len();
        let classes = self.facts.classes.len();
        let correlation = of_covariance(&self.covariance());
        let model = &mut self.once.network;
        if model.stations[0].name != self.once.cpu.0.name {
            return;
        }
        model.demand_ci95_half_width = vec![vec![0.0; classes]; stations];
        model.demand_ci95_half_width[0] = self.demands.iter().map(|d| d.ci95_half_width.unwrap_or(0.0)).collect();
        model.demand_correlation = vec![identity(classes); stations];
        model.demand_correlation[0] = correlation;
    }

    /// Of the demands of classes at the CPUs.
    fn covariance(&self) -> Vec<Vec<f64>> {
        let n = self.again.len() as f64;
        let demand = |once: &Once, class: usize| once.cpu.1[class];
        let classes = 0..self.facts.classes.len();
        let mean: Vec<f64> =
            classes.clone().map(|class| self.again.iter().map(|once| demand(once, class)).sum::<f64>() / n).collect();
        let product = |i: usize, j: usize| {
            let of = |once: &Once| (demand(once, i) - mean[i]) * (demand(once, j) - mean[j]);
            self.again.iter().map(of).sum::<f64>() / n
        };
        classes.clone().map(|i| classes.clone().map(|j| product(i, j)).collect()).collect()
    }

    /// Requests per second of the mix at which something is full.
    pub fn saturation(&self) -> f64 {
        self.once.saturation(&self.facts)
    }

    /// What does the work of which [`ServerFit::demands`] tells.
    pub fn station(&self) -> &str {
        &self.facts.station
    }

    /// What is full then.
    pub fn bottleneck(&self) -> &str {
        &self.once.bottleneck
    }

    /// Why that is believed, as a phrase.
    pub fn evidence(&self) -> &str {
        &self.once.evidence
    }

    /// How long a call of the class is at what is full where that is not the CPUs, in seconds.
    pub fn held(&self, class: usize) -> Option<Estimate> {
        let held = |once: &Once| {
            let station = once.network.stations.iter().position(|station| station.name == self.once.bottleneck)?;
            once.network.demands[station].get(class).copied()
        };
        let again = self.again.iter().filter_map(held);
        let value = held(&self.once).filter(|_| self.once.bottleneck != self.facts.station)?;
        Some(Estimate { value, ci95_half_width: variable::half_width95(again) })
    }

    /// The laws that were tried, the best first.
    pub fn laws(&self) -> &[Law] {
        &self.once.laws
    }

    /// Throughput by the number of clients who leave the server no rest.
    pub fn throughput_by_clients(&self) -> Vec<ByClients> {
        let servers = f64::from(self.facts.servers);
        let by = |(place, pooled): (&Place, &Pooled)| match place {
            Place::Clients(clients) => Some(ByClients {
                clients: *clients,
                throughput: pooled.piece.rate(),
                ci95_half_width: pooled.rate_variance.map(|v| t95(pooled.blocks - 1) * v.sqrt()),
                utilization: pooled.piece.busy.map(|busy| busy / servers),
            }),
            _ => None,
        };
        self.places.iter().filter_map(by).collect()
    }

    /// What the model says when requests of the mix come at `rate`, on a host that keeps its speed.
    ///
    /// # Errors
    /// When the model cannot be solved.
    pub fn predict(&self, rate: f64) -> Result<Prediction, EstimateError> {
        self.predict_mix(rate, &self.facts.mix)
    }

    /// The same for requests in other proportions.
    ///
    /// # Errors
    /// When the model cannot be solved.
    pub fn predict_mix(&self, rate: f64, mix: &[f64]) -> Result<Prediction, EstimateError> {
        let model = self.once.model_at(rate, mix);
        match solve_open(&model, Method::Erlang) {
            Ok(solution) => Ok(Prediction {
                throughput: rate,
                response: Some(solution.mean_response_time),
                class_response: Some(solution.response_time),
                utilization: self.once.utilization(&self.facts, rate, mix, 1.0),
            }),
            Err(ModelError::Unstable { .. }) => {
                let saturation = self.saturation_of(mix);
                Ok(Prediction {
                    throughput: saturation,
                    response: None,
                    class_response: None,
                    utilization: self.once.utilization(&self.facts, saturation, mix, 1.0),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Requests per second in these proportions at which something is full.
    pub fn saturation_of(&self, mix: &[f64]) -> f64 {
        self.once.saturation_of(mix)
    }

    /// The model to plan with, under [`OPERATING`] of the load at which it saturates.
    pub fn model(&self) -> Model {
        self.once.model_at(OPERATING * self.saturation(), &self.facts.mix)
    }
}

impl Once {
    /// `chance` is as in [`law::choose`].
    fn fit(facts: &ServerFacts, places: &BTreeMap<Place, Pooled>, chance: Option<f64>) -> Result<Once, EstimateError> {
        let servers = f64::from(facts.servers);
        let full = Full::of(facts, places);
        let level = |(place, pooled): (&Place, &Pooled)| {
            let seconds = pooled.piece.cost(facts.idle_busy)?;
            let idle = (full.cpu_share - pooled.piece.rate() * seconds / servers).max(0.0);
            matches!(place, Place::Level(_)).then_some(Cost { idle, seconds })
        };
        let costs: Vec<Cost> = places.iter().filter_map(level).collect();
        let busiest = full.cost_without_rest;
        if costs.is_empty() && busiest.is_none() {
            return Err(EstimateError::TooFewObservations { needed: 1, given: 0 });
        }
        let (fitted, laws) = law::choose(&costs, busiest, chance);
        let classes = facts.classes.len();
        let measured = SeenInside::of(facts, places).map(|inside| inside.demands(&facts.mix, fitted.demand));
        let inside = measured.is_some();
        let demands = measured.unwrap_or_else(|| class_demands(facts, places, fitted.demand));
        let cpu = Station {
            name: facts.station.clone(),
            scheduling: Scheduling::Fcfs,
            servers: facts.servers,
            background: 1.0 - full.cpu_share,
            idle_cost: fitted.idle_cost,
            ..Station::default()
        };
        let mut once = Once {
            network: network(facts, &cpu, &demands, &full),
            cpu: (cpu, demands),
            inside,
            service_scv: 0.0,
            shape: [1.0; 3],
            laws,
            bottleneck: full.name.clone(),
            evidence: full.evidence.clone(),
        };
        if !inside && classes > 1 && (0..classes).any(|class| alone(places, class).is_none()) {
            let first = once.network.stations[0].name.clone();
            once.network.joint_demands = joint_demands(&once.network.classes, &first, &[(0..classes).collect()]);
        }
        once.fit_responses(facts, places)?;
        Ok(once)
    }

    fn saturation(&self, facts: &ServerFacts) -> f64 {
        self.saturation_of(&facts.mix)
    }

    fn saturation_of(&self, mix: &[f64]) -> f64 {
        let demand = |demands: &[f64]| mix.iter().zip(demands).map(|(share, demand)| share * demand).sum::<f64>();
        let most = |(station, demands): (&Station, &Vec<f64>)| {
            f64::from(station.servers) * (1.0 - station.background) / demand(demands)
        };
        let queues = self.network.stations.iter().zip(&self.network.demands);
        queues.filter(|(station, _)| station.kind == StationKind::Queue).map(most).fold(f64::INFINITY, f64::min)
    }

    /// Of the CPUs, by the server's processes, where requests in these proportions are served at `rate` by a host that
    /// is so slow.
    fn utilization(&self, facts: &ServerFacts, rate: f64, mix: &[f64], slowness: f64) -> f64 {
        let (cpu, demands) = &self.cpu;
        let rates: Vec<f64> = mix.iter().map(|share| rate * share).collect();
        let needs = station_demands(cpu, demands, &rates);
        let work: f64 = needs.iter().zip(&rates).map(|(demand, rate)| demand * rate).sum();
        let servers = f64::from(facts.servers);
        ((facts.idle_busy + (work * slowness).min(servers * (1.0 - cpu.background))) / servers).min(1.0)
    }

    /// Squared coefficient of variation of the CPU time of requests in these proportions.
    fn variability(&self, mix: &[f64]) -> f64 {
        let demands = &self.network.demands[0];
        let moment = |k: i32| mix.iter().zip(demands).map(|(share, demand)| share * demand.powi(k)).sum::<f64>();
        (1.0 + self.service_scv) * moment(2) / moment(1).powi(2) - 1.0
    }

    /// The model when requests in these proportions come at `rate`.
    fn model_at(&self, rate: f64, mix: &[f64]) -> Model {
        let mut model = self.network.clone();
        model.classes.iter_mut().zip(mix).for_each(|(class, share)| class.rate = Some(rate * share));
        model
    }
}

fn alone(places: &BTreeMap<Place, Pooled>, class: usize) -> Option<&Pooled> {
    places.iter().rev().find_map(|(place, at)| matches!(place, Place::Alone(other, _) if *other == class).then_some(at))
}

/// Of each class, such that the mean request of the mix needs `mean`. What classes cost by themselves says how they
/// differ.
fn class_demands(facts: &ServerFacts, places: &BTreeMap<Place, Pooled>, mean: f64) -> Vec<f64> {
    let by_itself = |class: usize| {
        let piece = &alone(places, class)?.piece;
        piece.cost(facts.idle_busy).or_else(|| Some(1.0 / piece.rate())).filter(|cost| cost.is_finite() && *cost > 0.0)
    };
    let costs: Option<Vec<f64>> = (0..facts.classes.len()).map(by_itself).collect();
    let costs = costs.unwrap_or_else(|| vec![1.0; facts.classes.len()]);
    let all: f64 = facts.mix.iter().zip(&costs).map(|(share, cost)| share * cost).sum();
    costs.into_iter().map(|cost| cost * mean / all).collect()
}

/// The server with these CPUs, under one request per second of the mix.
fn network(facts: &ServerFacts, cpu: &Station, demands: &[f64], full: &Full) -> Model {
    let station =
        |name: &str, kind| Station { name: name.to_owned(), kind, scheduling: Scheduling::Fcfs, ..Station::default() };
    let class = |(name, share): (&String, &f64)| ModelClass {
        name: name.clone(),
        kind: ClassKind::Open,
        rate: Some(*share),
        ..ModelClass::default()
    };
    let (mut stations, mut rows) = (vec![cpu.clone()], vec![demands.to_vec()]);
    if let Some(pool) = &full.pool {
        let held = Station { servers: pool.places, ..station(&full.name, StationKind::Queue) };
        if pool.around_cpu {
            // The time on the CPUs is part of it, so it is not counted twice.
            (stations, rows) = (vec![held], vec![pool.held.clone()]);
        } else {
            stations.push(held);
            rows.push(pool.held.clone());
        }
    }
    stations.push(station("elsewhere", StationKind::Delay));
    rows.push(vec![0.0; demands.len()]);
    Model {
        stations,
        classes: facts.classes.iter().zip(&facts.mix).map(class).collect(),
        demands: rows,
        ..Model::default()
    }
}
