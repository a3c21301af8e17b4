//! Anchors: short closed loads before and after each measured load level, which measure the host's speed. The ratio of
//! an anchor's throughput to its throughput during calibration is the relative speed of the host.

use crate::design::{anchor_duration, warm_up};
use crate::level::HostSpeed;
use crate::runner::{Halt, Runner};
use crate::setup::closed;
use crate::trial::Trial;
use brimful_core::Nanos;
use brimful_estimate::OfferedLoad;

/// The load of an anchor (a short load that measures the host's speed), and its throughput during calibration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnchorLoad {
    /// Number of closed-loop clients without think time.
    pub clients: u64,
    /// Calls of this load completed per second during calibration; `None` if it is unknown. Then no anchors are
    /// measured.
    pub rate: Option<f64>,
}

impl AnchorLoad {
    /// Runs `measure` between two anchors (short loads that measure the host's speed). Each anchor lasts at most
    /// `longest`.
    pub fn measure_between_anchors<'a, T>(
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
