//! The test bed: a server, its clients and a wide-area network between them, on one machine (Banga & Druschel 1997, §4,
//! Figure 3).
//!
//! - [`RunningTestbed`]: network namespaces (called hosts) of a server and its clients, each with a TUN device, and the
//!   router between them.
//! - [`NetworkSettings`]: the clients' round-trip times ([`Rtts`]), loss, rate limit and reordering ([`LinkSettings`]).
//! - [`run`]: runs a command in the test bed, in its own PID and mount namespaces. There, `ip netns exec` accepts the
//!   names of the hosts.
//! - [`fill_addresses`]: replaces `{server}` and `{client 1}` in a command by addresses.
//!
//! Invariants: no processes, namespaces or mounts remain after the test bed ends, even if it is killed by SIGKILL. No
//! packet leaves the router before it is due, and its lateness is measured. Memory is bounded. With the same seed, the
//! same packets are lost, delayed and reordered in the same way.
//!
//! Times are [`brimful_core::Nanos`] of `CLOCK_MONOTONIC`.
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
pub use link::LinkSettings;
pub use router::{MTU, NetworkSettings};
pub use rtt::{MAX_RTT, RttHistogram, RttHistogramError, RttRange, Rtts};
pub use run::{INIT_COMMAND, run};
