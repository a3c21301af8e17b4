//! The load engine: opens connections and makes calls according to a schedule, and reports events.
//!
//! There is one shard per thread, with its own workload, observer, connections and sockets (io_uring or epoll). Shards
//! share no mutable data while they make calls; their observers are merged after the run. Invariants of every run:
//!
//! - Every call has its `due` time from the schedule. All other times are read from the clock when the engine acts or
//!   receives data.
//! - A due call does not wait for a connection: if no connection has room, one is opened. Only a limit on the number of
//!   connections makes calls wait ([`ConnectionPolicy::max_per_shard`]).
//! - A call that fails because this host has no descriptor, port or memory left ends as [`End::ClientLimited`], and the
//!   run continues.
//! - Every scheduled call ends in exactly one [`Outcome`], even if the run is interrupted.
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
mod connections;
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
mod socket_polls;
mod sockets;
mod sources;
mod timers;

/// Types and functions that the fuzz target for TLS needs.
#[cfg(fuzzing)]
pub use io::scripted as fuzzing;

pub use address::Address;
pub use body_file::BodyFile;
pub use clock::Clock;
pub use destination::{Destination, NameLookup};
pub use host::CpuTime;
pub use io::{Handshake, Security, SecurityError, SecurityOptions};
pub use redirects::{Redirect, RedirectPolicy};
pub use requests::{FixedRequests, RequestSettings, Requests};
pub use session_requests::{ScriptedRequests, SessionRequests};
pub use sources::{Cidr, CidrError};

use brimful_core::record::HostContention;
use brimful_core::{Nanos, Observer, Workload, panics};
use destination::{AddressRotation, Resolver};
use io::{Epoll, Io, Settings, SocketOptions, Tls, Uring};
use shard::{Shard, ShardUsage};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The configuration of a run; it is the same for every shard.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server to send the load to.
    pub address: Destination,
    /// The TLS configuration; `None` without TLS.
    pub tls: Option<Arc<Security>>,
    /// Whether connections use HTTP/2. The requests must have been rendered for the same HTTP version.
    pub http2: bool,
    /// How many calls a connection carries, which side closes it, and its timeouts.
    pub connections: ConnectionPolicy,
    /// Minimum number of connections that the load has open at once, over all shards; 0 if unknown. [`run`] returns an
    /// error if the limit on descriptors is too low for this number.
    pub min_connections: u64,
    /// Start of the run, as a time of `CLOCK_MONOTONIC`. If this time has passed, the run starts as soon as all threads
    /// are ready.
    pub start: Nanos,
    /// Length of the schedule. A call that has not begun shortly after the end of the schedule is never sent.
    pub window: Nanos,
    /// CPUs that the shards are pinned to: shard `i` to the `i`-th CPU. A shorter list is repeated. If the list is
    /// empty, the kernel chooses the CPUs.
    pub cpus: Vec<usize>,
    /// The kernel interface for I/O: io_uring or epoll.
    pub engine: Engine,
    /// If set, calls begin only at multiples of this interval. All calls that have come due since the previous multiple
    /// begin together, up to one interval late. This saves CPU time, because sleeping until an exact time costs more
    /// than a call. Responses are still read as they arrive.
    pub tick: Option<Nanos>,
}

