//! A thread that takes samples while a load runs, or receives samples from another host. It sleeps between samples and
//! ends when its [`Monitor`] is dropped. At the end, the samples are summarized.

use crate::config::MonitorConfig;
use crate::history::{History, Observations};
use crate::meter::MeteredSampler;
use crate::remote::{RemoteConfig, Stream};
use crate::sampler::Sampler;
use crate::schedule::{Intervals, Schedule};
use crate::{MonitorError, affinity, sys};
use brimful_core::Nanos;
use brimful_core::server::Server;
use rustix::event::{PollFd, PollFlags};
use std::io::{self, PipeReader, PipeWriter};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A running monitor. Dropping it ends its thread.
#[derive(Debug)]
pub struct Monitor {
    /// The pipe that is closed to end the thread.
    stop: PipeWriter,
    thread: JoinHandle<Observations>,
}

impl Monitor {
    /// Starts to watch the server of this host. Finds the server's processes and takes the first sample before it
    /// returns. Returns an error if a program has no process, because the run would then lack the server's metrics.
    pub fn start(config: MonitorConfig) -> Result<Monitor, MonitorError> {
        let sampler = Sampler::open(&config)?;
        sampler.require_processes()?;
        let meter = MeteredSampler::new(sampler);
        let (ready, started) = channel();
        let monitor = Monitor::spawn(move |stopped| {
            // Sending fails only if `start` has already returned an error, because then nothing receives the result.
            let _ = ready.send(config.pin.map_or(Ok(()), affinity::pin_this_thread));
            watch(meter, config.intervals, &ready, stopped)
        })?;
        // The thread sends two results: one after it is pinned, and one after it has taken the first sample.
        for result in started.iter().take(2) {
            result?;
        }
        Ok(monitor)
    }

    /// Starts to watch a server on another host. A [`MonitorServer`](crate::MonitorServer) there sends the samples. The
    /// first sample arrives before this function returns. The clocks of the two hosts are compared now, and again at
    /// the end.
    ///
    /// Returns an error if the other host does not respond or refuses, or if the clocks cannot be compared precisely
    /// enough.
    pub fn connect(config: &RemoteConfig) -> Result<Monitor, MonitorError> {
        let stream = Stream::open(config)?;
        Monitor::spawn(move |stopped| stream.follow(stopped))
    }

    fn spawn(body: impl FnOnce(&PipeReader) -> Observations + Send + 'static) -> Result<Monitor, MonitorError> {
        let (stopped, stop) = io::pipe().map_err(MonitorError::Thread)?;
        let thread = std::thread::Builder::new().name("monitor".to_owned()).spawn(move || body(&stopped));
        Ok(Monitor { stop, thread: thread.map_err(MonitorError::Thread)? })
    }

    /// Takes a last sample and summarizes all samples. Intervals state their times (`t_s`) relative to `epoch`, the
    /// start of the load. Averages are over the samples inside `window` (start, end), or over all samples if `window`
    /// is `None`. All instants are `CLOCK_MONOTONIC` of this host.
    pub fn finish(self, epoch: Nanos, window: Option<(Nanos, Nanos)>) -> Server {
        drop(self.stop);
        let Observations { history, mut sources, overhead, clock, broken } =
            self.thread.join().unwrap_or_else(|_| Observations {
                broken: Some("the monitor's thread died; please report this".to_owned()),
                ..Observations::default()
            });
        if let Some(why) = broken {
            let seen = match history.last() {
                Some(last) => format!("none after {} of the load", (last.at - epoch).to_rounded_string()),
                None => "none".to_owned(),
            };
            sources.insert("monitor".to_owned(), format!("{seen}: {why}"));
        }
        Server { sources, overhead, clock, ..history.summary(epoch, window) }
    }
}

/// The monitor's thread: takes samples at scheduled instants until it is stopped, and then a last sample.
fn watch(
    mut meter: MeteredSampler,
    intervals: Intervals,
    ready: &Sender<Result<(), MonitorError>>,
    stopped: &PipeReader,
) -> Observations {
    let mut history = History::default();
    let mut schedule = Schedule::new(intervals, sys::now());
    loop {
        let due = schedule.take_due(sys::now());
        if !due.is_empty() {
            history.push(meter.sample(due));
            if meter.samples() == 1 {
                let _ = ready.send(Ok(()));
            }
        }
        let mut fds = [PollFd::new(stopped, PollFlags::IN)];
        // If waiting fails, the thread cannot follow its schedule, so it ends.
        if sys::wait(&mut fds, schedule.next().unwrap_or(Nanos::MAX)).unwrap_or(true) {
            break;
        }
    }
    history.close(meter.last_sample());
    let overhead = meter.overhead(sys::thread_cpu());
    Observations { history, sources: meter.sources(), overhead, ..Observations::default() }
}
