//! The load engine: turns a schedule into connections and calls, and emits events.
//!
//! One shard per thread, each with its own workload, observer, connections and means of I/O (io_uring or epoll); nothing is
//! shared on the per-call path and the observers are merged after the run. What holds in every run:
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

mod address;
mod bodies;
mod body_file;
mod call;
mod clock;
mod connection;
mod contention;
mod deadlines;
mod density;
mod destination;
mod due_calls;
mod expected;
mod host;
mod io;
mod pacing;
mod redirects;
mod requests;
#[cfg(test)]
mod scripted;
mod session_requests;
mod shard;
mod shard_time;
mod sockets;
mod sources;
mod sweep;
mod timers;

/// What the fuzz target of TLS drives.
#[cfg(fuzzing)]
pub use io::scripted as fuzzing;

pub use address::Address;
pub use body_file::BodyFile;
pub use clock::Clock;
pub use destination::{Destination, LookUp};
pub use host::CpuTime;
pub use io::{Handshake, Security, SecurityError, SecurityOptions};
pub use redirects::{Follow, Redirect};
pub use requests::{FixedRequests, Requests, Wire};
pub use session_requests::{ScriptedRequests, SessionRequests};
pub use sources::{Cidr, CidrError};

use brimful_core::record::HostContention;
use brimful_core::{Nanos, Observer, Workload, panics};
use destination::{AddressTurns, Resolver};
use io::{Epoll, Io, Settings, SocketOptions, Tls, Uring};
use shard::{Shard, ShardUse};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What every shard of a run is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to connect.
    pub address: Destination,
    /// How connections are secured, if they are.
    pub tls: Option<Arc<Security>>,
    /// How connections are used.
    pub connections: ConnectionPolicy,
    /// When to start, on `CLOCK_MONOTONIC`; where that is over before all threads are up, as soon as they are.
    pub start: Nanos,
    /// The schedule's length: calls that are still not begun well past it never will be.
    pub window: Nanos,
    /// Shard `i` runs on the `i`-th of these, cyclically; empty leaves it to the kernel.
    pub cpus: Vec<usize>,
    /// How sockets are driven.
    pub engine: Engine,
    /// Calls begin only once in so much time, all that came due in it together, and answers are read as they come: each
    /// sleep until an instant costs more than a call, and this is one for many. Calls are up to that late.
    pub tick: Option<Nanos>,
}

/// How a client uses connections.
#[derive(Clone, Debug)]
pub struct ConnectionPolicy {
    /// Calls after which a connection is closed; `1` is a new connection per call, `None` keeps it while the server does.
    pub calls_per_connection: Option<u64>,
    /// Connections that one session may have in all, one after another; a call of it that finds none left is lost, as if the
    /// connection had been reset. `None` has no bound.
    pub connections_per_session: Option<u32>,
    /// Connections that a shard may have at once; a call of no session that finds all of them taken waits for one, and is
    /// not late by that. `None` is a connection more for each such call.
    pub most_per_shard: Option<u64>,
    /// Each call opens a connection of its own, which then stays open and idle to the end of the run: this shows how many
    /// connections a server serves at a time.
    pub holds: bool,
    /// Calls that may be under way on one connection, at least 1: as a pipeline or, with HTTP/2, on as many streams, of
    /// which the server may allow fewer.
    pub pipeline: usize,
    /// Connections speak HTTP/2. The requests must have been rendered for it.
    pub http2: bool,
    /// Who closes, and how.
    pub close: Close,
    /// A connection attempt older than this is abandoned; `None` leaves it to the kernel, which repeats its SYN after 1, 2, 4 …
    /// seconds.
    pub connect_timeout: Option<Nanos>,
    /// A call that met a connection which the server had closed is sent again ([`End::ClosedOnReuse`]).
    ///
    /// [`End::ClosedOnReuse`]: brimful_core::End::ClosedOnReuse
    pub retry_closed: bool,
    /// HTTP/2: a call whose stream the server refused is sent again.
    pub retry_refused: bool,
    /// A call without a whole response this long after its first byte was sent has timed out. A TLS handshake has as long.
    pub response_timeout: Nanos,
    /// Addresses of this host to connect from by TCP, in turn; `None` leaves it to the kernel.
    pub source: Option<Cidr>,
    /// `SO_SNDBUF`, bytes.
    pub send_buffer: Option<u32>,
    /// `SO_RCVBUF`, bytes.
    pub receive_buffer: Option<u32>,
    /// Connections to open before the start, over all shards, for the first calls to find. Without them a high rate begins
    /// with a storm of connection attempts, which keep-alive clients that have been there for a while would not make.
    pub warm_connections: u64,
    /// Connections that the load is sure to have at once, over all shards: a run that this host has no descriptors for
    /// is refused. 0 where that is not known.
    pub at_once: u64,
}

