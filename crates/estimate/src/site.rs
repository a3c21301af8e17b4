//! Estimates service demands from the data of a web site in production. For each time step, such as a minute, the
//! access log contains the requests of each class, and the output of `sar`, `iostat` or `vmstat` contains the
//! utilization of each resource (Menascé, Peraino, Dinh & Dinh, CMG 1999).
//!
//! There are two methods. *Regression* uses the differences between time steps: the number of busy servers is
//! background + Σ X_r·D_r, where class r has the throughput X_r and the demand D_r. *Attribution* divides the busy time
//! of all steps among the classes by a rule ([`SiteRule`]): in proportion to the bytes sent (Eq. 2 of the paper), in
//! the same way after the known time of some classes is subtracted (Eq. 3), or equally among requests (Eq. 4). The
//! paper had a single step, so it used only attribution. A rule is an assumption, and steps with a constant mix of
//! classes cannot test it. So the user can choose a rule for each resource, and [`RuleReason`] states why a rule was
//! used.
//!
//! Work that is not in the access log also uses resources: in the paper, a job ran every hour and used 37 % of the CPU.
//! Time steps with such work are outliers. They are excluded and listed, and their period is reported.

mod alone;
mod attribution;
mod choice;
mod line;
mod outliers;
mod regression;

pub use alone::{SingleClassDemands, measure_alone};
pub use choice::{HeldOutCheck, RuleReason};
pub use outliers::OutlyingStep;

use crate::EstimateError;
use crate::demand::DemandFit;
use brimful_model::Estimate;

/// The requests in one time step of the data, such as a minute, and the busy time of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteStep {
    /// Start of the time step: seconds since 1970-01-01 00:00 UTC.
    pub from_s: i64,
    /// Duration of the time step, in seconds.
    pub seconds: f64,
    /// Number of requests that were completed in the time step, by class.
    pub requests: Vec<f64>,
    /// Number of bytes that were sent in the time step, by class.
    pub bytes: Vec<f64>,
    /// Mean number of busy servers of the resource: its utilization × its number of servers.
    pub busy: f64,
}

/// The rule by which the busy time of a resource is divided among request classes. With every rule, the busy time of
/// classes with a known demand is subtracted first. The equations are those of Menascé et al. (CMG 1999).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiteRule {
    /// The program chooses the rule, depending on which classes the data can distinguish (`choice.rs`).
    #[default]
    Automatic,
    /// Least squares over the time steps, with one demand for each class.
    Regression,
    /// Least squares over the time steps, with one cost per request and one cost per byte, which are the same for all
    /// classes.
    Line,
    /// The class of responses without a body has a demand that was measured, or the intercept of a line over response
    /// sizes. The other classes share the remaining busy time in proportion to the bytes sent (Eq. 3).
    Size,
    /// The classes share the busy time in proportion to the bytes sent (Eq. 2).
    Bytes,
    /// Every request has the same demand (Eq. 4).
    Requests,
    /// Only the class with this index uses the resource.
    Class(usize),
}

/// Options of the estimation of demands at one resource: facts about the classes, and choices of the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiteOptions {
    /// The rule that divides the busy time among the request classes.
    pub rule: SiteRule,
    /// The demand of each class, in seconds, if it was measured separately.
    pub known: Vec<Option<Estimate>>,
    /// Index of the class of responses without a body, if there is one.
    pub empty_class: Option<usize>,
    /// Demand of a response without a body, in seconds. It comes from a line that was fitted to runs with several
    /// response sizes.
    pub intercept: Option<Estimate>,
    /// Whether the background work is assumed to be 0, as in Menascé et al. (CMG 1999). Otherwise, the busy time
    /// without requests is fitted and subtracted.
    pub without_background: bool,
}

/// The estimated demands of all request classes at one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteDemands {
    /// The rule by which the busy time was divided among the classes; never [`SiteRule::Automatic`].
    pub rule: SiteRule,
    /// The reason why this rule was used.
    pub reason: RuleReason,
    /// Demand of each class according to `rule`, in seconds.
    pub demands: Vec<Estimate>,
    /// Groups of classes that share one demand, because the data cannot distinguish them. Empty if the user chose a
    /// rule other than regression.
    pub joint: Vec<Vec<usize>>,
    /// Demand of a response without a body that the rule [`SiteRule::Size`] used, in seconds.
    pub intercept: Option<Estimate>,
    /// The demands by regression over the time steps without outliers, or the reason why the regression failed.
    pub regression: Result<DemandFit, EstimateError>,
    /// Demand of each class in seconds, if the busy time is divided in proportion to the bytes sent (Eq. 2 of Menascé
    /// et al., CMG 1999, or Eq. 3 if some demands are known). Background work is subtracted first.
    pub by_bytes: Vec<f64>,
    /// Demand of each class in seconds, if the busy time is divided equally among all requests (Eq. 4 of Menascé et
    /// al., CMG 1999). Background work is subtracted first.
    pub by_requests: Vec<f64>,
    /// Mean number of servers that background work keeps busy.
    pub background: f64,
    /// Test of the rule: the busy servers in the second half of the data, compared with a prediction from the first
    /// half. `None` if there are too few time steps.
    pub check: Option<HeldOutCheck>,
    /// The time steps that were excluded because of work that is not in the access log.
    pub outliers: Vec<OutlyingStep>,
    /// Period of the excluded time steps, in seconds; `None` if they are not periodic.
    pub period_s: Option<i64>,
}

/// Estimates the demands of `classes` request classes at one resource. Time steps that are outliers are excluded.
///
/// # Errors
/// If no time step has requests, if a number is invalid, if the known demands exceed the busy time, or if the rule that
/// the user chose cannot be applied.
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
    /// The demand of a class, if it was measured separately.
    fn known(&self, class: usize) -> Option<Estimate> {
        self.known.get(class).copied().flatten()
    }

    /// Number of servers that the requests with known demands kept busy in a time step.
    fn known_busy(&self, step: &SiteStep) -> f64 {
        let busy = |(class, requests): (usize, &f64)| Some(self.known(class)?.value * requests / step.seconds);
        step.requests.iter().enumerate().filter_map(busy).sum()
    }
}

#[cfg(test)]
mod tests;
