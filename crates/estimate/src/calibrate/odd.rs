//! Finds an outlier among the runs, such as a run during which a cron job or a backup ran on the server.
//!
//! Each run is compared with a fit to all other runs, including the dependence of demands on the load. If no run is an
//! outlier, the externally studentized residual has Student's t distribution (Cook & Weisberg, *Residuals and Influence
//! in Regression*, 1982, §2.2.1). The run with the most significant residual is reported if its p-value is below 5 %
//! after Bonferroni's correction for the number of runs, and if the residual is more than 2 % of the CPU time.

use super::runs::Run;
use crate::demand::load::detect_load_dependence;
use crate::demand::term::{LoadTerm, StationServers};
use crate::demand::{DemandFit, Observation, law::UtilizationLaw};
use crate::least_squares::SIGNIFICANCE;
use brimful_core::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Minimum residual of a run that is reported as an outlier, as a share of its CPU time.
const MIN_SHARE: f64 = 0.02;

/// A run whose CPU time differs significantly from the prediction of a fit to all other runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OddRun {
    /// Index of the Record in the input, from 0.
    pub record: usize,
    /// Measured mean number of busy CPUs in this run.
    pub busy: f64,
    /// Mean number of busy CPUs that a fit to all other runs predicts at this run's rates.
    pub expected: f64,
    /// The difference of `busy` and `expected`, divided by its standard error (externally studentized residual).
    pub residual: f64,
    /// Probability that the largest residual of all runs is at least this large by chance (Bonferroni's correction for
    /// the number of runs).
    pub p: f64,
}

/// Finds the run that is an outlier; `None` if there is none. `law` is the utilization law without load dependence.
pub(super) fn find(
    law: &UtilizationLaw,
    runs: &[Run],
    observations: &[Observation],
    servers: StationServers,
) -> Option<OddRun> {
    let against_others = |i: usize| {
        let others: Vec<&Observation> =
            observations.iter().enumerate().filter(|(j, o)| *j != i && o.weight > 0.0).map(|(_, o)| o).collect();
        let constant = law.fit(&others).ok()?;
        let shape = detect_load_dependence(law, &constant, &others, servers).map(|dependence| dependence.shape);
        let (fit, term) = match shape {
            Some(shape) => {
                let term = Some(LoadTerm { shape, servers });
                (UtilizationLaw { term, ..law.clone() }.fit(&others).ok()?, term)
            }
            None => (constant, None),
        };
        let (expected, error) = expected(&fit, term, &others, &observations[i])?;
        let busy = observations[i].busy;
        // If the other runs agree exactly with each other, the standard error is 0 and the residual is infinite.
        let residual = Some((busy - expected) / error).filter(|residual| residual.is_finite())?;
        let t = StudentsT::new(0.0, 1.0, fit.degrees_of_freedom as f64).ok()?;
        let p = (2.0 * t.sf(residual.abs()) * runs.len() as f64).min(1.0);
        Some(OddRun { record: runs[i].record, busy, expected, residual, p })
    };
    let matters = |run: &OddRun| (run.busy - run.expected).abs() > MIN_SHARE * run.busy.max(run.expected);
    let odd = (0..runs.len()).filter_map(against_others).filter(|run| run.p < SIGNIFICANCE && matters(run));
    odd.min_by(|a, b| a.p.total_cmp(&b.p))
}

/// Number of busy CPUs that the fit to the other runs predicts at the throughput of `observation`, and the standard
/// error of the difference from the measured number.
fn expected(
    fit: &DemandFit,
    term: Option<LoadTerm>,
    others: &[&Observation],
    observation: &Observation,
) -> Option<(f64, f64)> {
    let x = &observation.throughput;
    let term = term.map_or(0.0, |term| term.at_observation(observation));
    let requests: f64 = x.iter().zip(&fit.demands).map(|(x, d)| x * d.value).sum();
    let busy = fit.background.value + requests + term * fit.term.map_or(0.0, |w| w.value);
    let mean_weight = others.iter().map(|o| o.weight).sum::<f64>() / others.len() as f64;
    let noise = fit.residual_stddev? * (mean_weight / observation.weight).sqrt();
    let error_of_fit = fit.standard_error(x, term, 1.0)?;
    Some((busy, noise.hypot(error_of_fit)))
}

impl OddRun {
    /// A warning about this run for the user; `name` is the name of the run's Record.
    pub fn warning(&self, name: &str) -> String {
        let direction = if self.busy > self.expected { "more" } else { "less" };
        format!(
            "{name} disagrees with the other runs: {:.3} CPUs were busy, and by the others' law it would be {:.3} ({:.1} standard \
             errors {direction}). Find out what else ran then, such as a cron job, and measure it again or leave it out",
            self.busy,
            self.expected,
            self.residual.abs()
        )
    }
}