impl Default for ConnectionPolicy {
    /// Kept alive, one call at a time, given up by nobody but a server that does not answer for five seconds.
    fn default() -> ConnectionPolicy {
        ConnectionPolicy {
            calls_per_connection: None,
            connections_per_session: None,
            most_per_shard: None,
            holds: false,
            pipeline: 1,
            http2: false,
            close: Close::Server,
            connect_timeout: None,
            retry_closed: false,
            retry_refused: true,
            response_timeout: Nanos::from_secs(5),
            source: None,
            send_buffer: None,
            receive_buffer: None,
            warm_connections: 0,
            at_once: 0,
        }
    }
}

/// How sockets are driven. The outcome is the same; the cost differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// io_uring where it may be used, else epoll.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
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
    /// CPU time of all shards.
    pub cpu: CpuTime,
    /// The longest that a shard was kept from its work: neither sleeping by its own will nor done with what was due.
    pub longest_gap: Nanos,
    /// The busiest shard's share of time with work to do, waiting and spinning excluded.
    pub busy: f64,
    /// Sum over shards of the most connections each had open at once.
    pub max_open_connections: u64,
    /// The engine that ran.
    pub engine: &'static str,
    /// What the host kept from the shards.
    pub host: HostContention,
    /// Messages of the shards that panicked; of these the observer has what came before.
    pub panics: Vec<String>,
    /// The first request body that could not be read from its file, and why.
    pub body_error: Option<String>,
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
    /// No epoll instance, or the kernel refuses to wait.
    #[error("cannot wait for sockets: {0}; raise the descriptor limit (`ulimit -n`) and try again")]
    Wait(std::io::Error),
    /// There are not enough descriptors for the load.
    #[error(
        "this load has {needed} connections open at once, and the descriptor limit leaves room for {available}: raise it \
         where brimful is started (`ulimit -n {raise_to}`; above the hard limit only root may), or lower the number of clients"
    )]
    Descriptors {
        /// Connections of the load.
        needed: u64,
        /// Connections that there can be.
        available: u64,
        /// A limit that is enough.
        raise_to: u64,
    },
    /// io_uring was asked for and cannot be used.
    #[error("cannot use io_uring: {0}; or choose `--engine epoll`")]
    UringUnavailable(String),
    /// No address to connect from.
    #[error("cannot connect from {range}: {why}; `ip address` says which addresses this host has")]
    Source {
        /// The range asked for.
        range: String,
        /// What is wrong with it.
        why: String,
    },
    /// A thread of the engine could not be started, or panicked before its first turn.
    #[error("a shard of the engine failed: {0}")]
    Thread(String),
    /// A file with a request's body that cannot be sent.
    #[error("cannot send the body in {path}: {why}; check `body_file`, and that nobody writes to that file meanwhile")]
    BodyFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A request that cannot be sent as HTTP.
    #[error("the request of class `{class}` is not valid: {source}")]
    Request {
        /// The class.
        class: String,
        /// What is wrong with it.
        source: brimful_http::RequestError,
    },
    /// A place of a request that cannot be filled in.
    #[error("the request of class `{class}` cannot be filled in: {why}")]
    Template {
        /// The class.
        class: String,
        /// Where, and what was expected.
        why: String,
    },
}

/// Runs shards, each of its own workload, requests and observer, until every workload is done and every call has ended, or
/// `stop` is set.
///
/// # Errors
/// [`EngineError`] when a shard cannot be set up. What happens to calls is never an error but an outcome.
pub fn run<'a, W, R, O>(config: &'a Config, shards: Vec<(W, R, O)>, stop: &AtomicBool) -> Result<Run<O>, EngineError>
where
    W: Workload + Send,
    R: Requests<'a> + Send,
    O: Observer + Send,
{
    if config.tls.is_none() {
        return run_plain(config, shards, stop);
    }
    let (settings, uring) = config.prepare(&shards)?;
    match uring {
        true => run_on::<Tls<'_, Uring<'_>>, W, R, O>(config, &settings, shards, stop),
        false => run_on::<Tls<'_, Epoll<'_>>, W, R, O>(config, &settings, shards, stop),
    }
}

/// The same without TLS, whatever the configuration says: for loads that are made by TLS through another type, so that there
/// is no second copy of the engine for it.
///
/// # Errors
/// As [`run`].
pub fn run_plain<'a, W, R, O>(
    config: &'a Config,
    shards: Vec<(W, R, O)>,
    stop: &AtomicBool,
) -> Result<Run<O>, EngineError>
where
    W: Workload + Send,
    R: Requests<'a> + Send,
    O: Observer + Send,
{
    let (settings, uring) = config.prepare(&shards)?;
    match uring {
        true => run_on::<Uring<'_>, W, R, O>(config, &settings, shards, stop),
        false => run_on::<Epoll<'_>, W, R, O>(config, &settings, shards, stop),
    }
}

