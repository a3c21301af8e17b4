//! Fits a queueing model to calibration measurements: the bottleneck of the server, the CPU cost of a call, the
//! differences between request classes, and the resulting queueing network.

use super::blocks::{OfferedLoad, PooledLoads, PooledMeasurement, ServerFacts, most_clients, single_class_measurement};
use super::full::{Bottleneck, Pool, PoolKind};
use super::law::{self, CallCost, SaturatedCost};
use super::model_fit::{CpuFit, ModelFit};
use super::module::ModuleDemands;
use super::pauses::Pauses;
use super::responses::fit_responses;
use crate::EstimateError;
use crate::demand::joint_demands;
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};

/// Minimum number of loads from which the CPU cost of a call at saturation is extrapolated, if no load saturated the
/// CPUs.
const MIN_COSTS: usize = 3;

/// Fits a model to the combined measurements `loads`. `chance` is an argument of [`law::choose`], and `known` an
/// argument of [`Bottleneck::new`]; both are `None` except in a bootstrap.
///
/// # Errors
/// If no load shows the CPU cost of a call.
pub(super) fn fit(
    facts: &ServerFacts,
    loads: &PooledLoads,
    chance: Option<f64>,
    known: Option<PoolKind>,
) -> Result<ModelFit, EstimateError> {
    let servers = f64::from(facts.servers);
    let bottleneck = Bottleneck::new(facts, loads, known);
    // If the bottleneck is another resource, which calls do not hold while they use the CPUs, the CPUs are partly idle
    // even at the highest load. This load then does not show the CPU cost of a call at saturation.
    let is_cpu_full = bottleneck.pool.as_ref().is_none_or(|pool| pool.includes_cpu_time);
    let highest = most_clients(loads).map(|(_, pooled)| pooled).filter(|_| bottleneck.saturated_cost.is_some());
    let cost_of = |pooled: &PooledMeasurement| {
        let seconds = pooled.measurement.cost(facts.idle_busy)?;
        let idle = (bottleneck.cpu_share - pooled.measurement.rate() * seconds / servers).max(0.0);
        Some(CallCost { idle, seconds, calls: pooled.measurement.rate() * pooled.measurement.seconds })
    };
    let levels = loads.iter().filter(|(load, _)| matches!(load, OfferedLoad::Level(_))).map(|(_, pooled)| pooled);
    let costs: Vec<CallCost> = levels.chain(highest.filter(|_| !is_cpu_full)).filter_map(cost_of).collect();
    let saturated = bottleneck.saturated_cost.filter(|_| is_cpu_full || costs.len() < MIN_COSTS).map(|seconds| {
        let calls = highest.map_or(0.0, |pooled| pooled.measurement.rate() * pooled.measurement.seconds);
        // The variance of the cost is estimated from the differences between blocks. Few blocks may differ too little
        // by chance, so the variance is at least the value that follows from the differences between calls.
        let between_blocks = highest.and_then(|pooled| Some(pooled.rate_variance? / pooled.measurement.rate().powi(2)));
        let of_calls = highest.and_then(|pooled| pooled.work_scv).map_or(0.0, |work| work.scv / calls);
        SaturatedCost { seconds, calls, variance: between_blocks.unwrap_or(0.0).max(of_calls) }
    });
    if costs.is_empty() && saturated.is_none() {
        return Err(EstimateError::TooFewObservations { needed: 1, given: 0 });
    }
    let (fitted, laws) = law::choose(&costs, saturated, chance);
    let measured = ModuleDemands::new(facts, loads).map(|module| module.demands(&facts.mix, fitted.demand));
    let is_from_module = measured.is_some();
    let demands = measured.unwrap_or_else(|| class_demands(facts, loads, fitted.demand));
    let station = Station {
        name: facts.station.clone(),
        scheduling: Scheduling::Fcfs,
        servers: facts.servers,
        background: 1.0 - bottleneck.cpu_share,
        idle_cost: fitted.idle_cost,
        ..Station::default()
    };
    let cpu = CpuFit { station, demands, is_from_module };
    let mut network = network(facts, &cpu, &bottleneck);
    let classes = facts.classes.len();
    if !is_from_module && classes > 1 && (0..classes).any(|class| single_class_measurement(loads, class).is_none()) {
        let first_station = network.stations[0].name.clone();
        network.joint_demands = joint_demands(&network.classes, &first_station, &[(0..classes).collect()]);
    }
    let mut fit = ModelFit {
        network,
        cpu,
        service_scv: 0.0,
        percentile_ratios: [1.0; 3],
        pauses: Pauses::default(),
        laws,
        pool_kind: bottleneck.pool.as_ref().map(Pool::kind),
        bottleneck: bottleneck.name,
        evidence: bottleneck.evidence,
    };
    fit_responses(&mut fit, facts, loads)?;
    Ok(fit)
}

/// The demand of each request class in seconds, scaled so that the mean demand of the mix is `mean`. The ratios between
/// classes come from the measurements of each class alone. Without these measurements, all classes have the same
/// demand.
fn class_demands(facts: &ServerFacts, loads: &PooledLoads, mean: f64) -> Vec<f64> {
    let cost_alone = |class: usize| {
        let measurement = &single_class_measurement(loads, class)?.measurement;
        let cost = measurement.cost(facts.idle_busy).or_else(|| Some(1.0 / measurement.rate()));
        cost.filter(|cost| cost.is_finite() && *cost > 0.0)
    };
    let costs: Option<Vec<f64>> = (0..facts.classes.len()).map(cost_alone).collect();
    let costs = costs.unwrap_or_else(|| vec![1.0; facts.classes.len()]);
    let mean_cost: f64 = facts.mix.iter().zip(&costs).map(|(share, cost)| share * cost).sum();
    costs.into_iter().map(|cost| cost * mean / mean_cost).collect()
}

/// The queueing network of the server, with one request of the mix per second. `cpu` is the station of the CPUs. If
/// another resource (a pool) is the bottleneck, it becomes a second station, or replaces the station of the CPUs if it
/// includes the CPU time.
fn network(facts: &ServerFacts, cpu: &CpuFit, bottleneck: &Bottleneck) -> Model {
    let new_station =
        |name: &str, kind| Station { name: name.to_owned(), kind, scheduling: Scheduling::Fcfs, ..Station::default() };
    let class = |(name, share): (&String, &f64)| ModelClass {
        name: name.clone(),
        kind: ClassKind::Open,
        rate: Some(*share),
        ..ModelClass::default()
    };
    let mut stations = Vec::new();
    let mut demands = Vec::new();
    // If calls hold the pool while they use the CPUs, their time in the pool includes the CPU time. An additional
    // station for the CPUs would count the CPU time twice.
    if bottleneck.pool.as_ref().is_none_or(|pool| !pool.includes_cpu_time) {
        stations.push(cpu.station.clone());
        demands.push(cpu.demands.clone());
    }
    if let Some(pool) = &bottleneck.pool {
        stations.push(Station { servers: pool.capacity, ..new_station(&bottleneck.name, StationKind::Queue) });
        demands.push(pool.holding_time.clone());
    }
    stations.push(Station { scv: 0.0, ..new_station("elsewhere", StationKind::Delay) });
    demands.push(vec![0.0; cpu.demands.len()]);
    Model { stations, classes: facts.classes.iter().zip(&facts.mix).map(class).collect(), demands, ..Model::default() }
}
