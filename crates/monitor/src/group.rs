//! A group of figures (WebMonitor, Almeida, Almeida & Yates 1997, Table 2). Each group is one file with one
//! implementation of [`Group`], and one entry in the list of `groups.rs`.

use crate::netns::ChosenNamespace;
use crate::requests::slices::DutyCycle;
use crate::{MonitorError, NetNamespace, ProcessSelector};
use brimful_core::Nanos;
use brimful_core::server::{Server, ServerInterval};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::path::{Path, PathBuf};

/// A group of figures that are read together. A watch reads samples; two samples yield figures.
pub trait Group {
    /// Keeps descriptors open and reads samples.
    type Watch: Debug;
    /// The type of samples. They contain only raw counters. They are kept, and sent between hosts.
    type Sample: Clone + Debug + Default + Eq + Serialize + DeserializeOwned + 'static;
    /// The type of figures, as they appear in documents and in the group's log.
    type Figures: Clone + Debug + PartialEq + Serialize;

    /// Whether the counters belong to a network namespace. Counters of different namespaces cannot be compared.
    const OF_NETNS: bool = false;

    /// Opens the sources. Returns `None` if the group has nothing to read; the reason goes to
    /// [`WatchContext::mark_absent`].
    ///
    /// An error if something that the user asked for cannot be watched.
    fn open(site: &mut WatchContext<'_>) -> Result<Option<Self::Watch>, MonitorError>;

    /// Reads a sample. All groups share the buffer.
    fn read(watch: &mut Self::Watch, buffer: &mut Vec<u8>) -> Self::Sample;

    /// Adds the source of each kind of figures, or the reason why these figures are absent.
    fn sources(watch: &Self::Watch, sources: &mut BTreeMap<String, String>);

    /// Derives the figures between two samples that are `over` apart.
    fn since(earlier: &Self::Sample, later: &Self::Sample, over: Nanos) -> Self::Figures;

    /// Derives the figures over one or more samples, from the first to the last.
    fn over(samples: &[&Self::Sample], over: Nanos) -> Self::Figures {
        Self::since(samples[0], samples[samples.len() - 1], over)
    }

    /// Merges two samples into the kept one, which gets figures that only the dropped sample has, such as the longest
    /// queue.
    fn merge(_kept: &mut Self::Sample, _dropped: &Self::Sample) {}

    /// Puts the figures of `samples` into the `server` object of a Record. Totals are scaled to a period of this
    /// `length`.
    fn put(stretch: Stretch<Self::Figures>, samples: &[&Self::Sample], length: Nanos, server: &mut Server);

    /// Puts the figures of one interval into the time series. `last` is the sample at the end of the interval.
    fn put_interval(stretch: &Stretch<Self::Figures>, last: &Self::Sample, interval: &mut ServerInterval);
}

/// The processes, ports and files that a group should watch, and the namespace and directories in which to find them.
pub struct WatchContext<'s> {
    /// The directory that contains /proc and /sys.
    pub(crate) root: &'s Path,
    pub(crate) cpus: &'s [usize],
    pub(crate) processes: &'s [ProcessSelector],
    /// Whether the group `process` is enabled and looks for the processes.
    pub(crate) finds_processes: bool,
    pub(crate) ports: &'s [u16],
    /// Files of the Server Module that the user named.
    pub(crate) modules: &'s [PathBuf],
    /// The programs' processes that have been found so far.
    pub(crate) pids: &'s [u32],
    pub(crate) netns: &'s NetNamespace,
    /// The network namespace that `netns` resolves to.
    pub(crate) place: &'s ChosenNamespace,
    pub(crate) ebpf: bool,
    /// Share of the time for which tracepoints on sockets are attached.
    pub(crate) duty: DutyCycle,
    /// For each kind of figures that is absent, the reason.
    pub(crate) lacking: &'s mut BTreeMap<String, String>,
}

/// The figures of a period of time. Its start and end are `CLOCK_MONOTONIC`, which stops while the machine is
/// suspended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch<T> {
    /// Start of the period.
    pub from: Nanos,
    /// End of the period.
    pub to: Nanos,
    /// How long the machine was suspended between start and end; this is not part of the period.
    pub suspended: Nanos,
    /// The figures.
    pub figures: T,
}

impl WatchContext<'_> {
    /// Records why one kind of figures is absent.
    pub(crate) fn mark_absent(&mut self, kind: &str, why: impl Display) {
        self.lacking.insert(kind.to_owned(), format!("none: {why}"));
    }
}

impl<T> Stretch<T> {
    /// The length of the period.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}
