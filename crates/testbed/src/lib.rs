//! The test bed: a server, its clients and a wide-area network between them, on one machine (Banga & Druschel 1997, §4,
//! Figure 3).
//!
//! - [`RunningTestbed`]: network namespaces of a server and its clients, each with a TUN device, and the router between
//!   them.
//! - [`Shape`]: the clients' round-trip times ([`Rtts`]), loss, rate and reordering ([`LinkShape`]).
//! - [`run`]: runs a command within the test bed, in PID and mount namespaces of its own. There, `ip netns exec` knows
//!   the hosts.
//! - [`fill_addresses`]: replaces `{server}` and `{client 1}` in a command by addresses.
//!
//! Invariants: the test bed leaves nothing behind, however it ends, even by SIGKILL. No packet leaves the router before
//! it is due, and its lateness is measured. Memory is bounded. The same packets with the same seed are lost, delayed
//! and reordered in the same way.
//!
//! Times are [`brimful_core::Nanos`], by `CLOCK_MONOTONIC`.
#![deny(unsafe_code)]

mod address;
mod bed;
mod cpus;
mod error;
mod flows;
mod init;
mod lateness;
mod link;
mod namespace;
mod packet;
mod router;
mod router_thread;
mod rtt;
mod run;
mod sys;
mod wheel;

pub use address::{HostNumber, MAX_CLIENTS, SERVER, UnknownHostError, fill_addresses};
pub use bed::{RunningTestbed, TestbedResults, become_root};
pub use cpus::{CpuRequest, Cpus};
pub use error::TestbedError;
pub use init::run_init;
pub use link::LinkShape;
pub use router::{MTU, Shape};
pub use rtt::{MAX_RTT, RttHistogram, RttHistogramError, RttRange, Rtts};
pub use run::{INIT_COMMAND, run};
