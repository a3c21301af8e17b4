//! Fits Gunther's universal scalability law (USL), X(N) = γN/(1 + α(N − 1) + βN(N − 1)), to measured throughputs.
//!
//! Source: Gunther, *Guerrilla Capacity Planning*, 2007, ch. 4–6. N is the number of concurrent clients, and X the
//! throughput. γ is the throughput at N = 1, α the coefficient of contention (serialized work), and β the coefficient
//! of coherency (work to keep shared data consistent). The fit is by nonlinear least squares. N/X is linear in 1/γ, α/γ
//! and β/γ, so linear least squares yields the starting point of Gauss–Newton steps. Each step is computed by
//! non-negative least squares, and halved until it improves the fit. Intervals are asymptotic, by the delta method,
//! with Student's t.
//!
//! Three parameters fit most curves, so the law serves only as a check of a queueing model's saturation rate. The
//! throughput has a maximum only if β > 0. A maximum beyond the measured loads is an extrapolation; [`Peak::basis`]
//! states whether it is.

use crate::EstimateError;
use crate::least_squares::{Uncertainty, fit_non_negative};
use brimful_core::JsonSchema;
use brimful_core::number::{check_non_negative, check_positive};
use brimful_model::Estimate;
use serde::Serialize;

/// Maximum number of Gauss–Newton steps of the fit. It usually converges in about 20 steps.
const MAX_STEPS: usize = 300;

/// The measured throughput at one load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadPoint {
    /// Number of concurrent clients, threads or processors; at least 1.
    pub load: f64,
    /// Measured throughput, in requests per second.
    pub throughput: f64,
}

/// A fitted universal scalability law, X(N) = γN/(1 + α(N − 1) + βN(N − 1)): the throughput X at the load N.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UslFit {
    /// α: the coefficient of contention, which is the share of work that is serialized.
    pub alpha: Estimate,
    /// β: the coefficient of coherency, which is the work to keep shared data consistent.
    pub beta: Estimate,
    /// γ: throughput at load 1, in requests per second.
    pub gamma: Estimate,
    /// Coefficient of determination R²: the share of the variance of the throughputs that the law explains.
    pub r2: f64,
    /// The maximum of the fitted throughput. `None` if the throughput grows without limit (β = 0) or falls from the
    /// start (α ≥ 1).
    pub peak: Option<Peak>,
}

/// The maximum throughput of a fitted universal scalability law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Peak {
    /// The load at the maximum throughput: √((1 − α)/β).
    pub load: Estimate,
    /// The maximum throughput, in requests per second.
    pub throughput: Estimate,
    /// Whether the maximum was measured or extrapolated.
    pub basis: PeakBasis,
}

/// Whether the maximum throughput of a fitted law was measured, extrapolated, or may not exist at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeakBasis {
    /// The maximum is within the measured loads, and the coefficient β of coherency is significantly greater than 0.
    Measured,
    /// The maximum is beyond the highest measured load, and the coefficient β of coherency is significantly greater
    /// than 0.
    Extrapolated,
    /// The coefficient β of coherency is not significantly greater than 0, or there are too few points to test it.
    Doubtful,
}

impl UslFit {
    /// The fitted throughput at this load, in requests per second.
    pub fn throughput(&self, load: f64) -> f64 {
        let slowdown = 1.0 + self.alpha.value * (load - 1.0) + self.beta.value * load * (load - 1.0);
        self.gamma.value * load / slowdown
    }
}

