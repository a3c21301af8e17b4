//! CPU time of a request as a linear function of the response size: D = a + b·bytes.
//!
//! Menascé et al. (CMG 1999, §3.5.1, Fig. 5) could not measure the demand of an empty response and estimated it by the
//! intercept of such a line. Neither a nor b is negative: a coefficient that would be negative is set to zero
//! ([`SizeFit::held_at_zero`]). A point is an outlier if its externally studentized residual is significant at the 5 %
//! level after Bonferroni's correction for the number of points (Cook & Weisberg, *Residuals and Influence in
//! Regression*, 1982, §2.2.2). Outliers are reported, but still used in the fit.

use crate::EstimateError;
use crate::least_squares::{SIGNIFICANCE, fit_non_negative};
use brimful_core::JsonSchema;
use brimful_core::number::check_non_negative;
use brimful_model::Estimate;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Response size and CPU time of one request, or the means of several requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizePoint {
    /// Size of the response in bytes.
    pub bytes: f64,
    /// CPU time of one request, in seconds.
    pub cpu_s: f64,
}

/// The fitted line: CPU time of a request = a + b × bytes of the response.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeFit {
    /// a: CPU time of a request that does not depend on the response size, in seconds.
    pub per_request_s: Estimate,
    /// b: increase of the CPU time per byte of the response, in seconds.
    pub per_byte_s: Estimate,
    /// The coefficient that was set to zero because it would have been negative; `None` if no coefficient was set to
    /// zero.
    pub held_at_zero: Option<Held>,
    /// Coefficient of determination: the share of the variance that the line explains; 1 if there is no variance.
    pub r2: f64,
    /// Standard deviation of the residuals (two degrees of freedom fewer than points), in seconds.
    pub residual_stddev_s: f64,
    /// Points that differ significantly from the line, the most significant first.
    pub outliers: Vec<Outlier>,
}

/// The coefficient of the line that is set to zero because the fit would make it negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// The CPU time that does not depend on the response size.
    PerRequest,
    /// The CPU time per byte of the response.
    PerByte,
}

/// A point that differs significantly from the line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outlier {
    /// Index of the point in the input, from 0.
    pub point: usize,
    /// Externally studentized residual: the difference between the point and a line through the other points, divided
    /// by its standard error.
    pub studentized_residual: f64,
    /// Probability that the largest of all residuals is at least this large by chance (Bonferroni's correction for the
    /// number of points).
    pub p: f64,
}

impl SizeFit {
    /// CPU time of a request with a response of this size, in seconds.
    pub fn demand(&self, bytes: f64) -> f64 {
        self.per_request_s.value + self.per_byte_s.value * bytes
    }
}

/// Fits a line to at least three points with at least two different response sizes.
pub fn fit_size(points: &[SizePoint]) -> Result<SizeFit, EstimateError> {
    for (i, point) in points.iter().enumerate() {
        check_non_negative(point.bytes, || format!("the size of point {i}"))?;
        check_non_negative(point.cpu_s, || format!("the CPU time of point {i}"))?;
    }
    if points.len() < 3 {
        return Err(EstimateError::TooFewObservations { needed: 3, given: points.len() });
    }
    let bytes: Vec<f64> = points.iter().map(|p| p.bytes).collect();
    let cpu_s: Vec<f64> = points.iter().map(|p| p.cpu_s).collect();
    let n = points.len();
    if bytes.iter().all(|b| *b == bytes[0]) {
        return Err(EstimateError::Indistinct { condition_number: f64::INFINITY });
    }
    let fit = fit_non_negative(&[vec![1.0; n], bytes.clone()], &cpu_s, &vec![1.0; n])?;
    let a = fit.values[0];
    let b = fit.values[1];
    let residuals: Vec<f64> = points.iter().map(|p| p.cpu_s - a - b * p.bytes).collect();
    let mean = cpu_s.iter().sum::<f64>() / n as f64;
    let squares = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>();
    let total = squares(&mut cpu_s.iter().map(|y| y - mean));
    let left = squares(&mut residuals.iter().copied());
    Ok(SizeFit {
        per_request_s: fit.estimate(0),
        per_byte_s: fit.estimate(1),
        held_at_zero: match (a > 0.0, b > 0.0) {
            (false, true) => Some(Held::PerRequest),
            (true, false) => Some(Held::PerByte),
            _ => None,
        },
        r2: if total > 0.0 { 1.0 - left / total } else { 1.0 },
        residual_stddev_s: fit.uncertainty.map_or(0.0, |u| u.residual_stddev),
        outliers: outliers(&bytes, &residuals),
    })
}

