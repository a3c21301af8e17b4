//! Demands at the CPU: regression over the runs, load dependence, and the bootstrap within them.
//!
//! Where a module inside the server measured the CPU time of requests, that says what requests of one class cost more than
//! those of another. What all have in common, with what the server does outside of that measurement (connections, waiting
//! for events, interrupts), shows in the utilization law, and every request is charged alike for it.

use super::certainty::{Source, Uncertainty, interval, wider};
use super::figures::TimeSlice;
use super::inside::InsideDemands;
use super::odd::{self, OddRun};
use super::runs::{LeftOut, Run, Runs};
use super::{Attribution, CalibrateOptions};
use crate::EstimateError;
use crate::correlation::correlation_of;
use crate::demand::collinear::COLLINEAR;
use crate::demand::law::Law;
use crate::demand::load::beyond_constant;
use crate::demand::term::{Servers, Term};
use crate::demand::{
    Background, Bootstrap, DemandFit, Interval, LoadDependence, Observation, Resampling, attribute_by_share, check,
    counted, moving_blocks,
};
use crate::inside::{ModuleDemand, NORMAL_95};
use brimful_core::model::IdleCost;
use brimful_core::quantity::{seconds, whole_percent};
use brimful_model::Estimate;
use brimful_model::correlation::identity;
use schemars::JsonSchema;
use serde::Serialize;

/// A share of the capacity that is busy without requests is worth a warning from here on.
const MUCH: f64 = 0.05;

/// What was measured inside the server should not add up to more than this times what its processes used.
const MOST_INSIDE: f64 = 1.1;

/// What one run says of the demand of its mean request, whatever its mix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunDemand {
    /// The Record's place in the input, from 0.
    pub record: usize,
    /// Requests per second, all classes together.
    pub rate: f64,
    /// Utilization of each of the server's CPUs.
    pub utilization: f64,
    /// CPU seconds of one request, as measured.
    pub measured_s: f64,
    /// The same as the demands have it, at this rate.
    pub fitted_s: f64,
}

pub(super) struct CpuFit {
    pub demands: Vec<f64>,
    pub uncertainty: Vec<Uncertainty>,
    pub merged: Vec<Vec<usize>>,
    /// Busy servers.
    pub background: Estimate,
    pub condition_number: f64,
    pub load_dependence: Option<LoadDependence>,
    pub odd: Option<OddRun>,
    /// What was measured inside the server, where the demands stand on that.
    pub inside: Option<InsideDemands>,
    /// Busy servers without requests as the model needs them to saturate where the server does.
    fixed: f64,
    /// By class, what a rule of proportion made of the fitted demand.
    factors: Vec<f64>,
    fit: DemandFit,
    bootstrap: Option<Bootstrap>,
    /// Standard errors of what was measured inside the server, by class.
    sampled: Vec<f64>,
}

pub(super) fn fit(
    runs: &mut Runs,
    options: CalibrateOptions,
    warnings: &mut Vec<String>,
) -> Result<CpuFit, EstimateError> {
    let inside = runs.inside();
    let known = inside.as_deref().map(ModuleDemand::excess_over_cheapest);
    let (law, constant) = set_bursts_aside(runs, known.as_deref())?;
    let mut cpu = fit_law(runs, options, inside.as_deref(), law, &constant, warnings);
    let Some(inside) = inside else {
        warnings.extend(runs.inside_unused());
        return Ok(cpu);
    };
    let without = regress(runs.classes.len(), &observe(&runs.used), runs.idle.busy, None);
    let without = without.map(|(law, constant)| fit_law(runs, options, None, law, &constant, &mut Vec::new()));
    let compared = InsideDemands::new(runs, &inside, &cpu, &without.map_err(|error| error.to_string()));
    warnings.extend(compared.warnings());
    cpu.inside = Some(compared);
    Ok(cpu)
}

