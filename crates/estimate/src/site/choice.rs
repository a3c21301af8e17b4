//! Chooses the rule by which busy time is divided among request classes, computes the confidence intervals of the
//! demands, and tests a prediction from the demands.
//!
//! A rule that the user chose is used, or is an error if it cannot be applied. Otherwise, the first applicable rule of
//! this list is used:
//!
//! 1. regression over the time steps, if they distinguish all classes;
//! 2. Eq. 3 of Menascé et al. (CMG 1999), if the demand of a response without a body was measured;
//! 3. a line over response sizes, if the time steps distinguish requests from bytes, or equal attribution to requests
//!    (Eq. 4), if the line shows no cost of bytes;
//! 4. regression, in which classes with a constant ratio share one demand;
//! 5. equal attribution to requests (Eq. 4).
//!
//! The confidence intervals of demands by a rule come from a bootstrap over the time steps ([`moving_blocks`]). They
//! include the variation between steps and the error of known demands, but not the error of the rule.

use super::attribution::{Totals, attribute, line_demands};
use super::line::{Line, intercept, known_intercept};
use super::regression::regress;
use super::{SiteOptions, SiteRule, SiteStep};
use crate::EstimateError;
use crate::demand::{DemandFit, Resampling, moving_blocks};
use brimful_model::Estimate;

/// Minimum number of time steps for a test of the chosen rule.
const MIN_CHECKED: usize = 8;
/// Maximum total number of time steps in all draws of the bootstrap, which limits the running time.
const MAX_DRAWN_STEPS: usize = 400_000;
/// Minimum number of draws of the bootstrap.
const MIN_DRAWS: usize = 100;
/// Maximum number of draws of the bootstrap.
const MAX_DRAWS: usize = 1000;

/// The reason why a rule for estimating the demands at a resource was used.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleReason {
    /// The user chose the rule.
    ChosenByUser,
    /// The data distinguish all request classes. The number is the condition number of the regression.
    Distinguished(f64),
    /// The data do not distinguish all request classes, but the demand of a response without a body was measured.
    InterceptMeasured,
    /// The data do not distinguish all request classes, but they distinguish the cost of a request from the cost of a
    /// byte. The number is the condition number of the fit.
    SizesDistinguished(f64),
    /// The data do not distinguish all request classes, and a line over response sizes shows no cost of bytes.
    BytesCostNothing,
    /// The data do not distinguish all request classes, so some classes share one demand.
    Indistinct,
    /// The regression failed, for the reason in [`SiteDemands::regression`](super::SiteDemands::regression).
    NoRegression,
}

/// The rule that was chosen for dividing the busy time of a resource among request classes.
pub(super) struct Choice {
    /// The chosen rule.
    pub rule: SiteRule,
    /// The reason why the rule was chosen.
    pub reason: RuleReason,
    /// Groups of classes that share one demand, because the data cannot distinguish them.
    pub joint: Vec<Vec<usize>>,
}

/// A test of a rule: the demands from the first half of the time steps predict the number of busy servers in the second
/// half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOutCheck {
    /// Number of time steps in the second half of the data, for which the prediction is tested.
    pub steps: usize,
    /// Measured mean number of busy servers in the second half of the data.
    pub measured: f64,
    /// Predicted mean number of busy servers in the second half of the data.
    pub predicted: f64,
    /// Root mean square difference between the measured and the predicted number of busy servers in a time step.
    pub step_error: f64,
}

/// Chooses the rule, as described at the head of this file. `regression` is the result of the regression.
pub(super) fn choose(
    classes: usize,
    steps: &[&SiteStep],
    options: &SiteOptions,
    regression: &Result<DemandFit, EstimateError>,
) -> Result<Choice, EstimateError> {
    let merged = |fit: &DemandFit| fit.indistinguishable_classes.clone();
    match options.rule {
        SiteRule::Automatic => {}
        SiteRule::Regression => {
            let fit = regression.as_ref().map_err(Clone::clone)?;
            return Ok(Choice { rule: SiteRule::Regression, reason: RuleReason::ChosenByUser, joint: merged(fit) });
        }
        rule => return Ok(Choice { rule, reason: RuleReason::ChosenByUser, joint: Vec::new() }),
    }
    if let Ok(fit) = regression
        && fit.indistinguishable_classes.is_empty()
    {
        let reason = RuleReason::Distinguished(fit.condition_number);
        return Ok(Choice { rule: SiteRule::Regression, reason, joint: Vec::new() });
    }
    if known_intercept(options).is_some() {
        return Ok(Choice { rule: SiteRule::Size, reason: RuleReason::InterceptMeasured, joint: Vec::new() });
    }
    if let Ok(line) = Line::fit(steps, options) {
        if line.has_positive_coefficients() {
            let reason = RuleReason::SizesDistinguished(line.condition_number());
            return Ok(Choice { rule: SiteRule::Line, reason, joint: Vec::new() });
        }
        if line.shows_no_cost_of_bytes() {
            let reason = RuleReason::BytesCostNothing;
            return Ok(Choice { rule: SiteRule::Requests, reason, joint: Vec::new() });
        }
    }
    if let Ok(fit) = regression {
        return Ok(Choice { rule: SiteRule::Regression, reason: RuleReason::Indistinct, joint: merged(fit) });
    }
    let unknown: Vec<usize> = (0..classes).filter(|class| options.known(*class).is_none()).collect();
    let joint = if unknown.len() > 1 { vec![unknown] } else { Vec::new() };
    Ok(Choice { rule: SiteRule::Requests, reason: RuleReason::NoRegression, joint })
}

