//! Computes a queueing model of a server from Records, the JSON documents of runs under load: `brimful plan calibrate`.
//!
//! Each usable run is one observation of the utilization law ([`crate::demand::fit_demands`]): the throughput of each
//! request class and the CPU time of the server in the same period. A run that contradicts the others is reported
//! ([`OddRun`]). Background work is measured in a run with almost no load; without such a run, it is fitted with the
//! demands. Each disk that was used also becomes a station of the model. Mean response times determine the variability
//! of service times and the delay outside of the stations ([`crate::fit_response`]). If the Server Module (a plug-in of
//! the web server) measured the requests, its measurements are used ([`InsideDemands`]). [`Source`] states which data
//! each demand was derived from.
//!
//! A demand has two confidence intervals, and the wider one is used. The interval of the regression shows how far the
//! runs deviate from the fitted law. The interval of the bootstrap ([`crate::demand::moving_blocks`]) shows how much
//! the seconds within each run differ. If demands depend on the load ([`crate::demand::fit_load_dependence`]), the
//! model has the demands at saturation, and the additional cost of a request on a partly idle server.
//!
//! If there are runs with steady arrivals, runs with bursty arrivals are used only to measure the cost of bursts. Runs
//! past saturation, whose load exceeded the server's capacity, are used only to check the model's saturation rate.

mod attribution;
mod bursts;
mod certainty;
mod check;
mod cpu;
mod demand_errors;
mod disks;
mod elsewhere;
mod figures;
mod inside;
mod judge;
mod knee;
mod odd;
mod regression;
mod report;
mod runs;

pub use attribution::{Attribution, CalibrateOptions};
pub use bursts::{BurstRun, Bursts};
pub use certainty::{Source, Uncertainty};
pub use cpu::RunDemand;
pub use inside::{InsideDemand, InsideDemands};
pub use knee::{KneeCheck, MeasuredLoad};
pub use odd::OddRun;
pub use report::{Calibrated, DemandAtRate, Merged, Saturation, SizeDemand};
pub use runs::LeftOut;

use crate::EstimateError;
use crate::demand::{SizePoint, fit_size, joint_demands};
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_core::record::Record;
use brimful_model::correlation::identity;
use brimful_model::saturation_rate;
use cpu::CpuFit;
use runs::Runs;

/// Number of intervals into which a demand curve divides the range of request rates.
const CURVE_INTERVALS: u32 = 40;

/// Estimates a queueing model of a server from Records, the documents of runs under load. Records that cannot be used
/// are listed in the result with the reasons.
///
/// # Errors
/// If the Records are of different servers, or do not determine a model.
pub fn calibrate(records: &[Record], options: CalibrateOptions) -> Result<Calibrated, EstimateError> {
    let mut runs = Runs::select(records, options.servers)?;
    let mut warnings = runs.warnings();
    let module = runs.module_demands();
    let cpu = cpu::fit(&mut runs, options, module.as_deref(), &mut warnings)?;
    let inside = inside::compare(&runs, options, module.as_deref(), &cpu, &mut warnings);
    let disks = disks::fit(&runs, &mut warnings);
    let mut model = Model { classes: classes(&runs), ..Model::default() };
    let mut uncertainty = Vec::new();
    let station = |name: &str| Station {
        name: name.to_owned(),
        kind: StationKind::Queue,
        scheduling: Scheduling::Fcfs,
        ..Station::default()
    };
    model.stations.push(Station {
        servers: runs.servers,
        background: cpu.unavailable_share(&runs),
        idle_cost: cpu.idle_cost(),
        ..station("cpu")
    });
    model.demands.push(cpu.demands.clone());
    model.joint_demands = joint_demands(&model.classes, "cpu", &cpu.indistinguishable_classes);
    uncertainty.push(cpu.uncertainty.clone());
    model.demand_correlation.push(cpu.errors.correlation());
    for disk in disks {
        model.joint_demands.extend(joint_demands(&model.classes, &disk.name, &disk.indistinguishable_classes));
        model.stations.push(Station { background: disk.background, ..station(&disk.name) });
        model.demands.push(disk.demands);
        uncertainty.push(disk.uncertainty);
        model.demand_correlation.push(disk.correlation);
    }
    let service_scv = inside.as_ref().and_then(|inside| inside.service_scv(runs.servers));
    let elsewhere = elsewhere::fit(&runs, &model, service_scv)?;
    if let Some(elsewhere) = &elsewhere {
        model.stations[0].scv = elsewhere.response.scv;
        model.stations.push(Station { kind: StationKind::Delay, scheduling: Scheduling::Ps, ..station("elsewhere") });
        model.demands.push(elsewhere.delays.clone());
        uncertainty.push(vec![Uncertainty::unknown(Source::ResponseTimes); runs.classes.len()]);
        model.demand_correlation.push(identity(runs.classes.len()));
    }
    model.demand_ci95_half_width = half_widths(&model, &uncertainty);
    let mix: Vec<f64> = model.classes.iter().filter_map(|c| c.rate).collect();
    let (rate, bottleneck) = saturation_rate(&model)?;
    let ci95 = if bottleneck == "cpu" { cpu.saturation_ci95(&runs, &mix) } else { None };
    let merged = merged(&runs, &cpu);
    warnings.extend(merged.iter().map(Merged::warning));
    let knee = knee::check(records, &runs, &mix);
    warnings.extend(knee.warning(rate));
    let bursts = bursts::fit(&runs, &cpu, &model)?;
    warnings.extend(bursts.warning());
    Ok(Calibrated {
        saturation: Saturation { rate, ci95, bottleneck },
        demand_curve: demand_curve(&cpu, &mix),
        runs: runs.used.iter().map(|run| cpu.run_demand(run, runs.servers)).collect(),
        sizes: sizes(&runs, &cpu),
        uncertainty,
        cpu_draws: cpu.errors.draws(),
        merged,
        background: cpu.background(),
        condition_number: cpu.condition_number,
        load_dependence: cpu.load_dependence,
        odd: cpu.outlier,
        inside,
        response: elsewhere.map(|e| e.response),
        knee,
        bursts,
        used: runs.used.iter().map(|r| r.record).collect(),
        idle: runs.idle.records,
        left_out: runs.left_out,
        warnings,
        model,
    })
}

