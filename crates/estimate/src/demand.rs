//! Estimates service demands from the throughput and utilization of a station.
//!
//! By the utilization law, the mean number of busy servers is b₀ + Σ X_r·D_r at every load: b₀ servers are busy with
//! background work, and class r has the throughput X_r and the service demand D_r. With measurements at enough
//! different loads, least squares determines the demands, and the background if it was not measured separately. Demands
//! are never negative. Classes whose throughputs have nearly the same ratio at every load cannot be distinguished. They
//! share one demand, because separate estimates would be mostly noise (condition number: Belsley, Kuh & Welsch,
//! *Regression Diagnostics*, 1980, §3.2).
//!
//! Confidence intervals use the residuals and Student's t distribution, which assumes that the observations are
//! independent. [`moving_blocks`] is a bootstrap for time series, whose observations depend on each other.
//! [`fit_load_dependence`] tests whether demands depend on the load, and [`fit_size`] fits their dependence on the size
//! of the response. With measurements at a single load, the busy time can only be divided among the classes by a rule
//! ([`attribute_by_share`]). [`mod@crate::calibrate`] applies these methods to Records, the documents of runs.

mod bootstrap;
pub(crate) mod collinear;
mod fit;
pub(crate) mod law;
pub(crate) mod load;
mod observation;
mod proportional;
mod size;
pub(crate) mod term;

pub use bootstrap::{Bootstrap, Interval, Resampling, moving_blocks};
pub use fit::DemandFit;
pub use load::{LoadDependence, fit_load_dependence};
pub use observation::{Background, Observation};
pub(crate) use observation::{check, counted};
pub use proportional::{attribute_by_share, attribute_equally};
pub use size::{Held, Outlier, SizeFit, SizePoint, fit_size};
pub use term::LoadShape;

use crate::EstimateError;
use brimful_core::model::{JointDemand, ModelClass};
use law::UtilizationLaw;

/// Fits the service demands of `classes` request classes to observations of one station, by weighted non-negative least
/// squares.
///
/// There must be at least as many observations as classes, and one more if the background work is fitted. With exactly
/// this number of observations, there are no confidence intervals.
///
/// # Errors
/// When a class has no completions, or the observations cannot distinguish the background from the demands.
pub fn fit_demands(
    classes: usize,
    observations: &[Observation],
    background: Background,
) -> Result<DemandFit, EstimateError> {
    check(classes, observations, background)?;
    let counted = counted(observations);
    UtilizationLaw::with_unknown_per_class(classes, &counted, background)?.fit(&counted)
}

