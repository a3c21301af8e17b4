//! How slow the host is at the time of a call: the CPU time of the call over what the model expects for it.

use crate::window::RunStretch;

/// Below this share of idle CPUs, the cost of a call is taken not to depend on it.
const MIN_IDLE: f64 = 0.05;

/// The CPU time that a call is expected to need at one load. A call that finds the server idle may cost more.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedCost {
    /// CPU seconds of a call on a server that is never idle.
    pub saturated: f64,
    /// Mean CPU seconds of a call at this load.
    pub mean: f64,
    /// Share of the CPUs that is idle at this load.
    pub idle: f64,
    /// Share of the CPUs that requests can use.
    pub free: f64,
    pub servers: f64,
    pub idle_busy: f64,
}

impl ExpectedCost {
    /// Slowness of the host during a stretch: the cost of a call over the cost expected at the idleness of that
    /// stretch.
    pub fn slowness(&self, stretch: &RunStretch) -> f64 {
        let work = (stretch.work - self.idle_busy * stretch.seconds).max(0.0);
        // On a busy server the idle time is too small to be compared.
        let relative_idle = if self.idle < MIN_IDLE {
            1.0
        } else {
            (self.free - work / stretch.seconds / self.servers).max(0.0) / self.idle
        };
        let expected = self.saturated + (self.mean - self.saturated) * relative_idle;
        work / stretch.calls / expected
    }
}

/// How much of the scatter of `seen` is due to the host: the square root of the share of its variance that is left
/// after subtracting the variance of the calls themselves (shrinkage: James & Stein 1961).
///
/// `seen` has factors about 1, each with the number of calls that it is the mean of; `variability` is the squared
/// coefficient of variation of what a call needs.
pub(super) fn drift_share(seen: impl Iterator<Item = (f64, f64)>, variability: f64) -> f64 {
    let mut count = 0.0;
    let mut squares = 0.0;
    let mut squares_of_calls = 0.0;
    for (factor, calls) in seen {
        count += 1.0;
        squares += (factor - 1.0).powi(2);
        squares_of_calls += variability / calls;
    }
    if count > 1.0 && squares > 0.0 { (1.0 - squares_of_calls / squares).clamp(0.0, 1.0).sqrt() } else { 0.0 }
}

/// Mean slowness of stretches, which are lengths in seconds and slowness.
pub(super) fn mean_slowness(stretches: &[(f64, f64)]) -> Option<f64> {
    let seconds: f64 = stretches.iter().map(|(length, _)| length).sum();
    let sum: f64 = stretches.iter().map(|(length, slowness)| length * slowness).sum();
    (seconds > 0.0).then(|| sum / seconds)
}
