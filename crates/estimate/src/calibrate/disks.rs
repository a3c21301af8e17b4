//! Service demands at the disks, fitted by the utilization law like demands at the CPU.

use super::certainty::{Source, Uncertainty};
use super::regression::regress;
use super::runs::{Run, Runs};
use crate::correlation::correlation_of;
use crate::demand::{DemandFit, Observation};
use brimful_model::correlation::identity;

/// Minimum utilization of a disk in at least one run. Below it, the disk is not a station of the model.
const MIN_UTILIZATION: f64 = 0.01;

/// The fitted service demands at one disk.
pub(super) struct DiskFit {
    /// Name of the disk's device, such as `sda`.
    pub name: String,
    /// Demand of each class, in seconds per request.
    pub demands: Vec<f64>,
    /// Uncertainty of the demand of each class.
    pub uncertainty: Vec<Uncertainty>,
    /// Groups of classes that the runs cannot distinguish, so that the classes of a group share one demand.
    pub indistinguishable_classes: Vec<Vec<usize>>,
    /// Correlation of the errors of the demands, classes × classes.
    pub correlation: Vec<Vec<f64>>,
    /// Share of the time that the disk is busy with work other than requests.
    pub background: f64,
}

/// Fits the demands at each disk that was used. A disk that was used but cannot be fitted causes a warning.
pub(super) fn fit(runs: &Runs, warnings: &mut Vec<String>) -> Vec<DiskFit> {
    let mut fits = Vec::new();
    for name in runs.disks(MIN_UTILIZATION) {
        let busy = |run: &Run| run.disks.get(&name).copied().unwrap_or(0.0);
        let observations: Vec<Observation> = runs.used.iter().map(|run| run.observe(busy(run))).collect();
        let idle = runs.idle.disks.get(&name).copied();
        match regress(runs.classes.len(), &observations, idle, None) {
            Ok((_, fit)) if fit.demands.iter().any(|demand| demand.value > 0.0) => {
                fits.push(DiskFit::new(name, fit, runs));
            }
            Ok(_) => {}
            Err(error) => warnings.push(format!("disk {name} was busy and is left out of the model: {error}")),
        }
    }
    fits
}

impl DiskFit {
    fn new(name: String, fit: DemandFit, runs: &Runs) -> DiskFit {
        let classes = fit.demands.len();
        let source = |class| match fit.indistinguishable_classes.iter().any(|group| group.contains(&class)) {
            true => Source::Proportional,
            false => runs.source(class),
        };
        DiskFit {
            name,
            demands: fit.demands.iter().map(|demand| demand.value).collect(),
            uncertainty: (0..classes).map(|class| Uncertainty::of_fit(source(class), &fit, class)).collect(),
            correlation: fit.covariance(0.0).map_or_else(|| identity(classes), |c| correlation_of(&c)),
            background: fit.background.value.min(0.99),
            indistinguishable_classes: fit.indistinguishable_classes,
        }
    }
}
