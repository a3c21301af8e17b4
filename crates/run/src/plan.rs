//! The plan of a run: everything that the command line and the workload decide before it starts.

use crate::{Endpoint, RunError};
use brimful_core::Nanos;
use brimful_core::tls::TlsSpoken;
use brimful_core::workload::{Class, Load, LoadKind, SessionArrivals, Sessions, Spread, Workload};
use brimful_core::{ClassId, Nanos};
use brimful_engine::{
    Config, ConnectionPolicy, Engine, FixedRequests, RedirectPolicy, RequestSettings, ScriptedRequests, Security,
};
use brimful_http::Version;
use brimful_monitor::{Monitor, MonitorConfig, MonitorError, RemoteConfig};
use brimful_stats::{Keeper, Live};
use brimful_workload::{Shard, Trace};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Everything that decides a run, as it was asked for. Options that the load does not allow are refused when the plan is
/// validated or run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The server under test.
    pub endpoint: Endpoint,
    /// The request classes, their mix, and when calls are due.
    pub workload: Workload,
    /// The due times of the trace that the workload names, if its load is one.
    pub trace: Option<Trace>,
    /// How long load is offered.
    pub window: Nanos,
    /// Upper bound of the number of calls; [`u64::MAX`] where there is none.
    pub calls: u64,
    /// HTTP version.
    pub version: Version,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// Names of header fields whose values are removed from every document, in addition to the usual ones.
    pub secret_headers: Vec<String>,
    /// How connections are secured; `None` without TLS.
    pub tls: Option<Arc<Security>>,
    /// What a TLS handshake before the run agreed on, for the Record.
    pub tls_spoken: Option<TlsSpoken>,
    /// How connections are used. S-Clients always make one call per connection and always have a connect timeout.
    pub connections: ConnectionPolicy,
    /// How sockets are driven.
    pub engine: Engine,
    /// Calls begin only once per tick, as in [`brimful_engine::Config::tick`]. Open loads only.
    pub tick: Option<Nanos>,
    /// Number of shards; each has one thread.
    pub threads: u64,
    /// CPUs of the shards, as in [`brimful_engine::Config::cpus`].
    pub cpus: Vec<usize>,
    /// The part of the load that this process makes; `None` if it makes the whole load.
    pub shard: Option<Shard>,
    /// When to start, by this host's clock; `None` starts at once.
    pub start_at: Option<SystemTime>,
    /// How this host's clock differs from the clock by which the hosts of a fleet agreed on `start_at`.
    pub clock: Option<FleetClock>,
    /// Seed of all randomness.
    pub seed: u64,
    /// The highest rate that this client can offer without being the limit, in calls per second, if it is known.
    pub client_max: Option<f64>,
    /// Users of sessions wait before they try again after a failed connection attempt.
    pub back_off: bool,
    /// Follow up to this many redirects in a row; `None` counts a redirect as the answer. Not for S-Clients and logs.
    pub follow: Option<u64>,
    /// The server that the monitor watches during the run.
    pub monitor: Option<MonitorTarget>,
    /// Shows the figures so far while the run is in progress.
    pub live: Option<Arc<Live>>,
    /// Collects the figures so far in case this process is lost; `live` then shows nothing.
    pub keeper: Option<Arc<Keeper>>,
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
    /// Converts an instant of the fleet's clock to this host's; `None` beyond the range of either.
    pub fn to_local(self, fleet: SystemTime) -> Option<SystemTime> {
        let size = Duration::from_nanos(self.ahead_ns.unsigned_abs());
        if self.ahead_ns < 0 { fleet.checked_sub(size) } else { fleet.checked_add(size) }
    }

    /// Converts an instant of this host's clock to the fleet's; `None` beyond the range of either.
    pub fn to_fleet(self, local: SystemTime) -> Option<SystemTime> {
        FleetClock { ahead_ns: self.ahead_ns.saturating_neg(), ..self }.to_local(local)
    }
}

