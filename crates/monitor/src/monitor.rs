//! A thread that takes samples while a load runs, and the summary of what it saw.
//!
//! Memory is bounded: when [`MAX_SAMPLES`] are kept, every second one is dropped and the interval doubles. Counters
//! lose nothing by that; of the accept queue the longest length is carried over. The thread sleeps between samples
//! and ends when its [`Monitor`] does.

use crate::group::{Intervals, Schedule};
use crate::sampler::{Sample, Sampler};
use crate::summary::summarize;
use crate::{MonitorError, ProcessSelector, affinity, sys};
use brimful_core::Nanos;
use brimful_core::server::{Overhead, Server};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

/// Four minutes at four samples a second.
const MAX_SAMPLES: usize = 1024;

/// What to watch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// The server's programs.
    pub processes: Vec<ProcessSelector>,
    /// The TCP ports it listens on.
    pub ports: Vec<u16>,
    /// The CPUs whose shares are averaged; all of them if empty.
    pub cpus: Vec<usize>,
    /// How often each group is sampled.
    pub intervals: Intervals,
    /// The CPU for the monitor's own thread.
    pub pin: Option<usize>,
    /// Whether eBPF may serve as a source. It is left alone without the privilege in any case.
    pub ebpf: bool,
}

/// A running monitor. Dropping it ends its thread.
#[derive(Debug)]
pub struct Monitor {
    stop: Sender<()>,
    thread: JoinHandle<Run>,
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
    intervals: Intervals,
}

impl Default for MonitorConfig {
    fn default() -> MonitorConfig {
        let intervals = Intervals::every(Nanos::from_millis(250));
        MonitorConfig { processes: Vec::new(), ports: Vec::new(), cpus: Vec::new(), intervals, pin: None, ebpf: true }
    }
}

impl Monitor {
    /// Finds what is to be watched and takes the first sample before it returns.
    pub fn start(config: MonitorConfig) -> Result<Monitor, MonitorError> {
        let sampler = Sampler::open(&config)?;
        let (stop, stopped) = channel();
        let (ready, started) = channel();
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || {
                // Nobody waits for these words if `start` has failed by now.
                let _ = ready.send(config.pin.map_or(Ok(()), affinity::pin_this_thread));
                watch(sampler, config.intervals, &ready, &stopped)
            })
            .map_err(MonitorError::Thread)?;
        // Two words come: that the thread has its CPU, and that it has taken the first sample.
        for word in started.iter().take(2) {
            word?;
        }
        Ok(Monitor { stop, thread })
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
        let server = summarize(&history.samples, epoch, window);
        Server { sources: sampler.sources(), overhead, ..server }
    }
}

/// The monitor's thread: samples on a grid of instants until it is told to stop, then once more.
fn watch(
    mut sampler: Sampler,
    intervals: Intervals,
    ready: &Sender<Result<(), MonitorError>>,
    stopped: &Receiver<()>,
) -> Run {
    let mut history = History { samples: Vec::new(), intervals };
    let mut overhead = Overhead::default();
    let mut sampling = Nanos::ZERO;
    let mut schedule = Schedule::new(intervals, sys::now());
    loop {
        let due = schedule.take_due(sys::now());
        if !due.is_empty() {
            let begun = sys::thread_cpu();
            if history.push(sampler.sample_groups(due)) {
                schedule = Schedule::new(history.intervals, sys::now() + history.interval());
            }
            sampling += sys::thread_cpu() - begun;
            overhead.samples += 1;
            if overhead.samples == 1 {
                let _ = ready.send(Ok(()));
            }
        }
        match stopped.recv_timeout((schedule.next().unwrap_or(Nanos::MAX) - sys::now()).into()) {
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
    /// True if the intervals have doubled.
    fn push(&mut self, sample: Sample) -> bool {
        let full = self.samples.len() == MAX_SAMPLES;
        if full {
            self.thin();
        }
        self.samples.push(sample);
        full
    }

    fn interval(&self) -> Nanos {
        self.intervals.shortest().unwrap_or_default()
    }

    /// The last sample takes the place of the one before if that is too near to make an interval of its own.
    fn close(&mut self, mut sample: Sample) {
        if let [_, .., last] = self.samples.as_slice()
            && (sample.at - last.at).0 < self.interval().0 / 2
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
        self.intervals = self.intervals.doubled();
    }
}

/// What a sample takes over from the one before when that is dropped: the longer accept queue.
fn replace(dropped: &Sample, by: &mut Sample) {
    let (Some(dropped), Some(by)) = (&dropped.connections, &mut by.connections) else { return };
    for (dropped, by) in dropped.ports.iter().zip(&mut by.ports) {
        if let (Some(dropped), Some(by)) = (&dropped.listener, &mut by.listener) {
            by.accept_queue_max = by.accept_queue_max.max(dropped.accept_queue_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ListenerSample;
    use crate::fixture::run;

    fn listener(sample: &mut Sample) -> &mut ListenerSample {
        sample.connections.as_mut().unwrap().ports[0].listener.as_mut().unwrap()
    }

    #[test]
    fn a_long_run_keeps_few_samples_and_the_longest_queue() {
        let sample = |k: u64, accept_queue_max| {
            let mut sample = Sample { at: Nanos::from_millis(10 * k), ..run(0).remove(0) };
            listener(&mut sample).accept_queue_max = accept_queue_max;
            sample
        };
        let intervals = Intervals::every(Nanos::from_millis(10));
        let mut history = History { samples: Vec::new(), intervals };
        let (total, peak) = (10 * MAX_SAMPLES as u64, 8 * MAX_SAMPLES as u64 / 10);
        for k in 0..total {
            history.push(sample(k, if k == peak { 77 } else { 1 }));
        }
        let samples = &mut history.samples;
        assert!(samples.len() > MAX_SAMPLES / 4 && samples.len() <= MAX_SAMPLES, "{}", samples.len());
        let last = Nanos::from_millis(10 * (total - 1));
        assert_eq!((samples[0].at, samples[samples.len() - 1].at), (Nanos::ZERO, last));
        assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert_eq!(samples.iter_mut().filter_map(|s| (listener(s).accept_queue_max == 77).then_some(())).count(), 1);
        assert!(history.interval() > Nanos::from_millis(80));

        let (kept, interval) = (history.samples.len(), history.interval().0 / 10_000_000);
        history.close(sample(total - 1 + interval, 1));
        history.close(sample(total - 1 + interval + interval / 4, 0));
        assert_eq!(history.samples.len(), kept + 1, "the last but one was too near");
        let mut last = history.samples.pop().unwrap();
        let at = Nanos::from_millis(10 * (total - 1 + interval + interval / 4));
        assert_eq!((last.at, listener(&mut last).accept_queue_max), (at, 1));
    }
}
