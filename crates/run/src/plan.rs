//! The plan of a run: everything that the command line and the workload decide before it starts.

use crate::{Endpoint, RunError};
use brimful_core::Nanos;
use brimful_core::tls::TlsSpoken;
use brimful_core::workload::{Load, LoadKind, Workload};
use brimful_engine::{ConnectionPolicy, Engine, RequestSettings, Security};
use brimful_http::Version;
use brimful_monitor::{Monitor, MonitorConfig, MonitorError, RemoteConfig};
use brimful_stats::{LiveProgress, ResultBackup};
use brimful_workload::{Shard, Trace};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Everything that determines a run, as the user requested it. Options that the load does not allow are rejected when
/// the plan is validated or run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The server under test.
    pub endpoint: Endpoint,
    /// The request classes, their mix, and the times at which calls are due.
    pub workload: Workload,
    /// The due times of the trace that the workload names; `None` if the load is not a trace.
    pub trace: Option<Trace>,
    /// The time during which load is offered.
    pub window: Nanos,
    /// Upper bound of the number of calls; [`u64::MAX`] if there is none.
    pub calls: u64,
    /// The version of HTTP.
    pub version: Version,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// Names of header fields whose values are removed from every document, in addition to the usual ones.
    pub secret_headers: Vec<String>,
    /// TLS options of the connections; `None` without TLS.
    pub tls: Option<Arc<Security>>,
    /// The TLS parameters that a handshake before the run negotiated, for the Record.
    pub tls_spoken: Option<TlsSpoken>,
    /// How connections are used. S-Clients always make one call per connection and always have a connect timeout.
    pub connections: ConnectionPolicy,
    /// The engine that sends and receives.
    pub engine: Engine,
    /// Interval at which calls begin, as in [`brimful_engine::Config::tick`]; only for open loads.
    pub tick: Option<Nanos>,
    /// Number of shards. Each shard has one thread.
    pub threads: u64,
    /// CPUs of the shards, as in [`brimful_engine::Config::cpus`].
    pub cpus: Vec<usize>,
    /// The part of the load that this process makes; `None` if it makes the whole load.
    pub shard: Option<Shard>,
    /// When to start, by this host's clock; `None` starts at once.
    pub start_at: Option<SystemTime>,
    /// How this host's clock differs from the clock by which the hosts of a fleet agreed on `start_at`.
    pub clock: Option<FleetClock>,
    /// Seed from which all random numbers of the run are drawn.
    pub seed: u64,
    /// The highest rate that this client can offer without being the limit, in calls per second, if it is known.
    pub client_max_rate: Option<f64>,
    /// Whether users of sessions wait before they try again after a failed connection attempt.
    pub back_off: bool,
    /// Maximum number of redirects in a row that are followed; `None` if redirects are not followed. Not available for
    /// S-Clients and logs.
    pub max_redirects: Option<u64>,
    /// The server that the monitor watches during the run.
    pub monitor: Option<MonitorTarget>,
    /// Shows the results so far during the run.
    pub live: Option<Arc<LiveProgress>>,
    /// Collects the results so far, in case this process is lost. If it is set, `live` shows nothing.
    pub result_backup: Option<Arc<ResultBackup>>,
    /// Length of the intervals of the Record's time series, from 1/32 s to 1 s.
    pub interval: Nanos,
    /// The command line, for the Record.
    pub command: Vec<String>,
}

/// The difference between this host's clock and the clock by which all hosts of a fleet start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetClock {
    /// How far this host's clock is ahead, in nanoseconds; negative if it is behind.
    pub ahead_ns: i64,
    /// Upper bound of the error of `ahead_ns`.
    pub error: Nanos,
}

impl FleetClock {
    /// Converts a time of the fleet's clock to this host's clock; `None` if either clock cannot represent it.
    pub fn to_local(self, fleet: SystemTime) -> Option<SystemTime> {
        let size = Duration::from_nanos(self.ahead_ns.unsigned_abs());
        if self.ahead_ns < 0 { fleet.checked_sub(size) } else { fleet.checked_add(size) }
    }

    /// Converts a time of this host's clock to the fleet's clock; `None` if either clock cannot represent it.
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
    /// When the monitor cannot be started, or the other host cannot be reached.
    pub fn start(&self) -> Result<Monitor, MonitorError> {
        match self {
            MonitorTarget::Local(config) => Monitor::start(config.clone()),
            MonitorTarget::Remote(config) => Monitor::connect(config),
        }
    }
}

impl RunPlan {
    /// Returns this plan with another load.
    pub fn with_load(mut self, load: Load) -> RunPlan {
        self.workload.load = Some(load);
        self
    }

    /// The load, which determines when calls are due.
    ///
    /// # Errors
    /// [`RunError::BadLoad`] when the workload has no load.
    pub fn load(&self) -> Result<&Load, RunError> {
        let unknown = || {
            let ways = "--rate 1000, --clients 10, --s-clients 100, --stage 30s:1000 or --arrivals trace:FILE";
            RunError::BadLoad(format!("say how much load: {ways}"))
        };
        self.workload.load.as_ref().ok_or_else(unknown)
    }

    /// Whether the load consists of S-Clients.
    pub fn is_s_clients(&self) -> bool {
        matches!(self.workload.load, Some(Load::SClients { .. }))
    }

    /// The maximum number of open connections per shard. Only open loads have a maximum, because in other loads,
    /// clients and users wait for their responses.
    pub(crate) fn max_connections_per_shard(&self) -> Option<u64> {
        let is_open =
            LoadKind::from_workload(Some(&self.workload)) == LoadKind::Open && self.workload.sessions().is_none();
        self.connections.max_per_shard.filter(|_| is_open)
    }

    /// The settings that the requests of all classes have in common.
    pub(crate) fn wire(&self) -> RequestSettings {
        RequestSettings {
            authority: self.endpoint.authority.clone(),
            version: self.version,
            is_secure: self.endpoint.is_secure,
            headers: self.headers.clone(),
            close: self.connections.close,
        }
    }

    /// The shards of this process, one for each thread.
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> {
        self.shard.unwrap_or(Shard::WHOLE).split(self.threads)
    }
}
