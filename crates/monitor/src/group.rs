//! The trait of a group of metrics, such as `kernel` or `network` (groups as in WebMonitor: Almeida, Almeida & Yates
//! 1997, Table 2). Each group has one file with an implementation of [`Group`], and one entry in the list in
//! `groups.rs`.

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

/// A group of metrics that are read together. Raw counters are read as samples; metrics are derived from two samples.
pub trait Group {
    /// The type that reads samples. It keeps file descriptors open between samples.
    type Watch: Debug;
    /// The type of samples, which contain only raw counters. Samples are kept in memory, and sent between hosts.
    type Sample: Clone + Debug + Default + Eq + Serialize + DeserializeOwned + 'static;
    /// The type of the metrics of a period, as they appear in documents and in the group's log.
    type Metrics: Clone + Debug + PartialEq + Serialize;

    /// Whether the counters belong to a network namespace. Counters of different namespaces cannot be compared.
    const IS_PER_NETNS: bool = false;

    /// Opens the sources. If the group has nothing to read, the function passes the reason to
    /// [`WatchContext::mark_absent`] and returns `None`.
    ///
    /// Returns an error if something that the user asked for cannot be watched.
    fn open(site: &mut WatchContext<'_>) -> Result<Option<Self::Watch>, MonitorError>;

    /// Reads a sample. `buffer` is scratch space for the contents of files, which all groups share.
    fn read(watch: &mut Self::Watch, buffer: &mut Vec<u8>) -> Self::Sample;

    /// Adds to `sources`, for each kind of metrics, the name of its source or the reason why the metrics are absent.
    fn sources(watch: &Self::Watch, sources: &mut BTreeMap<String, String>);

    /// Derives the metrics of the period between two samples. `over` is the length of this period.
    fn since(earlier: &Self::Sample, later: &Self::Sample, over: Nanos) -> Self::Metrics;

    /// Derives the metrics of the period from the first to the last of `samples`. `over` is the length of the period.
    fn over(samples: &[&Self::Sample], over: Nanos) -> Self::Metrics {
        Self::since(samples[0], samples[samples.len() - 1], over)
    }

    /// Merges two samples. The kept sample gets the maxima of the dropped sample, such as the longest accept queue, if
    /// they are larger than its own.
    fn merge(_kept: &mut Self::Sample, _dropped: &Self::Sample) {}

    /// Stores the metrics of a period in the `server` object of a Record, the document of a load test. `samples` are
    /// the samples of the period. Totals are scaled to a period of the length `length`.
    fn put(period: PeriodMetrics<Self::Metrics>, samples: &[&Self::Sample], length: Nanos, server: &mut Server);

    /// Stores the metrics of one interval in the time series. `last` is the sample at the end of the interval.
    fn put_interval(period: &PeriodMetrics<Self::Metrics>, last: &Self::Sample, interval: &mut ServerInterval);
}

/// The processes, ports and files that a group should watch, and the namespace and directories in which to find them.
pub struct WatchContext<'s> {
    /// The directory that contains /proc and /sys.
    pub(crate) root: &'s Path,
    /// The CPUs to watch; all CPUs if empty.
    pub(crate) cpus: &'s [usize],
    /// The selectors of the server's processes.
    pub(crate) processes: &'s [ProcessSelector],
    /// Whether the group `process`, which finds the server's processes, is enabled.
    pub(crate) finds_processes: bool,
    /// The server's TCP ports.
    pub(crate) ports: &'s [u16],
    /// Files of the Server Module that the user named.
    pub(crate) modules: &'s [PathBuf],
    /// Pids of the programs' processes that have been found so far.
    pub(crate) pids: &'s [u32],
    /// The network namespace that the user has selected.
    pub(crate) netns: &'s NetNamespace,
    /// The network namespace that `netns` resolves to.
    pub(crate) chosen_netns: &'s ChosenNamespace,
    /// Whether eBPF may be used.
    pub(crate) ebpf: bool,
    /// Share of the time for which tracepoints on sockets are attached, to measure requests.
    pub(crate) duty: DutyCycle,
    /// For each kind of metrics that is absent, the reason.
    pub(crate) absence_reasons: &'s mut BTreeMap<String, String>,
}

/// The metrics of a period of time. The start and end of the period are read from `CLOCK_MONOTONIC`, which stops while
/// the machine is suspended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeriodMetrics<T> {
    /// Start of the period.
    pub from: Nanos,
    /// End of the period.
    pub to: Nanos,
    /// Time for which the machine was suspended between start and end. It is not part of the period's length.
    pub suspended: Nanos,
    /// The metrics that were derived for the period.
    pub metrics: T,
}

impl WatchContext<'_> {
    /// Records the reason why one kind of metrics is absent.
    pub(crate) fn mark_absent(&mut self, kind: &str, why: impl Display) {
        self.absence_reasons.insert(kind.to_owned(), format!("none: {why}"));
    }
}

impl<T> PeriodMetrics<T> {
    /// The length of the period, without the time for which the machine was suspended.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}
