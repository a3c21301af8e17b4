//! Reports what the server's kernel observed while the server was under load, on the same clock as the load
//! (`CLOCK_MONOTONIC`).
//!
//! This is the Kernel Module and the Server Module of WebMonitor (Almeida, Almeida & Yates 1997) on today's Linux. The
//! Kernel Module reads /proc, `sock_diag` and, where it is allowed, eBPF. The Server Module reads what servers record
//! about their own requests. Metrics are divided into [groups](GroupName), each with its own switch and interval. A raw
//! [`Sample`] contains only counters; [`Rates::between`] two samples is a pure function.
//! [`Server::sources`](brimful_core::server::Server::sources) says where each metric comes from, or why it is absent
//! and how to get it. The monitor measures its own cost.
//!
//! - [`Monitor`]: a thread that samples, and the summary of what it measured. [`Sampler`]: takes one sample at a time,
//!   for callers that follow a [`Schedule`] themselves. Such callers derive metrics with a [`MetricsTracker`], keep a
//!   [`History`], and measure the cost with a [`MeteredSampler`].
//! - [`MonitorServer`] and [`Monitor::connect`]: monitor a server on another host.
//! - [`bottleneck`]: describes in words which limits the server has reached or is near.
//! - [`ProcessTree`]: the processes of some programs with all descendants, and their CPU time at any moment, to the
//!   nanosecond.
//! - [`NetNamespace`]: which network namespace is watched; by default the server's.
//! - [`pin_tree`]: restricts a server to some of the CPUs for as long as a guard lives.
//! - [`listener_owners`]: which processes a port belongs to.
//! - [`host::examine`]: checks what this host allows, and names a command that fixes each shortfall. [`host::probe`]:
//!   measures how fast this host is right now.
//!
//! Each group is one file (`kernel.rs`, `process.rs`, `network.rs`, `connections.rs`, `module.rs`, `requests.rs`) that
//! implements [`Group`], and one entry in the list of `groups.rs`.

#[macro_use]
mod groups;

