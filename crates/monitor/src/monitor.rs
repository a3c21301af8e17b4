//! A thread that takes samples while a load runs, or receives them from another host, and the summary of what it saw.
//! It sleeps between samples and ends when its [`Monitor`] does.

use crate::config::MonitorConfig;
use crate::history::{History, Observations};
use crate::meter::Meter;
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
    /// Closed to end the thread.
    stop: PipeWriter,
    thread: JoinHandle<Observations>,
}

impl Monitor {
    /// Finds what is to be watched and takes the first sample before it returns. A program without any process is an
    /// error: it would be a run without its server.
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

    /// The same of a server on another host: the samples come from a [`Serving`](crate::Serving) there, and the first
    /// one before this returns. The two hosts' clocks are compared now and at the end.
    ///
    /// # Errors
    /// There is nobody, or nobody who would; or the clocks cannot be compared well enough.
    pub fn connect(config: &RemoteConfig) -> Result<Monitor, MonitorError> {
        let stream = Stream::open(config)?;
        Monitor::spawn(move |stopped| stream.follow(stopped))
    }

    fn spawn(body: impl FnOnce(&PipeReader) -> Observations + Send + 'static) -> Result<Monitor, MonitorError> {
        let (stopped, stop) = io::pipe().map_err(MonitorError::Thread)?;
        let thread = std::thread::Builder::new().name("monitor".to_owned()).spawn(move || body(&stopped));
        Ok(Monitor { stop, thread: thread.map_err(MonitorError::Thread)? })
    }

    /// Takes a last sample and sums up. `epoch` is the start of the load: `t_s` of the intervals counts from it.
    /// Averages are over the samples inside `window` (start, end), or over all of them. All instants are
    /// `CLOCK_MONOTONIC` of this host.
    pub fn finish(self, epoch: Nanos, window: Option<(Nanos, Nanos)>) -> Server {
        drop(self.stop);
        let Observations { history, mut sources, overhead, clock, broken } =
            self.thread.join().unwrap_or_else(|_| Observations {
                broken: Some("the monitor's thread died; please report this".to_owned()),
                ..Observations::default()
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
        // Without a way to wait there is nothing to be done but to end.
        if sys::wait(&mut fds, schedule.next().unwrap_or(Nanos::MAX)).unwrap_or(true) {
            break;
        }
    }
    history.close(meter.last_sample());
    let (sources, overhead) = (meter.sources(), meter.overhead(sys::thread_cpu()));
    Observations { history, sources, overhead, ..Observations::default() }
}
