//! Reports of brimful's results (Records of runs, sweeps, surveys, plans, profiles of logs, metrics of servers): as
//! text for terminals, as self-contained HTML pages, and as JSON for scripts.
//!
//! Lines of text are [`DEFAULT_WIDTH`] columns wide, or as wide as [`with_width`] sets. This crate does not measure or
//! predict anything: all values come from the documents.
#![forbid(unsafe_code)]

/// Reports of A/B tests.
pub mod ab;
/// Reports of comparisons of runs.
pub mod compare;
mod format;
/// Reports of the changes of metrics over many runs.
pub mod history;
/// Self-contained HTML pages of any document.
pub mod html;
/// Reports of single runs in httperf's output format.
pub mod httperf;
/// JSON of any document.
pub mod json;
/// Reports of single runs.
pub mod load;
mod markdown;
/// Reports of the capacity planner.
pub mod plan;
/// Reports of traffic profiles (statistics of access logs).
pub mod profile;
/// Reports of logs that were replayed twice, with bursts and without.
pub mod replay;
/// Reports of the monitor's metrics of a server.
pub mod server;
/// Reports of surveys (runs at many loads, a calibrated model, and tests of its predictions).
pub mod survey;
/// Reports of sweeps (runs at increasing loads).
pub mod sweep;
mod thresholds;

pub use format::{DEFAULT_WIDTH, with_width};

/// The reason why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The document cannot be serialized as JSON.
    #[error("the {document} could not be written as JSON ({source}): report this, with the command line, as a bug")]
    Json {
        /// Kind of the document, for example `survey`.
        document: &'static str,
        /// The serializer's error.
        source: serde_json::Error,
    },
    /// The HTML page in this program cannot be decompressed.
    #[error("the page inside this program cannot be unpacked ({0}): the program is damaged, install it again")]
    Page(std::io::Error),
}
