//! Starts and stops the server.

use crate::burn::Sampler;
use crate::disk::Disk;
use crate::error::TargetError;
use crate::limiter::Limiter;
use crate::listen::listen;
use crate::pages::Pages;
use crate::pool::Pool;
use crate::service::{self, Distribution, ServiceClass, ServiceStep};
use crate::state::ServerState;
use crate::transport::Security;
use crate::truth::{Ledger, ReferenceCpuTimes};
use crate::work::Walker;
use crate::worker::{GRACE, LISTENER, STOP, Shared, Table, Worker};
use brimful_os::cpus::pin_this_thread;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetConfig {
    /// The address to listen on; port 0 chooses a free port.
    pub listen: SocketAddr,
    /// The classes of requests; the first is also served at `/`.
    pub classes: Vec<ServiceClass>,
    /// The distribution of service demands around their means.
    pub distribution: Distribution,
    /// Number of worker threads, at least one. The workers are the servers of the queue.
    pub workers: usize,
    /// Exact length of the listen queue.
    pub backlog: u32,
    /// CPUs to which the workers are pinned. The n-th worker is pinned to the n-th CPU of the list, which is repeated
    /// if it is too short. If the list is empty, the workers are not pinned.
    pub cpus: Vec<usize>,
    /// Maximum number of requests in service at the same time, at least one. Further requests wait, and each occupies
    /// its worker while it waits. With `None`, only the number of workers is a limit.
    pub pool: Option<usize>,
    /// Maximum number of requests that are served per second, at least one. Further requests get a 429 response. `None`
    /// means no limit.
    pub rate_limit: Option<u32>,
    /// Directory for the file that is read in steps of the kind [`ServiceStep::Read`](crate::ServiceStep::Read).
    pub read_dir: PathBuf,
    /// Whether connections use TLS, with a certificate generated for this server; see [`Target::certificate`].
    pub tls: bool,
    /// Seed of the random service demands.
    pub seed: u64,
}

/// A running server. Dropping this value stops the server.
pub struct Target {
    addr: SocketAddr,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Target {
    /// Starts a server. When this returns, the server accepts connections. Starting takes some milliseconds. If a class
    /// has a step that reads from the disk, it takes about a second, because a file is written.
    ///
    /// # Errors
    /// [`TargetError`] if the configuration is invalid, the address cannot be listened on, the directory has no room
    /// for the file, or the host cannot provide a thread, a file descriptor or a requested CPU.
    pub fn start(config: TargetConfig) -> Result<Target, TargetError> {
        service::validate(&config.classes)?;
        if config.workers == 0 {
            return Err(TargetError::NoWorkers);
        }
        if config.pool == Some(0) {
            return Err(TargetError::EmptyPool);
        }
        if config.rate_limit == Some(0) {
            return Err(TargetError::ZeroRateLimit);
        }
        let (listener, addr) = listen(config.listen, config.backlog)?;
        let no_resource = |resource| move |e: Errno| TargetError::Resources { resource, source: e.into() };
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(no_resource("an epoll descriptor"))?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(no_resource("an event descriptor"))?;
        let once = EventFlags::IN | EventFlags::ONESHOT;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), once).map_err(no_resource("an epoll watch"))?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN).map_err(no_resource("an epoll watch"))?;
        let has_step =
            |wanted: fn(&ServiceStep) -> bool| config.classes.iter().flat_map(|class| &class.steps).any(wanted);
        let reads = has_step(|step| matches!(step, ServiceStep::Read(_)));
        let works = has_step(|step| matches!(step, ServiceStep::Work(_)));
        let server = Arc::new(ServerState {
            pool: config.pool.map(Pool::new),
            limiter: config.rate_limit.map(Limiter::new),
            lock: Mutex::new(()),
            disk: reads.then(|| Disk::new(&config.read_dir)).transpose()?,
            walker: works.then(|| Walker::calibrated(config.cpus.first().copied())).transpose()?,
            pages: Pages::new(&config.classes),
            ledgers: (0..config.workers).map(|_| Mutex::new(Ledger::new(config.classes.len()))).collect(),
            classes: config.classes,
            distribution: config.distribution,
            stop_by: OnceLock::new(),
        });
        let security = config.tls.then(Security::new).transpose()?;
        let paused = AtomicBool::new(false);
        let shared = Arc::new(Shared { server, epoll, listener, security, stop, table: Table::new(), paused });
        // If this function returns early from here on, dropping `target` stops the workers that were started.
        let mut target = Target { addr, shared, workers: Vec::with_capacity(config.workers) };
        let (ready, readiness) = mpsc::channel();
        for index in 0..config.workers {
            let shared = Arc::clone(&target.shared);
            let sampler = Sampler::new(config.distribution, config.seed, index);
            let cpu = (!config.cpus.is_empty()).then(|| config.cpus[index % config.cpus.len()]);
            let ready = ready.clone();
            // The name identifies the server to users of `top -H` and to the monitor. The kernel keeps only its first
            // 15 bytes.
            let thread = thread::Builder::new().name(format!("target-{}-{index}", addr.port())).spawn(move || {
                let pin = |cpu| pin_this_thread(cpu).map_err(|source| TargetError::Pin { cpu, source });
                let pinned = cpu.map_or(Ok(()), pin);
                let worker = pinned.map(|()| Worker::new(shared, index, sampler));
                match worker {
                    Ok(worker) => {
                        // Sending fails only if `start` has already returned an error, because another worker has
                        // failed or could not be started. Then the server stops.
                        let _ = ready.send(Ok(()));
                        drop(ready);
                        worker.run();
                    }
                    Err(error) => _ = ready.send(Err(error)),
                }
            });
            target.workers.push(thread.map_err(|source| TargetError::Resources { resource: "a thread", source })?);
        }
        drop(ready);
        readiness.iter().collect::<Result<(), _>>()?;
        Ok(target)
    }

    /// The address on which the server listens, with the actual port.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The server's certificate (DER), which is valid for `localhost` and the loopback addresses; `None` without TLS.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.shared.security.as_ref().map(|security| security.certificate.as_slice())
    }

    /// Returns the CPU times that `GET /__truth` returns, but without a request. The CPU time of a request is added
    /// shortly after its response was sent.
    pub fn cpu_times(&self) -> ReferenceCpuTimes {
        self.shared.server.cpu_times()
    }

    /// Stops the server. From now on, it refuses new connections. For at most one second, it continues to respond to
    /// requests that have already arrived. Then it closes the connections.
    pub fn stop(self) {
        // Dropping `self` stops the server.
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Setting the value cannot fail, because it is set only here.
        let _ = self.shared.server.stop_by.set(Instant::now() + GRACE);
        let _ = shutdown(&self.shared.listener, Shutdown::Both);
        // Writing fails only if the eventfd's counter is near its maximum.
        let _ = rustix::io::write(&self.shared.stop, &1u64.to_ne_bytes());
        for worker in self.workers.drain(..) {
            // If the worker panicked, Rust has already printed the message.
            let _ = worker.join();
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("addr", &self.addr).field("workers", &self.workers.len()).finish()
    }
}
