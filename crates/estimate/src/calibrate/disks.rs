//! Disks that requests use, by the same law as the CPUs.

use super::certainty::{Source, Uncertainty};
use super::cpu::regress;
use super::runs::{Run, Runs};
use crate::Observation;
use crate::correlation::correlation_of;
use brimful_model::correlation::identity;

/// A disk that was never busier than this is no station.
const USED: f64 = 0.01;

pub(super) struct DiskFit {
    pub name: String,
    pub demands: Vec<f64>,
    pub uncertainty: Vec<Uncertainty>,
    /// Classes that the runs cannot tell apart.
    pub merged: Vec<Vec<usize>>,
    /// Classes × classes.
    pub correlation: Vec<Vec<f64>>,
    /// Share of its time.
    pub background: f64,
}

/// A disk that was busy and cannot be fitted is named.
pub(super) fn fit(runs: &Runs, warnings: &mut Vec<String>) -> Vec<DiskFit> {
    let mut fits = Vec::new();
    for name in runs.disks(USED) {
        let busy = |run: &Run| run.disks.get(&name).copied().unwrap_or(0.0);
        let observations: Vec<Observation> = runs.used.iter().map(|r| r.observe(busy(r))).collect();
        let idle = runs.idle.disks.get(&name).copied();
        match regress(runs.classes.len(), &observations, idle, None) {
            Ok((_, fit)) => {
                let demands: Vec<f64> = fit.demands.iter().map(|d| d.value).collect();
                if demands.iter().any(|d| *d > 0.0) {
                    let source = |class| match fit.merged.iter().any(|group| group.contains(&class)) {
                        true => Source::Proportional,
                        false => runs.source(class),
                    };
                    let uncertainty =
                        (0..demands.len()).map(|class| Uncertainty::of_fit(source(class), &fit, class)).collect();
                    let correlation =
                        fit.covariance(0.0).map_or_else(|| identity(demands.len()), |c| correlation_of(&c));
                    let background = fit.background.value.min(0.99);
                    let merged = fit.merged;
                    fits.push(DiskFit { name, demands, uncertainty, merged, correlation, background });
                }
            }
            Err(error) => warnings.push(format!("disk {name} was busy and is left out of the model: {error}")),
        }
    }
    fits
}
