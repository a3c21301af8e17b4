//! Servers on free ports for the tests of the other crates. This crate is never published, and is not part of the
//! product.
//!
//! - [`Nginx`], [`Apache`], [`Caddy`], [`Nghttpd`]: real servers, with a private configuration in a temporary
//!   directory.
//! - [`RawServer`]: a TCP server that runs a function of the test on each connection, for example a [`script`] of
//!   steps.
//! - [`hostile_behaviours`]: a list of servers that misbehave, for tests of properties that must be true for every
//!   server.
//! - [`SerialServer`]: serves HTTP strictly one request at a time, and pauses once. A load generator with coordinated
//!   omission would not measure the effect of the pause.
//! - [`WorkerServer`]: serves HTTP with a few workers, each of which serves one connection until it is closed.
//! - [`Certificates`]: valid and invalid certificates. [`TlsBehaviour`]: the behaviour of a TLS server with such a
//!   certificate.
//! - [`http2`]: encodes frames of HTTP/2, and runs a server whose behaviour the test defines.
//! - [`FullBacklog`]: a listener with a full accept queue, which does not reply to connection attempts.
//!   [`RefusingPort`]: a port that refuses connections.
//! - [`logs`]: access logs of known traffic.
//! - [`with_descriptor_limit`]: runs a command with a limit of file descriptors, and without inherited file
//!   descriptors.
//!
//! Invariants: every server listens only on 127.0.0.1, unless the test passes a listener. A start function returns when
//! the server accepts connections. Dropping a server's handle ends its processes and threads and removes its files. If
//! a program is not installed, the test panics and names its package, so that a test never passes because it could not
//! run.
//!
//! Do not store a handle in a `static`: it is never dropped, so its server would run on after the tests.
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
/// HTTP/2 frames, and a server whose behaviour the test defines.
pub mod http2;
/// Access logs of simulated traffic.
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
