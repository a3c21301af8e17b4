//! Why a log cannot be read, and what to do about it.

use std::io;
use std::path::PathBuf;

/// The error of this crate. That a line is malformed is none: it is counted.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file cannot be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No file has such a name.
    #[error("no file matches {0}: check the path, and that the shell has not expanded it already")]
    NoMatch(String),
    /// There is no line in any source.
    #[error("the log is empty: {0}")]
    Empty(String),
    /// Nothing that is known looks like its lines.
    #[error("{0}")]
    UnknownFormat(String),
    /// A format that cannot be read as one.
    #[error("{0}")]
    BadFormat(String),
    /// Not one request is left to say something about.
    #[error("{0}")]
    NoRequests(String),
}
