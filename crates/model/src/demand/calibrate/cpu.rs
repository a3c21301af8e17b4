//! Demands at the CPU: regression over the runs, load dependence, and the bootstrap within them.

use super::Uncertainty;
use super::runs::{Run, Runs, Stretch};
use crate::ModelError;
use crate::demand::load::{Shape, extend};
use crate::demand::{
    Background, DemandFit, Interval, LoadDependence, Observation, Resampling, counted, fit_demands, fit_groups,
    fit_load_dependence, groups, moving_blocks,
};
use crate::least_squares::Estimate;

/// A share of the capacity that is busy without requests is worth a warning from here on.
const MUCH: f64 = 0.05;

pub(super) struct CpuFit {
    pub demands: Vec<f64>,
    pub uncertainty: Vec<Uncertainty>,
    pub draws: Vec<Vec<f64>>,
    pub merged: Vec<Vec<usize>>,
    /// Busy servers.
    pub background: Estimate,
    pub condition_number: f64,
    pub load_dependence: Option<LoadDependence>,
    /// Busy servers without requests as the model needs them to saturate where the server does.
    fixed: f64,
}

impl CpuFit {
    /// Share of the capacity that requests cannot have.
    pub fn capacity_taken(&self, runs: &Runs) -> f64 {
        let own = self.fixed / f64::from(runs.servers);
        own.max(own - self.background.value / f64::from(runs.servers) + runs.idle.share.unwrap_or(0.0)).min(0.99)
    }
}

pub(super) fn fit(runs: &Runs, resampling: Resampling, warnings: &mut Vec<String>) -> Result<CpuFit, ModelError> {
    let classes = runs.classes.len();
    let observations: Vec<Observation> = runs.used.iter().map(|r| r.observe(r.busy)).collect();
    let (fit, background) = regress(classes, &observations, runs.idle.busy)?;
    let share = fit.background.value / f64::from(runs.servers);
    if runs.idle.busy.is_none() && background == Background::Known(0.0) {
        warnings.push(
            "no Record is of the idle server, and the runs cannot tell its own work from that of requests, so all of it is \
             charged to them: measure the idle server too"
                .into(),
        );
    } else if share > MUCH {
        warnings.push(format!(
            "{:.0} % of the CPUs is busy without any request: find out what runs there, and whether it always does",
            100.0 * share
        ));
    }
    if fit.degrees_of_freedom == 0 {
        warnings.push(
            "there are as many unknowns as runs, so the intervals do not say how well one law fits them all: measure more loads"
                .into(),
        );
    }
    let load_dependence = match fit_load_dependence(classes, &observations, background, runs.servers) {
        Err(ModelError::TooFewObservations { .. }) => None,
        other => other?,
    };
    let (demands, fixed) = match &load_dependence {
        Some(load) => load.at_saturation(),
        None => (fit.demands.iter().map(|d| d.value).collect(), fit.background.value),
    };
    warnings.extend(load_dependence.as_ref().map(|load| warning(load, runs)));
    let shape = load_dependence.as_ref().map(|l| l.shape);
    let draws = draws(runs, &groups(classes, &fit.merged), background, shape, resampling);
    let at = load_dependence.as_ref().map_or_else(|| fit.clone(), |load| at_saturation(load, &fit));
    let uncertainty = (0..classes).map(|class| {
        let bootstrap = draws.as_ref().map(|draws| draws.interval(class));
        Uncertainty::of_fit(&at, class).and(bootstrap.map(|i| Interval { low: i.low.max(0.0), ..i }))
    });
    Ok(CpuFit {
        uncertainty: uncertainty.collect(),
        demands,
        draws: draws.map(|d| d.draws).unwrap_or_default(),
        merged: fit.merged,
        background: fit.background,
        condition_number: fit.condition_number,
        load_dependence,
        fixed,
    })
}

