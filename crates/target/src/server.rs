//! Starting and stopping the server.

use crate::burn::Sampler;
use crate::desk::Site;
use crate::disk::Disk;
use crate::error::TargetError;
use crate::limiter::Limiter;
use crate::listen::listen;
use crate::pages::Pages;
use crate::pool::Pool;
use crate::service::{self, Distribution, ServiceClass, Step};
use crate::transport::Security;
use crate::truth::{Ledger, Truth};
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

/// What server to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What to serve; the first class is also at `/`.
    pub classes: Vec<ServiceClass>,
    /// How demands are distributed about their means.
    pub distribution: Distribution,
    /// Worker threads, at least one: the servers of the queue.
    pub workers: usize,
    /// Length of the listen queue, exactly.
    pub backlog: u32,
    /// CPUs to pin the workers to, in turn; empty pins none.
    pub cpus: Vec<usize>,
    /// Requests that may be served at once, at least one; the others wait, each with its worker. `None` lets each
    /// worker serve.
    pub pool: Option<usize>,
    /// Requests served a second, at least one; those above are answered 429. `None` serves all.
    pub rate_limit: Option<u32>,
    /// Where the file is made that read steps read.
    pub read_dir: PathBuf,
    /// Whether connections are secured, with a key made for it; [`Target::certificate`] is what to trust.
    pub tls: bool,
    /// Seed of the exponential draws.
    pub seed: u64,
}

/// A running server. Dropping it stops it.
pub struct Target {
    addr: SocketAddr,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Target {
    /// Starts a server; it accepts connections when this returns, some milliseconds later,
    /// or a second where a class reads: a file is written for that.
    ///
    /// # Errors
    /// A configuration that makes no sense, an address that cannot be listened on, a directory without room for the
    /// file to read, or a host that refuses a thread, a descriptor or a CPU.
    pub fn start(config: TargetConfig) -> Result<Target, TargetError> {
        service::validate(&config.classes)?;
        if config.workers == 0 {
            return Err(TargetError::NoWorkers);
        }
        if config.pool == Some(0) {
            return Err(TargetError::EmptyPool);
        }
        if config.rate_limit == Some(0) {
            return Err(TargetError::ServesNothing);
        }
        let (listener, addr) = listen(config.listen, config.backlog)?;
        let refused = |what| move |e: Errno| TargetError::Resources { what, source: e.into() };
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(refused("an epoll descriptor"))?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(refused("an event descriptor"))?;
        let once = EventFlags::IN | EventFlags::ONESHOT;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), once).map_err(refused("an epoll watch"))?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN).map_err(refused("an epoll watch"))?;
        let has = |wanted: fn(&Step) -> bool| config.classes.iter().flat_map(|class| &class.steps).any(wanted);
        let reads = has(|step| matches!(step, Step::Read(_)));
        let works = has(|step| matches!(step, Step::Work(_)));
        let site = Arc::new(Site {
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
        let shared = Arc::new(Shared { site, epoll, listener, security, stop, table: Table::new(), paused });
        // From here on, returning early stops the workers that have started.
        let mut target = Target { addr, shared, workers: Vec::with_capacity(config.workers) };
        let (ready, readiness) = mpsc::channel();
        for index in 0..config.workers {
            let shared = Arc::clone(&target.shared);
            let sampler = Sampler::new(config.distribution, config.seed, index);
            let cpu = (!config.cpus.is_empty()).then(|| config.cpus[index % config.cpus.len()]);
            let ready = ready.clone();
            // The name tells `top -H` and the monitor which server a thread belongs to; the kernel keeps 15 bytes.
            let thread = thread::Builder::new().name(format!("target-{}-{index}", addr.port())).spawn(move || {
                let pin = |cpu| pin_this_thread(cpu).map_err(|source| TargetError::Pin { cpu, source });
                let pinned = cpu.map_or(Ok(()), pin);
                let worker = pinned.map(|()| Worker::new(shared, index, sampler));
                match worker {
                    Ok(worker) => {
                        // Nobody listens any more when another worker has failed; that one's error stops the server.
                        let _ = ready.send(Ok(()));
                        drop(ready);
                        worker.run();
                    }
                    Err(error) => _ = ready.send(Err(error)),
                }
            });
            target.workers.push(thread.map_err(|source| TargetError::Resources { what: "a thread", source })?);
        }
        drop(ready);
        readiness.iter().collect::<Result<(), _>>()?;
        Ok(target)
    }

    /// Where it listens, with the real port.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The certificate that it shows, DER, for `localhost` and the loopback addresses; none without TLS.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.shared.security.as_ref().map(|security| security.certificate.as_slice())
    }

    /// What it has spent so far; the same as `GET /__truth` tells, without a request. A request is booked when its turn
    /// ends, a moment after its response is sent.
    pub fn truth(&self) -> Truth {
        self.shared.site.truth()
    }

    /// Refuses new connections, answers the requests that are there, for a second at most, and closes the rest.
    pub fn stop(self) {
        // Dropping does it.
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Set once, here.
        let _ = self.shared.site.stop_by.set(Instant::now() + GRACE);
        let _ = shutdown(&self.shared.listener, Shutdown::Both);
        // An event descriptor takes an increment unless it is at its maximum, and then it has been signalled already.
        let _ = rustix::io::write(&self.shared.stop, &1u64.to_ne_bytes());
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing more to say than the panic's own message.
            let _ = worker.join();
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("addr", &self.addr).field("workers", &self.workers.len()).finish()
    }
}
