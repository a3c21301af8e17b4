//! The errors of a run.

use brimful_core::Nanos;
use brimful_engine::Address;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The reason why a run cannot be started or completed. The message also says what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The URL cannot be used.
    #[error("`{url}` is not a URL to load: {why}")]
    BadUrl {
        /// The URL as the user wrote it.
        url: String,
        /// The reason why the URL cannot be used.
        why: String,
    },
    /// The host name cannot be resolved to an address.
    #[error("cannot resolve the host of {url}: {source}; check the spelling, or give its address")]
    Unresolvable {
        /// The URL as the user wrote it.
        url: String,
        /// The error of the resolver.
        source: std::io::Error,
    },
    /// No server accepts connections at this address.
    #[error("nothing listens at {address}: start the server first; `ss -ltnx` shows what listens")]
    NothingListens {
        /// The address that was tried.
        address: Address,
    },
    /// The server accepts connections, but always later than the connect timeout.
    #[error(
        "--connect-timeout {} is shorter than the round trip to {address}: a connection takes {}; raise it above this time",
        milliseconds(*timeout),
        milliseconds(*connected_after)
    )]
    ConnectTimeoutTooShort {
        /// The address that was tried.
        address: SocketAddr,
        /// The value of the connect timeout.
        timeout: Nanos,
        /// Time until a connection is established.
        connected_after: Nanos,
    },
    /// Connecting to the Unix socket fails.
    #[error("there is no Unix socket at {} to connect to: {source}; `ss -lx` lists the sockets and their owners", path.display())]
    NoSocket {
        /// Path of the socket.
        path: PathBuf,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// The TLS handshake fails.
    #[error("{url}: {what}: {remedy}")]
    Handshake {
        /// The URL as the user wrote it.
        url: String,
        /// The cause of the failure.
        what: String,
        /// Advice on how to avoid the failure.
        remedy: String,
        /// Whether the URL caused the failure.
        usage: bool,
    },
    /// The TLS options are wrong.
    #[error(transparent)]
    Security(#[from] brimful_engine::SecurityError),
    /// None of the calls that measure the response size completes.
    #[error("{url} completed no call, so the size of its responses is not known: check the server, or raise --timeout")]
    NoCallCompleted {
        /// The URL of the server.
        url: String,
    },
    /// The load is not valid, or an option does not fit the load.
    #[error("{0}")]
    BadLoad(String),
    /// An error of the separate program that generates loads for a survey (its fleet).
    #[error("{message}")]
    SurveyFleet {
        /// The cause, and what the user can do.
        message: String,
        /// Whether an error in the command line is the cause.
        usage: bool,
    },
    /// An error in the workload document.
    #[error(transparent)]
    Workload(#[from] brimful_core::workload::WorkloadError),
    /// An error in the workload's mix of request classes.
    #[error(transparent)]
    Mix(#[from] brimful_workload::MixError),
    /// An error in the workload's arrival process.
    #[error(transparent)]
    Arrivals(#[from] brimful_workload::ArrivalsError),
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] brimful_engine::EngineError),
    /// The results of the shards cannot be merged, which is a bug of brimful.
    #[error("the shards of this run do not fit together ({0}): report this, with the command line")]
    MergeMismatch(#[from] brimful_stats::MergeMismatch),
    /// An error of the monitor.
    #[error(transparent)]
    Monitor(#[from] brimful_monitor::MonitorError),
    /// The listener for calibrating S-Clients cannot be opened.
    #[error("cannot listen on the loopback address: {0}; check that `ip address show lo` lists it, and `ulimit -n`")]
    Listen(std::io::Error),
    /// The thread that checks the conditions of `--stop-when` cannot be started.
    #[error("cannot start the thread of --stop-when: {0}; raise the limit of processes (`ulimit -u`)")]
    StopThread(std::io::Error),
    /// An error of the built-in server.
    #[error(transparent)]
    Target(#[from] brimful_target::TargetError),
}

impl RunError {
    /// Returns the error for a plan that replays a log without a function that reads the log.
    pub(crate) fn unread_log() -> RunError {
        RunError::BadLoad("a log's requests are made by `brimful replay`".to_owned())
    }

    /// Whether the cause is the command line or a file of the user, rather than the environment.
    pub fn is_usage(&self) -> bool {
        use RunError::{
            Arrivals, BadLoad, BadUrl, ConnectTimeoutTooShort, Engine, Handshake, Listen, MergeMismatch, Mix, Monitor,
            NoCallCompleted, NoSocket, NothingListens, Security, StopThread, SurveyFleet, Target, Unresolvable,
            Workload,
        };
        use brimful_engine::EngineError::{BodyFile, Cpu, Request, Source, Template};
        match self {
            BadUrl { .. } | Unresolvable { .. } | BadLoad(_) | Workload(_) | Mix(_) | Arrivals(_) => true,
            ConnectTimeoutTooShort { .. } => true,
            Engine(Request { .. } | Template { .. } | BodyFile { .. } | Cpu { .. } | Source { .. }) => true,
            Monitor(error) => error.is_usage(),
            Security(error) => error.is_usage(),
            Handshake { usage, .. } | SurveyFleet { usage, .. } => *usage,
            Engine(_)
            | Target(_)
            | Listen(_)
            | NoSocket { .. }
            | NothingListens { .. }
            | NoCallCompleted { .. }
            | StopThread(_)
            | MergeMismatch(_) => false,
        }
    }
}

/// Formats a time in milliseconds, for example `50 ms`.
fn milliseconds(time: Nanos) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}
