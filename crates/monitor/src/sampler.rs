//! One sample: the counters of every group that is due, read one after the other at one moment.

use crate::connections::{ConnectionsSample, ConnectionsWatch};
use crate::group::{Group, Groups};
use crate::kernel::{KernelSample, KernelWatch};
use crate::netns::Place;
use crate::network::{NetworkSample, NetworkWatch};
use crate::program::ProgramSample;
use crate::tree::ProcessTree;
use crate::{MonitorConfig, MonitorError, NetNamespace, online_cpus, procfs, sys};
use brimful_core::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Raw counters of the groups that were due. What the kernel does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// How long the machine has been suspended since boot: `CLOCK_BOOTTIME` less `CLOCK_MONOTONIC`.
    pub suspended: Nanos,
    /// The network namespace that the network and the ports are of: a number that tells it from others while the machine
    /// runs.
    pub netns: Option<u64>,
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
    place: Place,
    network: Option<NetworkWatch>,
    connections: Option<ConnectionsWatch>,
    /// Why there are no connections.
    refused: Option<MonitorError>,
    /// Where /proc and /sys are.
    root: PathBuf,
    config: MonitorConfig,
    buffer: Vec<u8>,
}

impl Sampler {
    /// Finds what is to be watched. A program without any process is waited for, and [`Sampler::sources`] says so.
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
        let kernel = enabled.has(Group::Kernel).then(|| KernelWatch::open(root, &config.cpus)).transpose()?;
        let process = (enabled.has(Group::Process) && !config.processes.is_empty())
            .then(|| ProcessTree::watch(root, &config.processes, &config.netns, config.ebpf))
            .transpose()?;
        let mut sampler = Sampler {
            kernel,
            process,
            place: Place::default(),
            network: None,
            connections: None,
            refused: None,
            root: root.to_owned(),
            config: config.clone(),
            buffer: Vec::new(),
        };
        let pids = sampler.process.as_ref().map(ProcessTree::pids).unwrap_or_default();
        sampler.open_network(config.netns.place(&root.join("proc"), &pids)?)?;
        Ok(sampler)
    }

    /// Opens what is of one network namespace. A server that is merely found in another is watched there as far as that
    /// is allowed; a namespace that was asked for is watched or is an error.
    fn open_network(&mut self, place: Place) -> Result<(), MonitorError> {
        let Sampler { root, config: MonitorConfig { ports, intervals, netns, ebpf, .. }, .. } = &*self;
        let (proc, enabled) = (root.join("proc"), intervals.enabled());
        let network =
            enabled.has(Group::Network).then(|| place.namespace.reading(&proc, NetworkWatch::open)).transpose()?;
        let (mut connections, mut refused) = (None, None);
        if enabled.has(Group::Connections) {
            // Entering takes a privilege: it is not done for nothing.
            let opened = match ports.is_empty() {
                true => place.namespace.reading(&proc, |net| ConnectionsWatch::open(net, ports, *ebpf)),
                false => place.namespace.within(&proc, |net| ConnectionsWatch::open(net, ports, *ebpf)),
            };
            match opened {
                Ok(watch) => connections = Some(watch),
                Err(error) if *netns == NetNamespace::Server => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        (self.place, self.network, self.connections, self.refused) = (place, network, connections, refused);
        Ok(())
    }

    /// Goes after a server that was started anew in another network namespace, like a container's.
    fn follow(&mut self) {
        let Some(tree) = &self.process else { return };
        if self.config.netns != NetNamespace::Server {
            return;
        }
        let pids = tree.pids();
        if !self.place.is_left(&pids) {
            return;
        }
        // Where that fails the process is gone again: the next one will be looked at.
        let Ok(place) = self.config.netns.place(&self.root.join("proc"), &pids) else { return };
        if place.identity == self.place.identity {
            self.place = place;
        } else {
            let _ = self.open_network(place.arrived());
        }
    }

    /// An error if a program has no process.
    pub fn require_processes(&self) -> Result<(), MonitorError> {
        self.process.as_ref().map_or(Ok(()), ProcessTree::require_all)
    }

    /// Reads every group that is enabled.
    pub fn sample(&mut self) -> Sample {
        self.sample_groups(Groups::ALL)
    }

    /// The same, with connections counted anew though that would not be due yet: what is reported in the end is the end.
    pub fn last_sample(&mut self) -> Sample {
        self.connections.iter_mut().for_each(ConnectionsWatch::count_anew);
        self.sample()
    }

    /// Reads some of the groups that are enabled.
    pub fn sample_groups(&mut self, due: Groups) -> Sample {
        let due = |group| due.has(group).then_some(());
        // Searching takes far longer than reading, so all readings come after it, at one moment.
        if let Some(tree) = due(Group::Process).and(self.process.as_mut()) {
            tree.search();
            self.follow();
        }
        let Sampler { kernel, process, place, network, connections, buffer, .. } = self;
        Sample {
            at: sys::now(),
            suspended: sys::suspended(),
            netns: place.identity,
            kernel: due(Group::Kernel).and(kernel.as_mut()).map(|kernel| kernel.read(buffer)),
            process: due(Group::Process).and(process.as_mut()).map(ProcessTree::read),
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
        if let Some(remark) = &self.place.remark {
            for key in ["network", "tcp", "listener", "connections"] {
                if let Some(source) = sources.get_mut(key) {
                    *source = format!("{source}; {remark}");
                }
            }
        }
        if let Some(refused) = &self.refused {
            for key in ["listener", "connections"] {
                sources.insert(key.to_owned(), format!("none: {refused}"));
            }
        }
        sources
    }
}
