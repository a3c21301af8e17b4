//! What the server's kernel saw while it was under load, on the same clock as the load (`CLOCK_MONOTONIC`).
//!
//! The Kernel Module of WebMonitor (Almeida, Almeida & Yates 1997) in today's Linux: descriptors on /proc that are kept
//! open, `sock_diag`, and eBPF where it is allowed; and its Server Module: what servers say of their own requests. Its
//! [groups](GroupName) stay, each enabled and timed on its own. A raw [`Sample`] holds counters only;
//! [`Rates::between`] two samples is a pure function. Every figure degrades visibly:
//! [`Server::sources`](brimful_core::server::Server::sources) says where it comes from, or why it is absent and what
//! would bring it. The monitor measures its own cost.
//!
//! - [`Monitor`]: a thread that samples, and the summary of what it saw. [`Sampler`]: the same, one sample at a time,
//!   for callers that follow a [`Schedule`] themselves, derive figures with a [`Tracker`], keep a [`History`], and say
//!   by a [`Meter`] what that has cost.
//! - [`Serving`] and [`Monitor::connect`]: the same for a server on another host.
//! - [`bottleneck`]: what stands in the way, in words.
//! - [`ProcessTree`]: a program and its descendants; CPU time to the nanosecond at any moment.
//! - [`NetNamespace`]: whose network is watched; by default the one that the server is in.
//! - [`pin_tree`]: keeps a server on some of the CPUs for as long as a guard lives.
//! - [`listener_owners`]: which processes a port belongs to.
//! - [`host::examine`]: what this host allows, and the command that mends each shortfall. [`host::probe`]: how fast it
//!   is just now.
//!
//! A group is a file (`kernel.rs`, `process.rs`, `network.rs`, `connections.rs`, `module.rs`, `requests.rs`) with one
//! implementation of [`Group`] in it, and one entry in the list of `groups.rs`.

#[macro_use]
mod groups;

mod accounts;
mod affinity;
mod bottleneck;
mod config;
mod connections;
mod counter;
#[cfg_attr(not(feature = "ebpf"), allow(dead_code))] // then nothing is ever attached
mod ebpf;
#[cfg(test)]
mod fixture;
mod group;
mod hidden;
mod history;
pub mod host;
mod kernel;
mod limit;
mod listener;
mod meter;
pub mod module;
mod monitor;
mod netns;
mod network;
mod owner;
mod process;
mod procfs;
mod program;
mod quota;
mod rates;
mod remote;
pub mod requests;
mod sampler;
mod schedule;
mod search;
mod size;
mod sock_diag;
mod summary;
mod sys;
mod tree;

pub use affinity::{FormerAffinity, PinGuard, pin_tree};
pub use bottleneck::{Finding, Severity, bottleneck, thresholds};
pub use brimful_os::cpus::online as online_cpus;
pub use config::MonitorConfig;
pub use connections::{ConnectionsSample, PortSample};
pub use group::{Group, Stretch};
pub use groups::{GroupName, PerGroup};
pub use history::History;
pub use kernel::{CpuTicks, DiskSample, KernelSample, PagingSample, PressureSample, SoftirqSample, StallSample};
pub use limit::{FormerCgroups, LimitGuard, limit_tree, quota_period_s};
pub use listener::ListenerSample;
pub use meter::Meter;
pub use module::ModuleSample;
pub use monitor::Monitor;
pub use netns::NetNamespace;
pub use network::{InterfaceSample, NetworkSample, TcpSample};
pub use owner::{listener_owners, socket_owners};
pub use program::{CpuTime, Membership, ProgramSample};
pub use rates::{Rates, Tracker};
pub use remote::{Identity, RemoteConfig, ServeConfig, Serving, Token};
pub use requests::{DutyCycle, RequestsSample};
pub use sampler::{Sample, Sampler};
pub use schedule::{Groups, Intervals, Schedule};
pub use tree::{CpuReading, ProcessSelector, ProcessTree};

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the server could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// Nothing to watch.
    #[error(
        "no process {wanted} is running: start the server first; `ss -ltnp` shows which program listens on which port{}",
        .hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"))
    )]
    NoSuchProcess {
        /// Name or pid, as words.
        wanted: String,
        /// Where it may be, if it runs nonetheless.
        hint: Option<String>,
    },
    /// Perhaps something that may not be seen.
    #[error("no process {wanted} is seen: {why}")]
    UnseenProcess {
        /// Name or pid, as words.
        wanted: String,
        /// Why not, and what to do about it.
        why: String,
    },
    /// A port whose process cannot be found.
    #[error("cannot tell which process listens on TCP port {port}: {why}, or name the process with --process")]
    UnknownOwner {
        /// Which.
        port: u16,
        /// Why not, and what to do about it.
        why: String,
    },
    /// A Unix socket whose process cannot be found.
    #[error("cannot tell which process listens at the Unix socket {}: {why}, or name the process with --process", path.display())]
    UnknownSocketOwner {
        /// Its path.
        path: std::path::PathBuf,
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
    /// A file of the Server Module that cannot be read.
    #[error("cannot read {path}: {why}")]
    Module {
        /// Which.
        path: PathBuf,
        /// Why not, and what to do about it.
        why: String,
    },
    /// A network namespace that cannot be watched.
    #[error("cannot enter {which}: {source}; {remedy}")]
    NetNamespace {
        /// Whose.
        which: String,
        /// Why not.
        source: io::Error,
        /// What to do about it.
        remedy: String,
    },
    /// A process of another user, which only its name connects with the server.
    #[error(
        "will not move process {pid}: it runs as uid {user}, and only its name, `{name}`, says that it is the \
         server's; name the server by its pid (--process {pid}) or its port"
    )]
    OtherUser {
        /// The name that was asked for.
        name: String,
        /// The process.
        pid: u32,
        /// Its real user.
        user: u32,
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
    /// Nobody would put pinned threads back if this process were killed.
    #[error("cannot move the server: what would put it back if this were killed has ended ({0}); try again")]
    Announce(#[source] io::Error),
    /// A quota that cannot be given.
    #[error("cannot give the server a CPU quota: {what}: {source}; run as root, and outside a container")]
    Quota {
        /// The file or directory.
        what: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No control group can have one.
    #[error("cannot give the server a CPU quota: {0}")]
    NoQuota(String),
    /// No thread for the monitor.
    #[error("cannot start the monitor's thread: {0}; raise the limit on processes (`ulimit -u`)")]
    Thread(#[source] io::Error),
    /// An address, a token or a certificate that cannot be used, or not safely.
    #[error("{0}")]
    Unusable(String),
    /// Nobody can reach it.
    #[error("cannot serve at {address}: {source}; `ss -ltnp` shows who listens there, and port 0 takes a free one")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The other host's monitor is of no use.
    #[error("cannot watch from {peer}: {why}")]
    Remote {
        /// Where it is.
        peer: String,
        /// Why not, and what to do about it.
        why: String,
    },
}

impl MonitorError {
    /// Whether the command line or a file is wrong, and not the environment.
    pub fn is_usage(&self) -> bool {
        matches!(self, MonitorError::NoSuchCpu { .. } | MonitorError::OtherUser { .. } | MonitorError::Unusable(_))
    }
}