/// Finds outliers among at least four points. With three points, a line through the two other points has no residuals,
/// so the expected error is unknown.
fn outliers(bytes: &[f64], residuals: &[f64]) -> Vec<Outlier> {
    let n = bytes.len() as f64;
    let Ok(t) = StudentsT::new(0.0, 1.0, n - 3.0) else { return Vec::new() };
    let mean = bytes.iter().sum::<f64>() / n;
    let spread: f64 = bytes.iter().map(|b| (b - mean).powi(2)).sum();
    let left: f64 = residuals.iter().map(|r| r * r).sum();
    // Lower bound of the residual variance of the other points, which may be 0 except for rounding errors.
    let floor = f64::EPSILON * left;
    let judged = bytes.iter().zip(residuals).enumerate().filter_map(|(point, (b, residual))| {
        let one_minus_leverage = 1.0 - 1.0 / n - (b - mean).powi(2) / spread;
        if one_minus_leverage <= 1e-9 {
            return None; // The only point of its size: the line always goes through it.
        }
        let others = ((left - residual * residual / one_minus_leverage) / (n - 3.0)).max(floor);
        let studentized_residual = residual / (others * one_minus_leverage).sqrt();
        let p = (2.0 * n * t.sf(studentized_residual.abs())).min(1.0);
        (p < SIGNIFICANCE).then_some(Outlier { point, studentized_residual, p })
    });
    let mut outliers: Vec<Outlier> = judged.collect();
    outliers.sort_by(|a, b| b.studentized_residual.abs().total_cmp(&a.studentized_residual.abs()));
    outliers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten responses of 1 to 10 MB. The CPU time of a request is 2 ms, plus 8 ns per byte, plus noise.
    fn points(noise: [f64; 10]) -> Vec<SizePoint> {
        let point = |(i, noise)| {
            let bytes = (i + 1) as f64 * 1e6;
            SizePoint { bytes, cpu_s: 0.002 + 8e-9 * bytes + noise }
        };
        noise.into_iter().enumerate().map(point).collect()
    }

    const NOISE: [f64; 10] = [3e-4, -2e-4, 1e-4, -4e-4, 2e-4, 1e-4, -1e-4, 3e-4, -3e-4, 0.0];

    #[test]
    fn a_line_without_noise_is_recovered() {
        let fit = fit_size(&points([0.0; 10])).unwrap();
        assert!((fit.per_request_s.value - 0.002).abs() < 1e-14 && (fit.per_byte_s.value - 8e-9).abs() < 1e-20);
        assert!((fit.demand(5e5) - 0.006).abs() < 1e-14 && fit.r2 > 1.0 - 1e-12);
        assert_eq!((fit.held_at_zero, fit.outliers.len()), (None, 0), "{fit:?}");
    }

    #[test]
    fn noise_yields_intervals_and_one_bad_point_is_reported() {
        let fit = fit_size(&points(NOISE)).unwrap();
        let half_width = fit.per_request_s.ci95_half_width.unwrap();
        assert!((fit.per_request_s.value - 0.002).abs() < half_width && half_width < 5e-4, "{fit:?}");
        assert!(fit.outliers.is_empty() && fit.r2 > 0.999);
        let mut bad = points(NOISE);
        bad[6].cpu_s += 0.004;
        let fit = fit_size(&bad).unwrap();
        assert_eq!(fit.outliers.iter().map(|o| o.point).collect::<Vec<_>>(), [6]);
        assert!(fit.outliers[0].studentized_residual > 5.0 && fit.outliers[0].p < 0.001);
    }

    #[test]
    fn a_negative_intercept_is_held_at_zero() {
        let points: Vec<SizePoint> =
            points([0.0; 10]).into_iter().map(|p| SizePoint { cpu_s: p.cpu_s - 0.004, ..p }).collect();
        let fit = fit_size(&points).unwrap();
        assert_eq!((fit.per_request_s.value, fit.held_at_zero), (0.0, Some(Held::PerRequest)));
        let falling = [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)].map(|(bytes, cpu_s)| SizePoint { bytes, cpu_s });
        let fit = fit_size(&falling).unwrap();
        assert_eq!((fit.per_request_s.value.round(), fit.held_at_zero), (2.0, Some(Held::PerByte)));
    }

    #[test]
    fn points_without_a_line_are_rejected() {
        let point = SizePoint { bytes: 10.0, cpu_s: 0.1 };
        assert!(matches!(fit_size(&[point; 5]), Err(EstimateError::Indistinct { .. })));
        assert!(matches!(fit_size(&[point; 2]), Err(EstimateError::TooFewObservations { needed: 3, given: 2 })));
        let nan = SizePoint { cpu_s: f64::NAN, ..point };
        assert!(fit_size(&[point, point, nan]).unwrap_err().to_string().contains("CPU time of point 2"));
    }
}
