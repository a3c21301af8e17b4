//! The load engine: turns a schedule into connections and calls, and emits events.
//!
//! One shard per thread, each with its own workload, observer, connections and epoll instance; nothing is shared on the
//! per-call path and the observers are merged after the run. What holds in every run:
//!
//! - Every call carries its `due` from the schedule; the engine only ever stamps what it did and saw.
//! - A call that is due never waits for a free connection: where none is idle, one is opened.
//! - What fails for want of a descriptor, port or memory on this host ends as [`End::ClientLimited`], and the run goes on.
//! - Every call that was scheduled ends in exactly one [`Outcome`], also when the run is interrupted.
//!
//! Instants are [`Nanos`] since the start of the run on `CLOCK_MONOTONIC`.
//!
//! [`End::ClientLimited`]: brimful_core::End::ClientLimited
//! [`Outcome`]: brimful_core::Outcome
#![forbid(unsafe_code)]

mod clock;
mod connection;
mod deadlines;
mod host;
mod poller;
mod requests;
mod shard;
mod socket;

pub use clock::Clock;
pub use requests::{ClassRequests, Wire};

use brimful_core::{Nanos, Observer, Workload};
use shard::{Shard, ShardUse};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What every shard of a run is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to connect.
    pub address: SocketAddr,
    /// What to send, indexed by class.
    pub requests: Vec<ClassRequests>,
    /// Calls after which a connection is closed; `1` is a new connection per call, `None` keeps it while the server does.
    pub calls_per_connection: Option<u64>,
    /// Who closes, and how.
    pub close: Close,
    /// A connection attempt older than this is abandoned.
    pub connect_timeout: Nanos,
    /// A call without a whole response this long after its first byte was sent has timed out.
    pub response_timeout: Nanos,
    /// Connections to open before the start, over all shards, for the first calls to find. Without them a high rate begins
    /// with a storm of connection attempts, which keep-alive clients that have been there for a while would not make.
    pub warm_connections: u64,
    /// The schedule's length: calls that are still not begun well past it never will be.
    pub window: Nanos,
    /// Shard `i` runs on the `i`-th of these, cyclically; empty leaves it to the kernel.
    pub cpus: Vec<usize>,
}

/// Who closes a connection after its last call, and so who keeps the `TIME_WAIT` (Mosberger & Jin 1998, §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Close {
    /// The server, asked by `Connection: close`.
    #[default]
    Server,
    /// This side, by FIN.
    Fin,
    /// This side, by RST: cheap, and it changes what the server sees.
    Rst,
}

/// Live figures of a run, refreshed a few times a second.
#[derive(Debug, Default)]
pub struct Progress {
    /// Calls that have ended, however.
    pub ended: AtomicU64,
}

/// A finished run.
#[derive(Debug)]
pub struct Run<O> {
    /// All shards' observers, merged.
    pub observer: O,
    /// `CLOCK_MONOTONIC` at the start, nanoseconds.
    pub started_monotonic_ns: u64,
    /// From the start to the end of the last call.
    pub duration: Nanos,
    /// Whether `stop` ended it.
    pub interrupted: bool,
    /// CPU time in user mode, all shards.
    pub cpu_user: Nanos,
    /// CPU time in the kernel, all shards.
    pub cpu_system: Nanos,
    /// The busiest shard's share of time with work to do, waiting and spinning excluded.
    pub busy: f64,
    /// Sum over shards of the most connections each had open at once.
    pub max_open_connections: u64,
}

/// Why a run could not be started or trusted.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Pinning failed.
    #[error("cannot run on CPU {cpu}: {source}; `nproc --all` and /sys/devices/system/cpu/online say which there are")]
    Cpu {
        /// The CPU asked for.
        cpu: usize,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// No epoll instance.
    #[error("cannot wait for sockets: {0}; raise the descriptor limit (`ulimit -n`) and try again")]
    Poll(std::io::Error),
    /// A thread of the engine could not be started or has panicked.
    #[error("a shard of the engine failed: {0}")]
    Thread(String),
    /// A request that cannot be sent as HTTP.
    #[error("the request of class `{class}` is not valid: {source}")]
    Request {
        /// The class.
        class: String,
        /// What is wrong with it.
        source: brimful_http::RequestError,
    },
}

/// Runs one workload and observer per shard until every workload is done and every call has ended, or `stop` is set.
///
/// # Errors
/// [`EngineError`] when a shard cannot be set up. What happens to calls is never an error but an outcome.
pub fn run<W, O>(
    config: &Config,
    shards: Vec<(W, O)>,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<Run<O>, EngineError>
where
    W: Workload + Send,
    O: Observer + Send,
{
    host::raise_descriptor_limit();
    let mut warm = socket::open_established(&config.address, config.connect_timeout, config.warm_connections);
    let warm_per_shard = warm.len().div_ceil(shards.len().max(1));
    // Far enough ahead for every thread to be up: no shard starts late.
    let clock = Clock::starting_in(Nanos::from_millis(2 + shards.len() as u64));
    let finished: Vec<Result<(O, ShardUse), EngineError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = shards
            .into_iter()
            .enumerate()
            .map(|(index, (workload, observer))| {
                let cpu = (!config.cpus.is_empty()).then(|| config.cpus[index % config.cpus.len()]);
                let warm = warm.split_off(warm.len().saturating_sub(warm_per_shard));
                let body = move || Shard::new(config, clock, workload, observer, cpu, warm)?.run(stop, progress);
                std::thread::Builder::new().name(format!("shard-{index}")).spawn_scoped(scope, body)
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(EngineError::Thread("it panicked".to_owned())),
                Err(error) => Err(EngineError::Thread(error.to_string())),
            })
            .collect()
    });
    merge(finished, clock)
}

fn merge<O: Observer>(finished: Vec<Result<(O, ShardUse), EngineError>>, clock: Clock) -> Result<Run<O>, EngineError> {
    let mut run: Option<Run<O>> = None;
    for shard in finished {
        let (observer, used) = shard?;
        match &mut run {
            None => {
                run = Some(Run {
                    observer,
                    started_monotonic_ns: clock.epoch_ns(),
                    duration: used.duration,
                    interrupted: used.interrupted,
                    cpu_user: used.cpu_user,
                    cpu_system: used.cpu_system,
                    busy: used.busy,
                    max_open_connections: used.max_open,
                });
            }
            Some(run) => {
                run.observer.merge(observer);
                run.duration = run.duration.max(used.duration);
                run.interrupted |= used.interrupted;
                run.cpu_user += used.cpu_user;
                run.cpu_system += used.cpu_system;
                run.busy = run.busy.max(used.busy);
                run.max_open_connections += used.max_open;
            }
        }
    }
    run.ok_or_else(|| EngineError::Thread("there was none".to_owned()))
}
