//! The errors of the CPU demands: from the regression over the runs, from the bootstrap within the runs, and from the
//! sampling of the Server Module.

use super::certainty::{Source, Uncertainty, interval};
use crate::correlation::correlation_of;
use crate::demand::{Bootstrap, DemandFit, Interval};
use crate::inside::NORMAL_95;
use brimful_model::correlation::identity;

/// Everything that determines the errors of the CPU demands.
pub(super) struct DemandErrors {
    /// The regression over the runs.
    pub fit: DemandFit,
    /// The bootstrap over the seconds within the runs; `None` if the runs have too few seconds.
    pub bootstrap: Option<Bootstrap>,
    /// For each class, the ratio of its demand to the joint demand of the classes with which it is merged.
    pub factors: Vec<f64>,
    /// Increase of the demand of each request from load dependence at saturation, per unit of w. The product with w is
    /// in seconds. w is the fitted weight of the load-dependent term.
    pub load_per_request: f64,
    /// Standard error of the Server Module's measurement, by class; 0 without the module.
    pub sampling_errors: Vec<f64>,
}

impl DemandErrors {
    /// The uncertainty of a class's demand.
    pub fn uncertainty(&self, class: usize, demand: f64, source: Source) -> Uncertainty {
        let sampling = NORMAL_95 * self.sampling_errors[class];
        let with_sampling = |half_width: f64| half_width.hypot(sampling);
        let mut gradient = vec![0.0; self.factors.len()];
        gradient[class] = self.factors[class];
        let fit = self.fit.half_width(&gradient, self.factors[class] * self.load_per_request, 0.0);
        // The module's measurements yield an interval even for a single run.
        let fit = fit.or((source == Source::Direct).then_some(0.0));
        let bootstrap = self.bootstrap.as_ref().map(|bootstrap| bootstrap.interval(class)).map(|drawn| {
            let below = with_sampling((demand - drawn.low).max(0.0));
            let above = with_sampling((drawn.high - demand).max(0.0));
            Interval { low: (demand - below).max(0.0), high: demand + above }
        });
        Uncertainty::unknown(source).with_intervals(interval(demand, fit.map(with_sampling)), bootstrap)
    }

    /// Correlation of the errors of the demands, classes × classes. It is computed from the covariance of the
    /// regression or of the bootstrap, whichever has the larger total variance.
    pub fn correlation(&self) -> Vec<Vec<f64>> {
        let classes = self.factors.len();
        let fit = self.fit.covariance(self.load_per_request).map(|mut covariance| {
            for (row, i) in covariance.iter_mut().zip(&self.factors) {
                row.iter_mut().zip(&self.factors).for_each(|(entry, j)| *entry *= i * j);
            }
            covariance
        });
        let bootstrap = self.bootstrap.as_ref().map(|bootstrap| covariance(&bootstrap.draws, classes));
        let variance = |covariance: &Vec<Vec<f64>>| (0..classes).map(|class| covariance[class][class]).sum::<f64>();
        let Some(mut widest) = fit.into_iter().chain(bootstrap).max_by(|a, b| variance(a).total_cmp(&variance(b)))
        else {
            return identity(classes);
        };
        (0..classes).for_each(|class| widest[class][class] += self.sampling_errors[class].powi(2));
        correlation_of(&widest)
    }

    /// The demands in each bootstrap draw, draws × classes.
    pub fn draws(&self) -> Vec<Vec<f64>> {
        let classes = self.factors.len();
        self.bootstrap.iter().flat_map(|bootstrap| &bootstrap.draws).map(|draw| draw[..classes].to_vec()).collect()
    }
}

/// Sample covariance of the first `count` values of the draws, count × count.
fn covariance(draws: &[Vec<f64>], count: usize) -> Vec<Vec<f64>> {
    let n = draws.len() as f64;
    let mean = |value: usize| draws.iter().map(|draw| draw[value]).sum::<f64>() / n;
    let means: Vec<f64> = (0..count).map(mean).collect();
    let entry =
        |i: usize, j: usize| draws.iter().map(|d| (d[i] - means[i]) * (d[j] - means[j])).sum::<f64>() / (n - 1.0);
    (0..count).map(|i| (0..count).map(|j| entry(i, j)).collect()).collect()
}
