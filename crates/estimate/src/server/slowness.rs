//! Slowness of the host at the time of a call: the ratio of the call's CPU time to the time that the model predicts.

use crate::window::RunStretch;

/// Below this idle share of the CPUs, the cost of a call is assumed not to depend on the idle share.
const MIN_IDLE: f64 = 0.05;

/// The expected CPU time of a call at one load. A call that finds the server idle may cost more.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedCost {
    /// CPU seconds of a call on a server that is never idle.
    pub saturated: f64,
    /// Mean CPU seconds of a call at this load.
    pub mean: f64,
    /// Idle share of the CPUs at this load.
    pub idle: f64,
    /// Share of the CPUs' capacity that requests can use.
    pub free: f64,
    pub servers: f64,
    pub idle_busy: f64,
}

impl ExpectedCost {
    /// Slowness of the host during a stretch: the ratio of the cost of a call to the cost that is expected at the
    /// stretch's rate of calls.
    pub fn slowness(&self, stretch: &RunStretch) -> f64 {
        let work = (stretch.work - self.idle_busy * stretch.seconds).max(0.0);
        // On a busy server, the idle time is too short to compare. The idle share follows from the number of calls: if
        // it followed from the CPU time, a stretch of expensive calls would seem to be less idle, and so even slower.
        let relative_idle = if self.idle < MIN_IDLE {
            1.0
        } else {
            (self.free - stretch.calls * self.mean / stretch.seconds / self.servers).max(0.0) / self.idle
        };
        let expected = self.saturated + (self.mean - self.saturated) * relative_idle;
        work / stretch.calls / expected
    }
}

/// Variance of the number of calls of a stretch, due to the calls that are in progress at its start and at its end.
const EDGES: f64 = 0.5;
/// The value of `caution` in [`drift_share`] for the stretches of a single measurement, in standard errors.
pub(super) const CAUTION: f64 = 1.5;

/// Ratio of the standard deviation that is due to the host to the whole standard deviation of `seen`. The variance of
/// the calls themselves is subtracted (shrinkage: James & Stein 1961), increased by `caution` of its standard errors.
/// The variance of few factors is uncertain, and a small excess would count as a variable host and hide the variability
/// of the calls.
///
/// `seen` contains factors near 1. Each factor is a mean over a number of calls, which follows it. `variability` is the
/// squared coefficient of variation of the CPU time of a call.
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

/// Mean slowness over stretches. Each stretch is its length in seconds and its slowness.
pub(super) fn mean_slowness(stretches: &[(f64, f64)]) -> Option<f64> {
    let seconds: f64 = stretches.iter().map(|(length, _)| length).sum();
    let sum: f64 = stretches.iter().map(|(length, slowness)| length * slowness).sum();
    (seconds > 0.0).then(|| sum / seconds)
}
