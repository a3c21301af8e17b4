//! Compares two running servers, A and B: sends load to them in slices (short runs), in turn or at the same time. It
//! stops when the 95 % confidence interval of a metric's ratio B/A is narrow enough, or when the time is used up.
//!
//! [`ab`] is the entry point. `method.rs` is the method itself. It has no clock and no network: it measures servers
//! only through the trait `Bench`, which the tests implement with simulated servers.
//!
//! **Interleaved.** A round has two slices of A and two of B; every second round also has two of the control (C). The
//! first half is in random order and the second half in the reverse order, such as A B C C B A. A linear drift of the
//! host's speed cancels within a round. Any other drift adds variance but no bias, because the order is random.
//!
//! **Duet** (Bulej, Horký, Tůma, Farquet & Prokopec, *Duet Benchmarking*, ICPE 2020). Both servers are loaded at the
//! same time, each on its own CPUs, so that a disturbance of the host affects both. In a round, A and B are measured
//! together twice, one of these times with exchanged CPUs. In every second round, A and the control are measured
//! together in the same way.
//!
//! **The control** is a server that should not differ from A; it is compared with A exactly as B is. If A is a command,
//! the control is a second process of the same command. Two processes of one program may differ in speed (because of
//! memory addresses, hash seeds or compiled code; Mytkowicz et al., ASPLOS 2009), and the control shows how much. If A
//! is a URL, the control is A itself.
//!
//! **Stopping.** The measurement ends when the half width of the confidence interval falls to a given value (Chow &
//! Robbins, Annals of Mathematical Statistics 36, 1965). The rule uses only the width and never the ratio, so it does
//! not favour differences. A width that is small by chance ends the measurement too early, and then fewer than 95 % of
//! the intervals contain the true ratio. A minimum number of rounds and further rounds after the rule is met (Simons,
//! Annals of Mathematical Statistics 39, 1968) correct this.
#![forbid(unsafe_code)]

mod bench;
mod error;
mod method;
mod outcome;
mod process;
mod rounds;
mod server_bench;
#[cfg(test)]
mod simulated;
mod start;

pub use error::AbError;
pub use method::{AbEvent, AbPlan, DesignChoice};
pub use process::ServerProcess;
pub use start::{ServerSource, StartedServers, ab, start_servers};
