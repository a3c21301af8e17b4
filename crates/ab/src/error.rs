//! The errors of a comparison.

use brimful_core::Nanos;
use brimful_core::record::{Reason, ReasonCode};
use brimful_run::RunError;
use brimful_stats::StatsError;

/// An error that prevents a comparison. Its message says why, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum AbError {
    /// The command of a server cannot be started.
    #[error("cannot start `{command}`: {source}")]
    Spawn {
        /// The command.
        command: String,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// The guardian process cannot be started.
    #[error("cannot start the process that ends the servers if brimful is killed: {0}; check `ulimit -u`")]
    Guardian(std::io::Error),
    /// A server ended.
    #[error("{side} ended ({status}) {when}: `{command}`{output}")]
    Ended {
        /// The server, like `B`.
        side: String,
        /// Exit status.
        status: String,
        /// When it ended, like `before it listened`.
        when: String,
        /// The command.
        command: String,
        /// The last lines of its output, or advice.
        output: String,
    },
    /// A server does not listen.
    #[error(
        "{side} does not listen on 127.0.0.1:{port} after {}: `{command}` must listen on the port in {{port}} or $PORT \
         {output}",
        waited.to_rounded_string()
    )]
    NotListening {
        /// The server, like `B`.
        side: String,
        /// The command.
        command: String,
        /// The port.
        port: u16,
        /// How long it was waited for.
        waited: Nanos,
        /// The last lines of its output.
        output: String,
    },
    /// A server does not answer any more.
    #[error("{side} ({name}) completes no calls{when}: {why}")]
    NoAnswer {
        /// The server, like `B`.
        side: &'static str,
        /// Its URL or command.
        name: String,
        /// When it was noticed.
        when: String,
        /// The reason and the advice.
        why: String,
    },
    /// The servers cannot be compared, or an option does not fit them.
    #[error("{0}")]
    Unfit(String),
    /// A duet is not possible.
    #[error("a duet is not possible here: {0}; leave out --design, which then measures the servers in turn")]
    NoDuet(String),
    /// An error of a run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An error in the figures.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// An error of the monitor.
    #[error(transparent)]
    Monitor(#[from] brimful_monitor::MonitorError),
}

impl AbError {
    /// The reason for the verdict of a comparison that this error ended early.
    pub(crate) fn reason(&self) -> Reason {
        let code = match self {
            AbError::Ended { .. } | AbError::NoAnswer { .. } => ReasonCode::ServerDied,
            _ => ReasonCode::Incomplete,
        };
        Reason { code, message: self.to_string() }
    }

    /// Whether the cause is the command line, rather than the environment.
    pub fn is_usage(&self) -> bool {
        match self {
            AbError::Unfit(_) | AbError::Stats(_) => true,
            AbError::Run(error) => error.is_usage(),
            AbError::Monitor(error) => error.is_usage(),
            _ => false,
        }
    }
}