fn run_on<'a, I, W, R, O>(
    config: &'a Config,
    settings: &Settings,
    shards: Vec<(W, R, O)>,
    stop: &AtomicBool,
) -> Result<Run<O>, EngineError>
where
    I: Io<'a>,
    W: Workload + Send,
    R: Requests<'a> + Send,
    O: Observer + Send,
{
    let timeout = config.connections.connect_timeout.unwrap_or(config.connections.response_timeout);
    let mut warm = io::open_established(settings, timeout, config.connections.warm_connections);
    let warm_per_shard = warm.len().div_ceil(shards.len().max(1));
    let watch = contention::Watch::start(&config.cpus);
    let resolver = Resolver::start(&config.address, &settings.addresses, config.connections.source);
    // Far enough ahead for every thread to be up: no shard starts late.
    let clock = Clock::starting_at(config.start, Nanos::from_millis(2 + 5 * shards.len() as u64));
    let finished: Vec<Result<(O, ShardUse), EngineError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = shards
            .into_iter()
            .enumerate()
            .map(|(index, shard)| {
                let cpu = (!config.cpus.is_empty()).then(|| config.cpus[index % config.cpus.len()]);
                let warm = warm.split_off(warm.len().saturating_sub(warm_per_shard));
                let first_turn = config.address.first_turn() + index;
                let turns = AddressTurns::new(&settings.addresses, first_turn, resolver.clone());
                let body = move || {
                    host::settle_thread(cpu)?;
                    Shard::new(config, settings, clock, shard, I::new(settings)?, warm, turns).run(stop)
                };
                std::thread::Builder::new().name(format!("shard-{index}")).spawn_scoped(scope, body)
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(result)) => result,
                Ok(Err(payload)) => Err(EngineError::Thread(panics::message(&*payload))),
                Err(error) => Err(EngineError::Thread(error.to_string())),
            })
            .collect()
    });
    merge(finished, clock, I::NAME, watch)
}

impl Config {
    /// Checks that the descriptor limit allows the connections that the load has open at once.
    ///
    /// What the sockets of these shards have in common, and whether io_uring drives them.
    fn prepare<'a, W, R: Requests<'a>, O>(&self, shards: &[(W, R, O)]) -> Result<(Settings, bool), EngineError> {
        host::raise_descriptor_limit();
        let longest = shards.iter().map(|(_, requests, _)| requests.longest()).max();
        let settings = self.settings(longest.unwrap_or(0))?;
        let uring = match self.engine {
            Engine::Epoll => false,
            Engine::Auto => Uring::new(&settings).is_ok(),
            Engine::Uring => Uring::new(&settings).map(|_| true)?,
        };
        host::check_descriptors(self.connections.at_once, shards.len() as u64, uring)?;
        Ok((settings, uring))
    }

    fn settings(&self, longest_request: usize) -> Result<Settings, EngineError> {
        /// What surely fits into one segment.
        const SEGMENT: usize = 1200;
        let long = longest_request > SEGMENT;
        let policy = &self.connections;
        let mut addresses = self.address.addresses();
        if let Some(range) = policy.source
            && addresses.iter().filter_map(Address::tcp).any(|address| range.is_of_family(&address))
        {
            addresses.retain(|address| address.tcp().is_some_and(|address| range.is_of_family(&address)));
        }
        let target = addresses.first().and_then(Address::tcp);
        let sources = match (policy.source, target) {
            (Some(range), Some(target)) => range.usable(&target)?,
            _ => Vec::new(),
        };
        let several = policy.pipeline > 1 || policy.http2;
        Ok(Settings {
            addresses,
            sources: sources.into_iter().map(|source| SocketAddr::new(source, 0)).collect(),
            options: SocketOptions {
                reset_on_close: policy.close == Close::Rst,
                // A Unix socket delays nothing.
                no_delay: target.is_some() && (several || long),
                send_buffer: policy.send_buffer,
                receive_buffer: policy.receive_buffer,
            },
            pipelined: several,
            tls: self.tls.clone(),
            says_farewell: policy.close == Close::Fin,
        })
    }
}

fn merge<O: Observer>(
    finished: Vec<Result<(O, ShardUse), EngineError>>,
    clock: Clock,
    engine: &'static str,
    watch: contention::Watch,
) -> Result<Run<O>, EngineError> {
    let mut run: Option<Run<O>> = None;
    let mut cpu_wait = None;
    for shard in finished {
        let (observer, used) = shard?;
        cpu_wait = cpu_wait.max(used.cpu_wait);
        match &mut run {
            None => {
                run = Some(Run {
                    observer,
                    started_monotonic_ns: clock.epoch_ns(),
                    duration: used.duration,
                    interrupted: used.interrupted,
                    cpu: used.cpu,
                    longest_gap: used.longest_gap,
                    busy: used.busy,
                    max_open_connections: used.max_open,
                    engine,
                    host: HostContention::default(),
                    panics: used.panic.into_iter().collect(),
                    body_error: used.body_error,
                });
            }
            Some(run) => {
                run.observer.merge(observer);
                run.duration = run.duration.max(used.duration);
                run.interrupted |= used.interrupted;
                run.cpu += used.cpu;
                run.longest_gap = run.longest_gap.max(used.longest_gap);
                run.busy = run.busy.max(used.busy);
                run.max_open_connections += used.max_open;
                run.panics.extend(used.panic);
                run.body_error = run.body_error.take().or(used.body_error);
            }
        }
    }
    let mut run = run.ok_or_else(|| EngineError::Thread("there was none".to_owned()))?;
    run.host = watch.finish(cpu_wait);
    Ok(run)
}
