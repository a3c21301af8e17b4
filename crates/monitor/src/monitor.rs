//! A thread that takes samples while a load runs, and the summary of what it saw.
//!
//! Memory is bounded: when [`MAX_SAMPLES`] are kept, every second one is dropped and the interval doubles. Counters
//! lose nothing by that; of the accept queue the longest length is carried over. The thread sleeps between samples
//! and ends when its [`Monitor`] does.

use crate::sampler::{Sample, Sampler};
use crate::{MonitorError, ProcessSelector, affinity, online_cpus, rates, sys};
use brimful_core::Nanos;
use brimful_core::record::{Overhead, Server};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

/// 17 minutes at four samples a second.
const MAX_SAMPLES: usize = 4096;

/// The bounds of the interval at the start: it must show a burst, and must not be a load itself.
const INTERVALS: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(1));

/// What to watch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// The server's programs.
    pub processes: Vec<ProcessSelector>,
    /// The TCP port it listens on.
    pub port: Option<u16>,
    /// The CPUs whose shares are averaged; all of them if empty.
    pub cpus: Vec<usize>,
    /// Between samples; brought to between 10 ms and 1 s.
    pub interval: Nanos,
    /// The CPU for the monitor's own thread.
    pub pin: Option<usize>,
}

/// A running monitor. Dropping it ends its thread.
#[derive(Debug)]
pub struct Monitor {
    stop: Sender<()>,
    thread: JoinHandle<Run>,
    cpus: Vec<usize>,
}

/// What the thread hands back.
#[derive(Debug)]
struct Run {
    sampler: Sampler,
    history: History,
    overhead: Overhead,
}

/// The samples that are kept.
#[derive(Debug)]
struct History {
    samples: Vec<Sample>,
    interval: Nanos,
}

impl Default for MonitorConfig {
    fn default() -> MonitorConfig {
        let interval = Nanos::from_millis(250);
        MonitorConfig { processes: Vec::new(), port: None, cpus: Vec::new(), interval, pin: None }
    }
}

impl Monitor {
    /// Finds what is to be watched and takes the first sample before it returns.
    pub fn start(config: MonitorConfig) -> Result<Monitor, MonitorError> {
        let sampler = Sampler::open(&config)?;
        let cpus = if config.cpus.is_empty() { online_cpus() } else { config.cpus.clone() };
        let (stop, stopped) = channel();
        let (ready, started) = channel();
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || {
                // Nobody waits for these words if `start` has failed by now.
                let _ = ready.send(config.pin.map_or(Ok(()), affinity::pin_this_thread));
                watch(sampler, config.interval, &ready, &stopped)
            })
            .map_err(MonitorError::Thread)?;
        // Two words come: that the thread has its CPU, and that it has taken the first sample.
        for word in started.iter().take(2) {
            word?;
        }
        Ok(Monitor { stop, thread, cpus })
    }

    /// Takes a last sample and sums up. `epoch` is the start of the load: `t_s` of the intervals counts from it.
    /// Averages are over the samples inside `window` (start, end), or over all of them. All instants are
    /// `CLOCK_MONOTONIC`.
    pub fn finish(self, epoch: Nanos, window: Option<(Nanos, Nanos)>) -> Server {
        drop(self.stop);
        let Ok(Run { sampler, history, overhead }) = self.thread.join() else {
            let sources = [("monitor".to_owned(), "none: the monitor's thread died; please report this".to_owned())];
            return Server { sources: sources.into(), ..Server::default() };
        };
        let server = rates::summarize(&history.samples, sampler.programs(), epoch, window);
        Server { sources: sampler.sources(), overhead, cpus: self.cpus, ..server }
    }
}

