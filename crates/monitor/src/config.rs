//! The monitor's configuration.

use crate::requests::slices::DutyCycle;
use crate::schedule::Intervals;
use crate::{NetNamespace, ProcessSelector};
use brimful_core::Nanos;
use std::path::PathBuf;

/// The processes, ports and files to watch, and the way to watch them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// The programs of the server.
    pub processes: Vec<ProcessSelector>,
    /// The TCP ports that the server listens on.
    pub ports: Vec<u16>,
    /// The CPUs over which the shares of CPU time are averaged. If the list is empty, all CPUs are averaged.
    pub cpus: Vec<usize>,
    /// Files of the Server Module that are read even if no watched program maps them. Files that the watched programs
    /// map are found automatically.
    pub modules: Vec<PathBuf>,
    /// The network namespace whose ports and interfaces are watched.
    pub netns: NetNamespace,
    /// Sampling interval of each group of metrics.
    pub intervals: Intervals,
    /// The CPU to which the monitor's own thread is pinned, if any.
    pub pin: Option<usize>,
    /// Whether eBPF may be used. It is never used without the necessary privilege.
    pub ebpf: bool,
    /// Share of the time for which tracepoints on sockets are attached to measure requests, if the group `requests` is
    /// enabled.
    pub requests_duty: DutyCycle,
}

impl Default for MonitorConfig {
    fn default() -> MonitorConfig {
        let intervals = Intervals::uniform(Nanos::from_millis(250));
        MonitorConfig {
            processes: Vec::new(),
            ports: Vec::new(),
            cpus: Vec::new(),
            modules: Vec::new(),
            netns: NetNamespace::Server,
            intervals,
            pin: None,
            ebpf: true,
            requests_duty: DutyCycle::default(),
        }
    }
}