/// By a law and what it says where demands do not depend on the load; `inside` is what the server itself measured, if
/// the law knows of it.
fn fit_law(
    runs: &Runs,
    options: CalibrateOptions,
    inside: Option<&[ModuleDemand]>,
    law: Law,
    constant: &DemandFit,
    warnings: &mut Vec<String>,
) -> CpuFit {
    let observations = observe(&runs.used);
    let servers = Servers::new(runs.servers, runs.idle.others(runs.servers));
    let load_dependence = beyond_constant(&law, constant, &counted(&observations), servers);
    let odd = odd::find(&law, &runs.used, &observations, servers);
    warn(runs, &law, constant, inside, warnings);
    warnings.extend(load_dependence.as_ref().map(|load| warning(load, runs)));
    let fit = load_dependence.as_ref().map_or(constant, LoadDependence::fit).clone();
    let (more, fixed) = at_saturation(load_dependence.as_ref());
    let fitted: Vec<f64> = fit.demands.iter().map(|d| d.value + more).collect();
    let merged = if inside.is_some() { Vec::new() } else { constant.merged.clone() };
    let factors = factors(runs, &merged, options.attribution, warnings);
    let sampled = |class: usize| inside.map_or(0.0, |inside| inside[class].standard_error());
    let law = Law { term: load_dependence.as_ref().map(|l| Term { shape: l.shape, servers }), ..law };
    let mut cpu = CpuFit {
        demands: fitted.iter().zip(&factors).map(|(d, factor)| d * factor).collect(),
        uncertainty: Vec::new(),
        bootstrap: bootstrap(runs, &law, &factors, options.resampling),
        merged,
        background: fit.background,
        condition_number: constant.condition_number,
        load_dependence,
        odd,
        inside: None,
        fixed: fit.background.value + fixed,
        factors,
        fit,
        sampled: (0..runs.classes.len()).map(sampled).collect(),
    };
    let source = |class| match (inside, cpu.merged.iter().any(|group| group.contains(&class))) {
        (Some(_), _) => Source::Direct,
        (None, true) => Source::Proportional,
        (None, false) => runs.source(class),
    };
    cpu.uncertainty = (0..runs.classes.len()).map(|class| cpu.known(class, source(class))).collect();
    cpu
}

/// The law and its fit from steady runs, if these determine as much as all runs do; the others then tell of bursts only.
fn set_bursts_aside(runs: &mut Runs, known: Option<&[f64]>) -> Result<(Law, DemandFit), EstimateError> {
    let classes = runs.classes.len();
    let of = |used: &[Run]| regress(classes, &observe(used), runs.idle.busy, known);
    let all = of(&runs.used)?;
    let (bursty, steady): (Vec<Run>, Vec<Run>) = std::mem::take(&mut runs.used).into_iter().partition(Run::is_bursty);
    let apart = regress(classes, &observe(&steady), runs.idle.busy, known);
    match apart {
        Ok(apart) if !bursty.is_empty() && apart.1.merged == all.1.merged && apart.1.degrees_of_freedom > 0 => {
            let reason = "its arrivals came in bursts, and there are steady runs to take demands from: it tells what bursts cost";
            runs.left_out.extend(bursty.iter().map(|r| LeftOut { record: r.record, reason: reason.into() }));
            runs.left_out.sort_by_key(|l| l.record);
            (runs.used, runs.in_bursts) = (steady, bursty);
            Ok(apart)
        }
        _ => {
            runs.used = bursty.into_iter().chain(steady).collect();
            runs.used.sort_by_key(|r| r.record);
            Ok(all)
        }
    }
}

fn observe(runs: &[Run]) -> Vec<Observation> {
    runs.iter().map(|r| r.observe(r.busy)).collect()
}

