//! From Records to a model: what `brimful plan calibrate` does.
//!
//! Of every usable run the throughput of each class and the CPU time of the server, both of the same stretch of the
//! window of load, give one observation of the utilization law ([`crate::demand::fit_demands`]). A run that the others'
//! law does not explain is named ([`OddRun`]). What the server does without requests is taken from a run of next to
//! none if there is one, else fitted along. Disks that were used become stations in the same way. Mean response times
//! give the variability of service and the time spent elsewhere ([`crate::fit_response`]). [`Source`] says what each
//! demand stands on; where the server measured its own requests, that ([`InsideDemands`]).
//!
//! A demand has two intervals: that of the regression, from how far the runs are from one law, and that of a bootstrap
//! of the seconds within each run ([`crate::demand::moving_blocks`]), from how they scatter. The wider of the two is
//! given as the interval. Where demands depend on the load ([`crate::demand::fit_load_dependence`]), the model has
//! those at saturation and what a request costs beside them while the server is partly idle.
//!
//! Runs whose arrivals came in bursts tell what bursts cost, and nothing else if steady runs are there; runs past
//! saturation tell where the throughput bends, as a check of the model.

mod bursts;
mod certainty;
mod check;
mod cpu;
mod disks;
mod elsewhere;
mod figures;
mod inside;
mod judge;
mod knee;
mod odd;
mod report;
mod runs;

pub use bursts::{BurstRun, Bursts};
pub use certainty::{Source, Uncertainty};
pub use cpu::RunDemand;
pub use inside::{InsideDemand, InsideDemands};
pub use knee::{KneeCheck, MeasuredLoad};
pub use odd::OddRun;
pub use report::{Calibrated, DemandAtRate, Merged, Saturation, SizeDemand};
pub use runs::LeftOut;

use crate::EstimateError;
use crate::demand::joint_demands;
use crate::demand::{Resampling, SizePoint, fit_size};
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_core::record::Record;
use brimful_model::correlation::identity;
use brimful_model::saturation_rate;
use cpu::CpuFit;
use runs::Runs;

/// Points of a curve of demands.
const CURVE: u32 = 40;

/// What Records do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalibrateOptions {
    /// CPUs that the server can use at once, where they are fewer than were watched: one for a server of one worker.
    pub servers: Option<u32>,
    /// How classes that the runs cannot tell apart share what they cost.
    pub attribution: Attribution,
    /// For the intervals.
    pub resampling: Resampling,
}

/// How classes share a cost that is known of all of them together (Menascé et al., CMG 1999).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attribution {
    /// Every request alike (their Eq. 4).
    #[default]
    Requests,
    /// In proportion to the bytes sent (their Eq. 2; what other classes cost is set aside, Eq. 3).
    Bytes,
}

/// The model of the server that these Records are of. Records of different servers are an error; those of no use are
/// named.
pub fn calibrate(records: &[Record], options: CalibrateOptions) -> Result<Calibrated, EstimateError> {
    let mut runs = Runs::select(records, options.servers)?;
    let mut warnings = runs.warnings();
    let cpu = cpu::fit(&mut runs, options, &mut warnings)?;
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
        background: cpu.capacity_taken(&runs),
        idle_cost: cpu.idle_cost(),
        ..station("cpu")
    });
    model.demands.push(cpu.demands.clone());
    model.joint_demands = joint_demands(&model.classes, "cpu", &cpu.merged);
    uncertainty.push(cpu.uncertainty.clone());
    model.demand_correlation.push(cpu.correlation());
    for disk in disks {
        model.joint_demands.extend(joint_demands(&model.classes, &disk.name, &disk.merged));
        model.stations.push(Station { background: disk.background, ..station(&disk.name) });
        model.demands.push(disk.demands);
        uncertainty.push(disk.uncertainty);
        model.demand_correlation.push(disk.correlation);
    }
    let service_scv = cpu.inside.as_ref().and_then(|inside| inside.service_scv(runs.servers));
    let elsewhere = elsewhere::fit(&runs, &model, service_scv)?;
    if let Some(elsewhere) = &elsewhere {
        model.stations[0].scv = elsewhere.response.scv;
        model.stations.push(Station { kind: StationKind::Delay, scheduling: Scheduling::Ps, ..station("elsewhere") });
        model.demands.push(elsewhere.delays.clone());
        uncertainty.push(vec![Uncertainty::of(Source::ResponseTimes); runs.classes.len()]);
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
        runs: runs.used.iter().map(|run| cpu.explain(run, runs.servers)).collect(),
        sizes: sizes(&runs, &cpu),
        uncertainty,
        cpu_draws: cpu.draws(runs.classes.len()),
        merged,
        background: cpu.background,
        condition_number: cpu.condition_number,
        load_dependence: cpu.load_dependence,
        odd: cpu.odd,
        inside: cpu.inside,
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

/// The mix and its rates.
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

/// As documents have it: the farther end of each interval.
fn half_widths(model: &Model, uncertainty: &[Vec<Uncertainty>]) -> Vec<Vec<f64>> {
    let half_width = |(demand, known): (&f64, &Uncertainty)| {
        known.ci95.map_or(0.0, |ci| (ci.high - demand).max(demand - ci.low).max(0.0))
    };
    model.demands.iter().zip(uncertainty).map(|(row, known)| row.iter().zip(known).map(half_width).collect()).collect()
}

fn merged(runs: &Runs, cpu: &CpuFit) -> Vec<Merged> {
    let of = |group: &Vec<usize>| {
        let completed: Vec<f64> = group.iter().map(|class| runs.completed(*class)).collect();
        let total: f64 = completed.iter().sum();
        Merged {
            classes: group.iter().map(|c| runs.classes[*c].clone()).collect(),
            joint_demand_s: group.iter().zip(&completed).map(|(c, n)| n / total * cpu.demands[*c]).sum(),
            shares: completed.into_iter().map(|n| n / total).collect(),
        }
    };
    cpu.merged.iter().map(of).collect()
}

/// D(X) of the mix from the lowest rate measured to saturation; empty where demands do not depend on the load.
fn demand_curve(cpu: &CpuFit, mix: &[f64]) -> Vec<DemandAtRate> {
    let Some(load) = &cpu.load_dependence else { return Vec::new() };
    let (low, high) = (load.lowest_rate(), load.saturation(mix));
    let rate = |i: u32| low + (high - low) * f64::from(i) / f64::from(CURVE);
    (0..=CURVE).map(rate).map(|rate| DemandAtRate { rate, demand_s: load.demand(rate, mix) }).collect()
}

/// What demands have to do with sizes: of three or more classes that were told apart and are of three or more sizes.
fn sizes(runs: &Runs, cpu: &CpuFit) -> Option<SizeDemand> {
    let alone = |class: &usize| !cpu.merged.iter().any(|group| group.contains(class));
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
