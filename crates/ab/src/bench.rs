//! The interface between the comparison method and the servers: real servers, or simulated ones in tests.

use crate::AbError;
use brimful_core::Nanos;
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::workload::Load;
use brimful_stats::SliceMetrics;
use std::collections::BTreeMap;

/// A server that is measured: A, B, or the control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arm {
    /// The baseline server.
    A,
    /// The control, which should not differ from A: A itself, or a second process of A's command.
    Control,
    /// The server that is compared with A.
    B,
}

/// The measurements of one server during one slice, a short run under load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// Throughput, response times and CPU time per request.
    pub metrics: SliceMetrics,
    /// The reason why the slice is not valid; `None` if it is valid. A delay of the load generator is stated only if
    /// there is no other reason.
    pub problem: Option<Reason>,
    /// Number of responses by status code.
    pub statuses: BTreeMap<String, u64>,
    /// Mean number of bytes received per completed call.
    pub bytes_per_call: f64,
    /// The server software that the server reports, usually in its `Server` header.
    pub server_software: Option<String>,
}

impl Slice {
    /// The reason why the metric named `figure` of this slice cannot be used; `None` if it can be used. A late load
    /// generator distorts response times, but not the CPU time per request, so the metric `cpu` remains valid.
    pub fn problem_with(&self, figure: &str) -> Option<&Reason> {
        self.problem.as_ref().filter(|reason| figure != "cpu" || !is_delay(reason))
    }

    /// The metrics of the slice that are valid.
    pub fn valid_metrics(&self) -> SliceMetrics {
        self.metrics.filtered(|metric| self.problem_with(metric).is_none())
    }
}

/// The first reason that is not a delay of the load generator. If all are delays, the first of them.
pub(crate) fn main_problem<'r>(reasons: impl Iterator<Item = &'r Reason> + Clone) -> Option<&'r Reason> {
    reasons.clone().find(|reason| !is_delay(reason)).or_else(|| reasons.clone().next())
}

/// Whether the reason is only that the load generator sent requests late.
fn is_delay(reason: &Reason) -> bool {
    matches!(reason.code, ReasonCode::GeneratorLate | ReasonCode::GeneratorStalled)
}

/// Measures the servers under load.
pub(crate) trait Bench {
    /// Sets the load of all later slices.
    fn set_load(&mut self, load: Load);

    /// Sends load to one server for one slice (a short run), and measures it. `seed` determines the request schedule.
    fn measure(&mut self, arm: Arm, seed: u64) -> Result<Slice, AbError>;

    /// Sends load to two servers at the same time, each on its own CPUs, and measures both. If `is_swapped`, each
    /// server runs on the CPUs that the other one has otherwise.
    fn measure_duet(&mut self, arms: [Arm; 2], is_swapped: bool, seed: u64) -> Result<[Slice; 2], AbError>;

    /// The reason why two servers cannot be measured fairly at the same time on this host; `None` if they can.
    fn duet_obstacle(&self) -> Option<String>;

    /// Time since the comparison began.
    fn elapsed(&self) -> Nanos;

    /// Whether the user has interrupted the measurement.
    fn is_interrupted(&self) -> bool;
}
