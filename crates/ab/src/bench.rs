//! The interface between the method and the outside world.

use crate::AbError;
use brimful_core::Nanos;
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::workload::Load;
use brimful_stats::SliceMetrics;
use std::collections::BTreeMap;

/// One of the servers that are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arm {
    A,
    /// The A/A control: A itself, or a second process of A's command.
    Control,
    B,
}

/// The result of one slice of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    pub figures: SliceMetrics,
    /// The reason why the slice is not valid, if it is not. If there are several, one that is about more than delays of
    /// the generator.
    pub problem: Option<Reason>,
    /// Number of responses by status code.
    pub statuses: BTreeMap<String, u64>,
    /// Mean number of bytes received per completed call.
    pub bytes_per_call: f64,
    /// The server's software, as the server names it.
    pub server_software: Option<String>,
}

impl Slice {
    /// The reason why this figure of the slice cannot be used. If the generator was late, the response times are not
    /// those of the server, but the CPU time per request is.
    pub fn problem_with(&self, figure: &str) -> Option<&Reason> {
        self.problem.as_ref().filter(|reason| figure != "cpu" || !is_delay(reason))
    }

    /// The figures that can be used.
    pub fn valid_figures(&self) -> SliceMetrics {
        self.figures.filtered(|figure| self.problem_with(figure).is_none())
    }
}

/// The first reason that is about more than delays of the generator, or else the first.
pub(crate) fn main_problem<'r>(reasons: impl Iterator<Item = &'r Reason> + Clone) -> Option<&'r Reason> {
    reasons.clone().find(|reason| !is_delay(reason)).or_else(|| reasons.clone().next())
}

/// Whether the generator began calls late, and nothing else was wrong with them.
fn is_delay(reason: &Reason) -> bool {
    matches!(reason.code, ReasonCode::GeneratorLate | ReasonCode::GeneratorStalled)
}

/// The servers, and the means to load them.
pub(crate) trait Bench {
    /// Sets the load of all further slices.
    fn use_load(&mut self, load: Load);

    /// Loads one server for the length of a slice.
    fn measure(&mut self, arm: Arm, seed: u64) -> Result<Slice, AbError>;

    /// Loads two servers at the same time, each on CPUs of its own. If `is_swapped`, each server has the CPUs that the
    /// other one has otherwise.
    fn measure_duet(&mut self, arms: [Arm; 2], is_swapped: bool, seed: u64) -> Result<[Slice; 2], AbError>;

    /// Why a duet is not possible, or would not be a fair one; `None` if it is.
    fn duet_obstacle(&self) -> Option<String>;

    /// Time since the start.
    fn elapsed(&self) -> Nanos;

    /// Whether the user has interrupted the measurement.
    fn is_interrupted(&self) -> bool;
}
