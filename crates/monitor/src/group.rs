//! What a group of figures is (WebMonitor, Almeida, Almeida & Yates 1997, Table 2): one file with one implementation of
//! [`Group`], and one entry in the list of `groups.rs`.

use crate::netns::Place;
use crate::requests::slices::DutyCycle;
use crate::{MonitorError, NetNamespace, ProcessSelector};
use brimful_core::Nanos;
use brimful_core::server::{Server, ServerInterval};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::path::{Path, PathBuf};

/// Figures that are read together: a watch reads samples, and two samples make figures.
pub trait Group {
    /// Keeps descriptors open, and reads.
    type Watch: Debug;
    /// Raw counters and nothing else: what is sent from another host, and kept.
    type Sample: Clone + Debug + Default + Eq + Serialize + DeserializeOwned + 'static;
    /// As in documents, and in the group's log.
    type Figures: Clone + Debug + PartialEq + Serialize;

    /// Whether the counters are a network namespace's: those of another cannot be compared with them.
    const OF_NETNS: bool = false;

    /// Opens what is read. `None` where nothing is to be read, which [`WatchContext::mark_absent`] is told the reason of.
    ///
    /// # Errors
    /// What was asked for cannot be watched.
    fn open(site: &mut WatchContext<'_>) -> Result<Option<Self::Watch>, MonitorError>;

    /// Reads. The buffer is shared by all that read.
    fn read(watch: &mut Self::Watch, buffer: &mut Vec<u8>) -> Self::Sample;

    /// Tells where each kind of figures comes from, or why there are none.
    fn sources(watch: &Self::Watch, sources: &mut BTreeMap<String, String>);

    /// What happened from an earlier sample to a later one, `over` a time.
    fn since(earlier: &Self::Sample, later: &Self::Sample, over: Nanos) -> Self::Figures;

    /// The same from the first to the last of many samples, of which there is one at least.
    fn over(samples: &[&Self::Sample], over: Nanos) -> Self::Figures {
        Self::since(samples[0], samples[samples.len() - 1], over)
    }

    /// Keeps what only the sample that is dropped tells, where of two one is kept.
    fn merge(_kept: &mut Self::Sample, _dropped: &Self::Sample) {}

    /// Puts figures into the `server` object of a Record. They are of `samples`; totals become those of a
    /// time of this `length`.
    fn put(stretch: Stretch<Self::Figures>, samples: &[&Self::Sample], length: Nanos, server: &mut Server);

    /// Puts the figures of one interval, which ends with a sample, into the course of the run.
    fn put_interval(stretch: &Stretch<Self::Figures>, last: &Self::Sample, interval: &mut ServerInterval);
}

/// What is to be watched, and where.
pub struct WatchContext<'s> {
    /// What holds /proc and /sys.
    pub(crate) root: &'s Path,
    pub(crate) cpus: &'s [usize],
    pub(crate) processes: &'s [ProcessSelector],
    /// Whether they are looked for, as the group `process` does.
    pub(crate) finds_processes: bool,
    pub(crate) ports: &'s [u16],
    /// Files of the Server Module that were named.
    pub(crate) modules: &'s [PathBuf],
    /// Processes of the programs, as far as they have been found.
    pub(crate) pids: &'s [u32],
    pub(crate) netns: &'s NetNamespace,
    /// What `netns` stands for.
    pub(crate) place: &'s Place,
    pub(crate) ebpf: bool,
    /// How much of the time tracepoints on sockets are attached.
    pub(crate) duty: DutyCycle,
    /// In place of a source, for each kind of figures that cannot be had.
    pub(crate) lacking: &'s mut BTreeMap<String, String>,
}

/// Figures of a stretch of time. Both ends are `CLOCK_MONOTONIC`, which stands still while the machine is suspended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch<T> {
    /// Its beginning.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// How long the machine was suspended in between, which is no part of it.
    pub suspended: Nanos,
    /// The figures.
    pub figures: T,
}

impl WatchContext<'_> {
    /// Says why one kind of figures cannot be had.
    pub(crate) fn mark_absent(&mut self, kind: &str, why: impl Display) {
        self.lacking.insert(kind.to_owned(), format!("none: {why}"));
    }
}

impl<T> Stretch<T> {
    /// How long it is.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}