/// The classes that share one demand at a station, in the form of the model. `merged` contains groups of class indices;
/// the classes' shares are those of the model's mix.
pub fn joint_demands(classes: &[ModelClass], station: &str, merged: &[Vec<usize>]) -> Vec<JointDemand> {
    let joint_demand = |group: &Vec<usize>| {
        let rates: Vec<f64> = group.iter().map(|class| classes[*class].rate.unwrap_or(0.0)).collect();
        let total: f64 = rates.iter().sum();
        (total > 0.0).then(|| JointDemand {
            station: station.to_owned(),
            classes: group.iter().map(|class| classes[*class].name.clone()).collect(),
            shares: rates.into_iter().map(|rate| rate / total).collect(),
        })
    };
    merged.iter().filter_map(joint_demand).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observe(rows: &[&[f64]], background: f64, demands: &[f64]) -> Vec<Observation> {
        let busy = |x: &[f64]| background + x.iter().zip(demands).map(|(x, d)| x * d).sum::<f64>();
        rows.iter().map(|x| Observation { throughput: x.to_vec(), busy: busy(x), weight: 1.0 }).collect()
    }

    #[test]
    fn proportional_classes_share_one_demand() {
        // The throughputs of classes 0 and 2 always have the ratio 1 : 3, so these classes share one demand.
        let rows: [&[f64]; 4] = [&[10.0, 5.0, 30.0], &[20.0, 1.0, 60.0], &[5.0, 8.0, 15.0], &[1.0, 1.0, 3.0]];
        let fit = fit_demands(3, &observe(&rows, 0.1, &[0.004, 0.01, 0.008]), Background::Known(0.1)).unwrap();
        assert_eq!(fit.indistinguishable_classes, [[0, 2]]);
        assert_eq!(fit.demands[0], fit.demands[2]);
        assert!((fit.demands[0].value - 0.007).abs() < 1e-12, "(1·4 ms + 3·8 ms) / 4");
        assert!((fit.demands[1].value - 0.01).abs() < 1e-12);
        assert!(fit.condition_number < 30.0);
    }

    #[test]
    fn a_class_that_is_the_sum_of_two_like_others_is_merged_with_both() {
        let rows: [&[f64]; 4] = [&[1.0, 0.0, 1.0], &[0.0, 1.0, 1.0], &[2.0, 0.0, 2.0], &[0.0, 2.0, 2.0]];
        let fit = fit_demands(3, &observe(&rows, 0.0, &[0.1, 0.1, 0.1]), Background::Known(0.0)).unwrap();
        assert_eq!(fit.indistinguishable_classes, [[0, 1, 2]]);
        assert!((fit.demands[1].value - 0.1).abs() < 1e-12);
    }

    #[test]
    fn as_many_observations_as_unknowns_leave_no_interval() {
        let observations = observe(&[&[10.0], &[20.0]], 0.2, &[0.01]);
        let fit = fit_demands(1, &observations, Background::Fitted).unwrap();
        assert!((fit.demands[0].value - 0.01).abs() < 1e-12 && (fit.background.value - 0.2).abs() < 1e-12);
        assert_eq!((fit.demands[0].ci95_half_width, fit.residual_stddev), (None, None));
    }

    #[test]
    fn too_few_observations_say_how_many() {
        let observations = observe(&[&[10.0, 1.0], &[20.0, 3.0]], 0.0, &[0.01, 0.02]);
        let error = fit_demands(2, &observations, Background::Fitted).unwrap_err();
        assert_eq!(error, EstimateError::TooFewObservations { needed: 3, given: 2 });
        assert!(fit_demands(2, &observations, Background::Known(0.0)).is_ok());
        let mut unweighted = observations;
        unweighted[0].weight = 0.0;
        let error = fit_demands(2, &unweighted, Background::Known(0.0)).unwrap_err();
        assert_eq!(error, EstimateError::TooFewObservations { needed: 2, given: 1 });
    }

    #[test]
    fn a_class_at_a_constant_rate_cannot_be_told_from_the_background() {
        let observations = observe(&[&[10.0, 1.0], &[10.0, 3.0], &[10.0, 9.0]], 0.1, &[0.01, 0.02]);
        let error = fit_demands(2, &observations, Background::Fitted).unwrap_err();
        assert!(matches!(error, EstimateError::Indistinct { .. }), "{error}");
        let fit = fit_demands(2, &observations, Background::Known(0.1)).unwrap();
        assert!((fit.demands[0].value - 0.01).abs() < 1e-12);
    }

    #[test]
    fn a_class_never_seen_is_named() {
        let observations = observe(&[&[10.0, 0.0], &[20.0, 0.0], &[5.0, 0.0]], 0.0, &[0.01, 0.02]);
        assert_eq!(fit_demands(2, &observations, Background::Fitted), Err(EstimateError::Unobserved { class: 1 }));
    }

    #[test]
    fn the_interval_covers_the_truth_under_noise() {
        let rows: [&[f64]; 6] = [&[100.0], &[200.0], &[300.0], &[400.0], &[500.0], &[600.0]];
        let mut observations = observe(&rows, 0.05, &[0.001]);
        for (o, noise) in observations.iter_mut().zip([0.004, -0.005, 0.002, 0.006, -0.006, -0.001]) {
            o.busy += noise;
        }
        let fit = fit_demands(1, &observations, Background::Fitted).unwrap();
        let half_width = fit.demands[0].ci95_half_width.unwrap();
        assert!((fit.demands[0].value - 0.001).abs() < half_width && half_width < 5e-5, "{fit:?}");
    }

    #[test]
    fn a_measured_server_saturates_where_it_did() {
        // Measurements of one nginx worker: requests per second, and CPU µs per request. Responses had 1294 bytes, on
        // keep-alive connections. The highest rate is a third of the maximum of 60,000 requests per second.
        let measured = [(2e3, 37.6), (5e3, 25.3), (10e3, 20.0), (20e3, 19.0)];
        let observations = measured.map(|(rate, us): (f64, f64)| Observation {
            throughput: vec![rate],
            busy: rate * us * 1e-6,
            weight: 1.0,
        });
        let fit = fit_demands(1, &observations, Background::Fitted).unwrap();
        let saturation = (1.0 - fit.background.value) / fit.demands[0].value;
        assert!((saturation / 60e3 - 1.0).abs() < 0.06, "{saturation} {fit:?}");
    }
}
