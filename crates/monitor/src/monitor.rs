//! A thread that takes samples while a load runs, and the summary of what it saw. It sleeps between samples and ends when
//! its [`Monitor`] does.

use crate::group::{Intervals, Schedule};
use crate::history::History;
use crate::sampler::Sampler;
use crate::{MonitorError, NetNamespace, ProcessSelector, affinity, sys};
use brimful_core::Nanos;
use brimful_core::server::{Overhead, Server};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

/// What to watch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// The server's programs.
    pub processes: Vec<ProcessSelector>,
    /// The TCP ports it listens on.
    pub ports: Vec<u16>,
    /// The CPUs whose shares are averaged; all of them if empty.
    pub cpus: Vec<usize>,
    /// Whose network is watched.
    pub netns: NetNamespace,
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

impl Default for MonitorConfig {
    fn default() -> MonitorConfig {
        let intervals = Intervals::every(Nanos::from_millis(250));
        MonitorConfig {
            processes: Vec::new(),
            ports: Vec::new(),
            cpus: Vec::new(),
            netns: NetNamespace::Server,
            intervals,
            pin: None,
            ebpf: true,
        }
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
        Server { sources: sampler.sources(), overhead, ..history.summary(epoch, window) }
    }
}

/// The monitor's thread: samples on a grid of instants until it is told to stop, then once more.
fn watch(
    mut sampler: Sampler,
    intervals: Intervals,
    ready: &Sender<Result<(), MonitorError>>,
    stopped: &Receiver<()>,
) -> Run {
    let mut history = History::default();
    let mut overhead = Overhead::default();
    let mut sampling = Nanos::ZERO;
    let mut schedule = Schedule::new(intervals, sys::now());
    loop {
        let due = schedule.take_due(sys::now());
        if !due.is_empty() {
            let begun = sys::thread_cpu();
            history.push(sampler.sample_groups(due));
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
