//! Estimates two parameters that cannot be derived from utilizations: the variability of service times, and the delay
//! outside of the stations.
//!
//! At a first-come-first-served station, the mean response time is R = Z0 + D + W·(1 + scv)/2. Z0 is the delay outside
//! of the station, such as on the network. D is the service demand, which is known from the utilization. scv is the
//! squared coefficient of variation of service times. W is the mean wait at the same load with exponential service
//! times ([`exponential_wait`](brimful_model::exponential_wait)). R is linear in Z0 and scv, so mean response times at
//! several loads determine both, if W differs enough between these loads.

use crate::EstimateError;
use crate::least_squares::fit_non_negative;
use brimful_core::JsonSchema;
use brimful_core::number::check_non_negative;
use serde::Serialize;

/// Maximum relative standard error of the factor (1 + scv)/2, by which the mean wait depends on the squared coefficient
/// of variation (scv) of service times. Above it, exponential service times are assumed.
const MAX_STANDARD_ERROR: f64 = 0.25;

/// Minimum half width of the confidence interval of a mean response time, relative to the mean.
pub(crate) const MIN_HALF_WIDTH: f64 = 0.01;

/// Mean response time at one load, and the values of the model at this load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponsePoint {
    /// Mean wait at this load if service times are exponential, in seconds
    /// ([`exponential_wait`](brimful_model::exponential_wait)).
    pub exponential_wait: f64,
    /// Mean service demand at this load, in seconds.
    pub demand: f64,
    /// Measured mean response time, in seconds.
    pub response: f64,
    /// Weight, such as 1 divided by the variance of the mean response time. Only ratios of weights matter. A point of
    /// weight 0 is not used.
    pub weight: f64,
}

/// Delay outside of the stations and variability of service times, estimated from mean response times at several loads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ResponseFit {
    /// Delay of every request outside of the stations, such as on the network, in seconds.
    pub delay: f64,
    /// Squared coefficient of variation of the service times within each class.
    pub scv: f64,
    /// The method by which `scv` was determined.
    pub basis: ScvBasis,
    /// Standard error of `scv`, if it was measured or fitted.
    pub scv_standard_error: Option<f64>,
}

/// The method by which the squared coefficient of variation (scv) of service times was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScvBasis {
    /// Measured for each request by the Server Module, a plug-in of the web server.
    Measured,
    /// Fitted to mean response times at several loads.
    Fitted,
    /// Set to 1 (exponential service times), because response times were measured at fewer than three loads.
    TooFewPoints,
    /// Set to 1 (exponential service times), because the waiting times at the measured loads differ too little,
    /// compared with the noise, to distinguish variability from delay.
    Indistinct,
}

/// Fits the delay outside of the stations and the squared coefficient of variation (scv) of service times to at least
/// one point; both are at least 0. If the points do not determine both, scv is set to 1 and only the delay is fitted.
pub fn fit_response(points: &[ResponsePoint]) -> Result<ResponseFit, EstimateError> {
    check(points)?;
    let counted: Vec<&ResponsePoint> = points.iter().filter(|p| p.weight > 0.0).collect();
    if counted.len() < 3 {
        return exponential(&counted, ScvBasis::TooFewPoints);
    }
    let half_wait: Vec<f64> = counted.iter().map(|p| p.exponential_wait / 2.0).collect();
    let beyond: Vec<f64> = counted.iter().map(|p| p.response - p.demand - p.exponential_wait / 2.0).collect();
    let weights: Vec<f64> = counted.iter().map(|p| p.weight).collect();
    let fit = match fit_non_negative(&[vec![1.0; counted.len()], half_wait], &beyond, &weights) {
        Err(EstimateError::Indistinct { .. }) => return exponential(&counted, ScvBasis::Indistinct),
        other => other?,
    };
    let (delay, scv) = (fit.values[0], fit.values[1]);
    // The standard error uses the residuals of the unconstrained fit. If the measured waiting times are shorter than
    // with constant service times, the constrained fit sets scv to 0 and has large residuals. These do not make scv
    // uncertain.
    match fit.uncertainty.map(|u| u.noise_stddev * u.standard_error_ratio(1)) {
        Some(error) if error <= MAX_STANDARD_ERROR * (1.0 + scv) => {
            Ok(ResponseFit { delay, scv, basis: ScvBasis::Fitted, scv_standard_error: Some(error) })
        }
        _ => exponential(&counted, ScvBasis::Indistinct),
    }
}

/// Fits the delay outside of the stations for a known squared coefficient of variation (scv) of service times, which
/// has this standard error.
///
/// # Errors
/// If no point has a positive weight, or if a number is invalid.
pub fn fit_delay(points: &[ResponsePoint], scv: f64, standard_error: f64) -> Result<ResponseFit, EstimateError> {
    check(points)?;
    let counted: Vec<ResponsePoint> = points.iter().filter(|p| p.weight > 0.0).copied().collect();
    if counted.is_empty() {
        return Err(EstimateError::TooFewObservations { needed: 1, given: 0 });
    }
    let delay = delay(&counted, scv);
    Ok(ResponseFit { delay, scv, basis: ScvBasis::Measured, scv_standard_error: Some(standard_error) })
}

