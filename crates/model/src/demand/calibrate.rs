//! From Records to a model: what `brimful plan calibrate` does.
//!
//! Of every usable run the throughput of each class and the CPU time of the server give one observation of the
//! utilization law ([`super::fit_demands`]): runs of a single class give its demand directly, runs of a mix by
//! regression. What the server does without requests is taken from an idle Record if there is one, else fitted along.
//! Disks that were used become stations in the same way. Mean response times give the variability of service and the
//! time spent elsewhere ([`crate::fit_response`]).
//!
//! A demand has two intervals: that of the regression, from how far the runs are from one law, and that of a bootstrap
//! of the seconds within each run ([`super::moving_blocks`]), from how they scatter. The wider of the two is given as
//! the interval. Where demands depend on the load ([`super::fit_load_dependence`]), the model has those at saturation.

mod cpu;
mod elsewhere;
mod runs;

use super::{Interval, LoadDependence, Resampling};
use crate::least_squares::Estimate;
use crate::response::ResponseFit;
use crate::{ModelError, Observation};
use brimful_core::model::{Class, ClassKind, Model, Scheduling, Station, StationKind};
use brimful_core::record::Record;
use cpu::CpuFit;
use runs::{Run, Runs};
use schemars::JsonSchema;
use serde::Serialize;

/// A disk that was never busier than this is no station.
const DISK_USED: f64 = 0.01;

/// What Records do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalibrateOptions {
    /// CPUs that the server can use at once, where they are fewer than were watched: one for a server of one worker.
    pub servers: Option<u32>,
    /// For the intervals.
    pub resampling: Resampling,
}

/// A calibrated model, and how far to trust it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Calibrated {
    /// Stations: `cpu`, the disks that were used, and `elsewhere`, a delay, if there were response times. Open classes,
    /// at the mean rates of the runs of the mix (of all runs, if each had one class).
    pub model: Model,
    /// Beside [`Model::demands`], stations × classes.
    pub uncertainty: Vec<Vec<Uncertainty>>,
    /// Demands at `cpu` as each draw of the bootstrap had them, draws × classes: what belongs together, for intervals
    /// of what is computed from several of them. Empty where the runs have no course.
    #[serde(skip)]
    pub cpu_draws: Vec<Vec<f64>>,
    /// Classes that the runs cannot tell apart at the CPU.
    pub merged: Vec<Merged>,
    /// Busy CPUs without requests, of the server's own.
    pub background: Estimate,
    /// Of the regression at the CPU; above some 30 the intervals are wide.
    pub condition_number: f64,
    /// Whether requests cost more or less under load.
    pub load_dependence: Option<LoadDependence>,
    /// What response times told.
    pub response: Option<ResponseFit>,
    /// Records that the demands stand on, by their place in the input, from 0.
    pub used: Vec<usize>,
    /// Records of an idle server, likewise.
    pub idle: Vec<usize>,
    /// The others, and why.
    pub left_out: Vec<LeftOut>,
    /// What whoever uses the model should know.
    pub warnings: Vec<String>,
}

/// How well a demand is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Uncertainty {
    /// The wider of the two below; `None` where there is neither.
    pub ci95: Option<Interval>,
    /// Standard error of the regression over the runs.
    pub standard_error: Option<f64>,
    /// Its interval.
    pub fit_ci95: Option<Interval>,
    /// Interval by the bootstrap within the runs.
    pub bootstrap_ci95: Option<Interval>,
}

/// Classes with one demand between them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Merged {
    /// Their names.
    pub classes: Vec<String>,
    /// Their shares of the requests among them, over all runs used: the joint demand holds for these.
    pub shares: Vec<f64>,
    /// Demand of their mean request; each of the classes is given this.
    pub joint_demand_s: f64,
}

/// A Record that was not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Its place in the input, from 0.
    pub record: usize,
    /// Why, and what to do about it.
    pub reason: String,
}

/// The model of the server that these Records are of. Records of different servers are an error; those of no use are
/// named.
pub fn calibrate(records: &[Record], options: CalibrateOptions) -> Result<Calibrated, ModelError> {
    let runs = Runs::select(records, options.servers)?;
    let mut warnings = runs.warnings();
    let cpu = cpu::fit(&runs, options.resampling, &mut warnings)?;
    let disks = disks(&runs, &mut warnings);
    let mut model = Model::default();
    let mut uncertainty = Vec::new();
    let share = cpu.capacity_taken(&runs);
    let station = |name: &str| Station {
        name: name.to_owned(),
        kind: StationKind::Queue,
        scheduling: Scheduling::Fcfs,
        ..Station::default()
    };
    model.stations.push(Station { servers: runs.servers, background: share, ..station("cpu") });
    model.demands.push(cpu.demands.clone());
    uncertainty.push(cpu.uncertainty.clone());
    for disk in disks {
        model.stations.push(Station { background: disk.background, ..station(&disk.name) });
        model.demands.push(disk.demands);
        uncertainty.push(disk.uncertainty);
    }
    let elsewhere = elsewhere::fit(&runs, &model)?;
    if let Some(elsewhere) = &elsewhere {
        model.stations[0].scv = elsewhere.response.scv;
        model.stations.push(Station { kind: StationKind::Delay, scheduling: Scheduling::Ps, ..station("elsewhere") });
        model.demands.push(elsewhere.delays.clone());
        uncertainty.push(vec![Uncertainty::default(); runs.classes.len()]);
    }
    model.demand_ci95_half_width =
        uncertainty.iter().map(|row| row.iter().map(Uncertainty::half_width).collect()).collect();
    model.classes = classes(&runs);
    let merged = merged(&runs, &cpu);
    warnings.extend(merged.iter().map(Merged::warning));
    Ok(Calibrated {
        model,
        uncertainty,
        cpu_draws: cpu.draws,
        merged,
        background: cpu.background,
        condition_number: cpu.condition_number,
        load_dependence: cpu.load_dependence,
        response: elsewhere.map(|e| e.response),
        used: runs.used.iter().map(|r| r.record).collect(),
        idle: runs.idle.records,
        left_out: runs.left_out,
        warnings,
    })
}

