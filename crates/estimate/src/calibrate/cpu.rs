//! CPU demands: the regression over the runs, their dependence on the load, and the bootstrap within the runs.
//!
//! If the Server Module (a plug-in of the web server) measured the CPU time of requests, its measurements determine the
//! differences between request classes. The remaining CPU time is fitted by the utilization law and divided equally
//! among all requests. It consists of the work that all requests have in common, and of work that the module does not
//! measure (connections, waiting for events, interrupts).

use super::attribution::{CalibrateOptions, factors};
use super::certainty::{Source, Uncertainty, interval, wider};
use super::demand_errors::DemandErrors;
use super::figures::TimeSlice;
use super::odd::{self, OddRun};
use super::regression::{observe, regress, regress_steady_runs};
use super::runs::{Run, Runs};
use crate::EstimateError;
use crate::demand::law::UtilizationLaw;
use crate::demand::load::detect_load_dependence;
use crate::demand::term::{LoadTerm, StationServers};
use crate::demand::{
    Background, Bootstrap, DemandFit, Interval, LoadDependence, Observation, Resampling, counted, moving_blocks,
};
use crate::server_module::ModuleDemand;
use brimful_core::JsonSchema;
use brimful_core::model::IdleCost;
use brimful_core::quantity::{seconds, whole_percent};
use brimful_model::Estimate;
use serde::Serialize;

/// Share of the CPUs that is busy with background work. Above it, the user gets a warning.
const NOTABLE_BACKGROUND: f64 = 0.05;

/// Maximum accepted ratio of the CPU time that the Server Module measured to the CPU time of the server's processes.
const MAX_MODULE_EXCESS: f64 = 1.1;

/// The CPU demand of an average request in one run, at the run's own mix of request classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunDemand {
    /// Index of the Record in the input, from 0.
    pub record: usize,
    /// Requests per second of all classes together.
    pub rate: f64,
    /// Utilization of the server's CPUs.
    pub utilization: f64,
    /// CPU seconds per request: the measured CPU time without background work, divided by the number of requests.
    pub measured_s: f64,
    /// CPU seconds per request according to the fitted demands.
    pub fitted_s: f64,
}

/// The result of fitting the CPU demands to the runs.
pub(super) struct CpuFit {
    /// CPU demand at saturation, in seconds per request, by class.
    pub demands: Vec<f64>,
    /// Uncertainty of the demand of each class.
    pub uncertainty: Vec<Uncertainty>,
    /// Groups of classes that the runs cannot distinguish, so that the classes of a group share one demand.
    pub indistinguishable_classes: Vec<Vec<usize>>,
    /// Condition number of the regression. Above about 30, the confidence intervals are wide.
    pub condition_number: f64,
    /// The dependence of demands on the load; `None` if demands do not depend on it.
    pub load_dependence: Option<LoadDependence>,
    /// The run whose CPU time differs significantly from the prediction of the other runs; `None` if there is no such
    /// run.
    pub outlier: Option<OddRun>,
    /// The errors of the demands, for confidence intervals of values that are computed from several demands.
    pub errors: DemandErrors,
    /// Mean number of CPUs that background work keeps busy at saturation.
    fixed: f64,
}

/// Fits the CPU demands. `module` contains the Server Module's measurement of each class, or `None` without the module.
pub(super) fn fit(
    runs: &mut Runs,
    options: CalibrateOptions,
    module: Option<&[ModuleDemand]>,
    warnings: &mut Vec<String>,
) -> Result<CpuFit, EstimateError> {
    let known = module.map(ModuleDemand::excess_over_cheapest);
    let (law, constant) = regress_steady_runs(runs, known.as_deref())?;
    Ok(fit_law(runs, options, module, law, &constant, warnings))
}

/// Fits the CPU demands without the measurements of the Server Module.
pub(super) fn fit_without_module(runs: &Runs, options: CalibrateOptions) -> Result<CpuFit, EstimateError> {
    let (law, constant) = regress(runs.classes.len(), &observe(&runs.used), runs.idle.busy, None)?;
    Ok(fit_law(runs, options, None, law, &constant, &mut Vec::new()))
}

