//! Errors of runs.

use brimful_engine::Address;
use std::path::PathBuf;

/// Why a run could not be made, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The URL cannot be used.
    #[error("`{url}` is not a URL to load: {why}")]
    BadUrl {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The host has no address.
    #[error("cannot resolve the host of {url}: {source}; check the spelling, or give its address")]
    Unresolvable {
        /// The URL as given.
        url: String,
        /// The resolver's error.
        source: std::io::Error,
    },
    /// No server accepts connections at the address.
    #[error("nothing listens at {address}: start the server first; `ss -ltnx` shows what listens")]
    NothingListens {
        /// The address.
        address: Address,
    },
    /// The Unix socket cannot be connected to.
    #[error("there is no Unix socket at {} to connect to: {source}; `ss -lx` lists the sockets and their owners", path.display())]
    NoSocket {
        /// Its path.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The TLS handshake fails.
    #[error("{url}: {what}: {remedy}")]
    Handshake {
        /// The URL as given.
        url: String,
        /// What is wrong.
        what: String,
        /// What to do about it.
        remedy: String,
        /// Whether the URL is wrong.
        usage: bool,
    },
    /// The TLS options are wrong.
    #[error(transparent)]
    Security(#[from] brimful_engine::SecurityError),
    /// The server completes no call.
    #[error("{url} completed no call, so the size of its responses is not known: check the server, or raise --timeout")]
    Silent {
        /// The URL.
        url: String,
    },
    /// The load or an option of it is not valid.
    #[error("{0}")]
    BadLoad(String),
    /// An error of the program that makes the load for this process.
    #[error("{message}")]
    Crew {
        /// What is wrong, and what to do.
        message: String,
        /// Whether the command line is wrong.
        usage: bool,
    },
    /// An error in the workload document.
    #[error(transparent)]
    Workload(#[from] brimful_core::workload::WorkloadError),
    /// An error in the mix.
    #[error(transparent)]
    Mix(#[from] brimful_workload::MixError),
    /// An error in the arrival process.
    #[error(transparent)]
    Arrivals(#[from] brimful_workload::ArrivalsError),
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] brimful_engine::EngineError),
    /// The shards of one run do not match: a defect of brimful.
    #[error("the shards of this run do not fit together ({0}): report this, with the command line")]
    Unlike(#[from] brimful_stats::Unlike),
    /// An error of the monitor.
    #[error(transparent)]
    Monitor(#[from] brimful_monitor::MonitorError),
    /// The listener for the calibration of S-Clients cannot be opened.
    #[error("cannot listen on the loopback address: {0}; check that `ip address show lo` lists it, and `ulimit -n`")]
    Listen(std::io::Error),
    /// An error of the built-in server.
    #[error(transparent)]
    Target(#[from] brimful_target::TargetError),
}

impl RunError {
    /// The load is a log, and no feed supplies its calls.
    pub(crate) fn unread_log() -> RunError {
        RunError::BadLoad("a log's requests are made by `brimful replay`".to_owned())
    }

    /// Whether the cause is the command line or a document, rather than the environment.
    pub fn is_usage(&self) -> bool {
        use RunError::{
            Arrivals, BadLoad, BadUrl, Crew, Engine, Handshake, Listen, Mix, Monitor, NoSocket, NothingListens,
            Security, Silent, Target, Unlike, Unresolvable, Workload,
        };
        use brimful_engine::EngineError::{BodyFile, Cpu, Request, Source, Template};
        match self {
            BadUrl { .. } | Unresolvable { .. } | BadLoad(_) | Workload(_) | Mix(_) | Arrivals(_) => true,
            Engine(Request { .. } | Template { .. } | BodyFile { .. } | Cpu { .. } | Source { .. }) => true,
            Monitor(error) => error.is_usage(),
            Security(error) => error.is_usage(),
            Handshake { usage, .. } | Crew { usage, .. } => *usage,
            Engine(_) | Target(_) | Listen(_) | NoSocket { .. } | NothingListens { .. } | Silent { .. } | Unlike(_) => {
                false
            }
        }
    }
}