/// The regression, by the law that it took: with the background measured, else fitted, else none. Where the runs are
/// fewer than the classes, or where these are `known` but for what they have in common, all of them share one unknown.
pub(super) fn regress(
    classes: usize,
    observations: &[Observation],
    idle: Option<f64>,
    known: Option<&[f64]>,
) -> Result<(Law, DemandFit), EstimateError> {
    check(classes, observations, Background::Known(idle.unwrap_or(0.0)))?;
    let counted = counted(observations);
    let law = |background| match known {
        Some(known) => Ok(Law::shared(known.to_vec(), background)),
        None => Law::distinct(classes, &counted, background),
    };
    let fit = |law: Law| law.fit(&counted).map(|fit| (law, fit));
    if idle.is_none()
        && let Ok((law, fit)) = law(Background::Fitted).and_then(fit)
        && fit.condition_number <= COLLINEAR
    {
        return Ok((law, fit));
    }
    let background = Background::Known(idle.unwrap_or(0.0));
    match law(background) {
        Err(EstimateError::TooFewObservations { .. }) if classes > 1 => {
            fit(Law::shared(vec![0.0; classes], background))
        }
        law => fit(law?),
    }
}

/// What load dependence adds to each demand, and to what is busy without requests, at saturation.
fn at_saturation(load: Option<&LoadDependence>) -> (f64, f64) {
    let of = |load: &LoadDependence| {
        let (per_request, fixed) = load.shape.at_saturation();
        (per_request * load.weight.value, fixed * load.weight.value)
    };
    load.map_or((0.0, 0.0), of)
}

/// By class, its demand over the joint one of the classes it is merged with.
fn factors(runs: &Runs, merged: &[Vec<usize>], by: Attribution, warnings: &mut Vec<String>) -> Vec<f64> {
    let mut factors = vec![1.0; runs.classes.len()];
    for group in merged.iter().filter(|_| by == Attribution::Bytes) {
        let completed: Vec<f64> = group.iter().map(|class| runs.completed(*class)).collect();
        let bytes: Option<Vec<f64>> = group.iter().zip(&completed).map(|(c, n)| Some(runs.size(*c)? * n)).collect();
        let sent = bytes.as_ref().map_or(0.0, |b| b.iter().sum());
        let shares: Vec<f64> = bytes.iter().flatten().map(|b| b / sent).collect();
        match attribute_by_share(completed.iter().sum(), &completed, &shares, &vec![None; group.len()]) {
            Ok(by_bytes) => group.iter().zip(by_bytes).for_each(|(class, factor)| factors[*class] = factor),
            Err(_) => warnings.push(
                "the Records do not say how many bytes each class received, so every request is charged alike: measure again with \
                 this version"
                    .into(),
            ),
        }
    }
    factors
}

/// The fit over other samples of the runs' seconds: demands at saturation, then what is busy without requests; `None` where
/// the runs have no course to draw from.
fn bootstrap(runs: &Runs, law: &Law, factors: &[f64], resampling: Resampling) -> Option<Bootstrap> {
    let series: Vec<Vec<TimeSlice>> = runs.used.iter().map(|r| r.slices.clone()).collect();
    let (per_request, fixed) = law.term.map_or((0.0, 0.0), |term| term.shape.at_saturation());
    let statistic = |drawn: &[Vec<&TimeSlice>]| {
        let observations: Vec<Observation> =
            runs.used.iter().zip(drawn).map(|(run, drawn)| redraw(run, drawn)).collect();
        let fit = law.fit(&counted(&observations)).ok()?;
        let w = fit.term.map_or(0.0, |w| w.value);
        let demands = fit.demands.iter().zip(factors).map(|(d, factor)| (d.value + per_request * w) * factor);
        Some(demands.chain([fit.background.value + fixed * w]).collect())
    };
    moving_blocks(&series, resampling, statistic).ok()
}

/// The run as it would have been with these seconds in it.
fn redraw(run: &Run, drawn: &[&TimeSlice]) -> Observation {
    let sums = |slices: &mut dyn Iterator<Item = &TimeSlice>| {
        slices.fold((0.0, 0.0, 0.0), |(c, b, s), x| (c + x.completed, b + x.busy_s, s + x.seconds))
    };
    let was = sums(&mut run.slices.iter());
    let is = sums(&mut drawn.iter().copied());
    let ratio = |is: f64, was: f64| if was > 0.0 { is / was } else { 1.0 };
    let longer = ratio(is.2, was.2);
    let (more, busier) = (ratio(is.0, was.0) / longer, ratio(is.1, was.1) / longer);
    let observation = run.observe(run.busy * busier);
    Observation { throughput: run.throughput.iter().map(|x| x * more).collect(), ..observation }
}

