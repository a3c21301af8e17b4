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
    /// The A/A control: A itself, or a second process of A's command.
    Control,
    /// The server that is compared with A.
    B,
}

/// The measurements of one server during one slice, a short run under load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// Throughput, response times and CPU time per request.
    pub figures: SliceMetrics,
    /// The reason why the slice is not valid; `None` if it is valid. If there are several reasons, this is the first
    /// that is not a delay of the load generator.
    pub problem: Option<Reason>,
    /// Number of responses by status code.
    pub statuses: BTreeMap<String, u64>,
    /// Mean number of bytes received per completed call.
    pub bytes_per_call: f64,
    /// The server software that the server reports, usually in its `Server` header.
    pub server_software: Option<String>,
}

impl Slice {
    /// The reason why this metric of the slice cannot be used. A late load generator distorts response times, but not
    /// the CPU time per request, so `cpu` remains valid.
    pub fn problem_with(&self, figure: &str) -> Option<&Reason> {
        self.problem.as_ref().filter(|reason| figure != "cpu" || !is_delay(reason))
    }

    /// The metrics of the slice that are valid.
    pub fn valid_figures(&self) -> SliceMetrics {
        self.figures.filtered(|figure| self.problem_with(figure).is_none())
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

    /// Loads one server for one slice, and measures it.
    fn measure(&mut self, arm: Arm, seed: u64) -> Result<Slice, AbError>;

    /// Loads two servers at the same time, each on its own CPUs. If `is_swapped`, the two servers exchange their CPUs.
    fn measure_duet(&mut self, arms: [Arm; 2], is_swapped: bool, seed: u64) -> Result<[Slice; 2], AbError>;

    /// The reason why a duet is not possible or would not be fair; `None` if a duet is possible.
    fn duet_obstacle(&self) -> Option<String>;

    /// Time since the comparison began.
    fn elapsed(&self) -> Nanos;

    /// Whether the user has interrupted the measurement.
    fn is_interrupted(&self) -> bool;
}
