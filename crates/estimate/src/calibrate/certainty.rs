//! The uncertainty of a service demand, and the data that the demand was derived from.

use crate::demand::{DemandFit, Interval};
use brimful_core::JsonSchema;
use serde::Serialize;

/// Uncertainty of a service demand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Uncertainty {
    /// The data that the demand was derived from.
    pub source: Source,
    /// The wider of `fit_ci95` and `bootstrap_ci95`. `None` if there is neither. Also `None` if the demand comes from a
    /// single run, because one run does not show how much runs differ.
    pub ci95: Option<Interval>,
    /// 95 % confidence interval from the regression over the runs.
    pub fit_ci95: Option<Interval>,
    /// 95 % confidence interval from the bootstrap, which resamples the seconds within the runs.
    pub bootstrap_ci95: Option<Interval>,
}

/// The data that a service demand was derived from. The first source is the most reliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Measured for each request by the Server Module, a plug-in of the web server. The CPU time that the module does
    /// not measure is divided equally among all requests.
    Direct,
    /// Fitted by the utilization law, with at least one run that had only requests of this class.
    SingleClassRun,
    /// Fitted by the utilization law to runs with different mixes of request classes.
    Regression,
    /// A share of the joint demand of several classes, divided by a rule, because the runs cannot distinguish these
    /// classes. The confidence interval does not include the error of the rule.
    Proportional,
    /// Derived from response times: the part that the service and waiting times at the stations do not explain.
    ResponseTimes,
}

impl Uncertainty {
    /// The uncertainty of a demand whose confidence intervals are unknown.
    pub(super) fn unknown(source: Source) -> Uncertainty {
        Uncertainty { source, ci95: None, fit_ci95: None, bootstrap_ci95: None }
    }

    /// The same uncertainty without `ci95`, for a demand that was measured in only one run.
    pub(super) fn of_single_run(self) -> Uncertainty {
        Uncertainty { ci95: None, ..self }
    }

    /// The uncertainty of a class's demand from a regression without bootstrap.
    pub(super) fn of_fit(source: Source, fit: &DemandFit, class: usize) -> Uncertainty {
        Uncertainty::unknown(source)
            .with_intervals(interval(fit.demands[class].value, fit.demands[class].ci95_half_width), None)
    }

    /// The same uncertainty with the confidence intervals of the regression and of the bootstrap.
    pub(super) fn with_intervals(self, fit: Option<Interval>, bootstrap: Option<Interval>) -> Uncertainty {
        Uncertainty { ci95: wider(fit, bootstrap), fit_ci95: fit, bootstrap_ci95: bootstrap, ..self }
    }
}

/// The confidence interval `value` ± `half_width`. Its lower end is at least 0, because demands cannot be negative.
pub(super) fn interval(value: f64, half_width: Option<f64>) -> Option<Interval> {
    half_width.map(|half_width| Interval { low: (value - half_width).max(0.0), high: value + half_width })
}

/// The wider of two intervals; `None` if there is neither.
pub(super) fn wider(a: Option<Interval>, b: Option<Interval>) -> Option<Interval> {
    let width = |i: &Interval| i.high - i.low;
    a.into_iter().chain(b).max_by(|a, b| width(a).total_cmp(&width(b)))
}