impl CpuFit {
    /// Share of the capacity that requests cannot have.
    pub fn capacity_taken(&self, runs: &Runs) -> f64 {
        let own = self.fixed / f64::from(runs.servers);
        own.max(own - self.background.value / f64::from(runs.servers) + runs.idle.share.unwrap_or(0.0)).min(0.99)
    }

    /// How the demands depend on the load, as the model has it.
    pub fn idle_cost(&self) -> Option<IdleCost> {
        self.load_dependence.as_ref().and_then(|load| load.shape.idle_cost(load.weight.value))
    }

    /// Demands of each draw of the bootstrap.
    pub fn draws(&self, classes: usize) -> Vec<Vec<f64>> {
        self.bootstrap.iter().flat_map(|b| &b.draws).map(|draw| draw[..classes].to_vec()).collect()
    }

    /// A run's mean request, as measured and as the demands have it.
    pub fn explain(&self, run: &Run, servers: u32) -> RunDemand {
        let rate = run.rate();
        let fitted_s = match &self.load_dependence {
            Some(load) => load.demand(rate, &run.throughput),
            None => run.throughput.iter().zip(&self.demands).map(|(x, d)| x * d).sum::<f64>() / rate,
        };
        RunDemand {
            record: run.record,
            rate,
            utilization: run.busy / f64::from(servers),
            measured_s: (run.busy - self.background.value).max(0.0) / rate,
            fitted_s,
        }
    }

    /// Of the rate at which the CPUs are busy all the time with this mix, whatever shape the load dependence has.
    pub fn saturation_ci95(&self, runs: &Runs, mix: &[f64]) -> Option<Interval> {
        let total: f64 = mix.iter().sum();
        let shares: Vec<f64> = mix.iter().map(|x| x / total).collect();
        let mean = |demands: &[f64]| shares.iter().zip(demands).map(|(s, d)| s * d).sum::<f64>();
        let servers = f64::from(runs.servers);
        let free = servers * (1.0 - self.capacity_taken(runs));
        let (demand, taken_by_others) = (mean(&self.demands), servers - free - self.fixed);
        let rate = free / demand;
        // d rate = −(rate·dD + d fixed)/D, by D of each class, the term and the background.
        let (per_request, fixed) = self.load_dependence.as_ref().map_or((0.0, 0.0), |l| l.shape.at_saturation());
        let by: Vec<f64> = shares.iter().zip(&self.factors).map(|(s, f)| rate * s * f / demand).collect();
        let by_term = by.iter().sum::<f64>() * per_request + fixed / demand;
        let fit = interval(rate, self.fit.half_width(&by, by_term, 1.0 / demand));
        let quantiles = self.bootstrap.as_ref().map(|bootstrap| {
            bootstrap.interval_of(|draw| {
                let (fixed, demands) = draw.split_last()?;
                Some((servers - taken_by_others - fixed).max(0.0) / mean(demands))
            })
        });
        // A demand that depends on the load is extrapolated, and the interval of one shape does not say how far off that may be.
        let rivals = self.load_dependence.iter().flat_map(|l| l.rival_saturations(taken_by_others, mix));
        let rivals: Vec<f64> = rivals.filter(|rate| rate.is_finite()).collect();
        let span = |i: Interval| rivals.iter().fold(i, |i, r| Interval { low: i.low.min(*r), high: i.high.max(*r) });
        wider(fit, quantiles).map(span)
    }