/// Fits the utilization law again with load-dependent demands, if the runs show such a dependence. `constant` is the
/// fit with constant demands. `module` contains the Server Module's measurements, if the law uses them.
fn fit_law(
    runs: &Runs,
    options: CalibrateOptions,
    module: Option<&[ModuleDemand]>,
    law: UtilizationLaw,
    constant: &DemandFit,
    warnings: &mut Vec<String>,
) -> CpuFit {
    let observations = observe(&runs.used);
    let servers = StationServers::new(runs.servers, runs.idle.utilization_by_others(runs.servers));
    let load_dependence = detect_load_dependence(&law, constant, &counted(&observations), servers);
    let outlier = odd::find(&law, &runs.used, &observations, servers);
    warn(runs, &law, constant, module, warnings);
    warnings.extend(load_dependence.as_ref().map(|load| load_warning(load, runs)));
    let fit = load_dependence.as_ref().map_or(constant, LoadDependence::fit).clone();
    let (load_per_request, load_fixed) = load_dependence.as_ref().map_or((0.0, 0.0), |load| load.shape.at_saturation());
    let load_weight = load_dependence.as_ref().map_or(0.0, |load| load.weight.value);
    let indistinguishable_classes =
        if module.is_some() { Vec::new() } else { constant.indistinguishable_classes.clone() };
    let factors = factors(runs, &indistinguishable_classes, options.attribution, warnings);
    let law =
        UtilizationLaw { term: load_dependence.as_ref().map(|load| LoadTerm { shape: load.shape, servers }), ..law };
    let sampling_error = |class: usize| module.map_or(0.0, |module| module[class].standard_error());
    let fixed = fit.background.value + load_fixed * load_weight;
    let demands: Vec<f64> = fit
        .demands
        .iter()
        .zip(&factors)
        .map(|(demand, factor)| (demand.value + load_per_request * load_weight) * factor)
        .collect();
    let errors = DemandErrors {
        bootstrap: bootstrap(runs, &law, &factors, options.resampling),
        fit,
        factors,
        load_per_request,
        sampling_errors: (0..runs.classes.len()).map(sampling_error).collect(),
    };
    let source = |class| match (module, indistinguishable_classes.iter().any(|group| group.contains(&class))) {
        (Some(_), _) => Source::Direct,
        (None, true) => Source::Proportional,
        (None, false) => runs.source(class),
    };
    // Runs differ far more than the seconds of one run, so the bootstrap's interval from a single run would be too
    // narrow. The Server Module's measurements have their own standard error, so they need only one run.
    let is_single_run = runs.used.len() == 1 && module.is_none();
    let uncertainty = demands.iter().enumerate().map(|(class, demand)| {
        let uncertainty = errors.uncertainty(class, *demand, source(class));
        if is_single_run { uncertainty.of_single_run() } else { uncertainty }
    });
    CpuFit {
        uncertainty: uncertainty.collect(),
        demands,
        indistinguishable_classes,
        condition_number: constant.condition_number,
        load_dependence,
        outlier,
        errors,
        fixed,
    }
}

/// Fits the law again to resampled seconds of the runs. Each draw has the demand of each class at saturation, followed
/// by the number of CPUs that background work keeps busy. `None` if the runs have too few seconds.
fn bootstrap(runs: &Runs, law: &UtilizationLaw, factors: &[f64], resampling: Resampling) -> Option<Bootstrap> {
    let series: Vec<Vec<TimeSlice>> = runs.used.iter().map(|r| r.slices.clone()).collect();
    let (per_request, fixed) = law.term.map_or((0.0, 0.0), |term| term.shape.at_saturation());
    let statistic = |drawn: &[Vec<&TimeSlice>]| {
        let observations: Vec<Observation> =
            runs.used.iter().zip(drawn).map(|(run, drawn)| resampled(run, drawn)).collect();
        let fit = law.fit(&counted(&observations)).ok()?;
        let weight = fit.term.map_or(0.0, |weight| weight.value);
        let demands = fit.demands.iter().zip(factors).map(|(d, factor)| (d.value + per_request * weight) * factor);
        Some(demands.chain([fit.background.value + fixed * weight]).collect())
    };
    moving_blocks(&series, resampling, statistic).ok()
}

