//! The utilization law of one station, and its fit by least squares.
//!
//! busy = b₀ + Σ_r X_r·(k_r + D_g(r)) + w·f(X, U). `busy` is the mean number of busy servers, and b₀ the part that
//! background work keeps busy. For class r, X_r is the throughput, k_r the known part of the service demand, and D_g(r)
//! the unknown part, which is the same for all classes of the group g(r). The term w·f makes demands depend on the load
//! ([`LoadTerm`]).

use super::collinear::merge_collinear;
use super::fit::{DemandFit, FitCovariance};
use super::observation::{Background, Observation};
use super::term::LoadTerm;
use crate::EstimateError;
use crate::least_squares::{Uncertainty, fit_non_negative};
use brimful_model::Estimate;

/// The utilization law of one station, before its unknowns are fitted to observations.
#[derive(Clone, Debug)]
pub(crate) struct UtilizationLaw {
    /// Groups of classes that share one unknown demand. Each class is in exactly one group.
    pub groups: Vec<Vec<usize>>,
    /// Known part of the demand of each class, in seconds.
    pub known_demands: Vec<f64>,
    /// The number of servers that background work keeps busy: known, or fitted with the demands.
    pub background: Background,
    /// The term that makes demands depend on the load; `None` for constant demands.
    pub term: Option<LoadTerm>,
}

impl UtilizationLaw {
    /// Creates a utilization law with one unknown demand for each class. Classes that the observations cannot
    /// distinguish share one unknown.
    pub fn with_unknown_per_class(
        classes: usize,
        counted: &[&Observation],
        background: Background,
    ) -> Result<UtilizationLaw, EstimateError> {
        let needed = classes + usize::from(background == Background::Fitted);
        if counted.len() < needed {
            return Err(EstimateError::TooFewObservations { needed, given: counted.len() });
        }
        if let Some(class) = (0..classes).find(|c| counted.iter().all(|o| o.throughput[*c] == 0.0)) {
            return Err(EstimateError::Unobserved { class });
        }
        let groups = merge_collinear(classes, &weights(counted), |groups| columns(groups, counted))?;
        Ok(UtilizationLaw { groups, known_demands: vec![0.0; classes], background, term: None })
    }

    /// Creates a utilization law in which each demand is the sum of a known part and one unknown part, which all
    /// classes share.
    pub fn with_shared_unknown(known_demands: Vec<f64>, background: Background) -> UtilizationLaw {
        UtilizationLaw { groups: vec![(0..known_demands.len()).collect()], known_demands, background, term: None }
    }

    /// Fits the utilization law to the observations `counted`, which must be valid and have positive weights.
    pub fn fit(&self, counted: &[&Observation]) -> Result<DemandFit, EstimateError> {
        let mut columns = columns(&self.groups, counted);
        columns.extend(self.term.map(|term| counted.iter().map(|o| term.at_observation(o)).collect()));
        let background = match self.background {
            Background::Known(busy) => busy,
            Background::Fitted => {
                columns.push(vec![1.0; counted.len()]);
                0.0
            }
        };
        let known_demands =
            |o: &Observation| o.throughput.iter().zip(&self.known_demands).map(|(x, k)| x * k).sum::<f64>();
        let busy: Vec<f64> = counted.iter().map(|o| o.busy - background - known_demands(o)).collect();
        let fit = fit_non_negative(&columns, &busy, &weights(counted))?;
        let demand = |class: usize| {
            let unknown = fit.estimate(group_of(&self.groups, class));
            Estimate { value: self.known_demands[class] + unknown.value, ..unknown }
        };
        Ok(DemandFit {
            demands: (0..self.known_demands.len()).map(demand).collect(),
            background: match self.background {
                Background::Fitted => fit.estimate(columns.len() - 1),
                Background::Known(value) => Estimate { value, ci95_half_width: None },
            },
            condition_number: fit.condition_number,
            residual_stddev: fit.uncertainty.as_ref().map(|u| u.residual_stddev),
            degrees_of_freedom: counted.len() - columns.len(),
            indistinguishable_classes: self.groups.iter().filter(|g| g.len() > 1).cloned().collect(),
            term: self.term.map(|_| fit.estimate(self.groups.len())),
            covariance: fit.uncertainty.map(|uncertainty| self.covariance(uncertainty)),
        })
    }

    fn covariance(&self, uncertainty: Uncertainty) -> FitCovariance {
        FitCovariance {
            covariance: uncertainty.covariance * uncertainty.residual_stddev.powi(2),
            t95: uncertainty.t95,
            groups: self.groups.clone(),
            has_load_dependence: self.term.is_some(),
            has_background: self.background == Background::Fitted,
        }
    }
}

fn group_of(groups: &[Vec<usize>], class: usize) -> usize {
    groups.iter().position(|g| g.contains(&class)).unwrap_or_default()
}

/// The throughput of each group of classes in each observation, groups × observations.
fn columns(groups: &[Vec<usize>], counted: &[&Observation]) -> Vec<Vec<f64>> {
    let column = |group: &Vec<usize>| counted.iter().map(|o| group.iter().map(|c| o.throughput[*c]).sum()).collect();
    groups.iter().map(column).collect()
}

fn weights(counted: &[&Observation]) -> Vec<f64> {
    counted.iter().map(|o| o.weight).collect()
}
