//! Requests group: requests measured at the sockets of the watched ports, for any server program. The group measures
//! how long a request waits until the server reads it, and how long the server then takes until the end of the
//! response.
//!
//! This is the only group that slows the server down (a microsecond for each request that is traced). So it is read
//! only if the user asks for it, and its tracepoints are attached for slices of time. [`ebpf`](crate::ebpf) defines
//! which requests are counted. A *sample* contains the counters since monitoring began, as of the end of the last
//! slice.

mod figures;
mod ports;
pub(crate) mod slices;
mod watch;

pub use figures::CLASS_NAMES;
pub use slices::DutyCycle;
pub use watch::RequestsWatch;

use crate::ebpf::{PortTally, SizeTally, TimesTally};
use crate::group::{Group, PeriodMetrics, WatchContext};
use crate::module::TimesSample;
use crate::{MonitorError, NetNamespace};
use brimful_core::Nanos;
use brimful_core::server::{Server, ServerInterval, SocketRequests};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The counters of requests at all ports since monitoring began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestsSample {
    /// Time for which the tracepoints were attached.
    pub attached: Nanos,
    /// Time in which new requests were counted: the first part of each slice, a time for which the tracepoints are
    /// attached.
    pub counting: Nanos,
    /// Number of slices (times for which the tracepoints were attached) that have ended.
    pub slices: u64,
    /// The length of a slice, for which the tracepoints are attached; `None` if they always are.
    pub slice: Option<Nanos>,
    /// The ports, in the order of the configuration, or in ascending order if the configuration names no port.
    pub ports: Vec<PortRequests>,
}

/// The counters of requests at one port since monitoring began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortRequests {
    /// The port's number.
    pub port: u16,
    /// Number of requests that were counted.
    pub begun: u64,
    /// Number of counted requests whose connection was closed or lost before any byte of the response.
    pub unanswered: u64,
    /// The counted requests whose response ended before the end of their slice, by size of the response; see
    /// [`CLASS_NAMES`].
    pub sizes: Vec<SizeRequests>,
}

/// The counters of requests whose responses are of one size class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SizeRequests {
    /// Number of bytes of the requests.
    pub received: u64,
    /// Number of bytes of the responses.
    pub sent: u64,
    /// Times from when a request was ready until the server read it.
    pub wait: TimesSample,
    /// Times from when the server read a request until it sent the last bytes of the response.
    pub service: TimesSample,
}

/// The group of metrics `requests`, measured at the sockets of the watched ports.
pub enum RequestsGroup {}

impl Group for RequestsGroup {
    type Watch = RequestsWatch;
    type Sample = RequestsSample;
    type Metrics = SocketRequests;

    const IS_PER_NETNS: bool = true;

    fn open(site: &mut WatchContext<'_>) -> Result<Option<RequestsWatch>, MonitorError> {
        if site.ports.is_empty() && site.pids.is_empty() {
            site.mark_absent("requests", "no port was named: name those that the server listens on with --port");
            return Ok(None);
        }
        if !site.ebpf {
            site.mark_absent("requests", "they take eBPF, which is turned off");
            return Ok(None);
        }
        let proc = site.root.join("proc");
        let ports = site.ports;
        let pids = site.pids;
        let duty = site.duty;
        let open = |net: &Path| match ports {
            [] => RequestsWatch::open(&ports::listened_on(&proc, net, pids), duty),
            named => RequestsWatch::open(named, duty),
        };
        match site.chosen_netns.namespace.within(&proc, open) {
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

    fn put(period: PeriodMetrics<SocketRequests>, _: &[&RequestsSample], _: Nanos, server: &mut Server) {
        server.requests = Some(period.metrics);
    }

    fn put_interval(_: &PeriodMetrics<SocketRequests>, _: &RequestsSample, _: &mut ServerInterval) {}
}

impl PortRequests {
    /// Number of requests with a response.
    fn answered(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, size| sum.saturating_add(size.service.count))
    }

    /// Number of counted requests that still have no response, and whose connection is not lost.
    fn open(&self) -> u64 {
        self.begun.saturating_sub(self.answered()).saturating_sub(self.unanswered)
    }

    fn from_tally(port: u16, tally: &PortTally) -> PortRequests {
        let sizes = tally.sizes.iter().map(SizeRequests::from_tally).collect();
        PortRequests { port, begun: tally.begun, unanswered: tally.unanswered, sizes }
    }
}

impl SizeRequests {
    fn from_tally(tally: &SizeTally) -> SizeRequests {
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