/// The observation of a run in one bootstrap draw, in which the seconds of the run are replaced by the seconds `drawn`.
fn resampled(run: &Run, drawn: &[&TimeSlice]) -> Observation {
    let ratio = |figure: fn(&TimeSlice) -> f64| {
        let measured = run.slices.iter().map(figure).fold(0.0, |sum, value| sum + value);
        let resampled = drawn.iter().map(|slice| figure(slice)).fold(0.0, |sum, value| sum + value);
        if measured > 0.0 { resampled / measured } else { 1.0 }
    };
    let seconds_ratio = ratio(|slice| slice.seconds);
    let throughput_ratio = ratio(|slice| slice.completed) / seconds_ratio;
    let busy_ratio = ratio(|slice| slice.busy_s) / seconds_ratio;
    let observation = run.observe(run.busy * busy_ratio);
    Observation { throughput: run.throughput.iter().map(|x| x * throughput_ratio).collect(), ..observation }
}

impl CpuFit {
    /// Mean number of CPUs that background work of the server keeps busy.
    pub fn background(&self) -> Estimate {
        self.errors.fit.background
    }

    /// Share of the CPU capacity that requests cannot use, because background work and other programs use it.
    pub fn unavailable_share(&self, runs: &Runs) -> f64 {
        let servers = f64::from(runs.servers);
        let own = self.fixed / servers;
        own.max(own - self.background().value / servers + runs.idle.utilization.unwrap_or(0.0)).min(0.99)
    }

    /// The load dependence in the form of the model (`IdleCost`): the additional cost of a request on an idle CPU.
    pub fn idle_cost(&self) -> Option<IdleCost> {
        self.load_dependence.as_ref().and_then(|load| load.shape.idle_cost(load.weight.value))
    }

    /// The CPU demand of an average request of a run, measured and fitted. `servers` is the number of CPUs.
    pub fn run_demand(&self, run: &Run, servers: u32) -> RunDemand {
        let rate = run.rate();
        let fitted_s = match &self.load_dependence {
            Some(load) => load.demand(rate, &run.throughput),
            None => run.throughput.iter().zip(&self.demands).map(|(x, d)| x * d).sum::<f64>() / rate,
        };
        RunDemand {
            record: run.record,
            rate,
            utilization: run.busy / f64::from(servers),
            measured_s: (run.busy - self.background().value).max(0.0) / rate,
            fitted_s,
        }
    }

