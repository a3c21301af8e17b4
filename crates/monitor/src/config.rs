//! What to watch, and how.

use crate::requests::slices::DutyCycle;
use crate::schedule::Intervals;
use crate::{NetNamespace, ProcessSelector};
use brimful_core::Nanos;
use std::path::PathBuf;

/// What to watch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// The server's programs.
    pub processes: Vec<ProcessSelector>,
    /// The TCP ports it listens on.
    pub ports: Vec<u16>,
    /// The CPUs whose shares are averaged; all of them if empty.
    pub cpus: Vec<usize>,
    /// Files of the Server Module that are read whoever has them mapped; those of the programs are found.
    pub modules: Vec<PathBuf>,
    /// Whose network is watched.
    pub netns: NetNamespace,
    /// How often each group is sampled.
    pub intervals: Intervals,
    /// The CPU for the monitor's own thread.
    pub pin: Option<usize>,
    /// Whether eBPF may serve as a source. It is left alone without the privilege in any case.
    pub ebpf: bool,
    /// How much of the time tracepoints on sockets are attached, where that group is among the intervals.
    pub requests: DutyCycle,
}

impl Default for MonitorConfig {
    fn default() -> MonitorConfig {
        let intervals = Intervals::every(Nanos::from_millis(250));
        MonitorConfig {
            processes: Vec::new(),
            ports: Vec::new(),
            cpus: Vec::new(),
            modules: Vec::new(),
            netns: NetNamespace::Server,
            intervals,
            pin: None,
            ebpf: true,
            requests: DutyCycle::default(),
        }
    }
}