/// Computes the demand of each class by `rule`. A demand has no confidence interval if the interval cannot be computed.
pub(super) fn estimates(
    rule: SiteRule,
    classes: usize,
    steps: &[&SiteStep],
    options: &SiteOptions,
) -> Result<Vec<Estimate>, EstimateError> {
    match rule {
        SiteRule::Regression => return Ok(regress(classes, steps, options)?.demands),
        SiteRule::Line => {
            let line = Line::fit(steps, options)?;
            return Ok(line_demands(&line, &Totals::new(classes, steps), options));
        }
        _ => {}
    }
    let demands = attribute(rule, classes, steps, options)?.demands;
    let scatter = scatter(rule, classes, steps, options);
    let from_known = error_of_known(rule, classes, steps, options, &demands);
    let fitted = options.empty_class.filter(|empty| rule == SiteRule::Size && options.known(*empty).is_none());
    let estimate = |(class, value): (usize, &f64)| {
        let own = match (options.known(class), fitted) {
            (Some(known), _) => known.ci95_half_width,
            (None, Some(empty)) if empty == class => intercept(steps, options).and_then(|line| line.ci95_half_width),
            _ => scatter.as_ref().map(|scatter| scatter[class].hypot(from_known[class])),
        };
        Estimate { value: *value, ci95_half_width: own }
    };
    Ok(demands.iter().enumerate().map(estimate).collect())
}

/// Half widths of the demands' 95 % confidence intervals, from a bootstrap over the time steps. They do not include the
/// error of known demands.
fn scatter(rule: SiteRule, classes: usize, steps: &[&SiteStep], options: &SiteOptions) -> Option<Vec<f64>> {
    let draws = (MAX_DRAWN_STEPS / steps.len().max(1)).clamp(MIN_DRAWS, MAX_DRAWS);
    let resampling = Resampling { draws, ..Resampling::default() };
    let bootstrap = moving_blocks(&[steps.to_vec()], resampling, |drawn| {
        let drawn: Vec<&SiteStep> = drawn.first()?.iter().map(|step| **step).collect();
        Some(attribute(rule, classes, &drawn, options).ok()?.demands)
    });
    let demands = attribute(rule, classes, steps, options).ok()?.demands;
    let bootstrap = bootstrap.ok()?;
    let half = |(class, demand): (usize, &f64)| {
        let interval = bootstrap.interval(class);
        (interval.high - demand).max(demand - interval.low).max(0.0)
    };
    Some(demands.iter().enumerate().map(half).collect())
}

/// Effect of the uncertainty of known demands on each demand: its absolute change if every known demand is at the upper
/// end of its confidence interval.
fn error_of_known(
    rule: SiteRule,
    classes: usize,
    steps: &[&SiteStep],
    options: &SiteOptions,
    demands: &[f64],
) -> Vec<f64> {
    let high = |known: Estimate| Estimate { value: known.value + known.ci95_half_width.unwrap_or(0.0), ..known };
    let shifted = SiteOptions {
        known: options.known.iter().map(|known| known.map(high)).collect(),
        intercept: options.intercept.map(high),
        ..options.clone()
    };
    match attribute(rule, classes, steps, &shifted) {
        Ok(shifted) => shifted.demands.iter().zip(demands).map(|(high, demand)| (high - demand).abs()).collect(),
        Err(_) => demands.to_vec(),
    }
}

/// Predicts the number of busy servers in the second half of the time steps, with the demands that `rule` yields for
/// the first half. Returns `None` if there are too few steps, or if `rule` yields no demands for the first half.
pub(super) fn held_out_check(
    rule: SiteRule,
    classes: usize,
    steps: &[&SiteStep],
    options: &SiteOptions,
) -> Option<HeldOutCheck> {
    if steps.len() < MIN_CHECKED {
        return None;
    }
    let (first, second) = steps.split_at(steps.len() / 2);
    let found = attribute(rule, classes, first, options).ok()?;
    let predict = |step: &SiteStep| {
        let work: f64 = step.requests.iter().zip(&found.demands).map(|(n, demand)| n * demand).sum();
        found.background + work / step.seconds
    };
    let seconds: f64 = second.iter().map(|step| step.seconds).sum();
    let mean = |figure: &dyn Fn(&SiteStep) -> f64| {
        second.iter().map(|step| figure(step) * step.seconds).sum::<f64>() / seconds
    };
    Some(HeldOutCheck {
        steps: second.len(),
        measured: mean(&|step| step.busy),
        predicted: mean(&predict),
        step_error: mean(&|step| (step.busy - predict(step)).powi(2)).sqrt(),
    })
}
