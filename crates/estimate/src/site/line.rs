//! Fits the demand as a linear function of the response size, D = a + b·bytes, to the time steps of the data: busy =
//! background + a·X + b·(bytes per second), where X is the throughput. The intercept a is the demand of a response
//! without a body, as in Fig. 5 of Menascé et al. (CMG 1999). Response sizes have heavy tails, so the ratio of bytes to
//! requests often varies between steps even if the mix of classes does not.

use super::regression::{background, observation};
use super::{SiteOptions, SiteStep};
use crate::EstimateError;
use crate::demand::{DemandFit, Observation, fit_demands};
use brimful_model::Estimate;

/// Maximum relative half width of the confidence interval of the cost per request. Above it, the cost is not known well
/// enough to conclude that bytes cost nothing.
const MAX_RELATIVE_ERROR: f64 = 0.3;

/// A fitted line: the demand as a linear function of the response size.
pub(super) struct Line {
    /// Demand of a response without a body, in seconds.
    pub per_request: Estimate,
    /// Increase of the demand per byte of the response, in seconds.
    pub per_byte: Estimate,
    fit: DemandFit,
    /// Whether the cost per request was known before the fit and was not fitted.
    is_intercept_known: bool,
}

impl Line {
    /// Fits the line. Requests of classes with known demands are subtracted and do not affect the line.
    pub fn fit(steps: &[&SiteStep], options: &SiteOptions) -> Result<Line, EstimateError> {
        let intercept = known_intercept(options);
        let observe = |step: &&SiteStep| {
            let of_unknown = |values: &[f64]| {
                let unknown = values.iter().enumerate().filter(|(class, _)| options.known(*class).is_none());
                unknown.map(|(_, value)| value / step.seconds).sum::<f64>()
            };
            let [requests, bytes] = [&step.requests, &step.bytes].map(|values| of_unknown(values));
            let known = options.known_busy(step);
            match intercept {
                Some(intercept) => observation(step, vec![bytes], known + intercept.value * requests),
                None => observation(step, vec![requests, bytes], known),
            }
        };
        let observations: Vec<Observation> = steps.iter().map(observe).collect();
        let unknowns = if intercept.is_some() { 1 } else { 2 };
        let fit = fit_demands(unknowns, &observations, background(options))?;
        if !fit.indistinguishable_classes.is_empty() {
            return Err(EstimateError::Indistinct { condition_number: fit.condition_number });
        }
        let per_byte = fit.demands[unknowns - 1];
        let per_request = intercept.unwrap_or(fit.demands[0]);
        Ok(Line { per_request, per_byte, is_intercept_known: intercept.is_some(), fit })
    }

    /// Whether both coefficients are significantly positive: their confidence intervals do not include zero.
    pub fn has_positive_coefficients(&self) -> bool {
        let positive = |estimate: &Estimate| estimate.ci95_half_width.is_some_and(|half| half < estimate.value);
        positive(&self.per_byte) && (self.is_intercept_known || positive(&self.per_request))
    }

    /// Whether the cost per request is known precisely, and the confidence interval of the cost per byte includes zero.
    pub fn shows_no_cost_of_bytes(&self) -> bool {
        let half = |estimate: &Estimate| estimate.ci95_half_width.unwrap_or(f64::INFINITY);
        let request = &self.per_request;
        !self.is_intercept_known
            && half(request) < MAX_RELATIVE_ERROR * request.value
            && half(&self.per_byte).is_finite()
            && half(&self.per_byte) >= self.per_byte.value
    }

    /// Mean number of servers that background work keeps busy.
    pub fn background(&self) -> f64 {
        self.fit.background.value
    }

    /// Condition number of the least-squares fit.
    pub fn condition_number(&self) -> f64 {
        self.fit.condition_number
    }

    /// The demand of a class with this mean response size, in seconds.
    pub fn demand(&self, mean_bytes: f64) -> Estimate {
        let ci95_half_width = match self.is_intercept_known {
            true => {
                let half = self.fit.half_width(&[mean_bytes], 0.0, 0.0);
                half.map(|half| half.hypot(self.per_request.ci95_half_width.unwrap_or(0.0)))
            }
            false => self.fit.half_width(&[1.0, mean_bytes], 0.0, 0.0),
        };
        Estimate { value: self.per_request.value + self.per_byte.value * mean_bytes, ci95_half_width }
    }
}

/// The demand of a response without a body, if it was measured separately.
pub(super) fn known_intercept(options: &SiteOptions) -> Option<Estimate> {
    options.empty_class.and_then(|class| options.known(class)).or(options.intercept)
}

/// The demand of a response without a body: measured separately, or else the intercept of the fitted line. `None` if
/// the data do not determine it.
pub(super) fn intercept(steps: &[&SiteStep], options: &SiteOptions) -> Option<Estimate> {
    known_intercept(options).or_else(|| {
        let line = Line::fit(steps, options).ok()?;
        Some(line.per_request).filter(|intercept| intercept.value > 0.0 && line.per_byte.value > 0.0)
    })
}
