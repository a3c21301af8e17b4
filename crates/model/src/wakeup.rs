//! A demand that depends on load: an idle server pays a wake-up per request, a busy one finds the next already there.
//!
//! A request that arrives when its server is idle, with probability 1 − U, costs W more than the D∞ it costs a busy one:
//! busy = b₀ + λ·D∞ + λ·W·(1 − U), in busy servers, with U = busy/m. Linear in D∞ and W, so both come by least squares.
//! A constant demand fitted at low load would put saturation too low; here it is (m − b₀)/D∞. An extra that does not
//! shrink with 1 − U is no wake-up but a background that comes with load: fit that as an intercept, with
//! [`crate::fit_demands`] and [`crate::Background::Fitted`].

use crate::ModelError;
use crate::error::non_negative;
use crate::least_squares::{Estimate, fit_non_negative};
use serde::Serialize;

/// One load level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WakeupPoint {
    /// λ: requests per second.
    pub throughput: f64,
    /// Mean number of busy servers, background included.
    pub busy: f64,
    /// U: share of the servers' time that was busy, 0..1.
    pub utilization: f64,
    /// How much it counts. Only ratios matter; 0 leaves it out.
    pub weight: f64,
}

/// What a request costs a busy and an idle server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WakeupFit {
    /// D∞: the demand of a request at a busy server, in seconds.
    pub demand: Estimate,
    /// W: what a request costs more at an idle server, in seconds; 0 and without interval unless `significant`.
    pub wakeup: Estimate,
    /// Whether the points show a wake-up at all: the 95 % interval of W excludes 0.
    pub significant: bool,
    /// b₀: busy servers without requests.
    pub background: f64,
}

/// Fits D∞ ≥ 0 and W ≥ 0; one point gives D∞ alone, three can show a W. `background` in busy servers, as measured idle.
pub fn fit_wakeup(points: &[WakeupPoint], background: f64) -> Result<WakeupFit, ModelError> {
    non_negative(background, || "the background".into())?;
    for (i, p) in points.iter().enumerate() {
        non_negative(p.throughput, || format!("the throughput of point {i}"))?;
        non_negative(p.busy, || format!("the busy servers of point {i}"))?;
        non_negative(p.utilization, || format!("the utilization of point {i}"))?;
        non_negative(p.weight, || format!("the weight of point {i}"))?;
    }
    let counted: Vec<&WakeupPoint> = points.iter().filter(|p| p.weight > 0.0).collect();
    if !counted.is_empty() && counted.iter().all(|p| p.throughput == 0.0) {
        return Err(ModelError::Unobserved { class: 0 });
    }
    let busy: Vec<f64> = counted.iter().map(|p| p.busy - background).collect();
    let weights: Vec<f64> = counted.iter().map(|p| p.weight).collect();
    let rate: Vec<f64> = counted.iter().map(|p| p.throughput).collect();
    // A utilization measured a little above 1 leaves no idle server, not a negative number of them.
    let woken: Vec<f64> = counted.iter().map(|p| p.throughput * (1.0 - p.utilization).max(0.0)).collect();
    if let Ok(fit) = fit_non_negative(&[rate.clone(), woken], &busy, &weights) {
        let (demand, wakeup) = (fit.estimate(0), fit.estimate(1));
        // Without any D∞ the server would never saturate: then the law is not what the points follow.
        if demand.value > 0.0 && wakeup.ci95_half_width.is_some_and(|half_width| wakeup.value > half_width) {
            return Ok(WakeupFit { demand, wakeup, significant: true, background });
        }
    }
    let demand = fit_non_negative(&[rate], &busy, &weights)?.estimate(0);
    let wakeup = Estimate { value: 0.0, ci95_half_width: None };
    Ok(WakeupFit { demand, wakeup, significant: false, background })
}

impl WakeupFit {
    /// U at `rate`, background included, of `servers` servers: the fixed point m·U = b₀ + λ·D∞ + λ·W·(1 − U); 1 at and
    /// above saturation.
    pub fn utilization_at(&self, rate: f64, servers: u32) -> f64 {
        let (d, w) = (self.demand.value, self.wakeup.value);
        ((self.background + rate * (d + w)) / (f64::from(servers) + rate * w)).min(1.0)
    }

