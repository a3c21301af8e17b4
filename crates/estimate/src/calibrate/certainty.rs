//! How well a demand is known, and what it was derived from.

use crate::demand::{DemandFit, Interval};
use schemars::JsonSchema;
use serde::Serialize;

/// Uncertainty of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Uncertainty {
    /// What it was derived from.
    pub source: Source,
    /// The wider of the two below; `None` where there is neither.
    pub ci95: Option<Interval>,
    /// Interval by the regression over the runs.
    pub fit_ci95: Option<Interval>,
    /// Interval by the bootstrap within the runs.
    pub bootstrap_ci95: Option<Interval>,
}

/// What a demand stands on; the first is trusted most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Measured request by request inside the server; what its CPUs did beside that is shared alike.
    Direct,
    /// The utilization law, with the class alone in some of the runs.
    SingleClassRun,
    /// The utilization law, from runs of several mixes.
    Regression,
    /// A rule of proportion, because the runs cannot tell the class from others. The interval is that of their joint
    /// demand, in proportion; how wrong the rule is, it does not say.
    Proportional,
    /// Response times: what is left of them beside the stations.
    ResponseTimes,
}

impl Uncertainty {
    /// A demand without intervals.
    pub(super) fn unknown(source: Source) -> Uncertainty {
        Uncertainty { source, ci95: None, fit_ci95: None, bootstrap_ci95: None }
    }

    pub(super) fn of_fit(source: Source, fit: &DemandFit, class: usize) -> Uncertainty {
        Uncertainty::unknown(source)
            .with_intervals(interval(fit.demands[class].value, fit.demands[class].ci95_half_width), None)
    }

    pub(super) fn with_intervals(self, fit: Option<Interval>, bootstrap: Option<Interval>) -> Uncertainty {
        Uncertainty { ci95: wider(fit, bootstrap), fit_ci95: fit, bootstrap_ci95: bootstrap, ..self }
    }
}

/// The interval about a figure that cannot be negative.
pub(super) fn interval(value: f64, half_width: Option<f64>) -> Option<Interval> {
    half_width.map(|half_width| Interval { low: (value - half_width).max(0.0), high: value + half_width })
}

pub(super) fn wider(a: Option<Interval>, b: Option<Interval>) -> Option<Interval> {
    let width = |i: &Interval| i.high - i.low;
    a.into_iter().chain(b).max_by(|a, b| width(a).total_cmp(&width(b)))
}
