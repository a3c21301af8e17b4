//! One sample: every counter of every group, read one after the other at one moment.

use crate::listener::{ListenerSample, ListenerWatch};
use crate::procfs::{self, CpuTicks, ProcFile, SystemStat};
use crate::program::ProgramSample;
use crate::tree::ProcessTree;
use crate::{MonitorConfig, MonitorError, online_cpus, sys};
use brimful_core::Nanos;
use std::collections::BTreeMap;
use std::path::Path;

/// Raw counters. What the kernel does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// The machine.
    pub system: Option<SystemSample>,
    /// Each program, in the order of the selectors.
    pub programs: Vec<ProgramSample>,
    /// The listening socket, if a port was named and something listens there.
    pub listener: Option<ListenerSample>,
}

/// The machine at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemSample {
    /// Over the CPUs that are watched.
    pub cpu: CpuTicks,
    /// Since boot, whole machine.
    pub context_switches: u64,
}

/// Takes samples.
#[derive(Debug)]
pub struct Sampler {
    stat: ProcFile,
    tree: Option<ProcessTree>,
    listener: Option<ListenerWatch>,
    cpus: Vec<usize>,
    /// Whether the last reading of /proc/stat made sense.
    understood: bool,
    buffer: Vec<u8>,
}

impl Sampler {
    /// Finds what is to be watched.
    pub fn open(config: &MonitorConfig) -> Result<Sampler, MonitorError> {
        let root = Path::new("/proc");
        let online = online_cpus();
        if let Some(&cpu) = config.cpus.iter().find(|cpu| !online.contains(cpu)) {
            return Err(MonitorError::NoSuchCpu { cpu, online: procfs::show_cpus(&online) });
        }
        let tree = match config.processes.as_slice() {
            [] => None,
            selectors => Some(ProcessTree::open_at(root, selectors)?),
        };
        Ok(Sampler {
            stat: ProcFile::open(&root.join("stat"))?,
            tree,
            listener: config.port.map(|port| ListenerWatch::open(root, port)),
            cpus: config.cpus.clone(),
            understood: false,
            buffer: Vec::new(),
        })
    }

    /// Reads everything.
    pub fn sample(&mut self) -> Sample {
        let mut stat = self.stat();
        // Searching takes far longer than reading, so all readings come after it, at one moment.
        if self.tree.as_mut().is_some_and(|tree| tree.search(stat.map(|stat| stat.forks))) {
            stat = self.stat();
        }
        self.understood = stat.is_some();
        Sample {
            at: sys::now(),
            system: stat.map(|stat| SystemSample { cpu: stat.cpu, context_switches: stat.context_switches }),
            programs: self.tree.as_mut().map(ProcessTree::read).unwrap_or_default(),
            listener: self.listener.as_mut().and_then(ListenerWatch::read),
        }
    }

    fn stat(&mut self) -> Option<SystemStat> {
        procfs::system_stat(self.stat.read(&mut self.buffer).ok()?, &self.cpus)
    }

    /// Name and processes of each program, in the order of the selectors.
    pub fn programs(&self) -> Vec<(String, Vec<u32>)> {
        let programs = self.tree.iter().flat_map(ProcessTree::programs);
        programs.map(|(name, pids)| (name.to_owned(), pids)).collect()
    }

    /// Where each group of figures comes from, or why it has none.
    pub fn sources(&self) -> BTreeMap<String, String> {
        let cpu = match self.understood {
            true if self.cpus.is_empty() => "/proc/stat, all CPUs".to_owned(),
            true => format!("/proc/stat, CPUs {}", procfs::show_cpus(&self.cpus)),
            false => "none: /proc/stat holds no figures of these CPUs".to_owned(),
        };
        let process = match &self.tree {
            Some(_) => "CPU clock of each process; /proc/PID/stat (user/system split, memory), task/*/schedstat",
            None => "none: no process was named",
        };
        let listener = self.listener.as_ref().map_or("none: no port was named".to_owned(), ListenerWatch::source);
        [("cpu", cpu), ("process", process.to_owned()), ("listener", listener)]
            .map(|(group, source)| (group.to_owned(), source))
            .into()
    }
}
