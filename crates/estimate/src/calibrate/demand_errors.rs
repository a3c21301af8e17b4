//! The errors of the CPU demands. They have three sources: the regression over the runs, the bootstrap within the runs,
//! and the Server Module's measurement of a sample of the requests.

use super::certainty::{Source, Uncertainty, interval};
use crate::correlation::correlation_of;
use crate::demand::{Bootstrap, DemandFit, Interval};
use crate::server_module::NORMAL_95;
use brimful_model::correlation::identity;

/// The data from which the errors of the CPU demands are computed.
pub(super) struct DemandErrors {
    /// The fit of the utilization law to the runs.
    pub fit: DemandFit,
    /// The bootstrap, which resamples the seconds within the runs; `None` if the runs have too few seconds.
    pub bootstrap: Option<Bootstrap>,
    /// For each class, the ratio of its demand to the joint demand of the classes that the runs cannot distinguish from
    /// it; 1 for other classes.
    pub factors: Vec<f64>,
    /// Increase of the demand of each request at saturation, per unit of the fitted weight w of the load-dependent
    /// term. The product with w is in seconds. 0 without load dependence.
    pub load_per_request: f64,
    /// Standard error of the Server Module's measured demand, by class; 0 without the module.
    pub sampling_errors: Vec<f64>,
}

impl DemandErrors {
    /// The uncertainty of a class's demand, in which the sampling error of the Server Module is included.
    pub fn uncertainty(&self, class: usize, demand: f64, source: Source) -> Uncertainty {
        let sampling = NORMAL_95 * self.sampling_errors[class];
        let with_sampling = |half_width: f64| half_width.hypot(sampling);
        let mut gradient = vec![0.0; self.factors.len()];
        gradient[class] = self.factors[class];
        let fit = self.fit.half_width(&gradient, self.factors[class] * self.load_per_request, 0.0);
        // The Server Module's measurements have an interval even if there is only one run.
        let fit = fit.or((source == Source::Direct).then_some(0.0));
        let bootstrap = self.bootstrap.as_ref().map(|bootstrap| bootstrap.interval(class)).map(|drawn| {
            let below = with_sampling((demand - drawn.low).max(0.0));
            let above = with_sampling((drawn.high - demand).max(0.0));
            Interval { low: (demand - below).max(0.0), high: demand + above }
        });
        Uncertainty::unknown(source).with_intervals(interval(demand, fit.map(with_sampling)), bootstrap)
    }

    /// Correlation matrix of the errors of the demands, classes × classes. It is computed from the covariance of the
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

    /// The demand of each class in each bootstrap draw, draws × classes.
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
