//! Anchors are short loads before and after a level. The ratio of their rate to the rate during calibration shows the
//! host's speed.

use crate::design::{anchor_duration, warm_up};
use crate::runner::{Halt, Runner};
use crate::setup::closed;
use crate::trial::Trial;
use brimful_core::Nanos;
use brimful_estimate::OfferedLoad;

/// The load of an anchor, and the rate that it had during calibration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperatingPoint {
    pub clients: u64,
    /// Calls per second during calibration; `None` if no run could be used.
    pub rate: Option<f64>,
}

/// The host's speed during a level, relative to its speed during calibration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostSpeed {
    /// Mean of the speeds before and after the level, or the only one that is known; `None` if no anchor could be used.
    pub mean: Option<f64>,
    /// The speed after the level minus the speed before; `None` unless both anchors could be used.
    pub change: Option<f64>,
}

impl OperatingPoint {
    /// Runs `measure` between two anchors, each of which lasts at most `longest`.
    pub fn between_anchors<'a, T>(
        self,
        runner: &mut Runner<'a>,
        longest: Nanos,
        measure: impl FnOnce(&mut Runner<'a>) -> Result<T, Halt>,
    ) -> Result<(T, HostSpeed), Halt> {
        let before = self.host_speed(runner, longest)?;
        let measured = measure(runner)?;
        let after = self.host_speed(runner, longest)?;
        let speed = match (before, after) {
            (Some(before), Some(after)) => {
                HostSpeed { mean: Some(f64::midpoint(before, after)), change: Some(after - before) }
            }
            (before, after) => HostSpeed { mean: before.or(after), change: None },
        };
        Ok((measured, speed))
    }

    fn host_speed(self, runner: &mut Runner<'_>, longest: Nanos) -> Result<Option<f64>, Halt> {
        let Some(calibrated_rate) = self.rate else { return Ok(None) };
        let setup = runner.setup;
        let workload = setup.workload_with(closed(self.clients));
        let duration = anchor_duration(setup, self.clients, calibrated_rate).min(longest);
        let trial = runner.measure(&workload, duration)?;
        let trial = Trial::with_warm_up(trial.record, &workload.classes, warm_up(setup));
        runner.check(&trial)?;
        let piece = trial.measurement(OfferedLoad::Clients(self.clients), setup.servers(), warm_up(setup));
        Ok(piece.filter(|_| trial.not_client_limited()).map(|piece| piece.rate() / calibrated_rate))
    }
}
