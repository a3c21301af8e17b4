//! The types that the crates of brimful share. This crate depends on no other crate of brimful and does no I/O.
//!
//! - [`units`]: types of durations, rates and sizes, with their notation (`500ms`, `10k`, `64KiB`).
//! - [`event`]: the traits and events between workload, engine and observer.
//! - [`workload`], [`record`] (with [`account`], [`counts`], [`status`] and [`server`]), [`model`], [`survey`],
//!   [`profile`], [`sweep`], [`comparison`], [`ab`], [`history`], [`testbed`]: the documents.
//! - [`cpus`]: lists of CPUs (`0-3,7`).
//! - [`tls`], [`pem`], [`http2`]: TLS settings and faults; files of certificates and keys; HTTP/2 errors.
//! - [`slo`], [`stop_condition`]: service level objectives (`p95<200ms`); conditions that end a load (`p99>1s for 5s`).
//! - [`text`], [`secret`]: escapes untrusted text for terminals; masks credentials.
//! - [`quantity`]: formats numbers for people (`657 µs`, `−2.8 %`).
//! - [`moments`]: means and variances.
//! - [`url`]: encodes paths and host names as browsers do.
//! - [`csv`], [`number`]: comma-separated values; range checks of numbers.
//! - [`alias`], [`template`]: weighted random choice; templates of requests.
//! - [`panics`]: converts panics to values.
#![forbid(unsafe_code)]

pub mod ab;
pub mod account;
pub mod alias;
pub mod comparison;
pub mod counts;
pub mod cpus;
pub mod csv;
pub mod event;
pub mod history;
pub mod http2;
pub mod model;
pub mod moments;
pub mod number;
pub mod panics;
pub mod pem;
pub mod percentile;
pub mod profile;
pub mod quantity;
pub mod record;
pub mod secret;
pub mod server;
pub mod slo;
pub mod status;
pub mod stop_condition;
pub mod survey;
pub mod sweep;
pub mod template;
pub mod testbed;
pub mod text;
pub mod tls;
pub mod units;
pub mod url;
pub mod workload;

pub use event::{
    CallSpec, ClassId, ConnectionEnded, End, Event, ExhaustedResource, NextCall, Observer, Outcome, RequestId,
    ResponseSize, Retry, SessionEnded, SessionId, SessionOutcome, UnfollowedReason, Workload,
};
pub use http2::Http2Frame;
pub use slo::{Slo, SloSpec};
pub use status::StatusClass;
pub use stop_condition::StopCondition;
pub use tls::TlsFault;
pub use units::{Bytes, Nanos, OptionalNanos, Rate};
