//! Weighted least squares with non-negative unknowns, and their confidence intervals.
//!
//! The intervals are two-sided and use the 97.5 % quantile of Student's t. The degrees of freedom are the number of
//! observations minus the number of unknowns. If the fit would make an unknown negative, the unknown is set to zero.
//! This does not make the intervals narrower: the covariance is from the unconstrained fit, and the residuals are from
//! the constrained fit. Sources: Lawson & Hanson, *Solving Least Squares Problems* (1974), ch. 23; Belsley, Kuh &
//! Welsch, *Regression Diagnostics* (1980), ch. 3.

use crate::EstimateError;
use brimful_model::Estimate;
use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Maximum condition number of a least-squares fit. Above it, the unknowns cannot be determined.
const SINGULAR: f64 = 1e6;

/// Significance level of all tests in this crate: the probability of a false positive.
pub(crate) const SIGNIFICANCE: f64 = 0.05;

/// Ratio of the half width of a 95 % confidence interval to the standard error: the 97.5 % quantile of Student's t.
pub(crate) fn t95(degrees_of_freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

/// The result of a least-squares fit with non-negative unknowns.
#[derive(Debug)]
pub(crate) struct Fit {
    /// The fitted unknowns, one for each column of the design matrix.
    pub values: Vec<f64>,
    /// The uncertainty of the unknowns; `None` if there are only as many observations as unknowns.
    pub uncertainty: Option<Uncertainty>,
    /// Condition number of the design matrix, whose columns are scaled to unit length.
    pub condition_number: f64,
}

/// The uncertainty of fitted unknowns.
#[derive(Debug)]
pub(crate) struct Uncertainty {
    /// Standard deviation of the residuals of the fit with non-negative unknowns, for an observation of mean weight.
    pub residual_stddev: f64,
    /// Standard deviation of the residuals of a fit whose unknowns may be negative, for an observation of mean weight.
    pub noise_stddev: f64,
    /// Covariance matrix of the unknowns, divided by the variance of an observation of mean weight.
    pub covariance: DMatrix<f64>,
    /// Ratio of the half width of a 95 % confidence interval to the standard error: the 97.5 % quantile of Student's t.
    pub t95: f64,
}

impl Uncertainty {
    /// Standard error of the unknown with this index, divided by the standard deviation of an observation of mean
    /// weight.
    pub fn standard_error_ratio(&self, column: usize) -> f64 {
        self.covariance[(column, column)].sqrt()
    }
}

impl Fit {
    /// The fitted unknown of this column, with the half width of its 95 % confidence interval.
    pub fn estimate(&self, column: usize) -> Estimate {
        let ci95_half_width =
            self.uncertainty.as_ref().map(|u| u.t95 * u.residual_stddev * u.standard_error_ratio(column));
        Estimate { value: self.values[column], ci95_half_width }
    }
}

/// Minimizes Σ w·(y − Σ x_j·column_j)², with a weight w for each observation, over x ≥ 0. The weights must be positive;
/// only their ratios matter.
pub(crate) fn fit_non_negative(columns: &[Vec<f64>], y: &[f64], weights: &[f64]) -> Result<Fit, EstimateError> {
    let (n, p) = (y.len(), columns.len());
    if n < p {
        return Err(EstimateError::TooFewObservations { needed: p, given: n });
    }
    let design = Design::new(columns, weights)?;
    if design.condition_number > SINGULAR {
        return Err(EstimateError::Indistinct { condition_number: design.condition_number });
    }
    let y = DVector::from_iterator(n, y.iter().zip(&design.root_weights).map(|(y, w)| y * w));
    // The matrix is expressed in the basis of the singular vectors. It is then p × p for any number of observations.
    let reduced = DMatrix::from_diagonal(&design.singular_values) * design.v.transpose();
    let reached = design.u.tr_mul(&y);
    let x = nnls(&reduced, &reached).ok_or(EstimateError::Indistinct { condition_number: design.condition_number })?;
    let uncertainty = (n > p).then(|| {
        let stddev = |left: DVector<f64>| (left.norm_squared() / (n - p) as f64).sqrt();
        let root = DMatrix::from_fn(p, p, |j, k| design.v[(j, k)] / (design.singular_values[k] * design.norms[j]));
        Uncertainty {
            residual_stddev: stddev(&y - &design.u * (reduced * &x)),
            noise_stddev: stddev(&y - &design.u * reached),
            covariance: &root * root.transpose(),
            t95: t95(n - p),
        }
    });
    let values = (0..p).map(|j| x[j] / design.norms[j]).collect();
    Ok(Fit { values, uncertainty, condition_number: design.condition_number })
}

/// The design matrix of a weighted regression with columns scaled to unit length, and its singular value decomposition.
pub(crate) struct Design {
    root_weights: Vec<f64>,
    norms: Vec<f64>,
    u: DMatrix<f64>,
    /// The singular values, in descending order.
    pub singular_values: DVector<f64>,
    /// The right singular vectors, as columns.
    pub v: DMatrix<f64>,
    /// Ratio of the largest to the smallest singular value.
    pub condition_number: f64,
}

impl Design {
    /// Scales and decomposes the columns of a design matrix. There must be at least as many observations as columns,
    /// and no column may be zero.
    pub fn new(columns: &[Vec<f64>], weights: &[f64]) -> Result<Design, EstimateError> {
        let indistinct = EstimateError::Indistinct { condition_number: f64::INFINITY };
        let mean_weight = weights.iter().sum::<f64>() / weights.len() as f64;
        let root_weights: Vec<f64> = weights.iter().map(|w| (w / mean_weight).sqrt()).collect();
        let mut a = DMatrix::from_fn(weights.len(), columns.len(), |i, j| columns[j][i] * root_weights[i]);
        let norms: Vec<f64> = a.column_iter().map(|c| c.norm()).collect();
        if norms.iter().any(|n| !n.is_normal()) {
            return Err(indistinct);
        }
        for (mut column, norm) in a.column_iter_mut().zip(&norms) {
            column /= *norm;
        }
        let svd = a.try_svd(true, true, f64::EPSILON, 1000).ok_or(indistinct.clone())?;
        let (Some(u), Some(v_t)) = (svd.u, svd.v_t) else {
            return Err(indistinct);
        };
        let singular_values = svd.singular_values;
        let condition_number =
            if singular_values.min() > 0.0 { singular_values.max() / singular_values.min() } else { f64::INFINITY };
        Ok(Design { root_weights, norms, u, singular_values, v: v_t.transpose(), condition_number })
    }
}

/// Lawson and Hanson's active set method for non-negative least squares (NNLS). All unknowns are first fixed at zero.
/// The method frees one unknown after the other, each time the one with the steepest descent. An unknown that becomes
/// negative is set to zero again. Returns `None` if a decomposition does not converge.
fn nnls(a: &DMatrix<f64>, y: &DVector<f64>) -> Option<DVector<f64>> {
    let p = a.ncols();
    let mut x = DVector::zeros(p);
    let mut free: Vec<usize> = Vec::new();
    let tolerance = 1e-13 * y.norm();
    // Each iteration reduces the sum of squares, so the loop ends. The limit on iterations is a safeguard against
    // rounding errors.
    for _ in 0..3 * p {
        let descent = a.tr_mul(&(y - a * &x));
        let held = (0..p).filter(|j| !free.contains(j) && descent[*j] > tolerance);
        let Some(steepest) = held.max_by(|i, j| descent[*i].total_cmp(&descent[*j])) else {
            break;
        };
        free.push(steepest);
        loop {
            let svd = a.select_columns(&free).try_svd(true, true, f64::EPSILON, 1000)?;
            let z = svd.solve(y, f64::EPSILON).ok()?;
            // x moves from its old value towards the least-squares solution `z`. This function returns the share of the
            // distance after which an unknown reaches zero; 0 for an unknown that was just freed.
            let reach = |k: usize| match x[free[k]] {
                from if from > 0.0 => from / (from - z[k]),
                _ => 0.0,
            };
            let crossing =
                (0..free.len()).filter(|k| z[*k] <= 0.0).map(|k| (reach(k), k)).min_by(|i, j| i.0.total_cmp(&j.0));
            let (step, first) = crossing.map_or((1.0, None), |(step, k)| (step, Some(k)));
            for (k, j) in free.iter().enumerate() {
                x[*j] += step * (z[k] - x[*j]);
            }
            let Some(first) = first else { break };
            x[free.remove(first)] = 0.0;
            if free.is_empty() {
                break;
            }
        }
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t() {
        assert!((t95(1) - 12.7062).abs() < 1e-4);
        assert!((t95(10) - 2.22814).abs() < 1e-5);
    }

    #[test]
    fn a_negative_unknown_is_held_at_zero_and_the_rest_refitted() {
        // The unconstrained fit is y = 4 − 1·x. With a non-negative slope, the fit is the mean, y = 2.5.
        let columns = [vec![1.0; 4], vec![0.0, 1.0, 2.0, 3.0]];
        let fit = fit_non_negative(&columns, &[4.0, 3.0, 2.0, 1.0], &[1.0; 4]).unwrap();
        assert!((fit.values[0] - 2.5).abs() < 1e-12, "{fit:?}");
        assert_eq!(fit.values[1], 0.0);
    }

    #[test]
    fn errors_are_those_of_a_line() {
        // The expected values were computed by hand: n = 5, mean of x 3.8, Sxx = 30.8, Sxy = 30.2, residual sum of
        // squares 0.24831.
        let (x, y) = ([1.0, 2.0, 3.0, 5.0, 8.0], [1.1, 2.3, 2.8, 5.4, 7.9]);
        let fit = fit_non_negative(&[vec![1.0; 5], x.to_vec()], &y, &[7.0; 5]).unwrap();
        let u = fit.uncertainty.unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        close(fit.values[0], 0.1740260);
        close(fit.values[1], 0.9805195);
        close(u.residual_stddev, 0.2876987);
        close(u.residual_stddev * u.standard_error_ratio(0), 0.2352861);
        close(u.residual_stddev * u.standard_error_ratio(1), 0.0518397);
    }

    #[test]
    fn a_weight_of_two_is_an_observation_made_twice() {
        let twice = fit_non_negative(&[vec![1.0, 2.0, 2.0, 3.0]], &[1.0, 3.0, 3.0, 4.0], &[1.0; 4]).unwrap();
        let weighted = fit_non_negative(&[vec![1.0, 2.0, 3.0]], &[1.0, 3.0, 4.0], &[1.0, 2.0, 1.0]).unwrap();
        assert!((twice.values[0] - weighted.values[0]).abs() < 1e-14);
    }
}
