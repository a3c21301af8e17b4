//! Errors about logs, with advice.

use std::io;
use std::path::PathBuf;

/// The error of this crate. Malformed lines are not errors; they are counted.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file cannot be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A pattern, given here, that matches no file.
    #[error("no file matches {0}: check the path, and that the shell has not expanded it already")]
    NoMatch(String),
    /// No log contains a line. The text is a part of the message for the user.
    #[error("the log is empty: {0}")]
    Empty(String),
    /// No known format reads the lines. The text is the message for the user.
    #[error("{0}")]
    UnknownFormat(String),
    /// A format string or a workload that cannot be used.
    #[error("{0}")]
    BadFormat(String),
    /// The logs contain no usable request. The text is the message for the user.
    #[error("{0}")]
    NoRequests(String),
}
