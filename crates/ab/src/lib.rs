//! Compares two running servers, A and B: loads them in short slices, in turn or at the same time, until the interval
//! of their ratio is narrow enough or the time is used up.
//!
//! [`ab`] is the entry point. `method.rs` is the method itself. It has no clock and no network: it depends on the
//! outside world only through a `Bench`, for which the tests have a simulated one.
//!
//! **Interleaved.** A round has two slices of A and two of B, and every other round two of the control, in an order that
//! is random and then reversed, like A B C C B A. A linear drift of the host cancels within a round, and because the
//! order is random, any other drift makes rounds vary without a bias.
//!
//! **Duet** (Bulej, Horký, Tůma, Farquet & Prokopec, *Duet Benchmarking*, ICPE 2020). Both servers are loaded at the
//! same time, on CPUs of their own, so that a disturbance of the host affects both. In a round, A is measured beside B
//! and, every other round, beside the control, each time twice with exchanged CPUs.
//!
//! **The control** is compared with A exactly as B is. Where A is a command, it is a second process of it, so that what
//! differs between two processes of one program (addresses, hash seeds, compiled code; Mytkowicz et al., ASPLOS 2009)
//! shows up as a difference of A from itself. Where A is a URL, the control is A.
//!
//! **Stopping.** The measurement ends when the half width of the interval reaches a given value (Chow & Robbins, Annals
//! of Mathematical Statistics 36, 1965). The rule looks only at the width and never at the ratio, so it does not favour
//! differences. A width that is small by chance ends it too early, which costs coverage; the minimum number of rounds
//! and the further rounds after the rule is met (Simons, Annals of Mathematical Statistics 39, 1968) make up for that.
#![forbid(unsafe_code)]

mod bench;
mod error;
mod method;
mod outcome;
mod process;
mod server_bench;
mod setup;
#[cfg(test)]
mod simulated;
mod start;

pub use error::AbError;
pub use method::AbEvent;
pub use process::ServerProcess;
pub use setup::{AbPlan, DesignChoice, ServerSource};
pub use start::{StartedServers, ab, start_servers};
