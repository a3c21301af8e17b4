//! A running watch: takes samples when they are due, and keeps the latest rates and the history.

use super::options::WatchOptions;
use brimful_core::Nanos;
use brimful_core::server::{HostProbe, Server};
use brimful_monitor::host::SpeedProbe;
use brimful_monitor::{
    Finding, History, MeteredSampler, MetricsTracker, MonitorError, Rates, Sample, Sampler, Schedule, bottleneck,
};
use brimful_os::clock;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// A running watch of a server, with its latest metrics.
pub struct Session {
    meter: MeteredSampler,
    schedule: Schedule,
    tracker: MetricsTracker,
    history: History,
    /// The latest metrics of each group.
    current: Rates,
    /// The start of the watch, as a time of `CLOCK_MONOTONIC`.
    began: Nanos,
    /// CPU time of this process at the start of the watch.
    cpu_before: Nanos,
    /// Measured speed of this host at the start of the watch.
    host_probe: HostProbe,
}

/// One sample of a watch, and the rates since the previous samples.
pub struct Tick {
    /// Time by the wall clock, which may be changed during the watch.
    pub at: SystemTime,
    /// The sample. It contains the groups of metrics that were due.
    pub sample: Sample,
    /// The rates of these groups since their previous samples.
    pub rates: Rates,
}

impl Session {
    /// Starts a watch. It waits for programs that are not running, unless --once is given.
    pub fn open(options: &WatchOptions) -> Result<Session, MonitorError> {
        let config = &options.config;
        let sampler = Sampler::open(config)?;
        if options.once {
            sampler.require_processes()?;
        }
        // The speed of this host is measured only once, so the probe and its buffer are dropped.
        let host_probe = SpeedProbe::new().measure();
        let began = clock::now();
        Ok(Session {
            meter: MeteredSampler::new(sampler),
            schedule: Schedule::new(config.intervals, began),
            tracker: MetricsTracker::default(),
            history: History::default(),
            current: Rates::default(),
            began,
            cpu_before: clock::process_cpu(),
            host_probe,
        })
    }

    /// Samples the groups of metrics that are due; `None` if no group is due.
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

    /// Time until the next sample is due.
    pub fn time_until_due(&self) -> Nanos {
        self.schedule.next().unwrap_or(Nanos::MAX) - clock::now()
    }

    /// Time since the start of the watch.
    pub fn elapsed(&self) -> Nanos {
        clock::now() - self.began
    }

    /// The latest metrics of each group.
    pub fn latest_rates(&self) -> &Rates {
        &self.current
    }

    /// The findings about the current bottleneck.
    pub fn findings(&self) -> Vec<Finding> {
        bottleneck(&self.current)
    }

    /// For each kind of metric, a text with the source of the metric, or with the reason why it is unknown.
    pub fn sources(&self) -> BTreeMap<String, String> {
        self.meter.sources()
    }

    /// CPU time of this whole process, as a share of one CPU.
    pub fn monitor_cpu_share(&self) -> f64 {
        self.cpu().as_secs_f64() / self.elapsed().as_secs_f64().max(1e-9)
    }

    /// Takes a last sample of all groups. Returns the metrics and findings of the whole watch.
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