    /// Of the errors of the demands, classes × classes: by the regression or by the bootstrap, whichever sees more of them.
    pub fn correlation(&self) -> Vec<Vec<f64>> {
        let classes = self.demands.len();
        let (per_request, _) = self.load_dependence.as_ref().map_or((0.0, 0.0), |l| l.shape.at_saturation());
        let fit = self.fit.covariance(per_request).map(|mut covariance| {
            for (row, i) in covariance.iter_mut().zip(&self.factors) {
                row.iter_mut().zip(&self.factors).for_each(|(entry, j)| *entry *= i * j);
            }
            covariance
        });
        let variance = |covariance: &Vec<Vec<f64>>| (0..classes).map(|class| covariance[class][class]).sum::<f64>();
        let known = fit.into_iter().chain(self.bootstrap.as_ref().map(|b| covariance(&b.draws, classes)));
        let Some(mut widest) = known.max_by(|a, b| variance(a).total_cmp(&variance(b))) else {
            return identity(classes);
        };
        (0..classes).for_each(|class| widest[class][class] += self.sampled[class].powi(2));
        correlation_of(&widest)
    }

    fn known(&self, class: usize, source: Source) -> Uncertainty {
        let sampled = NORMAL_95 * self.sampled[class];
        let (per_request, _) = self.load_dependence.as_ref().map_or((0.0, 0.0), |l| l.shape.at_saturation());
        let mut alone = vec![0.0; self.demands.len()];
        alone[class] = self.factors[class];
        let fit = self.fit.half_width(&alone, self.factors[class] * per_request, 0.0);
        // A single run has no law to be off, but samples all the same.
        let fit = fit.or((source == Source::Direct).then_some(0.0));
        let together = |half_width: f64| half_width.hypot(sampled);
        let bootstrap = self.bootstrap.as_ref().map(|b| b.interval(class)).map(|i| {
            let demand = self.demands[class];
            let (below, above) = (together((demand - i.low).max(0.0)), together((i.high - demand).max(0.0)));
            Interval { low: (demand - below).max(0.0), high: demand + above }
        });
        Uncertainty::of(source).with(interval(self.demands[class], fit.map(together)), bootstrap)
    }
}

/// Of the first values of each draw.
fn covariance(draws: &[Vec<f64>], values: usize) -> Vec<Vec<f64>> {
    let n = draws.len() as f64;
    let mean = |value: usize| draws.iter().map(|draw| draw[value]).sum::<f64>() / n;
    let means: Vec<f64> = (0..values).map(mean).collect();
    let of = |i: usize, j: usize| draws.iter().map(|d| (d[i] - means[i]) * (d[j] - means[j])).sum::<f64>() / (n - 1.0);
    (0..values).map(|i| (0..values).map(|j| of(i, j)).collect()).collect()
}

fn warn(runs: &Runs, law: &Law, fit: &DemandFit, inside: Option<&[ModuleDemand]>, warnings: &mut Vec<String>) {
    let share = fit.background.value / f64::from(runs.servers);
    if runs.idle.busy.is_none() && law.background == Background::Known(0.0) {
        warnings.push(
            "no Record is of the idle server, and the runs cannot tell its own work from that of requests, so all of it is \
             charged to them: measure it at a hundredth of the load too, or less"
                .into(),
        );
    } else if share > MUCH {
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
            "class {name} shows no demand at the CPU, which is too good to be true: measure it alone, at several loads, until its \
             demand is more than its interval"
        ));
    }
    let spent = |run: &Run, inside: &[ModuleDemand]| -> f64 {
        run.throughput.iter().zip(inside).map(|(x, of)| x * of.in_phases).sum()
    };
    if let Some(inside) = inside
        && runs.used.iter().map(|r| spent(r, inside)).sum::<f64>()
            > MOST_INSIDE * runs.used.iter().map(|r| r.busy).sum::<f64>()
    {
        warnings.push(
            "what the Server Module measured of requests adds up to more CPU time than the server's processes used: name all of \
             them with --process, and sample fewer requests"
                .into(),
        );
    }
}

fn warning(load: &LoadDependence, runs: &Runs) -> String {
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