/// How many calls a connection carries, which side closes it, its timeouts and its socket options.
#[derive(Clone, Debug)]
pub struct ConnectionPolicy {
    /// Number of calls after which a connection is closed. With `1`, each call has a new connection. With `None`, a
    /// connection stays open until the server closes it.
    pub calls_per_connection: Option<u64>,
    /// Maximum number of connections that one session may open. A call that needs a further connection fails as if its
    /// connection had been reset. `None` means no limit.
    pub connections_per_session: Option<u32>,
    /// Maximum number of connections that a shard may have open at once. While all of them are busy, calls outside
    /// sessions wait, and this time does not count as lateness of the load generator. With `None`, a call that finds no
    /// free connection opens a new one.
    pub max_per_shard: Option<u64>,
    /// Whether each call opens its own connection, which then stays open and idle until the end of the run. This tests
    /// how many connections a server supports at once.
    pub keeps_connections_open: bool,
    /// Maximum number of calls under way on one connection, at least 1. With HTTP/1, the calls are pipelined. With
    /// HTTP/2, each has its own stream, and the server's limit on streams applies too.
    pub pipeline: usize,
    /// Which side closes a connection after its last call, and whether with FIN or RST.
    pub close: Close,
    /// Timeout of a connection attempt. With `None`, the kernel decides; it repeats its SYN after 1, 2, 4 … seconds.
    pub connect_timeout: Option<Nanos>,
    /// Whether a call is sent again if the server closed its idle connection before the request arrived
    /// ([`End::ClosedOnReuse`]).
    ///
    /// [`End::ClosedOnReuse`]: brimful_core::End::ClosedOnReuse
    pub retry_closed: bool,
    /// HTTP/2: whether a call is sent again if the server refused its stream.
    pub retry_refused: bool,
    /// Timeout from the first byte of the request to the end of the response. It is also the timeout of a TLS
    /// handshake.
    pub response_timeout: Nanos,
    /// Network of this host's addresses that are used in turn as source addresses of TCP connections. With `None`, the
    /// kernel chooses.
    pub source: Option<Cidr>,
    /// Size of each socket's send buffer in bytes (`SO_SNDBUF`).
    pub send_buffer: Option<u32>,
    /// Size of each socket's receive buffer in bytes (`SO_RCVBUF`).
    pub receive_buffer: Option<u32>,
    /// Number of connections that all shards together open before the start. Without them, a load at a high rate would
    /// begin with many simultaneous connection attempts, unlike real clients with established connections.
    pub warm_connections: u64,
}

impl Default for ConnectionPolicy {
    /// Connections are kept alive and carry one call at a time, and a response must arrive within five seconds.
    fn default() -> ConnectionPolicy {
        ConnectionPolicy {
            calls_per_connection: None,
            connections_per_session: None,
            max_per_shard: None,
            keeps_connections_open: false,
            pipeline: 1,
            close: Close::Server,
            connect_timeout: None,
            retry_closed: false,
            retry_refused: true,
            response_timeout: Nanos::from_secs(5),
            source: None,
            send_buffer: None,
            receive_buffer: None,
            warm_connections: 0,
        }
    }
}

/// The kernel interface for network I/O. It affects the load generator's CPU time per call, but not the outcome of
/// calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Use io_uring if it is available, otherwise epoll.
    #[default]
    Auto,
    /// Use io_uring.
    Uring,
    /// Use epoll.
    Epoll,
}

/// The side that closes a connection after its last call. That side's socket stays in `TIME_WAIT` afterwards (Mosberger
/// & Jin 1998, §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Close {
    /// The server closes, as requested by `Connection: close`.
    #[default]
    Server,
    /// The client closes with FIN.
    Fin,
    /// The client closes with RST. This leaves no socket in `TIME_WAIT`, but the server sees a reset.
    Rst,
}

/// The result of a finished run.
#[derive(Debug)]
pub struct Run<O> {
    /// The merged observers of all shards.
    pub observer: O,
    /// Start of the run on `CLOCK_MONOTONIC`, in nanoseconds.
    pub started_monotonic_ns: u64,
    /// Time from the start of the run to the end of its last call.
    pub duration: Nanos,
    /// Whether the run ended early because `stop` was set.
    pub interrupted: bool,
    /// CPU time of all shards together.
    pub cpu: CpuTime,
    /// The longest time for which a shard did not check for events, apart from deliberate sleep.
    pub longest_gap: Nanos,
    /// Share of the run for which the busiest shard worked. Waiting and spinning do not count as work.
    pub busy_share: f64,
    /// The sum, over all shards, of the highest number of connections that the shard had open at once.
    pub max_open_connections: u64,
    /// Name of the kernel interface that was used: `uring` or `epoll`.
    pub engine: &'static str,
    /// CPU time that the shards lost to other programs, quotas or the hypervisor.
    pub host: HostContention,
    /// Messages of the shards that panicked. The observer contains the events that these shards reported before.
    pub panics: Vec<String>,
    /// The first request body that could not be read from its file, and the reason.
    pub body_error: Option<String>,
}

