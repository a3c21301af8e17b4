//! Records, surveys, plans, profiles and what was seen of a server as people read them (terminal text, one
//! self-contained HTML page) and as scripts do (JSON).
//!
//! Texts are laid out for [`WIDTH`] columns, or for as many as [`at_width`] says. Nothing here measures or predicts: the
//! figures are the document's own.
#![forbid(unsafe_code)]

mod format;
pub mod html;
pub mod httperf;
pub mod json;
pub mod load;
pub mod plan;
pub mod profile;
pub mod replay;
pub mod server;
pub mod survey;

pub use format::{WIDTH, at_width};

/// Why a document could not be written out.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The document does not serialize.
    #[error("the {document} could not be written as JSON ({source}): report this, with the command line, as a bug")]
    Json {
        /// Which document.
        document: &'static str,
        /// What serde said.
        source: serde_json::Error,
    },
    /// The page inside this program cannot be unpacked.
    #[error("the page inside this program cannot be unpacked ({0}): the program is damaged, install it again")]
    Page(std::io::Error),
}
