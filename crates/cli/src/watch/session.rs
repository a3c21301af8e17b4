//! The monitor at work: samples when they are due, the latest figures, and what is kept for the end.

use super::plan::Plan;
use brimful_core::Nanos;
use brimful_core::server::{Overhead, Server};
use brimful_monitor::{Finding, History, MonitorError, Rates, Sample, Sampler, Schedule, Tracker, bottleneck};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// A watch that is under way.
pub struct Session {
    sampler: Sampler,
    schedule: Schedule,
    tracker: Tracker,
    history: History,
    /// Of each group the latest figures.
    current: Rates,
    /// `CLOCK_MONOTONIC`.
    began: Nanos,
    /// CPU time of this process when it began.
    cpu_before: Nanos,
    /// CPU time of all samples.
    sampling: Nanos,
    samples: u64,
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
    pub fn open(plan: &Plan) -> Result<Session, MonitorError> {
        let config = &plan.config;
        let sampler = Sampler::open(config)?;
        if plan.once {
            sampler.require_processes()?;
        }
        let began = now();
        Ok(Session {
            sampler,
            schedule: Schedule::new(config.intervals, began),
            tracker: Tracker::default(),
            history: History::default(),
            current: Rates::default(),
            began,
            cpu_before: clock(ClockId::ProcessCPUTime),
            sampling: Nanos::ZERO,
            samples: 0,
        })
    }

    /// Samples the groups that are due, if any is.
    pub fn tick(&mut self) -> Option<Tick> {
        let due = self.schedule.take_due(now());
        if due.is_empty() {
            return None;
        }
        let sample = self.timed(|sampler| sampler.sample_groups(due));
        let at = SystemTime::now();
        let rates = self.tracker.advance(&sample);
        self.history.push(sample.clone());
        self.current.update(rates.clone());
        Some(Tick { at, sample, rates })
    }

    /// Until the next group is due.
    pub fn due_in(&self) -> Nanos {
        self.schedule.next().unwrap_or(Nanos::MAX) - now()
    }

    pub fn elapsed(&self) -> Nanos {
        now() - self.began
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
        self.sampler.sources()
    }

    /// CPU time of this whole process, as a share of one CPU.
    pub fn cost(&self) -> f64 {
        self.cpu().as_secs_f64() / self.elapsed().as_secs_f64().max(1e-9)
    }

    /// Takes a last sample of everything, and says what was seen in all the time.
    pub fn finish(mut self) -> (Server, Vec<Finding>) {
        let last = self.timed(Sampler::last_sample);
        self.history.close(last);
        let overhead = Overhead {
            monitor_cpu_s: self.cpu().as_secs_f64(),
            per_sample_us: self.sampling.as_micros_f64() / self.samples as f64,
            samples: self.samples,
        };
        let server = Server { sources: self.sources(), overhead, ..self.history.summary(self.began, None) };
        (server, bottleneck(&self.history.rates()))
    }

    fn timed(&mut self, take: impl FnOnce(&mut Sampler) -> Sample) -> Sample {
        let begun = clock(ClockId::ThreadCPUTime);
        let sample = take(&mut self.sampler);
        self.sampling += clock(ClockId::ThreadCPUTime) - begun;
        self.samples += 1;
        sample
    }

    fn cpu(&self) -> Nanos {
        clock(ClockId::ProcessCPUTime) - self.cpu_before
    }
}

fn now() -> Nanos {
    clock(ClockId::Monotonic)
}

fn clock(id: ClockId) -> Nanos {
    let time = clock_gettime(id);
    Nanos((time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64))
}
