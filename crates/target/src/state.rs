//! The state of the server, which all workers share, and the state of each worker.

use crate::burn::{Sampler, Spinner};
use crate::disk::{Buffer, Disk};
use crate::limiter::Limiter;
use crate::pages::Pages;
use crate::pool::Pool;
use crate::service::{Distribution, ServiceClass, ServiceStep};
use crate::truth::{Ledger, ReferenceCpuTimes};
use crate::work::Walker;
use brimful_core::Nanos;
use brimful_core::panics::lock;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Size of a worker's receive buffer, in bytes.
const RECEIVE_BYTES: usize = 64 << 10;
/// Interval at which a sleeping request checks whether the server has stopped.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The state that all workers share, such as the classes and the CPU time accounts.
#[derive(Debug)]
pub(crate) struct ServerState {
    /// The classes of requests.
    pub(crate) classes: Vec<ServiceClass>,
    /// The distribution of service demands around their means.
    pub(crate) distribution: Distribution,
    /// The rendered responses.
    pub(crate) pages: Pages,
    /// Limits the number of requests in service; `None` for no limit.
    pub(crate) pool: Option<Pool>,
    /// Limits the rate of requests; `None` for no limit.
    pub(crate) limiter: Option<Limiter>,
    /// The lock for steps of the kind [`ServiceStep::Lock`], which all requests share.
    pub(crate) lock: Mutex<()>,
    /// The file for steps of the kind [`ServiceStep::Read`]; `None` if no class has such a step.
    pub(crate) disk: Option<Disk>,
    /// The calibrated work for steps of the kind [`ServiceStep::Work`]; `None` if no class has such a step.
    pub(crate) walker: Option<Walker>,
    /// The CPU time accounts of the workers. A worker locks its own account once per turn; a request for `/__truth`
    /// locks all accounts.
    pub(crate) ledgers: Vec<Mutex<Ledger>>,
    /// The time at which the workers must end. It is set when the server begins to stop.
    pub(crate) stop_by: OnceLock<Instant>,
}

/// The state and the resources of one worker.
#[derive(Debug)]
pub(crate) struct WorkerState {
    /// The state that all workers share.
    pub(crate) server: Arc<ServerState>,
    /// The buffer for received bytes.
    pub(crate) receive_buffer: Box<[u8]>,
    spinner: Spinner,
    walker: Option<Walker>,
    sampler: Sampler,
    buffer: Buffer,
}

impl ServerState {
    /// The CPU times of all workers, and the statistics of the pool.
    pub(crate) fn cpu_times(&self) -> ReferenceCpuTimes {
        let ledgers: Vec<Ledger> = self.ledgers.iter().map(|l| lock(l).clone()).collect();
        let pool = self.pool.as_ref().map(Pool::usage);
        ReferenceCpuTimes { pool, ..Ledger::add_up(&ledgers, &self.classes, self.distribution) }
    }

    /// Whether the server has stopped and its grace period is over, so that it no longer responds to requests.
    pub(crate) fn is_over(&self) -> bool {
        self.stop_by.get().is_some_and(|&by| Instant::now() > by)
    }
}

impl WorkerState {
    /// Creates the state of a worker. Must be called on the worker's thread, after it was pinned, because it measures
    /// the CPU's speed.
    pub(crate) fn new(server: Arc<ServerState>, mut sampler: Sampler) -> WorkerState {
        let walker = server.walker.as_ref().map(|walker| walker.starting_at(sampler.position()));
        let receive_buffer = vec![0; RECEIVE_BYTES].into_boxed_slice();
        WorkerState { server, receive_buffer, spinner: Spinner::measure(), walker, sampler, buffer: Buffer::default() }
    }

    /// Whether the rate limit permits to serve a request now.
    pub(crate) fn admits(&self) -> bool {
        self.server.limiter.as_ref().is_none_or(|limiter| limiter.admits(Instant::now()))
    }

    /// Runs the steps of a request of this class. Returns false if the request gets no response, because the disk
    /// failed or the server has stopped.
    pub(crate) fn serve(&mut self, class: usize) -> bool {
        let server = Arc::clone(&self.server);
        let _place = server.pool.as_ref().map(Pool::enter);
        server.classes[class].steps.iter().all(|step| !server.is_over() && self.step(*step, &server))
    }

    fn step(&mut self, step: ServiceStep, server: &ServerState) -> bool {
        match step {
            ServiceStep::Cpu(mean) => self.burn(mean),
            ServiceStep::Work(mean) => {
                let amount = self.sampler.draw(mean);
                if let Some(walker) = &mut self.walker {
                    walker.work(amount);
                }
            }
            ServiceStep::Lock(mean) => {
                let _held = lock(&server.lock);
                self.burn(mean);
            }
            ServiceStep::Sleep(mean) => return self.sleep(mean, server),
            ServiceStep::Read(size) => {
                let position = self.sampler.position();
                return server.disk.as_ref().is_some_and(|disk| disk.read(size, position, &mut self.buffer).is_ok());
            }
        }
        true
    }

    /// Sleeps for a time with this mean. Returns false if the server stopped during the sleep.
    fn sleep(&mut self, mean: Nanos, server: &ServerState) -> bool {
        let duration = Duration::from(self.sampler.draw(mean));
        let begun = Instant::now();
        let mut left = duration;
        while !left.is_zero() && !server.is_over() {
            thread::sleep(left.min(STOP_CHECK_INTERVAL));
            left = duration.saturating_sub(begun.elapsed());
        }
        left.is_zero()
    }

    fn burn(&mut self, mean: Nanos) {
        if mean > Nanos::ZERO {
            self.spinner.burn(self.sampler.draw(mean));
        }
    }

    /// Whether the server is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.server.stop_by.get().is_some()
    }
}
