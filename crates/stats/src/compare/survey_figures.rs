//! The metrics of a survey that are compared: the measured capacity, the rate at which each objective is met, and the
//! service demands. The variability within a survey is given by the confidence intervals that it contains.

use super::{Measured, MetricKind};
use crate::estimate::Estimate;
use brimful_core::comparison::MetricUnit;
use brimful_core::survey::Survey;

/// Half width of a 95 % interval of a normal distribution, in standard errors.
const HALF_WIDTH_95: f64 = 1.960;
/// Half width of a 90 % interval of a normal distribution, in standard errors.
const HALF_WIDTH_90: f64 = 1.645;

/// The metrics of this survey that are compared, with their values.
pub(super) fn figures(survey: &Survey) -> Vec<Measured> {
    let capacity = &survey.saturation_rate;
    let capacity_error = capacity.measured_ci95_half_width.map(|half| half / HALF_WIDTH_95);
    let mut figures: Vec<Measured> = Vec::new();
    figures.extend(measured("capacity".to_owned(), MetricUnit::PerSecond, capacity.measured, capacity_error));
    for result in &survey.objectives {
        let error = result.measured_interval90.map(|[low, high]| (high - low) / 2.0 / HALF_WIDTH_90);
        figures.extend(measured(
            format!("rate {}", result.objective),
            MetricUnit::PerSecond,
            result.rate.measured,
            error,
        ));
    }
    for demand in &survey.demands {
        let error = demand.ci95_half_width.map(|half| half / HALF_WIDTH_95);
        let name = format!("{} {}", demand.station, demand.class);
        figures.extend(measured(name, MetricUnit::Seconds, Some(demand.seconds), error));
    }
    figures
}

fn measured(name: String, unit: MetricUnit, value: Option<f64>, standard_error: Option<f64>) -> Option<Measured> {
    let value = value.filter(|value| value.is_finite())?;
    let within =
        standard_error.map(|error| Estimate { value, standard_error: error, degrees_of_freedom: f64::INFINITY });
    let kind = MetricKind { name, unit, lower_is_better: unit == MetricUnit::Seconds };
    Some(Measured { kind, value, within, resolution: 0.0 })
}
