//! Slowness of the host: the CPU time of a call, divided by the CPU time that the model predicts.

use crate::window::RunStretch;

/// Minimum idle share of the CPUs. Below it, the CPU cost of a call is assumed not to depend on the idle share.
const MIN_IDLE: f64 = 0.05;

/// The expected CPU time of a call as a function of the load. A call that finds the server idle may cost more than
/// other calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedCost {
    /// CPU seconds per call at saturation, where the CPUs are never idle.
    pub saturated: f64,
    /// Mean CPU seconds per call at the measured load.
    pub mean: f64,
    /// Idle share of the CPUs at the measured load.
    pub idle: f64,
    /// Share of the CPUs' capacity that requests can use.
    pub free: f64,
    /// Number of CPUs.
    pub servers: f64,
    /// Mean number of CPUs that the server keeps busy without load.
    pub idle_busy: f64,
}

impl ExpectedCost {
    /// Slowness of the host during a short interval of a run: the CPU time per call, divided by the expected CPU time
    /// per call at the interval's rate of calls.
    pub fn slowness(&self, stretch: &RunStretch) -> f64 {
        let work = (stretch.work - self.idle_busy * stretch.seconds).max(0.0);
        // The idle share is computed from the number of calls. If it were computed from the CPU time, it would be too
        // small in an interval of expensive calls, and the slowness too large. On a nearly saturated server, the idle
        // share is too small to be estimated.
        let relative_idle = if self.idle < MIN_IDLE {
            1.0
        } else {
            (self.free - stretch.calls * self.mean / stretch.seconds / self.servers).max(0.0) / self.idle
        };
        let expected = self.saturated + (self.mean - self.saturated) * relative_idle;
        work / stretch.calls / expected
    }
}

/// Variance of the number of calls in a short interval that is due to the calls in progress at its start and its end.
const EDGES: f64 = 0.5;
/// Number of standard errors by which [`drift_share`] increases the variance due to calls, for the short intervals of a
/// single measurement.
pub(super) const CAUTION: f64 = 1.5;

/// Share of the standard deviation of `seen` that is due to changes of the host's speed, and not to differences between
/// calls.
///
/// The variance that calls cause is subtracted (shrinkage: James & Stein 1961). It is increased by `caution` standard
/// errors, because the variance of few values is uncertain. Otherwise, a small random excess would count as a change of
/// the host's speed.
///
/// `seen` has, for each interval, the mean CPU time of its calls relative to the overall mean, and the number of its
/// calls. `variability` is the squared coefficient of variation of the CPU time of a call.
pub(super) fn drift_share(seen: impl Iterator<Item = (f64, f64)>, variability: f64, caution: f64) -> f64 {
    let mut count = 0.0_f64;
    let mut squares = 0.0;
    let mut squares_of_calls = 0.0;
    for (factor, calls) in seen {
        count += 1.0;
        squares += (factor - 1.0).powi(2);
        squares_of_calls += variability / calls + EDGES * (1.0 + variability) / (calls * calls);
    }
    let uncertain = 1.0 + caution * (2.0 / count).sqrt();
    if count > 1.0 && squares > 0.0 {
        (1.0 - uncertain * squares_of_calls / squares).clamp(0.0, 1.0).sqrt()
    } else {
        0.0
    }
}

/// Mean slowness of the host over consecutive intervals, weighted by their duration. `stretches` has the duration in
/// seconds and the slowness of each.
pub(super) fn mean_slowness(stretches: &[(f64, f64)]) -> Option<f64> {
    let seconds: f64 = stretches.iter().map(|(length, _)| length).sum();
    let sum: f64 = stretches.iter().map(|(length, slowness)| length * slowness).sum();
    (seconds > 0.0).then(|| sum / seconds)
}
