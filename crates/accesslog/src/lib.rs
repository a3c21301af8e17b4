//! Access logs: what they say of a site's traffic, as a [`Profile`](brimful_core::profile::Profile) and a `Workload`.
//!
//! - [`source`]: files, compressed or not, sets of rotated ones, stdin → lines.
//! - [`format`](mod@format), [`detect`]: a line → an [`Entry`], in whatever format, which is found out or given.
//! - [`readout`](mod@readout): an entry in words, for people to see what a line was taken for.
//! - [`read`](mod@read): all lines of all sources, each accounted for. [`logs`]: the same, merged by time.
//! - [`profile`]: entries → a profile, in memory that does not grow with the log. [`sessions`] and [`classes`] are
//!   parts of it.
//! - [`workload`]: a profile → the `Workload` that has its traffic; [`fileset`]: the files that its requests need.
//! - [`history`](mod@history): entries → requests per hour, which a forecast begins with.
//! - [`compare`]: how far apart two profiles are. [`replay`]: the requests of a log as calls to be made.
//!
//! Nothing here panics on any input. Texts of an entry are as the log has them: whoever shows them makes them fit for a
//! terminal (`core::text`).
#![forbid(unsafe_code)]

pub mod classes;
pub mod compare;
pub mod detect;
mod entry;
mod error;
pub mod fileset;
pub mod format;
pub mod history;
pub mod logs;
pub mod profile;
pub mod read;
pub mod readout;
pub mod replay;
pub mod sessions;
pub mod source;
pub mod workload;

pub use entry::{Entry, Line, Malformed, Scratch};
pub use error::LogError;