fn check(points: &[ResponsePoint]) -> Result<(), EstimateError> {
    for (i, p) in points.iter().enumerate() {
        check_non_negative(p.exponential_wait, || format!("the wait at point {i} (leave out saturated levels)"))?;
        check_non_negative(p.demand, || format!("the demand at point {i}"))?;
        check_non_negative(p.response, || format!("the response time at point {i}"))?;
        check_non_negative(p.weight, || format!("the weight of point {i}"))?;
    }
    Ok(())
}

/// The delay outside of the stations that fits best for a known squared coefficient of variation (scv) of service
/// times.
pub(crate) fn delay(points: &[ResponsePoint], scv: f64) -> f64 {
    let weight: f64 = points.iter().map(|p| p.weight).sum();
    let excess =
        |p: &ResponsePoint| p.weight / weight * (p.response - p.demand - p.exponential_wait * (1.0 + scv) / 2.0);
    points.iter().map(excess).sum::<f64>().max(0.0)
}

/// Fits the delay for exponential service times: the mean of response time − demand − wait.
fn exponential(points: &[&ResponsePoint], basis: ScvBasis) -> Result<ResponseFit, EstimateError> {
    if points.is_empty() {
        return Err(EstimateError::TooFewObservations { needed: 1, given: 0 });
    }
    let weight: f64 = points.iter().map(|p| p.weight).sum();
    let delay: f64 = points.iter().map(|p| p.weight / weight * (p.response - p.demand - p.exponential_wait)).sum();
    Ok(ResponseFit { delay: delay.max(0.0), scv: 1.0, basis, scv_standard_error: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_model::mmm_wait;

    const DEMAND: f64 = 0.002;

    /// Response times at 20, 40 and 60 % of the saturation rate of a station with two servers.
    fn points(delay: f64, scv: f64, noise: [f64; 3]) -> Vec<ResponsePoint> {
        let at = |(fraction, noise): (f64, f64)| {
            let exponential_wait = mmm_wait(fraction * 2.0 / DEMAND, DEMAND, 2, 0.0);
            let response = (delay + DEMAND + exponential_wait * (1.0 + scv) / 2.0) * (1.0 + noise);
            ResponsePoint { exponential_wait, demand: DEMAND, response, weight: 1.0 }
        };
        [0.2, 0.4, 0.6].into_iter().zip(noise).map(at).collect()
    }

    #[test]
    fn the_simulated_delay_and_variability_are_recovered() {
        for (delay, scv) in [(0.0, 0.0), (0.001, 0.0), (0.0003, 1.0), (0.0, 6.0)] {
            let fit = fit_response(&points(delay, scv, [0.0; 3])).unwrap();
            assert_eq!(fit.basis, ScvBasis::Fitted);
            assert!((fit.delay - delay).abs() < 1e-12 && (fit.scv - scv).abs() < 1e-8, "{fit:?}");
        }
    }

    #[test]
    fn with_a_known_variability_the_delay_is_fitted() {
        let fit = fit_delay(&points(0.0003, 0.4, [0.0; 3])[..1], 0.4, 0.01).unwrap();
        assert!((fit.delay - 0.0003).abs() < 1e-12, "one level determines the delay: {fit:?}");
        assert_eq!((fit.scv, fit.basis, fit.scv_standard_error), (0.4, ScvBasis::Measured, Some(0.01)));
        assert!(fit_delay(&[], 0.4, 0.01).is_err());
    }

    #[test]
    fn less_wait_than_deterministic_service_is_held_at_deterministic() {
        let mut points = points(0.001, 0.0, [0.0; 3]);
        points.iter_mut().for_each(|p| p.response -= 0.2 * p.exponential_wait);
        assert_eq!(fit_response(&points).unwrap().scv, 0.0);
    }

    #[test]
    fn noise_that_hides_the_wait_means_exponential_and_says_so() {
        let fit = fit_response(&points(0.01, 0.3, [0.02, -0.04, 0.02])).unwrap();
        assert_eq!((fit.scv, fit.basis, fit.scv_standard_error), (1.0, ScvBasis::Indistinct, None));
        assert!((fit.delay - 0.01).abs() < 0.0005, "{fit:?}");
    }

    #[test]
    fn equal_levels_and_too_few_points_mean_exponential() {
        let points = points(0.001, 3.0, [0.0; 3]);
        assert_eq!(fit_response(&[points[1]; 5]).unwrap().basis, ScvBasis::Indistinct);
        let fit = fit_response(&points[..2]).unwrap();
        assert_eq!((fit.scv, fit.basis), (1.0, ScvBasis::TooFewPoints));
        assert_eq!(fit_response(&[]), Err(EstimateError::TooFewObservations { needed: 1, given: 0 }));
    }

    #[test]
    fn a_saturated_level_is_rejected() {
        let mut points = points(0.0, 1.0, [0.0; 3]);
        points[2].exponential_wait = mmm_wait(2000.0, DEMAND, 2, 0.0);
        assert!(fit_response(&points).unwrap_err().to_string().contains("saturated"));
    }
}
