//! The effect of bursts on the service demand: D = D_f + α·b. D is the demand, b the burstiness, D_f the demand without
//! bursts, and α the fitted slope.
//!
//! Menascé & Almeida, *Capacity Planning for Web Performance*, 1998: the demand at the bottleneck (utilization divided
//! by throughput) is measured at two or more values of the burstiness b ([`super::BurstFactors::b`], with epochs of the
//! same length). A line through the points yields the demand without bursts and at any other b. Bursts increase the
//! demand itself, not only the queueing delay: Menascé et al. (CMG 1999, §6) measured a saturation rate 1/D of 202
//! requests per second with even arrivals and 131 with bursts.

use crate::EstimateError;
use crate::least_squares::fit_non_negative;
use brimful_core::JsonSchema;
use brimful_core::model::Model;
use brimful_core::number::{NumberError, check_non_negative, check_positive};
use brimful_model::{Estimate, saturation_rate};
use serde::Serialize;

/// The demand that was measured at one value of the burstiness b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLevel {
    /// Burstiness b: the share of epochs with more arrivals than the mean, between 0 and 1.
    pub b: f64,
    /// Service demand in seconds: the number of busy servers divided by the throughput, or 1 divided by the maximum
    /// throughput.
    pub demand: f64,
}

/// The fitted line D = D_f + α·b: the demand D as a function of the burstiness b.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BurstDemand {
    /// D_f: the demand without bursts, in seconds.
    pub without_bursts: Estimate,
    /// α: the slope of the line, which is the increase of the demand per unit of burstiness b, in seconds; never
    /// negative.
    pub alpha: Estimate,
}

/// Fits the line D = D_f + α·b to at least two different values of the burstiness b. Confidence intervals require at
/// least three.
pub fn fit_burst_demand(levels: &[BurstLevel]) -> Result<BurstDemand, EstimateError> {
    for (i, level) in levels.iter().enumerate() {
        share(level.b, || format!("b of level {i}"))?;
        check_positive(level.demand, || format!("the demand of level {i}"))?;
    }
    let b: Vec<f64> = levels.iter().map(|l| l.b).collect();
    let demands: Vec<f64> = levels.iter().map(|l| l.demand).collect();
    if levels.len() < 2 {
        return Err(EstimateError::TooFewObservations { needed: 2, given: levels.len() });
    }
    let fit = fit_non_negative(&[vec![1.0; b.len()], b], &demands, &vec![1.0; levels.len()])?;
    Ok(BurstDemand { without_bursts: fit.estimate(0), alpha: fit.estimate(1) })
}

impl BurstDemand {
    /// The demand at burstiness b, in seconds.
    pub fn demand(&self, b: f64) -> f64 {
        self.without_bursts.value + self.alpha.value * b
    }
}

/// The effect of a changed burstiness on a model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BurstEffect {
    /// Factor by which the demand of every class at the chosen station was multiplied.
    pub factor: f64,
    /// The model with the changed demands.
    pub model: Model,
    /// Requests per second at which the model saturated with the original burstiness.
    pub saturation_before: f64,
    /// Requests per second at which the model saturates with the changed burstiness.
    pub saturation_rate: f64,
    /// Name of the station that saturates first with the changed burstiness.
    pub bottleneck: String,
}

/// Converts the demands at a station from burstiness `measured_at` to burstiness `b`, by the same factor for all
/// classes. Burstiness 0 means arrivals without bursts.
pub fn with_burstiness(
    model: &Model,
    station: &str,
    demand: &BurstDemand,
    measured_at: f64,
    b: f64,
) -> Result<BurstEffect, EstimateError> {
    share(measured_at, || "the burstiness at which demands were measured".into())?;
    share(b, || "the burstiness asked for".into())?;
    let before = check_positive(demand.demand(measured_at), || "the demand at the burstiness measured".into())?;
    let Some(index) = model.stations.iter().position(|s| s.name == station) else {
        let names: Vec<&str> = model.stations.iter().map(|s| s.name.as_str()).collect();
        return Err(EstimateError::Inconsistent(format!(
            "there is no station `{station}`: name one of {}",
            names.join(", ")
        )));
    };
    let (saturation_before, _) = saturation_rate(model)?;
    let factor = demand.demand(b) / before;
    let mut inflated = model.clone();
    if let Some(row) = inflated.demands.get_mut(index) {
        row.iter_mut().for_each(|d| *d *= factor);
    }
    let (saturation_rate, bottleneck) = saturation_rate(&inflated)?;
    Ok(BurstEffect { factor, model: inflated, saturation_before, saturation_rate, bottleneck })
}

