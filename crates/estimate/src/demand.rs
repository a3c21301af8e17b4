//! Service demands from what was measured of a whole station.
//!
//! The utilization law, busy = b₀ + Σ X_r·D_r in busy servers, holds at every load level; with enough levels least
//! squares gives the demands D_r, and the background b₀ if it was not measured apart. Demands are never negative.
//! Classes that came in nearly the same proportion at every level cannot be told apart; they are merged into one demand
//! instead of being given numbers that are noise (condition number: Belsley, Kuh & Welsch, *Regression Diagnostics*,
//! 1980, §3.2).
//!
//! Intervals are Student's t from the residuals, which takes the observations for independent; [`moving_blocks`]
//! resamples those that follow one another in time. Whether demands depend on the load is asked of
//! [`fit_load_dependence`], what they have to do with the size of a response of [`fit_size`]. From a single level there
//! is only a rule of proportion ([`attribute_by_share`]). [`mod@crate::calibrate`] does all of it with Records.

mod bootstrap;
pub(crate) mod collinear;
pub(crate) mod law;
pub(crate) mod load;
mod proportional;
mod size;
pub(crate) mod term;

pub use bootstrap::{Bootstrap, Interval, Resampling, moving_blocks};
pub use load::{LoadDependence, fit_load_dependence};
pub use proportional::{attribute_by_share, attribute_equally};
pub use size::{Held, Outlier, SizeFit, SizePoint, fit_size};
pub use term::Shape;

use crate::EstimateError;
use brimful_core::model::{JointDemand, ModelClass};
use brimful_core::number::non_negative;
use brimful_model::Estimate;
use law::{Joint, Law};

/// Probability of a false alarm, wherever the data are said to show something.
pub(crate) const SIGNIFICANT: f64 = 0.05;

/// What one station did at one load level.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// X by class, per second.
    pub throughput: Vec<f64>,
    /// Mean number of busy servers: utilization × servers.
    pub busy: f64,
    /// How much it counts: inverse variance, or duration. Only ratios matter; 0 leaves it out.
    pub weight: f64,
}

impl Observation {
    /// Over so many seconds: the variance of a mean of random service grows with the load and falls with the time.
    pub fn over(seconds: f64, throughput: Vec<f64>, busy: f64) -> Self {
        Self { throughput, busy, weight: seconds / busy.max(1e-3) }
    }
}

/// Work that is there without requests, in busy servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Background {
    /// To be estimated along with the demands.
    Fitted,
    /// Measured while the server was idle.
    Known(f64),
}

/// Fitted demands of one station.
#[derive(Clone, Debug, PartialEq)]
pub struct DemandFit {
    /// D in seconds, by class; merged classes share one.
    pub demands: Vec<Estimate>,
    /// Busy servers without requests; without interval if it was known.
    pub background: Estimate,
    /// Of the column-scaled design matrix, after merging; above some 30 the intervals are wide.
    pub condition_number: f64,
    /// Of `busy`, at the mean weight; `None` with as many observations as unknowns.
    pub residual_stddev: Option<f64>,
    /// Observations (of positive weight) beyond the unknowns.
    pub degrees_of_freedom: usize,
    /// Groups of classes that the observations cannot tell apart; ascending, none of one. The joint demand of a group
    /// is that of its mean request at the mix observed, and is given to each of its classes: at another mix it may be
    /// another.
    pub merged: Vec<Vec<usize>>,
    /// Of load dependence, where one was looked for.
    pub(crate) term: Option<Estimate>,
    joint: Option<Joint>,
}

/// Demands of `classes` classes by weighted non-negative least squares.
///
/// Needs as many observations as there are classes, and one more for a fitted background; with just as many there are
/// no intervals. A class that never completed anything, or a background that cannot be told from the demands, is an
/// error.
pub fn fit_demands(
    classes: usize,
    observations: &[Observation],
    background: Background,
) -> Result<DemandFit, EstimateError> {
    check(classes, observations, background)?;
    let counted = counted(observations);
    Law::distinct(classes, &counted, background)?.fit(&counted)
}

