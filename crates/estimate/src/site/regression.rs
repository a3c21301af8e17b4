//! Least squares over the time steps of the data: busy = background + Σ X_r·D_r, where class r has the throughput X_r
//! and the demand D_r. The busy time of classes with known demands is subtracted first, and only the other demands are
//! fitted.

use super::{SiteOptions, SiteStep};
use crate::EstimateError;
use crate::demand::{Background, DemandFit, Observation, fit_demands};
use brimful_model::Estimate;

/// Fits the demands of the classes whose demands are not known.
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
        // The fitted covariance matrix has only the classes with unknown demands, so it does not match `demands`.
        covariance: None,
        ..fit
    })
}

/// Converts a time step to an observation. `explained` is the number of busy servers that known demands explain; it is
/// subtracted.
pub(super) fn observation(step: &SiteStep, throughput: Vec<f64>, explained: f64) -> Observation {
    // The variance of `busy` depends only on the duration, because rounding and other work do not depend on the load.
    Observation { throughput, busy: (step.busy - explained).max(0.0), weight: step.seconds }
}

/// The background work: assumed to be 0 if the options say so, and otherwise fitted.
pub(super) fn background(options: &SiteOptions) -> Background {
    if options.without_background { Background::Known(0.0) } else { Background::Fitted }
}
