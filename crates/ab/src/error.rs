//! The errors of a comparison.

use brimful_core::Nanos;
use brimful_core::record::{Reason, ReasonCode};
use brimful_run::RunError;
use brimful_stats::StatsError;

/// An error that prevents a comparison. Its message states the cause and what to do.
#[derive(Debug, thiserror::Error)]
pub enum AbError {
    /// The shell that runs a server's command cannot be started.
    #[error("cannot start `{command}`: {source}")]
    Spawn {
        /// The server's command.
        command: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The separate process that ends the servers if brimful is killed (the guardian) cannot be started.
    #[error("cannot start the process that ends the servers if brimful is killed: {0}; check `ulimit -u`")]
    Guardian(std::io::Error),
    /// A server's process ended before or during the measurement.
    #[error("{side} ended ({status}) {when}: `{command}`{output}")]
    Ended {
        /// Name of the server: `A`, `B` or `A's second process`.
        side: String,
        /// Exit status of the server's process.
        status: String,
        /// When the process ended, such as `before it answered`.
        when: String,
        /// The server's command.
        command: String,
        /// The last bytes of the server's output. If the server runs in the background, the advice to run it in the
        /// foreground.
        output: String,
    },
    /// A server does not listen on the port that brimful chose for it.
    #[error(
        "{side} does not listen on 127.0.0.1:{port} after {}: `{command}` must listen on the port in {{port}} or $PORT \
         {output}",
        waited.to_rounded_string()
    )]
    NotListening {
        /// Name of the server: `A`, `B` or `A's second process`.
        side: String,
        /// The server's command.
        command: String,
        /// The TCP port that brimful chose for the server.
        port: u16,
        /// Time after which brimful stopped waiting for the server.
        waited: Nanos,
        /// The last bytes of the server's output.
        output: String,
    },
    /// No call to a server was completed during a slice.
    #[error("{side} ({name}) completes no calls{when}: {why}")]
    NoAnswer {
        /// Name of the server: `A`, `B` or `A's second process`.
        side: &'static str,
        /// The server's URL or command.
        name: String,
        /// The time at which the server stopped answering, as the end of a clause; may be empty.
        when: String,
        /// The number of failed calls by kind of failure, and advice.
        why: String,
    },
    /// The responses of the servers differ too much for a comparison, or an option does not apply to these servers. The
    /// text is the whole message.
    #[error("{0}")]
    NotComparable(String),
    /// A duet (both servers measured at the same time) was requested and is not possible on this host, for the stated
    /// reason.
    #[error("a duet is not possible here: {0}; leave out --design, which then measures the servers in turn")]
    NoDuet(String),
    /// A run of the load generator failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The metrics cannot be computed, or a requested metric does not exist.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// The servers' processes cannot be monitored or pinned to CPUs.
    #[error(transparent)]
    Monitor(#[from] brimful_monitor::MonitorError),
}

impl AbError {
    /// The reason for the verdict, if this error ended the comparison early.
    pub(crate) fn reason(&self) -> Reason {
        let code = match self {
            AbError::Ended { .. } | AbError::NoAnswer { .. } => ReasonCode::ServerDied,
            _ => ReasonCode::Incomplete,
        };
        Reason { code, message: self.to_string() }
    }

    /// Whether the user's command line caused the error, rather than the environment.
    pub fn is_usage(&self) -> bool {
        match self {
            AbError::NotComparable(_) | AbError::Stats(_) => true,
            AbError::Run(error) => error.is_usage(),
            AbError::Monitor(error) => error.is_usage(),
            _ => false,
        }
    }
}