    /// The rate at which `servers` servers saturate: what the background leaves, over D∞.
    pub fn saturation(&self, servers: u32) -> f64 {
        (f64::from(servers) - self.background).max(0.0) / self.demand.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(fit: &WakeupFit, rate: f64, servers: u32) -> WakeupPoint {
        let utilization = fit.utilization_at(rate, servers);
        WakeupPoint { throughput: rate, busy: utilization * f64::from(servers), utilization, weight: 1.0 }
    }

    fn planted(demand: f64, wakeup: f64, background: f64) -> WakeupFit {
        let exactly = |value| Estimate { value, ci95_half_width: None };
        WakeupFit { demand: exactly(demand), wakeup: exactly(wakeup), significant: true, background }
    }

    #[test]
    fn recovers_what_was_planted() {
        let truth = planted(16e-6, 20e-6, 0.05);
        let points: Vec<_> = [5e3, 20e3, 50e3, 80e3].map(|rate| at(&truth, rate, 2)).to_vec();
        let fit = fit_wakeup(&points, 0.05).unwrap();
        assert!(fit.significant);
        assert!((fit.demand.value - 16e-6).abs() < 1e-12 && (fit.wakeup.value - 20e-6).abs() < 1e-12, "{fit:?}");
        assert!((fit.saturation(2) - 1.95 / 16e-6).abs() < 1e-3);
        assert!((fit.utilization_at(fit.saturation(2), 2) - 1.0).abs() < 1e-9);
        assert_eq!(fit.utilization_at(1e9, 2), 1.0);
        assert_eq!(fit.utilization_at(0.0, 2), 0.025);
    }

    #[test]
    fn a_constant_demand_shows_no_wakeup() {
        let noise = [0.004, -0.005, 0.003, -0.001, 0.002];
        let points: Vec<_> = [5e3, 10e3, 20e3, 30e3, 40e3]
            .into_iter()
            .zip(noise)
            .map(|(rate, noise)| WakeupPoint { busy: rate * 20e-6 + noise, ..at(&planted(20e-6, 0.0, 0.0), rate, 1) })
            .collect();
        let fit = fit_wakeup(&points, 0.0).unwrap();
        assert_eq!((fit.significant, fit.wakeup.value), (false, 0.0));
        assert!((fit.demand.value - 20e-6).abs() < fit.demand.ci95_half_width.unwrap(), "{fit:?}");
    }

    #[test]
    fn a_dearer_request_at_low_load_is_not_yet_a_wakeup() {
        // One nginx worker, 1294 B, keep-alive, CPU µs per request at each rate: here the extra is the same 4 % of the CPU
        // at every rate, a background that comes with load, and falls much faster than 1 − U does.
        let measured = [(2e3, 37.6), (5e3, 25.3), (10e3, 20.0), (20e3, 19.0), (30e3, 17.6), (40e3, 19.0)];
        let point = |(rate, us): (f64, f64)| {
            let busy = rate * us * 1e-6;
            WakeupPoint { throughput: rate, busy, utilization: busy, weight: 1.0 / rate }
        };
        assert!(!fit_wakeup(&measured.map(point), 0.0).unwrap().significant);
    }

    #[test]
    fn two_points_give_a_plain_demand_and_none_an_error() {
        let truth = planted(1e-3, 1e-3, 0.0);
        let points = [at(&truth, 100.0, 1), at(&truth, 500.0, 1)];
        let fit = fit_wakeup(&points, 0.0).unwrap();
        assert!(!fit.significant && fit.demand.value > 1e-3);
        assert_eq!(fit_wakeup(&[], 0.0), Err(ModelError::TooFewObservations { needed: 1, given: 0 }));
        assert_eq!(fit_wakeup(&[at(&truth, 0.0, 1)], 0.0), Err(ModelError::Unobserved { class: 0 }));
    }
}
