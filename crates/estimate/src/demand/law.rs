//! The utilization law of one station with its unknowns, and least squares for them.
//!
//! busy = b₀ + Σ_r X_r·(k_r + D_g(r)) + w·f(X, U): k_r is what is known of a class beforehand, D_g one unknown for each
//! group of classes, w·f the term of a load-dependent demand ([`Term`]).

use super::collinear::merge_collinear;
use super::term::Term;
use super::{Background, DemandFit, Observation};
use crate::EstimateError;
use crate::least_squares::{Uncertainty, fit_non_negative};
use brimful_model::Estimate;
use nalgebra::{DMatrix, DVector};

/// What is known and what is to be found.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    /// Classes that share an unknown; each class is in one group.
    pub groups: Vec<Vec<usize>>,
    /// Seconds by class.
    pub known: Vec<f64>,
    pub background: Background,
    pub term: Option<Term>,
}

/// How the unknowns of a fit vary together: groups, then the term, then the background.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Joint {
    covariance: DMatrix<f64>,
    t95: f64,
    groups: Vec<Vec<usize>>,
    term: bool,
    background: bool,
}

impl Law {
    /// Every class by itself, but for those that the observations cannot tell apart.
    pub fn distinct(classes: usize, counted: &[&Observation], background: Background) -> Result<Law, EstimateError> {
        let needed = classes + usize::from(background == Background::Fitted);
        if counted.len() < needed {
            return Err(EstimateError::TooFewObservations { needed, given: counted.len() });
        }
        if let Some(class) = (0..classes).find(|c| counted.iter().all(|o| o.throughput[*c] == 0.0)) {
            return Err(EstimateError::Unobserved { class });
        }
        let groups = merge_collinear(classes, &weights(counted), |groups| columns(groups, counted))?;
        Ok(Law { groups, known: vec![0.0; classes], background, term: None })
    }

    /// All classes share what is not known of them.
    pub fn shared(known: Vec<f64>, background: Background) -> Law {
        Law { groups: vec![(0..known.len()).collect()], known, background, term: None }
    }

    /// From checked observations of positive weight.
    pub fn fit(&self, counted: &[&Observation]) -> Result<DemandFit, EstimateError> {
        let mut columns = columns(&self.groups, counted);
        columns.extend(self.term.map(|term| counted.iter().map(|o| term.of(o)).collect()));
        let background = match self.background {
            Background::Known(busy) => busy,
            Background::Fitted => {
                columns.push(vec![1.0; counted.len()]);
                0.0
            }
        };
        let known = |o: &Observation| o.throughput.iter().zip(&self.known).map(|(x, k)| x * k).sum::<f64>();
        let busy: Vec<f64> = counted.iter().map(|o| o.busy - background - known(o)).collect();
        let fit = fit_non_negative(&columns, &busy, &weights(counted))?;
        let demand = |class: usize| {
            let unknown = fit.estimate(group_of(&self.groups, class));
            Estimate { value: self.known[class] + unknown.value, ..unknown }
        };
        Ok(DemandFit {
            demands: (0..self.known.len()).map(demand).collect(),
            background: match self.background {
                Background::Fitted => fit.estimate(columns.len() - 1),
                Background::Known(value) => Estimate { value, ci95_half_width: None },
            },
            condition_number: fit.condition_number,
            residual_stddev: fit.uncertainty.as_ref().map(|u| u.residual_stddev),
            degrees_of_freedom: counted.len() - columns.len(),
            merged: self.groups.iter().filter(|g| g.len() > 1).cloned().collect(),
            term: self.term.map(|_| fit.estimate(self.groups.len())),
            joint: fit.uncertainty.map(|u| self.joint(u)),
        })
    }

    fn joint(&self, uncertainty: Uncertainty) -> Joint {
        Joint {
            covariance: uncertainty.covariance * uncertainty.residual_stddev.powi(2),
            t95: uncertainty.t95,
            groups: self.groups.clone(),
            term: self.term.is_some(),
            background: self.background == Background::Fitted,
        }
    }
}

impl Joint {
    /// As in [`DemandFit::half_width`].
    pub fn half_width(&self, demands: &[f64], term: f64, background: f64) -> f64 {
        self.t95 * self.standard_error(demands, term, background)
    }

    /// As in [`DemandFit::standard_error`].
    pub fn standard_error(&self, demands: &[f64], term: f64, background: f64) -> f64 {
        let gradient = self.gradient(demands, term, background);
        (&self.covariance * &gradient).dot(&gradient).max(0.0).sqrt()
    }

    /// As in [`DemandFit::covariance`].
    pub fn covariance(&self, term: f64) -> Vec<Vec<f64>> {
        let classes: usize = self.groups.iter().map(Vec::len).sum();
        let alone = |class| (0..classes).map(|c| f64::from(u8::from(c == class))).collect::<Vec<_>>();
        let gradients: Vec<DVector<f64>> = (0..classes).map(|class| self.gradient(&alone(class), term, 0.0)).collect();
        let row = |a: &DVector<f64>| gradients.iter().map(|b| (&self.covariance * a).dot(b)).collect();
        gradients.iter().map(row).collect()
    }

    /// Of a sum, by the unknowns.
    fn gradient(&self, demands: &[f64], term: f64, background: f64) -> DVector<f64> {
        let of = |group: &Vec<usize>| group.iter().map(|class| demands[*class]).sum::<f64>();
        let mut gradient: Vec<f64> = self.groups.iter().map(of).collect();
        gradient.extend(self.term.then_some(term));
        gradient.extend(self.background.then_some(background));
        DVector::from_vec(gradient)
    }
}

fn group_of(groups: &[Vec<usize>], class: usize) -> usize {
    groups.iter().position(|g| g.contains(&class)).unwrap_or_default()
}

/// Throughput of each group at each observation.
fn columns(groups: &[Vec<usize>], counted: &[&Observation]) -> Vec<Vec<f64>> {
    let of = |group: &Vec<usize>| counted.iter().map(|o| group.iter().map(|c| o.throughput[*c]).sum()).collect();
    groups.iter().map(of).collect()
}

fn weights(counted: &[&Observation]) -> Vec<f64> {
    counted.iter().map(|o| o.weight).collect()
}