/// A server to watch.
#[derive(Clone, Debug)]
pub enum MonitorTarget {
    /// On this host.
    Local(MonitorConfig),
    /// On another host, through `brimful watch --serve` there.
    Remote(RemoteConfig),
}

impl MonitorTarget {
    /// Starts to watch the server.
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
    /// The same plan with another load.
    pub fn with_load(mut self, load: Load) -> RunPlan {
        self.workload.load = Some(load);
        self
    }

    /// When calls are due.
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

    /// Whether S-Clients make the load.
    pub fn is_s_clients(&self) -> bool {
        matches!(self.workload.load, Some(Load::SClients { .. }))
    }

    /// The limit of open connections per shard. Only open loads have one: clients and users wait for their answers.
    pub(crate) fn most_connections_per_shard(&self) -> Option<u64> {
        let is_open = LoadKind::of(Some(&self.workload)) == LoadKind::Open && self.workload.sessions().is_none();
        self.connections.max_per_shard.filter(|_| is_open)
    }

    /// Whether there are requests whose bodies do not leave with their heads.
    fn has_bodies_apart(&self) -> bool {
        let waits = |name: &str| name.eq_ignore_ascii_case("Expect");
        let of_class = |class: &Class| {
            let targets = if class.differs_by_path_alone() { 1 } else { class.len() };
            let mut headers = (0..targets).flat_map(|place| class.target(place).headers);
            !class.body_file.is_empty() || headers.any(|(name, _)| waits(name))
        };
        self.workload.classes.iter().any(of_class) || self.headers.iter().any(|(name, _)| waits(name))
    }

    /// Whether several calls may be under way on one connection.
    fn pipelines(&self) -> bool {
        self.connections.pipeline > 1 || self.workload.sessions().is_some_and(|sessions| sessions.pipelined)
    }

    /// Whether the clients of a closed load share connections, and so call in bursts. Streams of HTTP/2 do not wait for one
    /// another.
    pub(crate) fn calls_in_bursts(&self) -> bool {
        let policy = &self.connections;
        let several = policy.pipeline > 1 && policy.calls_per_connection != Some(1);
        several && self.version != Version::Http2 && matches!(self.workload.load, Some(Load::Closed { .. }))
    }

    /// How many clients share a connection then, and so call at once.
    pub(crate) fn burst_size(&self) -> u32 {
        u32::try_from(self.connections.pipeline).unwrap_or(u32::MAX)
    }

    /// How many connections this process is sure to have at once: those of clients that call again as soon as they are
    /// answered. 0 where that depends on the server.
    fn connections_at_once(&self) -> u64 {
        let share = |number| self.shard.unwrap_or(Shard::WHOLE).share(number);
        let policy = &self.connections;
        let at_once =
            match &self.workload.load {
                Some(Load::Closed { clients, think: Nanos::ZERO }) => {
                    let one_call_each = policy.calls_per_connection == Some(1);
                    let together = if one_call_each { 1 } else { (policy.pipeline as u64).max(1) };
                    share(clients.div_ceil(together))
                }
                Some(Load::Sessions(Sessions {
                    comes: SessionArrivals::Closed { users, rest_s }, think_s, ..
                })) if [rest_s, think_s].into_iter().all(|spread| *spread == Spread::Constant(0.0)) => share(*users),
                _ => 0,
            };
        at_once.min(share(self.calls))
    }

    /// The due times of an open load.
    pub(crate) fn arrivals(&self) -> Result<Arrivals, RunError> {
        let seed = self.seed;
        match (self.load()?, &self.trace) {
            (Load::Open { rate, arrivals }, _) => Ok(Arrivals::new(arrivals.parse()?, *rate, seed)?),
            (Load::Stages { start, stages, arrivals }, _) => {
                Ok(Arrivals::stages(arrivals.parse()?, *start, stages, seed)?)
            }
            (Load::Trace(named), Some(trace)) => Ok(Arrivals::trace(trace.clone(), Speed::new(named.speed)?)),
            (Load::Trace(named), None) => Err(RunError::BadLoad(format!(
                "the trace {} has not been read: give --arrivals trace:FILE",
                named.file
            ))),
            (Load::Log(_), _) => Err(RunError::BadLoad("a log's requests are made by `brimful replay`".to_owned())),
            (Load::Closed { .. } | Load::SClients { .. } | Load::Sessions(_), _) => {
                Err(RunError::BadLoad("this load has no schedule: give --rate, --stage or a trace".to_owned()))
            }
        }
    }

