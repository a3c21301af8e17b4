//! The options of a run: all settings from the command line and the workload.

use crate::{Endpoint, RunError};
use brimful_core::Nanos;
use brimful_core::tls::NegotiatedTls;
use brimful_core::workload::{Load, LoadKind, Workload};
use brimful_engine::{ConnectionPolicy, Engine, RequestSettings, Security};
use brimful_http::Version;
use brimful_monitor::{Monitor, MonitorConfig, MonitorError, RemoteConfig};
use brimful_workload::{Shard, Trace};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The options of a run as the user set them. [`RunPlan::new`](crate::RunPlan::new) checks that they fit the load.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The server under test, and how clients use it.
    pub server: ServerOptions,
    /// The requests, and the times at which they are due.
    pub load: LoadOptions,
    /// The threads and CPUs that generate the load.
    pub generator: GeneratorOptions,
    /// The part of this process in a load that several processes generate.
    pub fleet: FleetOptions,
    /// The server to monitor during the run.
    pub monitor: Option<MonitorTarget>,
    /// Settings of the Record (the result document).
    pub record: RecordOptions,
}

/// The server under test, and how clients connect to it.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The URL and addresses of the server.
    pub endpoint: Endpoint,
    /// The version of HTTP that clients use.
    pub version: Version,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// TLS options of the connections; `None` without TLS.
    pub tls: Option<TlsOptions>,
    /// How many calls a connection carries, and its timeouts. S-Clients always send one call per connection and always
    /// have a connect timeout.
    pub connections: ConnectionPolicy,
}

/// TLS options of the connections.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The TLS settings of the client.
    pub security: Arc<Security>,
    /// The TLS parameters that were negotiated before the run, for the Record; `None` if unknown.
    pub negotiated: Option<NegotiatedTls>,
}

/// The load: the calls and their schedule.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The request classes, their mix, and the arrival process or number of clients.
    pub workload: Workload,
    /// The due times in the workload's trace file; `None` if the load is not a trace.
    pub trace: Option<Trace>,
    /// The time for which load is generated.
    pub window: Nanos,
    /// Upper bound of the number of calls; [`u64::MAX`] if there is none.
    pub calls: u64,
    /// Seed of all random numbers of the run.
    pub seed: u64,
    /// Interval of the ticks at which calls begin, as in [`brimful_engine::Config::tick`]; only for open loads.
    pub tick: Option<Nanos>,
    /// Whether users of sessions wait for some time before they retry a failed connection attempt.
    pub back_off: bool,
    /// Maximum number of successive redirects that a call follows; `None` if redirects are not followed. Not available
    /// for S-Clients and replayed logs.
    pub max_redirects: Option<u64>,
}

/// The threads and CPUs that generate the load.
#[derive(Clone, Debug)]
pub struct GeneratorOptions {
    /// The kernel interface for network I/O.
    pub engine: Engine,
    /// Number of shards. Each shard has one thread.
    pub threads: u64,
    /// CPUs of the shards, as in [`brimful_engine::Config::cpus`].
    pub cpus: Vec<usize>,
    /// The highest known rate, in calls per second, that this client can generate without being the limit.
    pub max_rate: Option<f64>,
}

/// The part of this process in a load that several processes generate (a fleet). By default, this process generates the
/// whole load and starts at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct FleetOptions {
    /// Number of this process among the processes that generate the load; `None` if it generates the whole load.
    pub shard: Option<Shard>,
    /// The time at which all processes start; `None` to start at once.
    pub start: Option<AgreedStart>,
}

/// The start time that all hosts of a fleet have agreed on.
#[derive(Clone, Copy, Debug)]
pub struct AgreedStart {
    /// The start time by this host's clock.
    pub at: SystemTime,
    /// The difference between this host's clock and the clock of the agreement, if known.
    pub clock: Option<FleetClock>,
}

