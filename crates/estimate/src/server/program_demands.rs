//! The CPU time that a call spends in each of the server's programs, for the report. The queueing model has one station
//! for all programs, because the programs share the same CPUs. Several stations would have more capacity than the CPUs.

use super::blocks::{OfferedLoad, PooledLoads, ReplayedMeasurement, most_clients};
use super::programs::ProgramUsage;
use crate::least_squares::t95;
use brimful_core::moments::{Moments, mean};
use brimful_core::survey::ProgramDemand;

/// CPU demand of an average call of the mix in each program at the highest load, in descending order. Empty if the
/// programs cannot be observed. `idle` has the number of CPUs that each program keeps busy without load.
pub(super) fn program_demands(
    loads: &PooledLoads,
    blocks: &[Vec<ReplayedMeasurement>],
    idle: &[ProgramUsage],
) -> Vec<ProgramDemand> {
    let Some((clients, highest)) = most_clients(loads) else { return Vec::new() };
    let load = OfferedLoad::Clients(clients);
    let programs = &highest.measurement.kernel.programs;
    let costs_by_block =
        |name: &str| -> Vec<f64> { blocks.iter().filter_map(|block| cost(block, load, name, idle)).collect() };
    let total: f64 = programs.iter().filter_map(|program| mean(&costs_by_block(&program.name))).sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let demand = |program: &ProgramUsage| {
        let costs = costs_by_block(&program.name);
        let demand_s = mean(&costs)?;
        Some(ProgramDemand {
            name: program.name.clone(),
            demand_s,
            ci95_half_width: half_width(&costs),
            share: demand_s / total,
            processes: program.processes,
        })
    };
    let mut demands: Vec<ProgramDemand> = programs.iter().filter_map(demand).collect();
    demands.sort_by(|a, b| b.demand_s.total_cmp(&a.demand_s));
    demands
}

/// CPU seconds per call in the program `name`, under one load in one block of the calibration. `None` if the block does
/// not contain this measurement.
fn cost(block: &[ReplayedMeasurement], load: OfferedLoad, name: &str, idle: &[ProgramUsage]) -> Option<f64> {
    let mut measurements = block.iter().map(|replayed| &replayed.measurement);
    let measurement = measurements.find(|measurement| measurement.load == load && measurement.rate() > 0.0)?;
    let idle_cores = idle.iter().find(|program| program.name == name).map_or(0.0, |program| program.cores);
    let program = measurement.kernel.programs.iter().find(|program| program.name == name)?;
    Some((program.cores - idle_cores).max(0.0) / measurement.rate())
}

/// Half width of the 95 % confidence interval of the mean of `values`.
fn half_width(values: &[f64]) -> Option<f64> {
    Some(t95(values.len() - 1) * Moments::from_values(values)?.standard_error()?)
}
