//! One sample: the counters of every group that is due, read one after the other at one moment.

use crate::connections::{ConnectionsSample, ConnectionsWatch};
use crate::group::{Group, Groups};
use crate::kernel::{KernelSample, KernelWatch};
use crate::network::{NetworkSample, NetworkWatch};
use crate::program::ProgramSample;
use crate::tree::ProcessTree;
use crate::{MonitorConfig, MonitorError, online_cpus, procfs, sys};
use brimful_core::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Raw counters of the groups that were due. What the kernel does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// How long the machine has been suspended since boot: `CLOCK_BOOTTIME` less `CLOCK_MONOTONIC`.
    pub suspended: Nanos,
    /// The machine.
    pub kernel: Option<KernelSample>,
    /// Each program, in the order of the selectors.
    pub process: Option<Vec<ProgramSample>>,
    /// The network.
    pub network: Option<NetworkSample>,
    /// The server's ports.
    pub connections: Option<ConnectionsSample>,
}

/// Takes samples.
#[derive(Debug)]
pub struct Sampler {
    kernel: Option<KernelWatch>,
    process: Option<ProcessTree>,
    network: Option<NetworkWatch>,
    connections: Option<ConnectionsWatch>,
    buffer: Vec<u8>,
}

impl Sampler {
    /// Finds what is to be watched.
    pub fn open(config: &MonitorConfig) -> Result<Sampler, MonitorError> {
        Sampler::open_at(Path::new("/"), config)
    }

    /// The same with another directory in place of the one that holds /proc and /sys.
    pub(crate) fn open_at(root: &Path, config: &MonitorConfig) -> Result<Sampler, MonitorError> {
        let online = online_cpus();
        if let Some(&cpu) = config.cpus.iter().find(|cpu| !online.contains(cpu)) {
            return Err(MonitorError::NoSuchCpu { cpu, online: procfs::show_cpus(&online) });
        }
        let enabled = config.intervals.enabled();
        let kernel = enabled.has(Group::Kernel).then(|| KernelWatch::open(root, &config.cpus, online)).transpose()?;
        let process = (enabled.has(Group::Process) && !config.processes.is_empty())
            .then(|| ProcessTree::open_at(&root.join("proc"), &config.processes))
            .transpose()?;
        Ok(Sampler {
            kernel,
            process,
            network: enabled.has(Group::Network).then(|| NetworkWatch::open(root)),
            connections: enabled.has(Group::Connections).then(|| ConnectionsWatch::open(root, &config.ports)),
            buffer: Vec::new(),
        })
    }

    /// Reads every group that is enabled.
    pub fn sample(&mut self) -> Sample {
        self.sample_groups(Groups::ALL)
    }

    /// Reads some of the groups that are enabled.
    pub fn sample_groups(&mut self, due: Groups) -> Sample {
        let Sampler { kernel, process, network, connections, buffer } = self;
        let due = |group| due.has(group).then_some(());
        let mut process = due(Group::Process).and(process.as_mut());
        // Searching takes far longer than reading, so all readings come after it, at one moment.
        if let Some(tree) = &mut process {
            tree.search();
        }
        Sample {
            at: sys::now(),
            suspended: sys::suspended(),
            kernel: due(Group::Kernel).and(kernel.as_mut()).map(|kernel| kernel.read(buffer)),
            process: process.map(|tree| tree.read()),
            network: due(Group::Network).and(network.as_mut()).map(|network| network.read(buffer)),
            connections: due(Group::Connections).and(connections.as_mut()).map(|watch| watch.read(buffer)),
        }
    }

    /// Where each kind of figures comes from, or `none: …` with the reason and what to do about it.
    pub fn sources(&self) -> BTreeMap<String, String> {
        let mut sources = BTreeMap::new();
        let groups = [
            (Group::Kernel, self.kernel.is_some()),
            (Group::Network, self.network.is_some()),
            (Group::Connections, self.connections.is_some()),
        ];
        for (group, _) in groups.into_iter().filter(|(_, watched)| !watched) {
            sources.insert(group.to_string(), format!("none: the group {group} is not watched"));
        }
        if let Some(kernel) = &self.kernel {
            kernel.sources(&mut sources);
        }
        match &self.process {
            Some(tree) => tree.sources(&mut sources),
            None => {
                sources.insert("process".to_owned(), "none: no process was named".to_owned());
            }
        }
        if let Some(network) = &self.network {
            network.sources(&mut sources);
        }
        if let Some(connections) = &self.connections {
            connections.sources(&mut sources);
        }
        sources
    }
}