/// Settings of the Record (the result document of a run).
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The command line of brimful, for the Record.
    pub command: Vec<String>,
    /// The user's labels of the run.
    pub labels: BTreeMap<String, String>,
    /// Length of the intervals of the Record's time series, from 1/32 s to 1 s.
    pub interval: Nanos,
    /// Names of header fields whose values are left out of every document, in addition to those of common secret fields
    /// such as `Authorization`.
    pub secret_headers: Vec<String>,
}

/// The difference between this host's clock and the common clock of a fleet of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetClock {
    /// Time by which this host's clock is ahead of the fleet's clock, in nanoseconds; negative if it is behind.
    pub ahead_ns: i64,
    /// Upper bound of the error of `ahead_ns`.
    pub error: Nanos,
}

impl FleetClock {
    /// Converts a time of the fleet's clock to this host's clock; `None` if it is out of range.
    pub fn to_local(self, fleet: SystemTime) -> Option<SystemTime> {
        let size = Duration::from_nanos(self.ahead_ns.unsigned_abs());
        if self.ahead_ns < 0 { fleet.checked_sub(size) } else { fleet.checked_add(size) }
    }

    /// Converts a time of this host's clock to the fleet's clock; `None` if it is out of range.
    pub fn to_fleet(self, local: SystemTime) -> Option<SystemTime> {
        FleetClock { ahead_ns: self.ahead_ns.saturating_neg(), ..self }.to_local(local)
    }
}

/// A server to monitor.
#[derive(Clone, Debug)]
pub enum MonitorTarget {
    /// A server on this host.
    Local(MonitorConfig),
    /// A server on another host, monitored through `brimful watch --serve` on that host.
    Remote(RemoteConfig),
}

impl MonitorTarget {
    /// Starts to monitor the server.
    ///
    /// # Errors
    /// [`MonitorError`] if the monitor cannot be started, or if the remote host cannot be reached.
    pub fn start(&self) -> Result<Monitor, MonitorError> {
        match self {
            MonitorTarget::Local(config) => Monitor::start(config.clone()),
            MonitorTarget::Remote(config) => Monitor::connect(config),
        }
    }
}

impl RunOptions {
    /// Returns these options with another load.
    pub fn with_load(mut self, load: Load) -> RunOptions {
        self.load.workload.load = Some(load);
        self
    }

    /// Maximum number of open connections per shard in an open load; `None` for other loads, where the number of
    /// clients or users limits the connections.
    pub(crate) fn max_connections_per_shard(&self) -> Option<u64> {
        let workload = &self.load.workload;
        let is_open = LoadKind::from_workload(Some(workload)) == LoadKind::Open && workload.sessions().is_none();
        self.server.connections.max_per_shard.filter(|_| is_open)
    }
}

impl ServerOptions {
    /// Whether clients speak HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.version == Version::Http2
    }

    /// The settings that the requests of all classes share.
    pub(crate) fn request_settings(&self) -> RequestSettings {
        RequestSettings {
            authority: self.endpoint.authority.clone(),
            version: self.version,
            is_secure: self.endpoint.is_secure,
            headers: self.headers.clone(),
            close: self.connections.close,
        }
    }
}

impl TlsOptions {
    /// Makes one TLS handshake with each address of the endpoint, so that TLS errors are reported before the run.
    ///
    /// # Errors
    /// [`RunError::Handshake`] if a handshake fails.
    pub fn negotiate(security: Security, endpoint: &Endpoint, timeout: Nanos) -> Result<TlsOptions, RunError> {
        let negotiated = endpoint.check(&security, timeout)?;
        Ok(TlsOptions { security: Arc::new(security), negotiated })
    }
}

impl LoadOptions {
    /// Whether the load consists of S-Clients (clients that abandon a connection attempt after a timeout).
    pub fn is_s_clients(&self) -> bool {
        matches!(self.workload.load, Some(Load::SClients { .. }))
    }
}

impl FleetOptions {
    /// The difference between this host's clock and the fleet's clock, if known.
    pub(crate) fn clock(&self) -> Option<FleetClock> {
        self.start.and_then(|start| start.clock)
    }
}
