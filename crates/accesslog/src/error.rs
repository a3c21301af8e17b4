//! Errors about logs, with advice.

use std::io;
use std::path::PathBuf;

/// The error of this crate. A malformed line is not an error, but counted.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file cannot be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No file matches a pattern.
    #[error("no file matches {0}: check the path, and that the shell has not expanded it already")]
    NoMatch(String),
    /// No log has a line.
    #[error("the log is empty: {0}")]
    Empty(String),
    /// No known format reads the lines.
    #[error("{0}")]
    UnknownFormat(String),
    /// A format string or a workload that cannot be used.
    #[error("{0}")]
    BadFormat(String),
    /// The logs have no request that can be used.
    #[error("{0}")]
    NoRequests(String),
}