fn share(value: f64, what: impl FnOnce() -> String) -> Result<f64, EstimateError> {
    match check_non_negative(value, String::new) {
        Ok(share) if share <= 1.0 => Ok(share),
        _ => Err(EstimateError::Number(NumberError { what: what(), value, requirement: "between 0 and 1" })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        serde_json::from_value(serde_json::json!({
            "stations": [{ "name": "cpu", "type": "queue" }, { "name": "disk", "type": "queue" }],
            "classes": [{ "name": "a", "type": "open", "rate": 50.0 }, { "name": "b", "type": "open", "rate": 50.0 }],
            "demands": [[0.002, 0.006], [0.003, 0.003]],
        }))
        .unwrap()
    }

    #[test]
    fn the_papers_server_in_bursts_and_without() {
        let levels = [BurstLevel { b: 0.0, demand: 1.0 / 202.0 }, BurstLevel { b: 0.4, demand: 1.0 / 131.0 }];
        let fit = fit_burst_demand(&levels).unwrap();
        assert!((1.0 / fit.demand(0.0) - 202.0).abs() < 1e-9 && (1.0 / fit.demand(0.4) - 131.0).abs() < 1e-9);
        assert_eq!(fit.alpha.ci95_half_width, None);
    }

    #[test]
    fn bursts_move_the_bottleneck() {
        let demand = fit_burst_demand(&[0.1, 0.2, 0.4].map(|b| BurstLevel { b, demand: 0.004 + 0.01 * b })).unwrap();
        assert!((demand.alpha.value - 0.01).abs() < 1e-12 && demand.alpha.ci95_half_width.is_some());
        // Changing the burstiness b from 0 to 0.4 doubles the demand at the CPU, and the CPU saturates first: at 125
        // requests per second instead of 250. Changing b from 0.4 to 0 halves the demand at the CPU, and the disk
        // saturates first.
        let up = with_burstiness(&model(), "cpu", &demand, 0.0, 0.4).unwrap();
        assert!((up.saturation_before - 250.0).abs() < 1e-9 && (up.saturation_rate - 125.0).abs() < 1e-9, "{up:?}");
        let down = with_burstiness(&model(), "cpu", &demand, 0.4, 0.0).unwrap();
        assert_eq!(down.bottleneck, "disk");
        assert!((down.factor - 0.5).abs() < 1e-12 && (down.saturation_rate - 1000.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn levels_that_do_not_determine_the_line_are_rejected() {
        let level = BurstLevel { b: 0.3, demand: 0.01 };
        assert!(matches!(fit_burst_demand(&[level]), Err(EstimateError::TooFewObservations { needed: 2, given: 1 })));
        assert!(matches!(fit_burst_demand(&[level; 3]), Err(EstimateError::Indistinct { .. })));
        assert!(
            fit_burst_demand(&[level, BurstLevel { b: 1.5, ..level }]).unwrap_err().to_string().contains("level 1")
        );
        assert!(fit_burst_demand(&[level, BurstLevel { demand: f64::NAN, ..level }]).is_err());
        let fit = fit_burst_demand(&[level, BurstLevel { b: 0.5, demand: 0.009 }]).unwrap();
        assert_eq!(fit.alpha.value, 0.0, "alpha is never negative");
        assert!(with_burstiness(&model(), "gpu", &fit, 0.0, 0.1).unwrap_err().to_string().contains("cpu, disk"));
        assert!(with_burstiness(&model(), "cpu", &fit, 0.0, -0.1).is_err());
    }
}
