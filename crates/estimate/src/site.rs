//! Demands from the data of a running site, in time steps. The access log has the requests of each class, and `sar`,
//! `iostat` or `vmstat` has the utilization of each resource (Menascé et al., CMG 1999).
//!
//! Two methods are compared. *Regression* uses each step: busy = background + Σ X_r·D_r. *Attribution* divides the busy
//! time of all steps together by a rule ([`SiteRule`]): in proportion to the bytes sent (Eq. 2 of the paper), the same
//! after the known time of some classes is subtracted (Eq. 3), or equally among requests (Eq. 4). The paper had a
//! single step, so it used only attribution. A rule is an assumption, which steps with constant proportions of the
//! classes cannot test. So the user can choose a rule for each resource, and [`RuleReason`] says why a rule was used.
//!
//! Work that is not in the log uses resources too. In the paper, a job ran every hour and used 37 % of the CPU. Steps
//! with such work are outliers: they are excluded and listed, and their period is reported.

mod alone;
mod attribution;
mod choice;
mod line;
mod outliers;
mod regression;

pub use alone::{AloneRun, measure_alone};
pub use choice::{HeldOutCheck, RuleReason};
pub use outliers::OutlyingStep;

use crate::EstimateError;
use crate::demand::DemandFit;
use brimful_model::Estimate;

/// The requests and the busy time of one time step.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteStep {
    /// Start of the step, in seconds since 1970.
    pub from_s: i64,
    /// Length of the step in seconds.
    pub seconds: f64,
    /// Number of requests of each class that were completed in the step.
    pub requests: Vec<f64>,
    /// Number of bytes that were sent for each class in the step.
    pub bytes: Vec<f64>,
    /// Mean number of busy servers of the resource: utilization × servers.
    pub busy: f64,
}

/// The rule that divides the busy time of a resource among classes. In all rules, the time of classes with a known
/// demand is subtracted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiteRule {
    /// The rule is chosen by what the steps can distinguish (`choice.rs`).
    #[default]
    Automatic,
    /// Least squares over the steps, with one demand for each class.
    Regression,
    /// Least squares over the steps: every request costs the same, and so does every byte.
    Line,
    /// The class of answers without a body costs the intercept of a line over sizes. The other classes share the rest in
    /// proportion to the bytes sent (Eq. 3).
    Size,
    /// In proportion to the bytes sent (Eq. 2).
    Bytes,
    /// Equally for every request (Eq. 4).
    Requests,
    /// Only this class uses the resource.
    Class(usize),
}

/// Facts and choices for one resource that are not in the steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiteOptions {
    /// The rule that divides the busy time.
    pub rule: SiteRule,
    /// The demand of each class, in seconds, if it was measured separately.
    pub known: Vec<Option<Estimate>>,
    /// Index of the class whose answers have no body, if there is one.
    pub empty_class: Option<usize>,
    /// Cost of an answer without a body, in seconds, from a line through runs of several sizes.
    pub intercept: Option<Estimate>,
    /// Whether requests cause all the busy time, as the paper assumes. Otherwise the busy time without requests is
    /// fitted and subtracted.
    pub without_background: bool,
}

/// The demands at one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteDemands {
    /// The rule that was used; never [`SiteRule::Automatic`].
    pub rule: SiteRule,
    /// The reason for the rule.
    pub reason: RuleReason,
    /// Demand of each class in seconds, by the rule.
    pub demands: Vec<Estimate>,
    /// Groups of classes whose demand is only known for all classes of the group together. There are none if the user
    /// chose the rule.
    pub joint: Vec<Vec<usize>>,
    /// Cost of an answer without a body that the rule used, in seconds.
    pub intercept: Option<Estimate>,
    /// The demands by regression over the steps that are not outliers, or the reason why regression is impossible.
    pub regression: Result<DemandFit, EstimateError>,
    /// Demand of each class in seconds, by attribution in proportion to the bytes sent (Eq. 2, or Eq. 3 if the demands
    /// of some classes are known). The background is first subtracted from the busy time.
    pub by_bytes: Vec<f64>,
    /// Demand of each class in seconds, by attribution in equal parts to all requests (Eq. 4). The background is first
    /// subtracted from the busy time.
    pub by_requests: Vec<f64>,
    /// Mean number of servers that background work keeps busy.
    pub background: f64,
    /// The utilization in the second half of the steps, compared with a prediction from the first half. `None` if there
    /// are too few steps.
    pub check: Option<HeldOutCheck>,
    /// Steps with work that is not in the log.
    pub outliers: Vec<OutlyingStep>,
    /// Period of the outliers in seconds; `None` if they have no period.
    pub period_s: Option<i64>,
}

/// Estimates the demands of `classes` classes at one resource. Outliers are excluded.
///
/// # Errors
/// When no step has requests, a number is invalid, the known demands exceed the busy time, or the rule that the user
/// chose cannot be applied.
pub fn site_demands(classes: usize, steps: &[SiteStep], options: &SiteOptions) -> Result<SiteDemands, EstimateError> {
    let (kept, outliers) = outliers::without_outliers(classes, steps, options);
    let kept: Vec<&SiteStep> = kept.iter().map(|index| &steps[*index]).collect();
    let regression = regression::regress(classes, &kept, options);
    let attribute_by = |rule| attribution::attribute(rule, classes, &kept, options);
    let by_bytes = attribute_by(SiteRule::Bytes)?;
    let by_requests = attribute_by(SiteRule::Requests)?;
    let choice = choice::choose(classes, &kept, options, &regression)?;
    Ok(SiteDemands {
        rule: choice.rule,
        reason: choice.reason,
        demands: choice::estimates(choice.rule, classes, &kept, options)?,
        joint: choice.joint,
        intercept: if choice.rule == SiteRule::Size { line::intercept(&kept, options) } else { None },
        background: by_requests.background,
        by_bytes: by_bytes.demands,
        by_requests: by_requests.demands,
        check: choice::held_out_check(choice.rule, classes, &kept, options),
        regression,
        period_s: outliers::period(&outliers),
        outliers,
    })
}

impl SiteOptions {
    /// The known demand of a class.
    fn known(&self, class: usize) -> Option<Estimate> {
        self.known.get(class).copied().flatten()
    }

    /// Number of servers that the classes with known demands kept busy in a step.
    fn known_busy(&self, step: &SiteStep) -> f64 {
        let busy = |(class, requests): (usize, &f64)| Some(self.known(class)?.value * requests / step.seconds);
        step.requests.iter().enumerate().filter_map(busy).sum()
    }
}

#[cfg(test)]
mod tests;