    /// When the calls of an open load are due, and of which classes they are, in order.
    ///
    /// # Errors
    /// [`RunError`] when the load has no schedule, or the workload is wrong.
    pub fn schedule(&self) -> Result<impl Iterator<Item = (Nanos, ClassId)> + use<>, RunError> {
        let (window, calls) = (self.window, usize::try_from(self.calls).unwrap_or(usize::MAX));
        let due = self.arrivals()?.take_while(move |due| *due < window).take(calls);
        Ok(due.zip(Mix::of(&self.workload, self.seed)?).map(|(due, call)| (due, call.class)))
    }

    /// The requests of the classes.
    pub(crate) fn requests(&self) -> Result<FixedRequests, RunError> {
        Ok(FixedRequests::render(&self.workload, &self.wire())?.seeded(self.seed))
    }

    /// The requests of sessions that are written out; there may be none.
    pub(crate) fn scripted_requests(&self) -> Result<ScriptedRequests, RunError> {
        Ok(ScriptedRequests::render(&self.workload, &self.wire())?)
    }

    /// How redirects are followed, if they are.
    pub(crate) fn following(&self) -> Option<RedirectPolicy> {
        self.follow.map(|most| RedirectPolicy::new(most, &self.workload, &self.wire()))
    }

    /// Whether requests depend on answers.
    pub(crate) fn is_stateful(&self) -> Result<bool, RunError> {
        Ok(self.follow.is_some() || matches!(self.load()?, Load::Sessions(_)))
    }

    /// What all requests have in common.
    pub(crate) fn wire(&self) -> RequestSettings {
        RequestSettings {
            authority: self.endpoint.authority.clone(),
            version: self.version,
            is_secure: self.endpoint.is_secure,
            headers: self.headers.clone(),
            close: self.connections.close,
        }
    }

    pub(crate) fn engine_config(&self) -> Config {
        let mut connections = self.connections.clone();
        connections.http2 = self.version == Version::Http2;
        if self.is_s_clients() {
            connections.calls_per_connection = Some(1);
            // Each attempt is one call: a second one for the same call would be an attempt too many.
            connections.retry_closed = false;
            connections.retry_refused = false;
        }
        connections.at_once = self.connections_at_once();
        if connections.calls_per_connection == Some(1) || self.calls_in_bursts() {
            connections.warm_connections = 0;
        }
        let is_open = LoadKind::of(Some(&self.workload)) == LoadKind::Open && self.workload.sessions().is_none();
        if !is_open {
            // Clients wait for their answers, which is enough.
            connections.max_per_shard = None;
        }
        if let Some(sessions) = self.workload.sessions().filter(|sessions| sessions.pipelined) {
            /// A longer burst takes another connection.
            const LONGEST: u64 = 256;
            connections.pipeline = sessions.longest_burst().unwrap_or(LONGEST).clamp(1, LONGEST) as usize;
        }
        Config {
            address: self
                .endpoint
                .destination()
                .with_first_turn(self.shard.map_or(0, |shard| (shard.index * self.threads) as usize)),
            tls: self.tls.clone(),
            connections,
            start: Nanos::ZERO,
            window: self.window,
            cpus: self.cpus.clone(),
            engine: self.engine,
            tick: self.tick,
        }
    }

    /// The version of HTTP, as people write it.
    pub(crate) fn http(&self) -> &'static str {
        match self.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
        }
    }

    /// The shards of this process, one for each thread.
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> {
        self.shard.unwrap_or(Shard::WHOLE).split(self.threads)
    }
}
