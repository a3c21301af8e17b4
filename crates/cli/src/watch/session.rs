//! The monitor at work: samples when they are due, the latest figures, and what is kept for the end.

use super::options::WatchOptions;
use brimful_core::Nanos;
use brimful_core::server::{HostProbe, Server};
use brimful_monitor::host::Prober;
use brimful_monitor::{Finding, History, Meter, MonitorError, Rates, Sample, Sampler, Schedule, Tracker, bottleneck};
use brimful_os::clock;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// A watch that is under way.
pub struct Session {
    meter: Meter,
    schedule: Schedule,
    tracker: Tracker,
    history: History,
    /// Of each group the latest figures.
    current: Rates,
    /// `CLOCK_MONOTONIC`.
    began: Nanos,
    /// CPU time of this process when it began.
    cpu_before: Nanos,
    /// How fast this host was then.
    host_probe: HostProbe,
}

/// One sample, and what it tells together with those before.
pub struct Tick {
    /// By the wall clock, which may step.
    pub at: SystemTime,
    pub sample: Sample,
    pub rates: Rates,
}

impl Session {
    /// Finds what is to be watched. Programs that are not there are waited for, unless there is no time for that.
    pub fn open(options: &WatchOptions) -> Result<Session, MonitorError> {
        let config = &options.config;
        let sampler = Sampler::open(config)?;
        if options.once {
            sampler.require_processes()?;
        }
        // Its buffer is not kept: this is done once.
        let host_probe = Prober::new().measure();
        let began = clock::now();
        Ok(Session {
            meter: Meter::new(sampler),
            schedule: Schedule::new(config.intervals, began),
            tracker: Tracker::default(),
            history: History::default(),
            current: Rates::default(),
            began,
            cpu_before: clock::process_cpu(),
            host_probe,
        })
    }

    /// Samples the groups that are due, if any is.
    pub fn tick(&mut self) -> Option<Tick> {
        let due = self.schedule.take_due(clock::now());
        if due.is_empty() {
            return None;
        }
        let sample = self.meter.sample(due);
        let at = SystemTime::now();
        let rates = self.tracker.advance(&sample);
        self.history.push(sample.clone());
        self.current.update(rates.clone());
        Some(Tick { at, sample, rates })
    }

    /// Until the next group is due.
    pub fn due_in(&self) -> Nanos {
        self.schedule.next().unwrap_or(Nanos::MAX) - clock::now()
    }

    pub fn elapsed(&self) -> Nanos {
        clock::now() - self.began
    }

    /// Of each group the latest figures.
    pub fn current(&self) -> &Rates {
        &self.current
    }

    /// What stands in the way just now.
    pub fn findings(&self) -> Vec<Finding> {
        bottleneck(&self.current)
    }

    /// Where each kind of figures comes from.
    pub fn sources(&self) -> BTreeMap<String, String> {
        self.meter.sources()
    }

    /// CPU time of this whole process, as a share of one CPU.
    pub fn cost(&self) -> f64 {
        self.cpu().as_secs_f64() / self.elapsed().as_secs_f64().max(1e-9)
    }

    /// Takes a last sample of everything, and says what was seen in all the time.
    pub fn finish(mut self) -> (Server, Vec<Finding>) {
        self.history.close(self.meter.last_sample());
        let overhead = self.meter.overhead(self.cpu());
        let host_probe = Some(self.host_probe);
        let server = Server { sources: self.sources(), overhead, host_probe, ..self.history.summary(self.began, None) };
        (server, bottleneck(&self.history.rates()))
    }

    fn cpu(&self) -> Nanos {
        clock::process_cpu() - self.cpu_before
    }
}