/// The mix and its rates.
fn classes(runs: &Runs) -> Vec<Class> {
    let mixed = |r: &&Run| r.throughput.iter().filter(|x| **x > 0.0).count() > 1;
    let mut of: Vec<&Run> = runs.used.iter().filter(mixed).collect();
    if of.is_empty() {
        of = runs.used.iter().collect();
    }
    let seconds: f64 = of.iter().map(|r| r.seconds).sum();
    let rate = |class: usize| of.iter().map(|r| r.throughput[class] * r.seconds).sum::<f64>() / seconds;
    let class = |(i, name): (usize, &String)| Class {
        name: name.clone(),
        kind: ClassKind::Open,
        rate: Some(rate(i)),
        ..Class::default()
    };
    runs.classes.iter().enumerate().map(class).collect()
}

fn merged(runs: &Runs, cpu: &CpuFit) -> Vec<Merged> {
    let completed = |class: usize| runs.used.iter().map(|r| r.throughput[class] * r.seconds).sum::<f64>();
    let of = |group: &Vec<usize>| {
        let total: f64 = group.iter().map(|c| completed(*c)).sum();
        Merged {
            classes: group.iter().map(|c| runs.classes[*c].clone()).collect(),
            shares: group.iter().map(|c| completed(*c) / total).collect(),
            joint_demand_s: cpu.demands[group[0]],
        }
    };
    cpu.merged.iter().map(of).collect()
}

impl Merged {
    fn warning(&self) -> String {
        format!(
            "the runs cannot tell the classes {} apart: each is given the demand of their mean request, which holds while \
             they come in these proportions; measure each of them alone",
            self.classes.join(", ")
        )
    }
}

struct DiskFit {
    name: String,
    demands: Vec<f64>,
    uncertainty: Vec<Uncertainty>,
    /// Share of its time.
    background: f64,
}

/// Disks that requests use; one that cannot be fitted is named.
fn disks(runs: &Runs, warnings: &mut Vec<String>) -> Vec<DiskFit> {
    let mut fits = Vec::new();
    for name in runs.disks(DISK_USED) {
        let busy = |run: &Run| run.disks.get(&name).copied().unwrap_or(0.0);
        let observations: Vec<Observation> = runs.used.iter().map(|r| r.observe(busy(r))).collect();
        let idle = runs.idle.disks.get(&name).copied();
        match cpu::regress(runs.classes.len(), &observations, idle) {
            Ok((fit, _)) => {
                let demands: Vec<f64> = fit.demands.iter().map(|d| d.value).collect();
                if demands.iter().any(|d| *d > 0.0) {
                    let uncertainty = (0..demands.len()).map(|c| Uncertainty::of_fit(&fit, c)).collect();
                    fits.push(DiskFit { name, demands, uncertainty, background: fit.background.value.min(0.99) });
                }
            }
            Err(error) => warnings.push(format!("disk {name} was busy and is left out of the model: {error}")),
        }
    }
    fits
}

impl Uncertainty {
    fn of_fit(fit: &super::DemandFit, class: usize) -> Uncertainty {
        let fit_ci95 = interval(fit.demands[class]);
        let standard_error = fit.standard_errors.as_ref().map(|e| e[class]);
        Uncertainty { ci95: fit_ci95, standard_error, fit_ci95, bootstrap_ci95: None }
    }

    /// As a model carries it: 0 where there is none.
    fn half_width(&self) -> f64 {
        self.ci95.map_or(0.0, |i| (i.high - i.low) / 2.0)
    }

    /// With the bootstrap's interval beside it.
    fn and(self, bootstrap: Option<Interval>) -> Uncertainty {
        let width = |i: &Interval| i.high - i.low;
        let wider = self.fit_ci95.into_iter().chain(bootstrap).max_by(|a, b| width(a).total_cmp(&width(b)));
        Uncertainty { ci95: wider, bootstrap_ci95: bootstrap, ..self }
    }
}

/// Demands are not negative, and neither are the ends of their intervals.
fn interval(estimate: Estimate) -> Option<Interval> {
    let half_width = estimate.ci95_half_width?;
    Some(Interval { low: (estimate.value - half_width).max(0.0), high: estimate.value + half_width })
}