/// The reason why a run could not be started or completed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A thread could not be pinned to its CPU.
    #[error(
        "cannot run on CPU {cpu}: {source}; `nproc --all` counts the CPUs of this host, and \
         /sys/devices/system/cpu/online lists them"
    )]
    Cpu {
        /// Number of the requested CPU.
        cpu: usize,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// No epoll instance could be created, or waiting for events failed, with this error.
    #[error("cannot wait for sockets: {0}; raise the descriptor limit (`ulimit -n`) and try again")]
    Wait(std::io::Error),
    /// The descriptor limit is too low for the load.
    #[error(
        "this load has {needed} connections open at once, and the descriptor limit leaves room for {available}: raise it \
         where brimful is started (`ulimit -n {raise_to}`; only root may exceed the hard limit), or lower the number of \
         clients"
    )]
    Descriptors {
        /// Number of connections that the load has open at once.
        needed: u64,
        /// Number of connections that the current limit allows.
        available: u64,
        /// A descriptor limit that is sufficient for the load.
        raise_to: u64,
    },
    /// io_uring was requested but cannot be used, for this reason.
    #[error("cannot use io_uring: {0}; or choose `--engine epoll`")]
    UringUnavailable(String),
    /// No address of the requested source range can be used.
    #[error("cannot connect from {range}: {why}; `ip address` lists the addresses of this host")]
    Source {
        /// The requested address range.
        range: String,
        /// The reason why the range cannot be used.
        why: String,
    },
    /// A thread of the engine could not be started, or panicked while it was set up.
    #[error("a shard of the engine failed: {0}")]
    Thread(String),
    /// A file with the body of a request cannot be read.
    #[error(
        "cannot send the body in {path}: {why}; check `body_file`, and that no program writes to that file during the \
         run"
    )]
    BodyFile {
        /// Path of the file.
        path: String,
        /// The reason why the file cannot be read.
        why: String,
    },
    /// A request cannot be sent as HTTP.
    #[error("the request of class `{class}` is not valid: {source}")]
    Request {
        /// Name of the request's class.
        class: String,
        /// The reason why the request is not valid HTTP.
        source: brimful_http::RequestError,
    },
    /// A placeholder of a request cannot be replaced by a value.
    #[error("the request of class `{class}` cannot be filled in: {why}")]
    Template {
        /// Name of the request's class.
        class: String,
        /// The invalid placeholder, and the expected form.
        why: String,
    },
}

