//! The result of fitting the utilization law to observations: service demands, and the covariance of their errors.

use brimful_model::Estimate;
use nalgebra::{DMatrix, DVector};

/// Fitted service demands at one station.
#[derive(Clone, Debug, PartialEq)]
pub struct DemandFit {
    /// Service demand of each class, in seconds per request. Classes that the observations cannot distinguish have the
    /// same demand.
    pub demands: Vec<Estimate>,
    /// Mean number of servers that background work keeps busy. It has no confidence interval if it was known before the
    /// fit.
    pub background: Estimate,
    /// Condition number of the design matrix, after merging of classes and scaling of columns. Above about 30, the
    /// confidence intervals are wide.
    pub condition_number: f64,
    /// Standard deviation of the residuals of the number of busy servers, for an observation of mean weight. `None` if
    /// there are only as many observations as unknowns.
    pub residual_stddev: Option<f64>,
    /// Number of observations of positive weight minus the number of unknowns.
    pub degrees_of_freedom: usize,
    /// Groups of at least two classes that the observations cannot distinguish, in ascending order. Each class of a
    /// group has the demand of an average request of the group at the observed mix; at another mix, that demand may be
    /// different.
    pub indistinguishable_classes: Vec<Vec<usize>>,
    /// The fitted weight w of the load-dependent term; `None` if the demands do not depend on the load.
    pub(crate) term: Option<Estimate>,
    /// Covariance of the errors of the unknowns; `None` if there are only as many observations as unknowns.
    pub(crate) covariance: Option<FitCovariance>,
}

impl DemandFit {
    /// Half width of the 95 % confidence interval of the sum Σ `demands[i]`·Dᵢ + `term`·w + `background`·b₀. The
    /// arguments are the coefficients of the fitted unknowns: Dᵢ is the demand of class i, w is the weight of the
    /// load-dependent term, and b₀ is the number of servers that background work keeps busy.
    pub(crate) fn half_width(&self, demands: &[f64], term: f64, background: f64) -> Option<f64> {
        let covariance = self.covariance.as_ref()?;
        Some(covariance.t95 * covariance.standard_error(demands, term, background))
    }

    /// Standard error of the sum Σ `demands[i]`·Dᵢ + `term`·w + `background`·b₀. Dᵢ is the fitted demand of class i, w
    /// is the weight of the load-dependent term, and b₀ is the number of servers that background work keeps busy.
    pub(crate) fn standard_error(&self, demands: &[f64], term: f64, background: f64) -> Option<f64> {
        Some(self.covariance.as_ref()?.standard_error(demands, term, background))
    }

    /// Covariance matrix of the errors of the sums Dᵢ + `term`·w, classes × classes. Dᵢ is the fitted demand of class
    /// i, and w is the fitted weight of the load-dependent term.
    pub(crate) fn covariance(&self, term: f64) -> Option<Vec<Vec<f64>>> {
        Some(self.covariance.as_ref()?.of_demands(term))
    }
}

/// Covariance of the errors of the fitted unknowns. Their order: the demand of each group of classes, the weight w of
/// the load-dependent term, and the number b₀ of servers that background work keeps busy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FitCovariance {
    /// The covariance matrix, unknowns × unknowns.
    pub covariance: DMatrix<f64>,
    /// Ratio of the half width of a 95 % confidence interval to the standard error: the 97.5 % quantile of Student's t.
    pub t95: f64,
    /// Groups of classes that share one demand.
    pub groups: Vec<Vec<usize>>,
    /// Whether the fit has a load-dependent term.
    pub has_load_dependence: bool,
    /// Whether the number of servers that background work keeps busy was fitted.
    pub has_background: bool,
}

impl FitCovariance {
    fn standard_error(&self, demands: &[f64], term: f64, background: f64) -> f64 {
        let gradient = self.gradient(demands, term, background);
        (&self.covariance * &gradient).dot(&gradient).max(0.0).sqrt()
    }

    fn of_demands(&self, term: f64) -> Vec<Vec<f64>> {
        let classes: usize = self.groups.iter().map(Vec::len).sum();
        let unit = |class| (0..classes).map(|c| f64::from(u8::from(c == class))).collect::<Vec<_>>();
        let gradients: Vec<DVector<f64>> = (0..classes).map(|class| self.gradient(&unit(class), term, 0.0)).collect();
        let row = |a: &DVector<f64>| gradients.iter().map(|b| (&self.covariance * a).dot(b)).collect();
        gradients.iter().map(row).collect()
    }

    /// Gradient of the sum Σ `demands[i]`·Dᵢ + `term`·w + `background`·b₀ with respect to the fitted unknowns.
    fn gradient(&self, demands: &[f64], term: f64, background: f64) -> DVector<f64> {
        let by_group = |group: &Vec<usize>| group.iter().map(|class| demands[*class]).sum::<f64>();
        let mut gradient: Vec<f64> = self.groups.iter().map(by_group).collect();
        gradient.extend(self.has_load_dependence.then_some(term));
        gradient.extend(self.has_background.then_some(background));
        DVector::from_vec(gradient)
    }
}
