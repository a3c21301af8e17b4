//! The vocabulary of brimful. Every other crate speaks in these terms, and this crate speaks in none of theirs.
//!
//! - [`units`]: durations, rates and sizes as types, and how people write them (`500ms`, `10k`, `64KiB`).
//! - [`event`]: what a workload decides, what the engine does and what an observer sees; the two traits between them.
//! - [`workload`], [`record`] (with [`account`] and [`server`]), [`model`], [`survey`], [`profile`], [`testbed`]: the documents that travel
//!   between the parts.
//! - [`cpus`]: lists of CPUs (`0-3,7`).
//! - [`tls`], [`pem`]: how connections are secured, and how that fails; files of certificates and keys.
//! - [`http2`]: the errors that a server of HTTP/2 sends.
//! - [`slo`]: service level objectives (`p95<200ms`).
//! - [`text`], [`secret`]: foreign text made fit for a terminal, and what documents leave out.
//! - [`quantity`]: numbers as people read them (`657 µs`, `−2.8 %`).
//! - [`url`]: paths and host names as browsers send them.
//! - [`csv`], [`number`]: comma-separated values; numbers held to what they may be.
//! - [`alias`], [`template`]: drawing one of many by weight; texts that are filled in anew for every call.
//! - [`panics`]: a panic as a value.
//!
//! Nothing here does I/O.
#![forbid(unsafe_code)]

pub mod account;
pub mod alias;
pub mod counts;
pub mod cpus;
pub mod csv;
pub mod event;
pub mod http2;
pub mod model;
pub mod moments;
pub mod number;
pub mod panics;
pub mod pem;
pub mod profile;
pub mod quantity;
pub mod record;
pub mod secret;
pub mod server;
pub mod slo;
pub mod status;
pub mod survey;
pub mod template;
pub mod testbed;
pub mod text;
pub mod tls;
pub mod units;
pub mod url;
pub mod workload;

pub use event::{
    CallSpec, ClassId, ConnectionEnded, End, Event, Limit, Next, Observer, Outcome, RequestId, ResponseSize, Retry,
    SessionEnded, SessionId, SessionOutcome, Unfollowed, Workload,
};
pub use http2::Http2Frame;
pub use slo::Slo;
pub use status::StatusClass;
pub use tls::TlsFault;
pub use units::{Bytes, Moment, Nanos, Rate};