/// Fits the universal scalability law to at least three different loads. Confidence intervals require at least four.
pub fn fit_usl(points: &[LoadPoint]) -> Result<UslFit, EstimateError> {
    for (i, p) in points.iter().enumerate() {
        check_non_negative(p.load - 1.0, || format!("the load of point {i}, less 1,"))?;
        check_positive(p.throughput, || format!("the throughput of point {i}"))?;
    }
    if points.len() < 3 {
        return Err(EstimateError::TooFewObservations { needed: 3, given: points.len() });
    }
    let (c, uncertainty) = gauss_newton(points, start(points)?)?;
    let [c0, c1, c2] = c;
    if c0 <= 0.0 {
        return Err(EstimateError::Indistinct { condition_number: f64::INFINITY });
    }
    let half_width = |gradient: [f64; 3]| uncertainty.as_ref().map(|u| spread_along(u, gradient));
    let estimate = |value, gradient| Estimate { value, ci95_half_width: half_width(gradient) };
    let mean = points.iter().map(|p| p.throughput).sum::<f64>() / points.len() as f64;
    let total: f64 = points.iter().map(|p| (p.throughput - mean).powi(2)).sum();
    let beta = estimate(c2 / c0, [-c2 / (c0 * c0), 0.0, 1.0 / c0]);
    let highest = points.iter().map(|p| p.load).fold(1.0, f64::max);
    let peak = (c2 > 0.0 && c1 < c0).then(|| {
        let load = ((c0 - c1) / c2).sqrt();
        let throughput = load / residence(c, load);
        let by = -throughput * throughput / load;
        let basis = match beta.ci95_half_width {
            Some(half_width) if half_width < beta.value && load <= highest => PeakBasis::Measured,
            Some(half_width) if half_width < beta.value => PeakBasis::Extrapolated,
            _ => PeakBasis::Doubtful,
        };
        Peak {
            load: estimate(load, [0.5 / (load * c2), -0.5 / (load * c2), -0.5 * load / c2]),
            throughput: estimate(throughput, [by, by * (load - 1.0), by * load * (load - 1.0)]),
            basis,
        }
    });
    Ok(UslFit {
        alpha: estimate(c1 / c0, [-c1 / (c0 * c0), 1.0 / c0, 0.0]),
        beta,
        gamma: estimate(1.0 / c0, [-1.0 / (c0 * c0), 0.0, 0.0]),
        r2: if total > 0.0 { 1.0 - residual_sum(points, c) / total } else { 1.0 },
        peak,
    })
}

/// The load divided by the throughput, N/X, in seconds. It is linear in the coefficients c = (1/γ, α/γ, β/γ).
fn residence(c: [f64; 3], load: f64) -> f64 {
    c[0] + c[1] * (load - 1.0) + c[2] * load * (load - 1.0)
}

/// Sum of the squared differences between measured and fitted throughputs.
fn residual_sum(points: &[LoadPoint], c: [f64; 3]) -> f64 {
    points.iter().map(|p| (p.throughput - p.load / residence(c, p.load)).powi(2)).sum()
}

/// The starting point of the fit: the coefficients c of N/X by linear least squares. The weights are chosen so that
/// errors of the throughput X, and not of N/X, have equal weight.
fn start(points: &[LoadPoint]) -> Result<[f64; 3], EstimateError> {
    let linear: Vec<f64> = points.iter().map(|p| p.load / p.throughput).collect();
    let weights: Vec<f64> = points.iter().map(|p| (p.throughput * p.throughput / p.load).powi(2)).collect();
    let columns = [0, 1, 2].map(|j| points.iter().map(|p| column(j, p.load)).collect());
    let fit = fit_non_negative(&columns, &linear, &weights)?;
    let mut c = [fit.values[0], fit.values[1], fit.values[2]];
    if c[0] == 0.0 {
        // If 1/γ is 0, start with a small positive value, because the law is undefined at 0.
        c[0] = 0.01 * linear.iter().copied().fold(f64::INFINITY, f64::min);
    }
    Ok(c)
}

fn column(j: usize, load: f64) -> f64 {
    [1.0, load - 1.0, load * (load - 1.0)][j]
}

/// Computes the least-squares solution by Gauss–Newton steps from the starting point `c`, and its uncertainty.
fn gauss_newton(points: &[LoadPoint], mut c: [f64; 3]) -> Result<([f64; 3], Option<Uncertainty>), EstimateError> {
    let even = vec![1.0; points.len()];
    for turn in 1.. {
        // Linearize at c: X(c + step) ≈ X(c) − N/q²·(columns·step), where q is N/X. Solve for c + step, which must not
        // be negative.
        let sensitivity = |p: &LoadPoint| p.load / residence(c, p.load).powi(2);
        let columns = [0, 1, 2].map(|j| points.iter().map(|p| sensitivity(p) * column(j, p.load)).collect());
        let over = |p: &LoadPoint| p.load / residence(c, p.load) - p.throughput;
        let y: Vec<f64> = points.iter().map(|p| over(p) + sensitivity(p) * residence(c, p.load)).collect();
        let fit = fit_non_negative(&columns, &y, &even)?;
        let now = residual_sum(points, c);
        let towards = |share: f64| [0, 1, 2].map(|j| c[j] + share * (fit.values[j] - c[j]));
        let better =
            (0..40).map(|k| towards(0.5f64.powi(k))).find(|next| next[0] > 0.0 && residual_sum(points, *next) < now);
        let moved = |next: &[f64; 3]| (0..3).any(|j| (next[j] - c[j]).abs() > 1e-14 * c[j].abs());
        match better.filter(moved) {
            Some(next) if turn < MAX_STEPS => c = next,
            _ => return Ok((c, fit.uncertainty)),
        }
    }
    Err(EstimateError::Indistinct { condition_number: f64::INFINITY })
}

