//! Reads access logs, and converts a site's traffic to a [`Profile`](brimful_core::profile::Profile) and a `Workload`.
//!
//! - [`source`]: files (compressed or not), rotated sets of files, standard input → lines.
//! - [`format`](mod@format), [`detect`]: a line → an [`Entry`]. The format is specified or detected.
//! - [`entry_text`]: the fields of an entry as text, with which users check how a line was read.
//! - [`read`](mod@read): all lines of all logs, with counts of their outcomes. [`logs`]: all logs, merged by time.
//! - [`profile`]: entries → a profile, in bounded memory.
//! - [`workload`]: a profile → a `Workload` with the same traffic. [`fileset`]: the files that its requests need.
//! - [`history`](mod@history): entries → requests per hour, the input of a forecast.
//! - [`compare`]: compares two profiles. [`replay`]: turns the requests of a log into calls.
//!
//! No input makes this crate panic. Texts of an entry are bytes of the log: escape these with `core::text` before
//! writing to a terminal.
#![forbid(unsafe_code)]

pub mod compare;
pub mod detect;
mod entry;
pub mod entry_text;
mod error;
pub mod fileset;
pub mod format;
pub mod history;
pub mod logs;
pub mod profile;
pub mod read;
pub mod replay;
pub mod source;
pub mod workload;

pub use entry::{Entry, Line, LineParseError, Scratch};
pub use error::LogError;
