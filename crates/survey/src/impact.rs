//! The impact of calibration on other clients of the server: the load, and the delay of their calls.

use crate::design::LoadStep;
use crate::setup::Setup;
use crate::trial::Trial;
use brimful_core::Nanos;
use brimful_core::survey::CalibrationImpact;

/// Total durations, calls and CPU time of all loads of calibration.
#[derive(Debug, Default)]
pub(crate) struct ImpactTotals {
    loaded: Nanos,
    rested: Nanos,
    calls: u64,
    /// CPU time of the server's processes under load, in seconds; `None` if it is unknown for any load.
    work_s: Option<f64>,
    longest_wait_s: f64,
}

impl ImpactTotals {
    /// Adds a load of calibration and the pause after it.
    pub fn add(&mut self, trial: &Trial, step: &LoadStep) {
        let before = if self.loaded == Nanos::ZERO { Some(0.0) } else { self.work_s };
        let work = trial.window_measurement().ok().map(|observed| observed.busy * step.duration.as_secs_f64());
        self.work_s = before.zip(work).map(|(before, work)| before + work);
        self.loaded += step.duration;
        self.rested += step.pause;
        self.calls += trial.record.counts.completed;
        let longest_wait_s = trial.record.response_time_us.map_or(0.0, |summary| summary.max / 1e6);
        self.longest_wait_s = self.longest_wait_s.max(longest_wait_s);
    }

    /// The impact of calibration. The server has a capacity of `capacity` calls per second, and keeps `idle_busy` CPUs
    /// busy without load. `most_clients` is the largest number of clients.
    pub fn impact(&self, setup: &Setup, most_clients: u64, capacity: f64, idle_busy: f64) -> CalibrationImpact {
        let duration_s = (self.loaded + self.rested).as_secs_f64().max(1e-9);
        let mean_load = match self.work_s {
            Some(work_s) => (work_s + idle_busy * self.rested.as_secs_f64()) / f64::from(setup.servers()) / duration_s,
            None => self.calls as f64 / capacity / duration_s,
        };
        CalibrationImpact {
            mean_load,
            max_load: Some(setup.impact_limits.max_load.min(1.0)),
            max_clients: most_clients,
            longest_wait_s: self.longest_wait_s,
            max_delay_s: Some(setup.impact_limits.max_delay.as_secs_f64()),
        }
    }
}
