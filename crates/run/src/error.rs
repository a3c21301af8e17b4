//! Why a run could not be made.

use brimful_engine::Address;
use std::path::PathBuf;

/// What went wrong, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Not a URL that brimful can use.
    #[error("`{url}` is not a URL to load: {why}")]
    BadUrl {
        /// As given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The host has no address.
    #[error("cannot resolve the host of {url}: {source}; check the spelling, or give its address")]
    Unresolvable {
        /// As given.
        url: String,
        /// What the resolver said.
        source: std::io::Error,
    },
    /// Nothing accepts connections there.
    #[error("nothing listens at {address}: start the server first; `ss -ltnx` shows what listens")]
    NothingListens {
        /// Where.
        address: Address,
    },
    /// There is no Unix socket to connect to.
    #[error("there is no Unix socket at {} to connect to: {source}; `ss -lx` shows which there are, and whose they are", path.display())]
    NoSocket {
        /// Its path.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// TLS does not work with it.
    #[error("{url}: {what}: {remedy}")]
    Handshake {
        /// As given.
        url: String,
        /// What is wrong.
        what: String,
        /// What to do about it.
        remedy: String,
        /// Whether it is the URL.
        usage: bool,
    },
    /// How TLS was asked for is wrong.
    #[error(transparent)]
    Security(#[from] brimful_engine::SecurityError),
    /// Nothing answers there.
    #[error(
        "{url} completed no call, so it is not known how large its answers are: see what ails it, or raise --timeout"
    )]
    Silent {
        /// What was requested.
        url: String,
    },
    /// A rate or a number of clients that is no load.
    #[error("{0}")]
    BadLoad(String),
    /// From those who make the load for this process.
    #[error("{message}")]
    Crew {
        /// What is wrong, and what to do.
        message: String,
        /// Whether the command line is wrong.
        usage: bool,
    },
    /// From the workload document.
    #[error(transparent)]
    Workload(#[from] brimful_core::workload::WorkloadError),
    /// From the mix.
    #[error(transparent)]
    Mix(#[from] brimful_workload::MixError),
    /// From the arrival process.
    #[error(transparent)]
    Arrivals(#[from] brimful_workload::ArrivalsError),
    /// From the engine.
    #[error(transparent)]
    Engine(#[from] brimful_engine::EngineError),
    /// Shards of one run that are not of one run: a defect of brimful.
    #[error("the shards of this run do not fit together ({0}): report this, with the command line")]
    Unlike(#[from] brimful_stats::Unlike),
    /// From the monitor.
    #[error(transparent)]
    Monitor(#[from] brimful_monitor::MonitorError),
    /// The listener against which S-Clients are calibrated.
    #[error("cannot listen on the loopback address: {0}; check that `ip address show lo` has it, and `ulimit -n`")]
    Listen(std::io::Error),
    /// From the server that answers at once.
    #[error(transparent)]
    Target(#[from] brimful_target::TargetError),
}

impl RunError {
    /// The load is a log, and no feed supplies its calls.
    pub(crate) fn unread_log() -> RunError {
        RunError::BadLoad("a log's requests are made by `brimful replay`".to_owned())
    }

    /// Whether the command line or a document is wrong, and not the environment.
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
