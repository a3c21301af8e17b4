//! The precision of a demand, and what it was derived from.

use crate::demand::{DemandFit, Interval};
use schemars::JsonSchema;
use serde::Serialize;

/// Uncertainty of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Uncertainty {
    /// The data that the demand was derived from.
    pub source: Source,
    /// The wider of `fit_ci95` and `bootstrap_ci95`. `None` if both are `None`, or if they come from a single run, which
    /// does not show how runs differ.
    pub ci95: Option<Interval>,
    /// Confidence interval of the regression over the runs.
    pub fit_ci95: Option<Interval>,
    /// Confidence interval of the bootstrap within the runs.
    pub bootstrap_ci95: Option<Interval>,
}

/// The data that a demand was derived from. The first source is the most reliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Measured for each request inside the server. The remaining CPU time of the server is shared equally by all
    /// requests.
    Direct,
    /// Fitted by the utilization law to runs, some of which had only this class.
    SingleClassRun,
    /// Fitted by the utilization law to runs of several mixes.
    Regression,
    /// Computed by a rule of proportion, because the runs cannot distinguish the class from others. The interval is
    /// proportional to the interval of the joint demand; it does not include the error of the rule.
    Proportional,
    /// Derived from the part of the response times that the stations do not explain.
    ResponseTimes,
}

impl Uncertainty {
    /// The uncertainty of a demand without intervals.
    pub(super) fn unknown(source: Source) -> Uncertainty {
        Uncertainty { source, ci95: None, fit_ci95: None, bootstrap_ci95: None }
    }

    /// Converts the uncertainty to that of a demand that comes from a single run, which has no interval.
    pub(super) fn of_single_run(self) -> Uncertainty {
        Uncertainty { ci95: None, ..self }
    }

    pub(super) fn of_fit(source: Source, fit: &DemandFit, class: usize) -> Uncertainty {
        Uncertainty::unknown(source)
            .with_intervals(interval(fit.demands[class].value, fit.demands[class].ci95_half_width), None)
    }

    pub(super) fn with_intervals(self, fit: Option<Interval>, bootstrap: Option<Interval>) -> Uncertainty {
        Uncertainty { ci95: wider(fit, bootstrap), fit_ci95: fit, bootstrap_ci95: bootstrap, ..self }
    }
}

/// The confidence interval of a quantity that cannot be negative.
pub(super) fn interval(value: f64, half_width: Option<f64>) -> Option<Interval> {
    half_width.map(|half_width| Interval { low: (value - half_width).max(0.0), high: value + half_width })
}

pub(super) fn wider(a: Option<Interval>, b: Option<Interval>) -> Option<Interval> {
    let width = |i: &Interval| i.high - i.low;
    a.into_iter().chain(b).max_by(|a, b| width(a).total_cmp(&width(b)))
}
