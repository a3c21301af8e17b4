//! M/G/1, first come first served: Poisson arrivals, one server, service times of any distribution.
//!
//! Pollaczek (1930) and Khinchine (1932): the mean wait is λ·S²·(1 + scv)/(2·(1 − ρ)), where λ is the arrival rate, S
//! the mean service time and ρ = λ·S. This is exact for ρ < 1.

use crate::ModelError;
use crate::error::stable_utilization;
use brimful_core::number::{check_non_negative, check_positive};
use serde::Serialize;

/// A solved M/G/1 queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mg1 {
    /// U: utilization of the server.
    pub utilization: f64,
    /// Mean waiting time, in seconds.
    pub wait: f64,
    /// R: mean time from arrival to the end of service, in seconds.
    pub response_time: f64,
    /// Mean number of requests that wait for service.
    pub waiting: f64,
    /// N: mean number of requests present, waiting or in service.
    pub number: f64,
}

/// Solves the queue for `arrival_rate` requests per second, a mean service time in seconds, and the squared coefficient
/// of variation of the service time.
pub fn mg1(arrival_rate: f64, mean_service: f64, scv: f64) -> Result<Mg1, ModelError> {
    let rate = check_non_negative(arrival_rate, || "the arrival rate".into())?;
    let service = check_positive(mean_service, || "the mean service time".into())?;
    let scv = check_non_negative(scv, || "the squared coefficient of variation".into())?;
    let utilization = stable_utilization(rate, service)?;
    let wait = utilization * service * (1.0 + scv) / (2.0 * (1.0 - utilization));
    let response_time = wait + service;
    Ok(Mg1 { utilization, wait, response_time, waiting: rate * wait, number: rate * response_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deterministic_service_halves_the_wait_of_exponential() {
        let (d, m) = (mg1(8.0, 0.1, 0.0).unwrap(), mg1(8.0, 0.1, 1.0).unwrap());
        assert!((m.wait - 0.4).abs() < 1e-12 && (d.wait - 0.2).abs() < 1e-12);
        assert!((m.number - 4.0).abs() < 1e-12, "ρ/(1 − ρ)");
    }

    #[test]
    fn an_overloaded_server_is_an_error_with_its_limit() {
        let error = mg1(12.0, 0.1, 1.0).unwrap_err();
        assert!(
            matches!(&error, ModelError::Unstable { saturation_rate, .. } if (*saturation_rate - 10.0).abs() < 1e-12)
        );
        assert!(mg1(1.0, 0.0, 1.0).is_err() && mg1(f64::NAN, 1.0, 1.0).is_err() && mg1(0.1, 1.0, -1.0).is_err());
    }
}