/// The regression, and the background that it took: measured, else fitted, else none. Where the runs are fewer than the
/// classes, all of these share one demand.
pub(super) fn regress(
    classes: usize,
    observations: &[Observation],
    idle: Option<f64>,
) -> Result<(DemandFit, Background), ModelError> {
    let known = Background::Known(idle.unwrap_or(0.0));
    if idle.is_none()
        && let Ok(fit) = fit_demands(classes, observations, Background::Fitted)
    {
        return Ok((fit, Background::Fitted));
    }
    match fit_demands(classes, observations, known) {
        Err(ModelError::TooFewObservations { .. }) if classes > 1 => {
            let together: Vec<usize> = (0..classes).collect();
            Ok((fit_groups(&[together], &counted(observations), known)?, known))
        }
        other => Ok((other?, known)),
    }
}

/// Demands as each draw of the runs' seconds has them; `None` where the runs have no course to draw from.
fn draws(
    runs: &Runs,
    groups: &[Vec<usize>],
    background: Background,
    shape: Option<Shape>,
    resampling: Resampling,
) -> Option<super::super::Bootstrap> {
    let classes = runs.classes.len();
    let series: Vec<Vec<Stretch>> = runs.used.iter().map(|r| r.stretches.clone()).collect();
    let servers = f64::from(runs.servers);
    let mut extended = groups.to_vec();
    extended.extend(shape.map(|_| vec![classes]));
    let statistic = |drawn: &[Vec<&Stretch>]| {
        let redrawn = runs.used.iter().zip(drawn).map(|(run, drawn)| redraw(run, drawn));
        let observations: Vec<Observation> = match shape {
            Some(shape) => redrawn.map(|o| extend(&o, shape, servers)).collect(),
            None => redrawn.collect(),
        };
        let fit = fit_groups(&extended, &counted(&observations), background).ok()?;
        let more = if shape == Some(Shape::Busy) { fit.demands[classes].value } else { 0.0 };
        Some(fit.demands[..classes].iter().map(|d| d.value + more).collect())
    };
    moving_blocks(&series, resampling, statistic).ok()
}

/// The run as it would have been with these seconds in it.
fn redraw(run: &Run, drawn: &[&Stretch]) -> Observation {
    let sums = |stretches: &mut dyn Iterator<Item = &Stretch>| {
        stretches.fold((0.0, 0.0, 0.0), |(c, b, s), x| (c + x.completed, b + x.busy_s, s + x.seconds))
    };
    let was = sums(&mut run.stretches.iter());
    let is = sums(&mut drawn.iter().copied());
    let ratio = |is: f64, was: f64| if was > 0.0 { is / was } else { 1.0 };
    let longer = ratio(is.2, was.2);
    let (more, busier) = (ratio(is.0, was.0) / longer, ratio(is.1, was.1) / longer);
    let observation = run.observe(run.busy * busier);
    Observation { throughput: run.throughput.iter().map(|x| x * more).collect(), ..observation }
}

/// The load-dependent fit as the one that the model takes.
fn at_saturation(load: &LoadDependence, fit: &DemandFit) -> DemandFit {
    let (demands, _) = load.at_saturation();
    let estimate = |(value, d): (f64, &Estimate)| Estimate { value, ci95_half_width: d.ci95_half_width };
    let demands = demands.into_iter().zip(&load.demands).map(estimate).collect();
    DemandFit { demands, standard_errors: None, ..fit.clone() }
}

fn warning(load: &LoadDependence, runs: &Runs) -> String {
    let mix: Vec<f64> = (0..runs.classes.len()).map(|c| runs.used.iter().map(|r| r.throughput[c]).sum()).collect();
    let (idle, busy) = (load.demand(0.0, &mix), load.demand(f64::MAX, &mix));
    format!(
        "a request costs {:.3} ms of CPU at the lowest load measured and {:.3} ms at saturation (F = {:.1}, p = {:.1e}): the \
         model has the latter, so use it near saturation",
        idle * 1e3,
        busy * 1e3,
        load.f,
        load.p
    )
}
