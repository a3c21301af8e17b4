//! Least squares over the steps: busy = background + Σ X_r·D_r. The busy time of classes with known demands is
//! subtracted first, and only the other demands are fitted.

use super::{SiteOptions, SiteStep};
use crate::EstimateError;
use crate::demand::{Background, DemandFit, Observation, fit_demands};
use brimful_model::Estimate;

/// Fits the demands of the classes whose demands are unknown.
pub(super) fn regress(classes: usize, steps: &[&SiteStep], options: &SiteOptions) -> Result<DemandFit, EstimateError> {
    let unknown: Vec<usize> = (0..classes).filter(|class| options.known(*class).is_none()).collect();
    let observe = |step: &&SiteStep| {
        let rates = unknown.iter().map(|class| step.requests[*class] / step.seconds).collect();
        observation(step, rates, options.known_busy(step))
    };
    let observations: Vec<Observation> = steps.iter().map(observe).collect();
    let fit = fit_demands(unknown.len(), &observations, background(options)).map_err(|error| match error {
        EstimateError::Unobserved { class } => EstimateError::Unobserved { class: unknown[class] },
        other => other,
    })?;
    let demand = |class: usize| match (unknown.iter().position(|known| *known == class), options.known(class)) {
        (Some(place), _) => fit.demands[place],
        (None, known) => known.unwrap_or(Estimate { value: 0.0, ci95_half_width: None }),
    };
    let class_group = |group: &Vec<usize>| group.iter().map(|place| unknown[*place]).collect();
    Ok(DemandFit {
        demands: (0..classes).map(demand).collect(),
        indistinguishable_classes: fit.indistinguishable_classes.iter().map(class_group).collect(),
        // The covariance matrix has only the unknown classes, so it does not match `demands`.
        covariance: None,
        ..fit
    })
}

/// Converts a step to an observation without the `explained` busy servers, which known demands explain.
pub(super) fn observation(step: &SiteStep, throughput: Vec<f64>, explained: f64) -> Observation {
    // The variance of a step depends only on its duration, because rounding and other work do not depend on the load.
    Observation { throughput, busy: (step.busy - explained).max(0.0), weight: step.seconds }
}

/// The background: 0 if the options say so, otherwise fitted.
pub(super) fn background(options: &SiteOptions) -> Background {
    if options.without_background { Background::Known(0.0) } else { Background::Fitted }
}