/// The monitor's thread: samples on a grid of instants until it is told to stop, then once more.
fn watch(
    mut sampler: Sampler,
    interval: Nanos,
    ready: &Sender<Result<(), MonitorError>>,
    stopped: &Receiver<()>,
) -> Run {
    let mut history = History { samples: Vec::new(), interval: interval.clamp(INTERVALS.0, INTERVALS.1) };
    let mut overhead = Overhead::default();
    let mut sampling = Nanos::ZERO;
    let mut due = sys::now();
    loop {
        let begun = sys::thread_cpu();
        history.push(sampler.sample());
        sampling += sys::thread_cpu() - begun;
        overhead.samples += 1;
        if overhead.samples == 1 {
            let _ = ready.send(Ok(()));
        }
        // A sample that is late by more than an interval is left out, not made up for.
        let now = sys::now();
        while due <= now {
            due += history.interval;
        }
        match stopped.recv_timeout((due - now).into()) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => break,
        }
    }
    history.close(sampler.sample());
    overhead.samples += 1;
    overhead.per_sample_us = sampling.as_micros_f64() / (overhead.samples - 1) as f64;
    overhead.monitor_cpu_s = sys::thread_cpu().as_secs_f64();
    Run { sampler, history, overhead }
}

impl History {
    fn push(&mut self, sample: Sample) {
        if self.samples.len() == MAX_SAMPLES {
            self.thin();
        }
        self.samples.push(sample);
    }

    /// The last sample takes the place of the one before if that is too near to make an interval of its own.
    fn close(&mut self, mut sample: Sample) {
        if let [_, .., last] = self.samples.as_slice()
            && (sample.at - last.at).0 < self.interval.0 / 2
        {
            replace(last, &mut sample);
            self.samples.pop();
        }
        self.push(sample);
    }

    /// Keeps the first sample, and of all others the second of every two.
    fn thin(&mut self) {
        let samples = std::mem::take(&mut self.samples);
        let mut dropped: Option<Sample> = None;
        for (index, mut sample) in samples.into_iter().enumerate() {
            if index > 0 && index % 2 == 0 {
                dropped = Some(sample);
                continue;
            }
            if let Some(dropped) = dropped.take() {
                replace(&dropped, &mut sample);
            }
            self.samples.push(sample);
        }
        self.interval += self.interval;
    }
}

/// What a sample takes over from the one before when that is dropped: the longer accept queue.
fn replace(dropped: &Sample, by: &mut Sample) {
    if let (Some(dropped), Some(by)) = (&dropped.listener, &mut by.listener) {
        by.accept_queue_max = by.accept_queue_max.max(dropped.accept_queue_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ListenerSample;

    #[test]
    fn a_long_run_keeps_few_samples_and_the_longest_queue() {
        let sample = |k: u64, accept_queue_max| {
            let listener = Some(ListenerSample { accept_queue_max, ..ListenerSample::default() });
            Sample { at: Nanos(k), listener, ..Sample::default() }
        };
        let mut history = History { samples: Vec::new(), interval: Nanos(1) };
        let (total, peak) = (10 * MAX_SAMPLES as u64, 8 * MAX_SAMPLES as u64 / 10);
        for k in 0..total {
            history.push(sample(k, if k == peak { 77 } else { 1 }));
        }
        let samples = &history.samples;
        assert!(samples.len() > MAX_SAMPLES / 4 && samples.len() <= MAX_SAMPLES, "{}", samples.len());
        assert_eq!((samples[0].at, samples[samples.len() - 1].at), (Nanos(0), Nanos(total - 1)));
        assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert_eq!(samples.iter().filter(|s| s.listener.unwrap().accept_queue_max == 77).count(), 1);
        assert!(history.interval > Nanos(8));

        let (kept, interval) = (history.samples.len(), history.interval.0);
        history.close(sample(total - 1 + interval, 1));
        history.close(sample(total - 1 + interval + interval / 4, 0));
        assert_eq!(history.samples.len(), kept + 1, "the last but one was too near");
        let last = history.samples.pop().unwrap();
        assert_eq!((last.at.0, last.listener.unwrap().accept_queue_max), (total - 1 + interval + interval / 4, 1));
    }
}