    /// 95 % confidence interval of the saturation rate: the rate at which requests of this mix keep all CPUs busy. If
    /// several shapes of load dependence fit about equally well, the interval includes the saturation rates of all of
    /// them.
    pub fn saturation_ci95(&self, runs: &Runs, mix: &[f64]) -> Option<Interval> {
        if self.uncertainty.iter().any(|uncertainty| uncertainty.ci95.is_none()) {
            return None;
        }
        let total: f64 = mix.iter().sum();
        let shares: Vec<f64> = mix.iter().map(|x| x / total).collect();
        let mean = |demands: &[f64]| shares.iter().zip(demands).map(|(share, d)| share * d).sum::<f64>();
        let errors = &self.errors;
        let servers = f64::from(runs.servers);
        let free = servers * (1.0 - self.unavailable_share(runs));
        let taken_by_others = servers - free - self.fixed;
        let demand = mean(&self.demands);
        let rate = free / demand;
        // The saturation rate is (capacity − fixed)/D, where `fixed` is the background work. A small error changes the
        // rate by −(rate·dD + dfixed)/D. The error dD of the demand has two sources: each class's demand and the load
        // dependence.
        let load_fixed = self.load_dependence.as_ref().map_or(0.0, |load| load.shape.at_saturation().1);
        let by_demand: Vec<f64> =
            shares.iter().zip(&errors.factors).map(|(share, factor)| rate * share * factor / demand).collect();
        let by_term = by_demand.iter().sum::<f64>() * errors.load_per_request + load_fixed / demand;
        let by_regression = interval(rate, errors.fit.half_width(&by_demand, by_term, 1.0 / demand));
        let by_bootstrap = errors.bootstrap.as_ref().map(|bootstrap| {
            bootstrap.interval_of(|draw| {
                let (fixed, demands) = draw.split_last()?;
                Some((servers - taken_by_others - fixed).max(0.0) / mean(demands))
            })
        });
        // The load dependence is extrapolated to saturation. The interval of one shape does not include the error of
        // choosing the wrong shape, so the saturation rates of the other shapes are included.
        let rivals = self.load_dependence.iter().flat_map(|load| load.rival_saturations(taken_by_others, mix));
        let rivals: Vec<f64> = rivals.filter(|rate| rate.is_finite()).collect();
        let include_rivals = |interval: Interval| {
            rivals.iter().fold(interval, |i, rate| Interval { low: i.low.min(*rate), high: i.high.max(*rate) })
        };
        wider(by_regression, by_bootstrap).map(include_rivals)
    }
}

fn warn(
    runs: &Runs,
    law: &UtilizationLaw,
    fit: &DemandFit,
    module: Option<&[ModuleDemand]>,
    warnings: &mut Vec<String>,
) {
    let share = fit.background.value / f64::from(runs.servers);
    if runs.idle.busy.is_none() && law.background == Background::Known(0.0) {
        warnings.push(
            "no Record shows the idle server, so its background work cannot be separated from the work of requests, and all \
             CPU time is attributed to requests: also measure it at a hundredth of the load or less"
                .into(),
        );
    } else if share > NOTABLE_BACKGROUND {
        warnings.push(format!(
            "{} of the CPUs is busy without any request: find out what runs there, and whether it always does",
            whole_percent(share)
        ));
    }
    if fit.degrees_of_freedom == 0 {
        warnings.push(
            "there are as many unknowns as runs, so the intervals do not say how well one law fits them all: measure more loads"
                .into(),
        );
    }
    for (name, _) in runs.classes.iter().zip(&fit.demands).filter(|(_, d)| d.value == 0.0) {
        warnings.push(format!(
            "class {name} shows no demand at the CPU, which is not possible: measure it alone, at several loads, until its \
             demand is more than its interval"
        ));
    }
    let busy_by_module = |run: &Run, module: &[ModuleDemand]| -> f64 {
        run.throughput.iter().zip(module).map(|(x, class)| x * class.cpu_in_phases_s).sum()
    };
    if let Some(module) = module
        && runs.used.iter().map(|run| busy_by_module(run, module)).sum::<f64>()
            > MAX_MODULE_EXCESS * runs.used.iter().map(|run| run.busy).sum::<f64>()
    {
        warnings.push(
            "what the Server Module measured of requests adds up to more CPU time than the server's processes used: name all of \
             them with --process, and sample fewer requests"
                .into(),
        );
    }
}

fn load_warning(load: &LoadDependence, runs: &Runs) -> String {
    let mix: Vec<f64> = (0..runs.classes.len()).map(|c| runs.used.iter().map(|r| r.throughput[c]).sum()).collect();
    let (idle, busy) = (load.demand(0.0, &mix), load.demand(f64::MAX, &mix));
    format!(
        "a request costs {} of CPU at the lowest load measured and {} at saturation (F = {:.1}, p = {:.1e}): the \
         model has the latter, so use it near saturation",
        seconds(idle),
        seconds(busy),
        load.f,
        load.p
    )
}
