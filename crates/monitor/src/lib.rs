//! What the server's kernel saw while it was under load: CPU shares, the CPU time of the server's processes, and the
//! accept queue of its listening socket, on the same clock as the load (`CLOCK_MONOTONIC`).
//!
//! The kernel module of WebMonitor (Almeida, Almeida & Yates 1997) in today's Linux: descriptors on /proc that are
//! kept open, and exact `sock_diag` look-ups. A raw [`Sample`] holds counters only; [`Rates::between`] two samples is
//! a pure function. Every group degrades visibly: [`Server::sources`](brimful_core::record::Server::sources) says
//! where its figures come from, or why there are none. The monitor measures its own cost.
//!
//! - [`Monitor`]: a thread that samples, and the summary of what it saw. [`Sampler`]: the same, one sample at a time.
//! - [`ProcessTree`]: a program and its descendants; CPU time to the nanosecond at any moment.
//! - [`pin_tree`]: keeps a server on some of the CPUs for as long as a guard lives.
//! - [`listener_owners`]: which processes a port belongs to.
//! - [`host::examine`]: what this host allows, and the command that mends each shortfall.
//!
//! Each further group of figures gets a file of its own beside `listener.rs`, a field in [`Sample`] and one in
//! [`Rates`].

mod affinity;
#[cfg(test)]
mod fixture;
pub mod host;
mod listener;
mod monitor;
mod owner;
mod procfs;
mod program;
mod rates;
mod sampler;
mod sock_diag;
mod sys;
mod tree;

pub use affinity::{PinGuard, cpu_count, online_cpus, pin_tree};
pub use listener::ListenerSample;
pub use monitor::{Monitor, MonitorConfig};
pub use owner::listener_owners;
pub use procfs::CpuTicks;
pub use program::{CpuTime, ProgramSample};
pub use rates::{ListenerRates, ProgramRates, Rates};
pub use sampler::{Sample, Sampler, SystemSample};
pub use tree::{CpuReading, ProcessSelector, ProcessTree};

use std::io;
use std::path::PathBuf;

/// Why the server could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// Nothing to watch.
    #[error(
        "no process {wanted} is running: start the server first; `ss -ltnp` shows which program listens on which port"
    )]
    NoSuchProcess {
        /// Name or pid, as words.
        wanted: String,
    },
    /// A port whose process cannot be found.
    #[error("cannot tell which process listens on TCP port {port}: {why}, or name the process with --process")]
    UnknownOwner {
        /// Which.
        port: u16,
        /// Why not, and what to do about it.
        why: String,
    },
    /// A CPU that this machine does not have.
    #[error("CPU {cpu} is not online: choose among {online}")]
    NoSuchCpu {
        /// The one asked for.
        cpu: usize,
        /// Those there are, as a list of ranges.
        online: String,
    },
    /// A file of the kernel's is missing.
    #[error("cannot read {path}: {source}; mount /proc, or leave the sandbox that hides it")]
    Proc {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused to move a thread.
    #[error(
        "cannot keep thread {tid} on CPUs {cpus}: {source}; run as root or as that process's user, \
         or once: sudo setcap cap_sys_nice+ep \"$(command -v brimful)\""
    )]
    Affinity {
        /// The thread.
        tid: u32,
        /// Where it was to run, as a list of ranges.
        cpus: String,
        /// Why not.
        source: io::Error,
    },
    /// No thread for the monitor.
    #[error("cannot start the monitor's thread: {0}; raise the limit on processes (`ulimit -u`)")]
    Thread(#[source] io::Error),
}