mod accounts;
mod affinity;
mod bottleneck;
mod config;
mod connections;
mod counter;
#[cfg_attr(not(feature = "ebpf"), allow(dead_code))] // without the feature, programs are never attached
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
pub use group::{Group, PeriodMetrics};
pub use groups::{GroupName, PerGroup};
pub use history::History;
pub use kernel::{
    CpuTicks, DiskSample, KernelSample, PagingSample, PressureSample, SoftirqSample, StallSample, ThreadGroupSample,
};
pub use limit::{FormerCgroups, LimitGuard, limit_tree, quota_period_s};
pub use listener::ListenerSample;
pub use meter::MeteredSampler;
pub use module::ModuleSample;
pub use monitor::Monitor;
pub use netns::NetNamespace;
pub use network::{InterfaceSample, NetworkSample, TcpSample};
pub use owner::{listener_owners, socket_owners};
pub use program::{CpuTime, Membership, ProgramSample};
pub use rates::{MetricsTracker, Rates};
pub use remote::{Identity, MonitorServer, RemoteConfig, ServeConfig, Token};
pub use requests::{DutyCycle, RequestsSample};
pub use sampler::{Sample, Sampler};
pub use schedule::{Groups, Intervals, Schedule};
pub use tree::{CpuReading, ProcessSelector, ProcessTree};

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The reason why the server cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// No running process matches a selector.
    #[error(
        "no process {wanted} is running: start the server first; `ss -ltnp` shows which program listens on which port{}",
        .hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"))
    )]
    NoSuchProcess {
        /// The selector, in words.
        wanted: String,
        /// A hint where else to look for the process, if the monitor has one.
        hint: Option<String>,
    },
    /// This user sees no process that matches a selector, but other processes may be hidden from this user.
    #[error("no process {wanted} is visible: {why}")]
    UnseenProcess {
        /// The selector, in words.
        wanted: String,
        /// The reason, and a remedy.
        why: String,
    },
    /// The process that listens on a TCP port cannot be determined.
    #[error("cannot tell which process listens on TCP port {port}: {why}, or name the process with --process")]
    UnknownOwner {
        /// Number of the port.
        port: u16,
        /// The reason, and a remedy.
        why: String,
    },
    /// The process that listens on a Unix socket cannot be determined.
    #[error("cannot tell which process listens at the Unix socket {}: {why}, or name the process with --process", path.display())]
    UnknownSocketOwner {
        /// The socket's path.
        path: std::path::PathBuf,
        /// The reason, and a remedy.
        why: String,
    },
    /// A requested CPU does not exist or is not online.
    #[error("CPU {cpu} is not online: choose among {online}")]
    NoSuchCpu {
        /// The CPU that was requested.
        cpu: usize,
        /// The CPUs that are online, as a list of ranges.
        online: String,
    },
    /// A file that the kernel provides cannot be read.
    #[error("cannot read {path}: {source}; mount /proc, or leave the sandbox that hides it")]
    Proc {
        /// Path of the file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file of the Server Module cannot be read.
    #[error("cannot read {path}: {why}")]
    Module {
        /// Path of the file.
        path: PathBuf,
        /// The reason, and a remedy.
        why: String,
    },
    /// The network namespace cannot be entered.
    #[error("cannot enter {which}: {source}; {remedy}")]
    NetNamespace {
        /// Description of the namespace, in words.
        which: String,
        /// The kernel's error.
        source: io::Error,
        /// Advice on how to solve the problem.
        remedy: String,
    },
    /// A process of another user matches a selector only by its name.
    #[error(
        "will not move process {pid}: it runs as uid {user}, and only its name, `{name}`, says that it is the \
         server's; name the server by its pid (--process {pid}) or its port"
    )]
    OtherUser {
        /// The selected name.
        name: String,
        /// The pid of the process.
        pid: u32,
        /// The real user id of the process.
        user: u32,
    },
    /// The kernel refused to change a thread's CPUs.
    #[error(
        "cannot keep thread {tid} on CPUs {cpus}: {source}; run as root or as that process's user, \
         or once: sudo setcap cap_sys_nice+ep \"$(command -v brimful)\""
    )]
    Affinity {
        /// The thread's id.
        tid: u32,
        /// The CPUs on which the thread should run, as a list of ranges.
        cpus: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The helper process has ended. It would undo this process's change to the server if this process were killed.
    #[error(
        "cannot move the server: the process that would move it back if brimful were killed has ended ({0}); try again"
    )]
    Announce(#[source] io::Error),
    /// A CPU quota cannot be set.
    #[error("cannot give the server a CPU quota: {path}: {source}; run as root, and outside a container")]
    Quota {
        /// The file or directory that cannot be created or written.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// No control group is suitable for a CPU quota; the text states the reason.
    #[error("cannot give the server a CPU quota: {0}")]
    NoQuota(String),
    /// The monitor's thread cannot be started.
    #[error("cannot start the monitor's thread: {0}; raise the limit on processes (`ulimit -u`)")]
    Thread(#[source] io::Error),
    /// An address, a token or a certificate cannot be used, or cannot be used safely.
    #[error("{0}")]
    Unusable(String),
    /// The monitor cannot listen on an address.
    #[error("cannot serve at {address}: {source}; `ss -ltnp` shows who listens there, and port 0 takes a free one")]
    Listen {
        /// The address on which the monitor should listen.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// The monitor on the other host cannot be used.
    #[error("cannot watch from {peer}: {why}")]
    Remote {
        /// Address of the monitor on the other host.
        peer: String,
        /// The reason, and a remedy.
        why: String,
    },
}

impl MonitorError {
    /// Whether the error is in the command line or in a file, rather than in the environment.
    pub fn is_usage(&self) -> bool {
        matches!(self, MonitorError::NoSuchCpu { .. } | MonitorError::OtherUser { .. } | MonitorError::Unusable(_))
    }
}
