//! What calibration does to a server that others use, too.

use crate::found::Setup;
use crate::level::Trial;
use brimful_core::Nanos;
use brimful_core::survey::Inflicted;

/// The sum of it so far.
#[derive(Debug, Default)]
pub(crate) struct Toll {
    loaded: Nanos,
    rested: Nanos,
    calls: u64,
    /// CPU seconds of the server's processes under load, while they could be seen.
    work_s: Option<f64>,
    longest_wait_s: f64,
}

impl Toll {
    /// After a load of this length, and the rest that followed.
    pub fn add(&mut self, trial: &Trial, lasts: Nanos, rest: Nanos) {
        let counts = &trial.record.counts;
        let before = if self.loaded == Nanos::ZERO { Some(0.0) } else { self.work_s };
        let work = trial.observed().ok().map(|observed| observed.busy * lasts.as_secs_f64());
        self.work_s = before.zip(work).map(|(before, work)| before + work);
        self.loaded += lasts;
        self.rested += rest;
        self.calls += counts.completed;
        let longest = trial.record.response_time_us.map_or(0.0, |summary| summary.max / 1e6);
        self.longest_wait_s = self.longest_wait_s.max(longest);
    }

    /// All of it, on a server that completes `capacity` calls per second at most and keeps `idle_busy` CPUs busy by
    /// itself.
    pub fn sum(&self, setup: &Setup, most_clients: u64, capacity: f64, idle_busy: f64) -> Inflicted {
        let lasted = (self.loaded + self.rested).as_secs_f64().max(1e-9);
        let mean_load = match self.work_s {
            Some(work) => (work + idle_busy * self.rested.as_secs_f64()) / f64::from(setup.servers()) / lasted,
            None => self.calls as f64 / capacity / lasted,
        };
        Inflicted {
            mean_load,
            max_load: Some(setup.max_load.min(1.0)),
            most_clients,
            longest_wait_s: self.longest_wait_s,
            max_delay_s: Some(setup.max_delay.as_secs_f64()),
        }
    }
}
