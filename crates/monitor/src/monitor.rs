//! A thread that takes samples while a load runs, or receives them from another host, and the summary of what it saw. It
//! sleeps between samples and ends when its [`Monitor`] does.

use crate::history::History;
use crate::remote::{RemoteConfig, Stream};
use crate::sampler::{Sample, Sampler};
use crate::schedule::{Groups, Intervals, Schedule};
use crate::{MonitorError, NetNamespace, ProcessSelector, affinity, sys};
use brimful_core::Nanos;
use brimful_core::server::{ClockOffset, Overhead, Server};
use rustix::event::{PollFd, PollFlags};
use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter};
use std::sync::mpsc::{Sender, channel};
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
    /// Closed to end the thread.
    stop: PipeWriter,
    thread: JoinHandle<Run>,
}

/// What the thread hands back.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// By this host's clock.
    pub history: History,
    pub sources: BTreeMap<String, String>,
    pub overhead: Overhead,
    pub clock: Option<ClockOffset>,
    /// Why nothing was seen after the last sample, if it should have been.
    pub broken: Option<String>,
}

/// A sampler that measures what it costs.
#[derive(Debug)]
pub(crate) struct Meter {
    pub sampler: Sampler,
    /// CPU time of all samples.
    sampling: Nanos,
    samples: u64,
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
    /// Finds what is to be watched and takes the first sample before it returns. A program without any process is an error:
    /// it would be a run without its server.
    pub fn start(config: MonitorConfig) -> Result<Monitor, MonitorError> {
        let sampler = Sampler::open(&config)?;
        sampler.require_processes()?;
        let meter = Meter::new(sampler);
        let (ready, started) = channel();
        let monitor = Monitor::spawn(move |stopped| {
            // Nobody waits for these words if `start` has failed by now.
            let _ = ready.send(config.pin.map_or(Ok(()), affinity::pin_this_thread));
            watch(meter, config.intervals, &ready, stopped)
        })?;
        // Two words come: that the thread has its CPU, and that it has taken the first sample.
        for word in started.iter().take(2) {
            word?;
        }
        Ok(monitor)
    }

    /// The same of a server on another host: the samples come from a [`Serving`](crate::Serving) there, and the first one
    /// before this returns. The two hosts' clocks are compared now and at the end.
    ///
    /// # Errors
    /// There is nobody, or nobody who would; or the clocks cannot be compared well enough.
    pub fn connect(config: &RemoteConfig) -> Result<Monitor, MonitorError> {
        let stream = Stream::open(config)?;
        Monitor::spawn(move |stopped| stream.follow(stopped))
    }

    fn spawn(body: impl FnOnce(&PipeReader) -> Run + Send + 'static) -> Result<Monitor, MonitorError> {
        let (stopped, stop) = io::pipe().map_err(MonitorError::Thread)?;
        let thread = std::thread::Builder::new().name("monitor".to_owned()).spawn(move || body(&stopped));
        Ok(Monitor { stop, thread: thread.map_err(MonitorError::Thread)? })
    }

    /// Takes a last sample and sums up. `epoch` is the start of the load: `t_s` of the intervals counts from it.
    /// Averages are over the samples inside `window` (start, end), or over all of them. All instants are
    /// `CLOCK_MONOTONIC` of this host.
    pub fn finish(self, epoch: Nanos, window: Option<(Nanos, Nanos)>) -> Server {
        drop(self.stop);
        let Run { history, mut sources, overhead, clock, broken } = self.thread.join().unwrap_or_else(|_| Run {
            broken: Some("the monitor's thread died; please report this".to_owned()),
            ..Run::default()
        });
        if let Some(why) = broken {
            let seen = match history.last() {
                Some(last) => format!("none after {} of the load", (last.at - epoch).rounded()),
                None => "none".to_owned(),
            };
            sources.insert("monitor".to_owned(), format!("{seen}: {why}"));
        }
        Server { sources, overhead, clock, ..history.summary(epoch, window) }
    }
}

/// The monitor's thread: samples on a grid of instants until it is told to stop, then once more.
fn watch(
    mut meter: Meter,
    intervals: Intervals,
    ready: &Sender<Result<(), MonitorError>>,
    stopped: &PipeReader,
) -> Run {
    let mut history = History::default();
    let mut schedule = Schedule::new(intervals, sys::now());
    loop {
        let due = schedule.take_due(sys::now());
        if !due.is_empty() {
            history.push(meter.sample(due));
            if meter.samples == 1 {
                let _ = ready.send(Ok(()));
            }
        }
        let mut fds = [PollFd::new(stopped, PollFlags::IN)];
        // Without a way to wait there is nothing to be done but to end.
        if sys::wait(&mut fds, schedule.next().unwrap_or(Nanos::MAX)).unwrap_or(true) {
            break;
        }
    }
    history.close(meter.last_sample());
    let (sources, overhead) = (meter.sampler.sources(), meter.overhead());
    Run { history, sources, overhead, ..Run::default() }
}

impl Meter {
    pub fn new(sampler: Sampler) -> Meter {
        Meter { sampler, sampling: Nanos::ZERO, samples: 0 }
    }

    /// Reads the groups that are due.
    pub fn sample(&mut self, due: Groups) -> Sample {
        self.timed(|sampler| sampler.sample_groups(due))
    }

    /// See [`Sampler::last_sample`].
    pub fn last_sample(&mut self) -> Sample {
        self.timed(Sampler::last_sample)
    }

    fn timed(&mut self, take: impl FnOnce(&mut Sampler) -> Sample) -> Sample {
        let begun = sys::thread_cpu();
        let sample = take(&mut self.sampler);
        self.sampling += sys::thread_cpu() - begun;
        self.samples += 1;
        sample
    }

    /// What all samples have cost, and the calling thread.
    pub fn overhead(&self) -> Overhead {
        Overhead {
            monitor_cpu_s: sys::thread_cpu().as_secs_f64(),
            per_sample_us: self.sampling.as_micros_f64() / self.samples.max(1) as f64,
            samples: self.samples,
        }
    }
}
