//! Monitors a server on another host: [`MonitorServer`] takes samples there, and
//! [`Monitor::connect`](crate::Monitor::connect) receives the samples here and converts them to the generator's clock.
//!
//! The protocol is one TCP connection with one JSON message per line ([`protocol`], `brimful.watch/3`):
//!
//! ```text
//!   watching side                       load generator
//!   greeting: version, nonce    ───▶
//!                               ◀───    hello: nonce, proof
//!   welcome: proof              ───▶
//!                               ◀──▶    clock, 16 times; the end if the offset is too uncertain
//!                               ◀───    watch: how often each group
//!   watching: sources           ───▶
//!   sample, sample, …           ───▶
//!                               ◀───    stop
//!   last sample, sources        ───▶
//!                               ◀──▶    clock, 16 times
//! ```
//!
//! The watching side decides which processes and ports are watched. It serves each client with a separate thread and
//! sampler, so a client that is slow or dies does not affect other clients. If the stream breaks, the samples received
//! so far are kept.
//!
//! Plain TCP is allowed only if both addresses are on the loopback interface; with an SSH tunnel, this is the case on
//! both hosts. All other connections use TLS. The token is always required, because a host has several users. Both
//! sides prove that they know the token ([`token`]), and neither sends it.

mod bounds;
mod clock;
mod connect;
mod link;
mod notices;
mod pending;
mod protocol;
mod secret_file;
mod serve;

mod tls;
mod token;

pub use connect::RemoteConfig;
pub(crate) use connect::Stream;
pub use serve::{MonitorServer, ServeConfig};
pub use tls::Identity;
pub use token::Token;

use std::net::IpAddr;

/// Whether packets to this address never leave this host.
fn stays_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