impl DemandFit {
    /// Half width of the 95 % interval of a sum: of so many times each class's demand, the load-dependent term and the
    /// background.
    pub(crate) fn half_width(&self, demands: &[f64], term: f64, background: f64) -> Option<f64> {
        Some(self.joint.as_ref()?.half_width(demands, term, background))
    }

    /// Standard error of the same sum.
    pub(crate) fn standard_error(&self, demands: &[f64], term: f64, background: f64) -> Option<f64> {
        Some(self.joint.as_ref()?.standard_error(demands, term, background))
    }

    /// Covariance of the demands, classes × classes, each with so many times the load-dependent term.
    pub(crate) fn covariance(&self, term: f64) -> Option<Vec<Vec<f64>>> {
        Some(self.joint.as_ref()?.covariance(term))
    }
}

/// Those that count.
pub(crate) fn counted(observations: &[Observation]) -> Vec<&Observation> {
    observations.iter().filter(|o| o.weight > 0.0).collect()
}

pub(crate) fn check(classes: usize, observations: &[Observation], background: Background) -> Result<(), EstimateError> {
    if classes == 0 {
        return Err(EstimateError::Shape("there is no class whose demand to fit".into()));
    }
    if let Background::Known(busy) = background {
        non_negative(busy, || "the known background".into())?;
    }
    for (i, o) in observations.iter().enumerate() {
        if o.throughput.len() != classes {
            let given = o.throughput.len();
            return Err(EstimateError::Shape(format!("observation {i} has {given} throughputs for {classes} classes")));
        }
        for x in &o.throughput {
            non_negative(*x, || format!("a throughput of observation {i}"))?;
        }
        non_negative(o.busy, || format!("the busy servers of observation {i}"))?;
        non_negative(o.weight, || format!("the weight of observation {i}"))?;
    }
    Ok(())
}

/// What is known only together at a station, at the model's mix.
pub(crate) fn joint_demands(classes: &[ModelClass], station: &str, merged: &[Vec<usize>]) -> Vec<JointDemand> {
    let of = |group: &Vec<usize>| {
        let rates: Vec<f64> = group.iter().map(|class| classes[*class].rate.unwrap_or(0.0)).collect();
        let total: f64 = rates.iter().sum();
        (total > 0.0).then(|| JointDemand {
            station: station.to_owned(),
            classes: group.iter().map(|class| classes[*class].name.clone()).collect(),
            shares: rates.into_iter().map(|rate| rate / total).collect(),
        })
    };
    merged.iter().filter_map(of).collect()
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
        // Classes 0 and 2 always come 1 : 3.
        let rows: [&[f64]; 4] = [&[10.0, 5.0, 30.0], &[20.0, 1.0, 60.0], &[5.0, 8.0, 15.0], &[1.0, 1.0, 3.0]];
        let fit = fit_demands(3, &observe(&rows, 0.1, &[0.004, 0.01, 0.008]), Background::Known(0.1)).unwrap();
        assert_eq!(fit.merged, [[0, 2]]);
        assert_eq!(fit.demands[0], fit.demands[2]);
        assert!((fit.demands[0].value - 0.007).abs() < 1e-12, "(1·4 ms + 3·8 ms) / 4");
        assert!((fit.demands[1].value - 0.01).abs() < 1e-12);
        assert!(fit.condition_number < 30.0);
    }

    #[test]
    fn a_class_that_is_the_sum_of_two_like_others_is_merged_with_both() {
        let rows: [&[f64]; 4] = [&[1.0, 0.0, 1.0], &[0.0, 1.0, 1.0], &[2.0, 0.0, 2.0], &[0.0, 2.0, 2.0]];
        let fit = fit_demands(3, &observe(&rows, 0.0, &[0.1, 0.1, 0.1]), Background::Known(0.0)).unwrap();
        assert_eq!(fit.merged, [[0, 1, 2]]);
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
        // One nginx worker, 1294 B, keep-alive: CPU µs per request up to a third of the 60,000 per second it could
        // serve.
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