/// The request classes of the model, with their mean request rates in the runs.
fn classes(runs: &Runs) -> Vec<ModelClass> {
    let rates = runs.mix();
    let class = |(name, rate): (&String, f64)| ModelClass {
        name: name.clone(),
        kind: ClassKind::Open,
        rate: Some(rate),
        ..ModelClass::default()
    };
    runs.classes.iter().zip(rates).map(class).collect()
}

/// Half widths of the confidence intervals of the model's demands, stations × classes. An interval need not be
/// symmetric: its half width is the distance from the demand to the farther end. Empty if the intervals at the CPU (the
/// first station) are unknown, because a half width of 0 would mean that the demand is exact.
fn half_widths(model: &Model, uncertainty: &[Vec<Uncertainty>]) -> Vec<Vec<f64>> {
    if uncertainty.first().is_none_or(|cpu| cpu.iter().any(|known| known.ci95.is_none())) {
        return Vec::new();
    }
    let half_width = |(demand, known): (&f64, &Uncertainty)| {
        known.ci95.map_or(0.0, |ci| (ci.high - demand).max(demand - ci.low).max(0.0))
    };
    model.demands.iter().zip(uncertainty).map(|(row, known)| row.iter().zip(known).map(half_width).collect()).collect()
}

fn merged(runs: &Runs, cpu: &CpuFit) -> Vec<Merged> {
    let merge = |group: &Vec<usize>| {
        let completed: Vec<f64> = group.iter().map(|class| runs.completed(*class)).collect();
        let total: f64 = completed.iter().sum();
        Merged {
            classes: group.iter().map(|c| runs.classes[*c].clone()).collect(),
            joint_demand_s: group.iter().zip(&completed).map(|(c, n)| n / total * cpu.demands[*c]).sum(),
            shares: completed.into_iter().map(|n| n / total).collect(),
        }
    };
    cpu.indistinguishable_classes.iter().map(merge).collect()
}

/// Demand of an average request as a function of the request rate, from the lowest measured rate to saturation. Empty
/// if demands do not depend on the load.
fn demand_curve(cpu: &CpuFit, mix: &[f64]) -> Vec<DemandAtRate> {
    let Some(load) = &cpu.load_dependence else { return Vec::new() };
    let (low, high) = (load.lowest_rate(), load.saturation(mix));
    let rate = |i: u32| low + (high - low) * f64::from(i) / f64::from(CURVE_INTERVALS);
    (0..=CURVE_INTERVALS).map(rate).map(|rate| DemandAtRate { rate, demand_s: load.demand(rate, mix) }).collect()
}

/// The dependence of CPU demands on response sizes. `None` if fewer than three classes have a demand of their own, or
/// if their responses have fewer than three different mean sizes.
fn sizes(runs: &Runs, cpu: &CpuFit) -> Option<SizeDemand> {
    let alone = |class: &usize| !cpu.indistinguishable_classes.iter().any(|group| group.contains(class));
    let point = |class: usize| Some((class, SizePoint { bytes: runs.size(class)?, cpu_s: cpu.demands[class] }));
    let (classes, points): (Vec<usize>, Vec<SizePoint>) =
        (0..runs.classes.len()).filter(alone).filter_map(point).unzip();
    let mut sizes: Vec<f64> = points.iter().map(|p| p.bytes).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() < 3 {
        return None;
    }
    let classes = classes.into_iter().map(|class| runs.classes[class].clone()).collect();
    fit_size(&points).ok().map(|fit| SizeDemand { classes, points, fit })
}
