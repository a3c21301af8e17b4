//! The types that the crates of brimful share. This crate depends on no other crate of brimful and does no I/O.
//!
//! Documents are the JSON and TOML files that brimful reads and writes. Each type of document has a module.
#![forbid(unsafe_code)]

/// The `AbTest` document: results of an A/B comparison of two running servers.
pub mod ab;
/// The serialised form of a run's counts and histograms, which a Record contains.
pub mod account;
/// Weighted random selection by the alias method.
pub mod alias;
/// The `Comparison` document: differences between the Records or surveys of two servers.
pub mod comparison;
/// Numbers of calls and responses by outcome.
pub mod counts;
/// Lists of CPU numbers, like `0-3,7`.
pub mod cpus;
/// Parses and formats comma-separated values (CSV).
pub mod csv;
/// The traits and events between workload, engine and observer, the parts of a load generator.
pub mod event;
/// The `History` document: metrics of a series of runs, and their changes.
pub mod history;
/// Names of the HTTP/2 errors that a server sends.
pub mod http2;
/// The `Model` document: a queueing network.
pub mod model;
/// Means and variances of samples.
pub mod moments;
/// Checks that numbers are within their ranges.
pub mod number;
/// Conversion of panics to errors.
pub mod panics;
/// Explanations for users whose PEM files of certificates and keys cannot be used.
pub mod pem;
/// Percentiles, and the numbers of calls that they need.
pub mod percentile;
/// The `Profile` document: a site's traffic, derived from access logs.
pub mod profile;
/// Formats numbers for people, like `657 µs` and `−2.8 %`.
pub mod quantity;
/// The `Record` document: results of one run.
pub mod record;
/// Masks credentials, such as passwords in URLs.
pub mod secret;
/// Metrics of a server, as measured by brimful's monitor.
pub mod server;
/// Service level objectives, like `p95<200ms`.
pub mod slo;
/// Classes of HTTP status codes.
pub mod status;
/// Conditions that end a load early, like `p99>1s for 5s`.
pub mod stop_condition;
/// The `Survey` document: predictions and measurements of a server's performance.
pub mod survey;
/// The `Sweep` document: Records (results) of the same load at increasing rates.
pub mod sweep;
/// Templates of requests, with placeholders.
pub mod template;
/// The `Testbed` document: results of a run over an emulated network.
pub mod testbed;
/// Escapes and formats text for terminals.
pub mod text;
/// TLS settings and failures.
pub mod tls;
/// Types for durations, rates, counts and sizes, with their notation.
pub mod units;
/// Encodes URLs as browsers do.
pub mod url;
/// The `Workload` document: request classes, and the arrivals of calls.
pub mod workload;

/// Implements JSON Schema for a type of a document. Without the feature `schema`, the derive macro generates nothing.
#[cfg(not(feature = "schema"))]
pub use brimful_no_schema::JsonSchema;
#[cfg(feature = "schema")]
pub use schemars::JsonSchema;

pub use event::{
    CallSpec, ClassId, ConnectionEnded, End, Event, ExhaustedResource, NextCall, Observer, Outcome, RequestId,
    ResponseSize, RetryReason, SessionEnded, SessionId, SessionOutcome, UnfollowedReason, Workload,
};
pub use http2::Http2Frame;
pub use slo::{Slo, SloSpec};
pub use status::StatusClass;
pub use stop_condition::StopCondition;
pub use tls::TlsFault;
pub use units::{Bytes, Nanos, OptionalNanos, Rate};