/// Runs the shards, each with its own workload, requests and observer. Returns when every call of every workload has
/// ended, or when `stop` is set.
///
/// # Errors
/// [`EngineError`] if a shard cannot be set up. A failed call is not an error but an outcome.
pub fn run<'a, W, R, O>(config: &'a Config, shards: Vec<(W, R, O)>, stop: &AtomicBool) -> Result<Run<O>, EngineError>
where
    W: Workload + Send,
    R: Requests<'a> + Send,
    O: Observer + Send,
{
    let (settings, uring) = config.prepare(&shards)?;
    match (config.tls.is_some(), uring) {
        (false, true) => run_on::<Uring<'_>, W, R, O>(config, &settings, shards, stop),
        (false, false) => run_on::<Epoll<'_>, W, R, O>(config, &settings, shards, stop),
        (true, true) => run_on::<Tls<'_, Uring<'_>>, W, R, O>(config, &settings, shards, stop),
        (true, false) => run_on::<Tls<'_, Epoll<'_>>, W, R, O>(config, &settings, shards, stop),
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
    let contention = contention::ContentionWatch::start(&config.cpus);
    let resolver = Resolver::start(&config.address, &settings.addresses, config.connections.source);
    // Leaves time until the start for all threads to be set up: 2 ms, and 5 ms per shard.
    let clock = Clock::starting_at(config.start, Nanos::from_millis(2 + 5 * shards.len() as u64));
    let finished: Vec<Result<(O, ShardUsage), EngineError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = shards
            .into_iter()
            .enumerate()
            .map(|(index, shard)| {
                let cpu = (!config.cpus.is_empty()).then(|| config.cpus[index % config.cpus.len()]);
                let warm = warm.split_off(warm.len().saturating_sub(warm_per_shard));
                let first_index = config.address.first_index() + index;
                let turns = AddressRotation::new(&settings.addresses, first_index, resolver.clone());
                let body = move || {
                    host::prepare_thread(cpu)?;
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
    merge(finished, clock, I::NAME, contention)
}

impl Config {
    /// Raises the limit on descriptors, and checks that it allows [`Config::min_connections`]. Returns the settings of
    /// all sockets, and whether to use io_uring.
    fn prepare<'a, W, R: Requests<'a>, O>(&self, shards: &[(W, R, O)]) -> Result<(Settings, bool), EngineError> {
        host::raise_descriptor_limit();
        let longest = shards.iter().map(|(_, requests, _)| requests.max_request_bytes()).max();
        let settings = self.settings(longest.unwrap_or(0))?;
        let uring = match self.engine {
            Engine::Epoll => false,
            Engine::Auto => Uring::new(&settings).is_ok(),
            Engine::Uring => Uring::new(&settings).map(|_| true)?,
        };
        host::check_descriptors(self.min_connections, shards.len() as u64, uring)?;
        Ok((settings, uring))
    }

    fn settings(&self, longest_request: usize) -> Result<Settings, EngineError> {
        /// Number of bytes that fit into one TCP segment on practically every network.
        const SEGMENT: usize = 1200;
        let is_long = longest_request > SEGMENT;
        let policy = &self.connections;
        let mut addresses = self.address.addresses();
        if let Some(range) = policy.source
            && addresses.iter().filter_map(Address::tcp).any(|address| range.is_of_family(&address))
        {
            addresses.retain(|address| address.tcp().is_some_and(|address| range.is_of_family(&address)));
        }
        let target = addresses.first().and_then(Address::tcp);
        let sources = match (policy.source, target) {
            (Some(range), Some(target)) => range.usable_addresses(&target)?,
            _ => Vec::new(),
        };
        let is_pipelined = policy.pipeline > 1 || self.http2;
        Ok(Settings {
            addresses,
            sources: sources.into_iter().map(|source| SocketAddr::new(source, 0)).collect(),
            options: SocketOptions {
                reset_on_close: policy.close == Close::Rst,
                // The option exists only for TCP.
                no_delay: target.is_some() && (is_pipelined || is_long),
                send_buffer: policy.send_buffer,
                receive_buffer: policy.receive_buffer,
            },
            pipelined: is_pipelined,
            tls: self.tls.clone(),
            sends_close_notify: policy.close == Close::Fin,
        })
    }
}

fn merge<O: Observer>(
    finished: Vec<Result<(O, ShardUsage), EngineError>>,
    clock: Clock,
    engine: &'static str,
    contention: contention::ContentionWatch,
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
                    busy_share: used.busy_share,
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
                run.busy_share = run.busy_share.max(used.busy_share);
                run.max_open_connections += used.max_open;
                run.panics.extend(used.panic);
                run.body_error = run.body_error.take().or(used.body_error);
            }
        }
    }
    let mut run = run.ok_or_else(|| EngineError::Thread("there were no shards".to_owned()))?;
    run.host = contention.finish(cpu_wait);
    Ok(run)
}
