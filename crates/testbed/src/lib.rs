//! The test bed: a server, its clients and the wide area between them, on one machine (Banga & Druschel 1997, §4,
//! Figure 3).
//!
//! - [`Bed`]: network namespaces of a server and its clients, each with a TUN device, and the router between these.
//! - [`Shape`]: the clients' round-trip times ([`Rtts`]), loss, rate and reordering ([`LinkShape`]).
//! - [`run`]: a command within the test bed, in PID and mount namespaces of its own, in which `ip netns exec` knows the
//!   hosts.
//! - [`fill`]: a command's `{server}` and `{client 1}` replaced by addresses.
//!
//! Invariants: nothing of it is left behind, however it ends, SIGKILL included; no packet leaves the router before it
//! is due, and how much later it does is measured; memory is bounded; the same packets with the same seed meet the same
//! fate.
//!
//! Times are [`brimful_core::Nanos`], by `CLOCK_MONOTONIC`.
#![deny(unsafe_code)]

mod address;
mod bed;
mod cpus;
mod error;
mod flows;
mod inside;
mod late;
mod link;
mod namespace;
mod packet;
mod pump;
mod router;
mod rtt;
mod run;
mod sys;
mod wheel;

pub use address::{HostNumber, MOST_CLIENTS, NoSuchHost, SERVER, fill};
pub use bed::{Bed, Measured, become_root};
pub use cpus::{Cpus, Wanted};
pub use error::TestbedError;
pub use inside::inside;
pub use link::LinkShape;
pub use router::{MTU, Shape};
pub use rtt::{Histogram, HistogramError, MOST_RTT, Range, Rtts};
pub use run::{INSIDE, run};
