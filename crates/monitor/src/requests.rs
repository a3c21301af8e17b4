//! Requests group: what the sockets of the watched ports tell of requests, whatever server it is: how long they wait
//! until it reads them, and how long it takes from there to the end of the answer.
//!
//! It is the one group that costs the server something (a microsecond of each request that is seen), so it is read only
//! if it is asked for, and its tracepoints are attached for slices of time. [`ebpf`](crate::ebpf) says which requests
//! count; a *sample* holds their counters since the watch began, as they were at the end of the last slice.

mod figures;
mod ports;
pub(crate) mod slices;
mod watch;

pub use figures::CLASS_NAMES;
pub use slices::DutyCycle;
pub use watch::RequestsWatch;

use crate::ebpf::{PortTally, SizeTally, TimesTally};
use crate::group::{Group, Stretch, WatchContext};
use crate::module::TimesSample;
use crate::{MonitorError, NetNamespace};
use brimful_core::Nanos;
use brimful_core::server::{Server, ServerInterval, SocketRequests};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The requests of all ports since the watch began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestsSample {
    /// How long the tracepoints were attached.
    pub attached: Nanos,
    /// How long requests that began counted: the first parts of all slices.
    pub counting: Nanos,
    /// Slices that have ended.
    pub slices: u64,
    /// How long a slice is; `None` if it never ends.
    pub slice: Option<Nanos>,
    /// In the order in which the ports were named.
    pub ports: Vec<PortRequests>,
}

/// The requests of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortRequests {
    /// Which.
    pub port: u16,
    /// Requests that count.
    pub begun: u64,
    /// Of them, those whose connection was closed or lost without a byte of an answer.
    pub unanswered: u64,
    /// Those that were answered before their slice's end, by the size of the answer: see [`CLASS_NAMES`].
    pub sizes: Vec<SizeRequests>,
}

/// Requests with answers of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SizeRequests {
    /// Bytes of requests.
    pub received: u64,
    /// Bytes of answers.
    pub sent: u64,
    /// From when a request was ready until it was read.
    pub wait: TimesSample,
    /// From there until the last bytes of its answer were sent.
    pub service: TimesSample,
}

/// The group.
pub enum RequestsGroup {}

impl Group for RequestsGroup {
    type Watch = RequestsWatch;
    type Sample = RequestsSample;
    type Figures = SocketRequests;

    const OF_NETNS: bool = true;

    fn open(site: &mut WatchContext<'_>) -> Result<Option<RequestsWatch>, MonitorError> {
        if site.ports.is_empty() && site.pids.is_empty() {
            site.mark_absent("requests", "no port was named: name those that the server listens on with --port");
            return Ok(None);
        }
        if !site.ebpf {
            site.mark_absent("requests", "only eBPF can give them, and it is not wanted");
            return Ok(None);
        }
        let (proc, named, pids, duty) = (site.root.join("proc"), site.ports, site.pids, site.duty);
        let open = |net: &Path| match named {
            [] => RequestsWatch::open(&ports::listened_on(&proc, net, pids), duty),
            named => RequestsWatch::open(named, duty),
        };
        match site.place.namespace.within(&proc, open) {
            Ok(Ok(watch)) => return Ok(Some(watch)),
            Ok(Err(why)) => site.mark_absent("requests", why),
            Err(refused) if *site.netns == NetNamespace::Server => site.mark_absent("requests", refused),
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    fn read(watch: &mut RequestsWatch, _: &mut Vec<u8>) -> RequestsSample {
        watch.read()
    }

    fn sources(watch: &RequestsWatch, sources: &mut BTreeMap<String, String>) {
        sources.insert("requests".to_owned(), watch.source());
    }

    fn since(earlier: &RequestsSample, later: &RequestsSample, over: Nanos) -> SocketRequests {
        figures::between(earlier, later, over)
    }

    fn put(stretch: Stretch<SocketRequests>, _: &[&RequestsSample], _: Nanos, server: &mut Server) {
        server.requests = Some(stretch.figures);
    }

    fn put_interval(_: &Stretch<SocketRequests>, _: &RequestsSample, _: &mut ServerInterval) {}
}

impl PortRequests {
    /// Those that were answered.
    fn answered(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, size| sum.saturating_add(size.service.count))
    }

    /// Those that count and are neither answered nor given up.
    fn open(&self) -> u64 {
        self.begun.saturating_sub(self.answered()).saturating_sub(self.unanswered)
    }

    fn of(port: u16, tally: &PortTally) -> PortRequests {
        let sizes = tally.sizes.iter().map(SizeRequests::of).collect();
        PortRequests { port, begun: tally.begun, unanswered: tally.unanswered, sizes }
    }
}

impl SizeRequests {
    fn of(tally: &SizeTally) -> SizeRequests {
        let times = |times: &TimesTally| TimesSample {
            count: tally.answered,
            sum_ns: times.sum_ns,
            sum_us2: times.sum_us2,
            buckets: (0..).zip(times.buckets).filter(|(_, count)| *count > 0).collect(),
        };
        SizeRequests {
            received: tally.received,
            sent: tally.sent,
            wait: times(&tally.wait),
            service: times(&tally.service),
        }
    }
}