/// Half width of the 95 % confidence interval of a function of the coefficients c, which has this gradient (delta
/// method).
fn spread_along(u: &Uncertainty, gradient: [f64; 3]) -> f64 {
    let pairs = (0..3).flat_map(|i| (0..3).map(move |j| (i, j)));
    let variance: f64 = pairs.map(|(i, j)| gradient[i] * gradient[j] * u.covariance[(i, j)]).sum();
    u.t95 * u.residual_stddev * variance.max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(alpha: f64, beta: f64, loads: &[f64]) -> Vec<LoadPoint> {
        let x = |n: f64| 50.0 * n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0));
        loads.iter().map(|n| LoadPoint { load: *n, throughput: x(*n) }).collect()
    }

    const LOADS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

    #[test]
    fn a_law_without_noise_is_recovered() {
        for (alpha, beta, basis) in [(0.03, 0.001, PeakBasis::Measured), (0.0, 1e-5, PeakBasis::Extrapolated)] {
            let fit = fit_usl(&law(alpha, beta, &LOADS)).unwrap();
            assert!((fit.alpha.value - alpha).abs() < 1e-9 && (fit.beta.value - beta).abs() < 1e-11, "{fit:?}");
            assert!((fit.gamma.value - 50.0).abs() < 1e-7 && fit.r2 > 1.0 - 1e-12);
            let peak = fit.peak.unwrap();
            assert!((peak.load.value / ((1.0 - alpha) / beta).sqrt() - 1.0).abs() < 1e-6, "{peak:?}");
            assert!((peak.throughput.value - fit.throughput(peak.load.value)).abs() < 1e-6);
            assert_eq!(peak.basis, basis);
        }
    }

    #[test]
    fn without_coherency_there_is_no_peak() {
        let fit = fit_usl(&law(0.1, 0.0, &LOADS)).unwrap();
        assert!(fit.beta.value < 1e-12 && fit.peak.is_none_or(|p| p.basis != PeakBasis::Measured), "{fit:?}");
        // The throughput grows faster than the load. An unconstrained fit would have negative α and β; this fit sets
        // them to 0.
        let better = LOADS.map(|n| LoadPoint { load: n, throughput: n * (1.0 + 0.002 * n) });
        let fit = fit_usl(&better).unwrap();
        assert_eq!((fit.alpha.value, fit.beta.value, fit.peak), (0.0, 0.0, None));
    }

    #[test]
    fn noise_leaves_the_truth_within_the_intervals() {
        let mut points = law(0.03, 0.001, &LOADS);
        for (p, e) in points.iter_mut().zip([0.01, -0.02, 0.015, -0.005, 0.01, -0.01, 0.005]) {
            p.throughput *= 1.0 + e;
        }
        let fit = fit_usl(&points).unwrap();
        let peak = fit.peak.unwrap();
        for (estimate, truth) in [(fit.alpha, 0.03), (fit.beta, 0.001), (fit.gamma, 50.0), (peak.load, 970f64.sqrt())] {
            let half_width = estimate.ci95_half_width.unwrap();
            assert!((estimate.value - truth).abs() < half_width && half_width < truth, "{estimate:?} {truth}");
        }
        let exact = fit_usl(&points[..3]).unwrap();
        assert!(exact.alpha.ci95_half_width.is_none() && exact.peak.is_none_or(|p| p.basis == PeakBasis::Doubtful));
    }

    #[test]
    fn what_no_law_can_be_fitted_to_is_refused() {
        let points = law(0.03, 0.001, &LOADS);
        assert_eq!(fit_usl(&points[..2]), Err(EstimateError::TooFewObservations { needed: 3, given: 2 }));
        assert!(matches!(fit_usl(&[points[3]; 5]), Err(EstimateError::Indistinct { .. })));
        let bad = |load, throughput| fit_usl(&[points[0], points[1], LoadPoint { load, throughput }]).unwrap_err();
        assert!(bad(0.5, 1.0).to_string().contains("load of point 2"));
        assert!(bad(4.0, f64::NAN).to_string().contains("throughput of point 2"));
        assert!(bad(f64::INFINITY, 1.0).to_string().contains("load"));
    }
}
