//! The server under test may be on another host: [`Serving`] samples there, and
//! [`Monitor::connect`](crate::Monitor::connect) receives the samples here, on the generator's clock.
//!
//! One TCP connection, one message of JSON per line ([`protocol`], `brimful.watch/3`):
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
//! Which processes and ports are watched is decided where they are. Each client is sampled for by a thread and a
//! sampler of its own, so one that is slow, or dies, concerns nobody else. A stream that breaks leaves what was seen
//! until then.
//!
//! Plain TCP stays on the loopback interface, at both ends: that is what an SSH tunnel looks like from either.
//! Everything else is TLS. The token is needed in any case, for a host has more than one user: both sides prove that
//! they know it ([`token`]), and neither says it.

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
pub use serve::{ServeConfig, Serving};
pub use tls::Identity;
pub use token::Token;

use std::net::IpAddr;

/// Whether what is sent there never leaves this host.
fn stays_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
