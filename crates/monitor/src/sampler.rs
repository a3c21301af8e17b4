//! Takes samples: reads the counters of every group that is due, one group after another.

use crate::affinity::require_online;
use crate::connections::ConnectionsWatch;
use crate::group::{Group, WatchContext};
use crate::groups::{GroupName, GroupValue, ListedGroup, PerGroup};
use crate::netns::ChosenNamespace;
use crate::schedule::Groups;
use crate::tree::ProcessTree;
use crate::{MonitorConfig, MonitorError, NetNamespace, sys};
use brimful_core::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The raw counters of one moment, for the groups that were due. Counters that the kernel does not provide are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// The time of the sample, by `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// Time for which the machine has been suspended since boot: `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`.
    pub suspended: Nanos,
    /// The network namespace that the groups `network` and `connections` watch, as a number that identifies it until
    /// the machine reboots.
    pub netns: Option<u64>,
    /// The counters of each group that was due.
    pub groups: PerGroup<GroupCounters>,
}

/// Defines the type of each group's value in [`Sample`]: its raw counters; `None` if they were not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters;

impl GroupValue for GroupCounters {
    type Value<G: Group> = Option<G::Sample>;
}

/// Defines the type of each group's value in [`Sampler`]: the reader of its counters; `None` if the group has nothing
/// to read.
#[derive(Debug, Default)]
struct Watches;

impl GroupValue for Watches {
    type Value<G: Group> = Option<G::Watch>;
}

/// Takes samples of the server's host.
#[derive(Debug)]
pub struct Sampler {
    watches: PerGroup<Watches>,
    chosen_netns: ChosenNamespace,
    /// The reason for each kind of metrics that is absent, by the kind's name.
    absence_reasons: BTreeMap<String, String>,
    /// The directory that contains /proc and /sys.
    root: PathBuf,
    config: MonitorConfig,
    buffer: Vec<u8>,
}

impl Sample {
    /// Replaces the counters of the groups that `newer` contains.
    pub fn update(&mut self, mut newer: Sample) {
        for_each_group!(G => if let Some(newer) = G::get_mut(&mut newer.groups).take() {
            *G::get_mut(&mut self.groups) = Some(newer);
        });
        *self = Sample { groups: std::mem::take(&mut self.groups), ..newer };
    }

    /// The number of groups in the sample.
    pub(crate) fn count(&self) -> usize {
        let mut count = 0;
        for_each_group!(G => count += usize::from(G::get(&self.groups).is_some()));
        count
    }
}

impl Sampler {
    /// Finds the server's processes and opens the sources of all enabled groups. If a program has no process yet, the
    /// sampler waits for one, and [`Sampler::sources`] says so.
    pub fn open(config: &MonitorConfig) -> Result<Sampler, MonitorError> {
        Sampler::open_at(Path::new("/"), config)
    }

    /// Like [`Sampler::open`], but with `root` in place of the directory that contains /proc and /sys.
    pub(crate) fn open_at(root: &Path, config: &MonitorConfig) -> Result<Sampler, MonitorError> {
        require_online(&config.cpus)?;
        let mut sampler = Sampler {
            watches: PerGroup::default(),
            chosen_netns: ChosenNamespace::default(),
            absence_reasons: BTreeMap::new(),
            root: root.to_owned(),
            config: config.clone(),
            buffer: Vec::new(),
        };
        // The network namespace is determined from the server's processes. So the groups that do not belong to a
        // network namespace are opened first, among them `process`.
        sampler.open_groups(ChosenNamespace::default(), false)?;
        let chosen = config.netns.choose(&root.join("proc"), &sampler.pids())?;
        sampler.open_groups(chosen, true)?;
        Ok(sampler)
    }

