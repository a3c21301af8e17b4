//! Servers on free ports for the tests of the other crates. This crate is never published, and is not part of the
//! product.
//!
//! - [`Nginx`], [`Apache`], [`Caddy`], [`Nghttpd`]: real servers, with a private configuration in a temporary
//!   directory.
//! - [`RawServer`]: a TCP server that misbehaves on request; a [`script`] describes its behaviour, step by step.
//! - [`hostile_behaviours`]: a table of named ways to misbehave, for tests of properties that do not depend on the
//!   server.
//! - [`SerialServer`]: serves HTTP strictly one request at a time, with one stall. A generator with coordinated
//!   omission would hide this stall.
//! - [`WorkerServer`]: serves HTTP with a few workers, each of which keeps its connection.
//! - [`Certificates`]: valid and flawed certificates. [`TlsBehaviour`]: how a server with such a certificate behaves.
//! - [`http2`]: frames of HTTP/2, and a server that sends the frames that a test writes.
//! - [`FullBacklog`]: a listener at which further connection attempts hang. [`RefusingPort`]: a port that refuses
//!   connections.
//! - [`logs`]: access logs of known traffic.
//! - [`with_descriptor_limit`]: runs a command with a limit of descriptors and without inherited descriptors.
//!
//! Invariants: every server listens only on 127.0.0.1, unless the test passes a listener. A start function returns when
//! the server accepts connections. Dropping the handle leaves no process, no thread and no file behind. If the machine
//! lacks a program, the test panics and names the package to install: a test never passes because it could not run.
//!
//! A handle in a `static` is never dropped, so its server would outlive the tests: keep handles in the test.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "only tests call this crate, and a test fails by panicking"
)]

mod apache;
mod caddy;
mod certificates;
mod commands;
mod daemon;
mod hostile;
pub mod http2;
pub mod logs;
mod nghttpd;
mod nginx;
mod ports;
mod raw;
mod request;
mod script;
mod serial;
mod tls;
mod workers;

pub use apache::{Apache, ApacheOptions, Mpm};
pub use caddy::Caddy;
pub use certificates::{CertificateFlaw, Certificates, Identity};
pub use commands::{CLOSE_INHERITED, with_descriptor_limit, words};
pub use daemon::Daemon;
pub use hostile::{HostileBehaviour, HostileServer, hostile_behaviours};
pub use nghttpd::Nghttpd;
pub use nginx::{Nginx, NginxOptions};
pub use ports::{FullBacklog, RefusingPort, free_port, full_backlog_listener};
pub use raw::{RawServer, with_length};
pub use request::Request;
pub use script::{Step, script};
pub use serial::{SerialServer, start_serial_server};
pub use tls::{TlsBehaviour, TlsEnding, server_config};
pub use workers::WorkerServer;