    /// Opens either the groups that belong to a network namespace, or all other groups.
    fn open_groups(&mut self, chosen_netns: ChosenNamespace, of_netns: bool) -> Result<(), MonitorError> {
        let pids = self.pids();
        let MonitorConfig { processes, ports, modules, cpus, netns, intervals, ebpf, requests_duty, .. } = &self.config;
        let enabled = intervals.enabled();
        let mut site = WatchContext {
            root: &self.root,
            cpus,
            processes,
            finds_processes: enabled.has(GroupName::Process),
            ports,
            modules,
            pids: &pids,
            netns,
            chosen_netns: &chosen_netns,
            ebpf: *ebpf,
            duty: *requests_duty,
            absence_reasons: &mut self.absence_reasons,
        };
        let mut opened: PerGroup<Watches> = per_group!(G => match G::IS_PER_NETNS == of_netns && enabled.has(G::NAME) {
            true => G::open(&mut site)?,
            false => None,
        });
        for_each_group!(G => if G::IS_PER_NETNS == of_netns {
            if !enabled.has(G::NAME) {
                site.mark_absent(G::NAME.name(), not_watched(G::NAME));
            }
            *G::get_mut(&mut self.watches) = G::get_mut(&mut opened).take();
        });
        self.chosen_netns = chosen_netns;
        Ok(())
    }

    /// If the server was restarted in another network namespace (for example in a new container), watches that
    /// namespace from now on.
    fn follow(&mut self) {
        if self.watches.process.is_none() || self.config.netns != NetNamespace::Server {
            return;
        }
        let pids = self.pids();
        if !self.chosen_netns.has_lost_source_process(&pids) {
            return;
        }
        // An error means that the process has already ended. The next search finds its successor.
        let Ok(chosen) = self.config.netns.choose(&self.root.join("proc"), &pids) else { return };
        if chosen.identity == self.chosen_netns.identity {
            self.chosen_netns = chosen;
        } else {
            let _ = self.open_groups(chosen.with_move_remark(), true);
        }
    }

    /// The server's processes.
    fn pids(&self) -> Vec<u32> {
        self.watches.process.as_ref().map(ProcessTree::pids).unwrap_or_default()
    }

    /// Returns an error if a program has no process.
    pub fn require_processes(&self) -> Result<(), MonitorError> {
        self.watches.process.as_ref().map_or(Ok(()), ProcessTree::require_all)
    }

    /// Reads every enabled group of metrics.
    pub fn sample(&mut self) -> Sample {
        self.sample_groups(Groups::ALL)
    }

    /// Reads every enabled group for the last time. Connections are counted again even if a count is not due, so that
    /// the report shows the end of the run.
    pub fn last_sample(&mut self) -> Sample {
        self.watches.connections.iter_mut().for_each(ConnectionsWatch::force_count);
        self.sample()
    }

    /// Reads the enabled groups of metrics among `due`.
    pub fn sample_groups(&mut self, due: Groups) -> Sample {
        // The search for processes takes far longer than reading. It comes first, so that all groups are read close
        // together in time.
        if let Some(tree) = self.watches.process.as_mut().filter(|_| due.has(GroupName::Process)) {
            tree.search();
            self.follow();
        }
        if due.has(GroupName::Module) {
            let pids = self.pids();
            self.watches.module.iter_mut().for_each(|module| module.search(&pids));
        }
        let Sampler { watches, chosen_netns, buffer, .. } = self;
        let mut sample = Sample {
            at: sys::now(),
            suspended: sys::suspended_time(),
            netns: chosen_netns.identity,
            groups: per_group!(G => {
                let watch = G::get_mut(watches).as_mut().filter(|_| due.has(G::NAME));
                watch.map(|watch| G::read(watch, buffer))
            }),
        };
        // If no server has the module, the group is absent rather than empty.
        sample.groups.module = sample.groups.module.filter(|module| !module.servers.is_empty());
        sample
    }

    /// For each kind of metrics, its source or the text `none: …` with the reason and a remedy.
    pub fn sources(&self) -> BTreeMap<String, String> {
        let mut sources = self.absence_reasons.clone();
        for_each_group!(G => if let Some(watch) = G::get(&self.watches) {
            let mut own = BTreeMap::new();
            G::sources(watch, &mut own);
            if let Some(remark) = self.chosen_netns.remark.as_ref().filter(|_| G::IS_PER_NETNS) {
                own.values_mut().for_each(|source| *source = format!("{source}; {remark}"));
            }
            sources.extend(own);
        });
        sources
    }
}

/// The reason why a group that is not enabled has no metrics.
fn not_watched(group: GroupName) -> String {
    match group {
        GroupName::Requests => {
            "they cost the server some of its throughput, so they are off by default: --requests".to_owned()
        }
        group => format!("the group {group} is not watched"),
    }
}
