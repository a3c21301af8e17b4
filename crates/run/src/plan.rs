//! What decides a run, and what of it only the whole can tell.

use crate::{Endpoint, RunError};
use brimful_core::tls::TlsSpoken;
use brimful_core::workload::{Class, Load, LoadKind, SessionArrivals, Sessions, Spread, Workload};
use brimful_core::{ClassId, Nanos};
use brimful_engine::{
    Config, ConnectionPolicy, Engine, FixedRequests, RedirectPolicy, RequestSettings, ScriptedRequests, Security,
};
use brimful_http::Version;
use brimful_monitor::{MonitorConfig, RemoteConfig};
use brimful_stats::{Keeper, Live};
use brimful_workload::{Arrivals, Extent, Mix, Process, Shard, Speed, Trace};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long a tick may be: each call may be that late, and a sleep costs too much to be made more often.
const TICKS: std::ops::RangeInclusive<Nanos> = Nanos::from_micros(100)..=Nanos::from_millis(10);

/// The most threads of a load.
const MOST_THREADS: u64 = 1024;
/// The most clients, S-Clients or users of a load: memory for each is allocated before the load starts.
const MOST_CLIENTS: u64 = 10_000_000;

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Where.
    pub endpoint: Endpoint,
    /// What, and how calls come.
    pub workload: Workload,
    /// The instants of the trace that the workload names, if it does.
    pub trace: Option<Trace>,
    /// For how long.
    pub window: Nanos,
    /// At most how many calls.
    pub calls: u64,
    /// HTTP version.
    pub version: Version,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// Names of those, and of the workload's, whose values no document may have, besides the usual ones.
    pub secret_headers: Vec<String>,
    /// How connections are secured, if they are.
    pub tls: Option<Arc<Security>>,
    /// What TLS was agreed on before the run, for the Record.
    pub tls_spoken: Option<TlsSpoken>,
    /// How connections are used. S-Clients make one call per connection whatever this says, and cannot do without a connect
    /// timeout.
    pub connections: ConnectionPolicy,
    /// How sockets are driven.
    pub engine: Engine,
    /// Begin calls only once in so much time: [`Config::tick`].
    pub tick: Option<Nanos>,
    /// Shards, one thread each.
    pub threads: u64,
    /// As in [`Config`].
    pub cpus: Vec<usize>,
    /// Which part of the load this process makes; `None` where it makes all of it.
    pub shard: Option<Shard>,
    /// When to start, by this host's clock; `None` is at once.
    pub start_at: Option<SystemTime>,
    /// How that differs from the clock by which several hosts agreed on it, where they did.
    pub clock: Option<FleetClock>,
    /// Seed of all randomness.
    pub seed: u64,
    /// The highest rate this client can offer without being the limit, per second, if that is known.
    pub client_max: Option<f64>,
    /// Users of closed loads wait before they call again after they could not connect.
    pub back_off: bool,
    /// Follow redirects, up to so many one after another; `None` takes them for answers.
    pub follow: Option<u64>,
    /// What to watch meanwhile.
    pub monitor: Option<Watched>,
    /// Where it shows what it has seen so far, to those who look on.
    pub live: Option<Arc<Live>>,
    /// Where it hands over what it has seen, to whoever keeps it; nothing is shown live then.
    pub keeper: Option<Arc<Keeper>>,
    /// Length of the intervals in which the course of the run is kept from its start, from 1/32 s to a second.
    pub interval: Nanos,
    /// For the Record.
    pub command: Vec<String>,
}

/// How this host's clock differs from that of a fleet, by which all of its hosts begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetClock {
    /// How far it is ahead, in nanoseconds; behind, if negative.
    pub ahead_ns: i64,
    /// How far off that may be.
    pub error: Nanos,
}

impl FleetClock {
    /// An instant of the fleet's clock, by this host's; `None` beyond what either can show.
    pub fn here(self, fleet: SystemTime) -> Option<SystemTime> {
        let size = Duration::from_nanos(self.ahead_ns.unsigned_abs());
        if self.ahead_ns < 0 { fleet.checked_sub(size) } else { fleet.checked_add(size) }
    }

    /// The reverse.
    pub fn in_fleet(self, here: SystemTime) -> Option<SystemTime> {
        FleetClock { ahead_ns: self.ahead_ns.saturating_neg(), ..self }.here(here)
    }
}

/// A server to watch.
#[derive(Clone, Debug)]
pub enum Watched {
    /// On this host.
    Here(MonitorConfig),
    /// On another one, through a `brimful watch --serve` there.
    There(RemoteConfig),
}

impl RunPlan {
    /// The same with another load.
    pub fn with_load(mut self, load: Load) -> RunPlan {
        self.workload.load = Some(load);
        self
    }

    /// How calls come.
    ///
    /// # Errors
    /// [`RunError::BadLoad`] when the workload does not say.
    pub fn load(&self) -> Result<&Load, RunError> {
        let unknown = || {
            let ways = "--rate 1000, --clients 10, --s-clients 100, --stage 30s:1000 or --arrivals trace:FILE";
            RunError::BadLoad(format!("say how much load: {ways}"))
        };
        self.workload.load.as_ref().ok_or_else(unknown)
    }

    /// Whether it is S-Clients who make the load.
    pub fn is_s_clients(&self) -> bool {
        matches!(self.workload.load, Some(Load::SClients { .. }))
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`RunError::BadLoad`] or what is wrong with the workload.
    pub fn validate(&self) -> Result<(), RunError> {
        self.workload.validate()?;
        if let Some(file) = self.workload.unread_file() {
            return Err(RunError::BadLoad(format!("{file} has not been read: give the workload by --workload FILE")));
        }
        let bad = |message: &str| Err(RunError::BadLoad(message.to_owned()));
        let policy = &self.connections;
        match self.load()? {
            // A list that is asked for once ends them too.
            Load::Sessions(_) if self.calls < self.workload.calls_listed_once().unwrap_or(u64::MAX) => {
                bad("sessions end by themselves: leave out --requests, and give a --duration, or write how many there \
                     are, like sessions = 100, under [load.sessions]")
            }
            Load::Sessions(_) if policy.calls_per_connection.is_some() => {
                bad("the connections of sessions are the workload's business: leave out --calls-per-connection and \
                 --new-connection, and write between_bursts = \"close\" or connections = 1 under [load.sessions]")
            }
            Load::Sessions(_) if policy.pipeline > 1 && self.version != Version::Http2 => {
                bad("how a session uses its connections is the workload's business: leave out --pipeline, and write \
                     pipelined = true under [load.sessions]")
            }
            Load::SClients { .. } if policy.pipeline > 1 => {
                bad("S-Clients make one call per connection: leave out --pipeline, or give a --rate instead")
            }
            load if clients(load) > MOST_CLIENTS => bad(&format!(
                "{} clients are more than there is room for: ask for at most {MOST_CLIENTS}, or for a --rate instead",
                clients(load)
            )),
            _ if self.threads > MOST_THREADS => bad(&format!(
                "{} threads are more than any host has CPUs for: give --threads at most {MOST_THREADS}",
                self.threads
            )),
            _ if self.threads == 0 => bad("no threads make no load: give --threads at least 1"),
            _ if self.window == Nanos::ZERO => bad("a run of no length measures nothing: give --duration more than 0s"),
            _ if self.calls == 0 => bad("no requests make no load: give --requests at least 1"),
            _ if policy.response_timeout == Nanos::ZERO || policy.connect_timeout == Some(Nanos::ZERO) => {
                bad("a timeout of nothing fails every call: give --timeout and --connect-timeout more than 0s")
            }
            _ if policy.calls_per_connection == Some(0) => {
                bad("a connection without calls makes no load: give --calls-per-connection at least 1")
            }
            _ if self.pipelines() && self.version != Version::Http2 && self.has_bodies_apart() => bad(
                "a body that comes from a file, or waits for 100 Continue, has its connection to itself: leave out \
                 --pipeline, and pipelined = true under [load.sessions]",
            ),
            load if self.tick.is_some() && load.kind() != LoadKind::Open => bad(
                "clients who wait for their answers keep no schedule that ticks could be cheaper for: leave out --tick",
            ),
            _ if self.tick.is_some_and(|tick| !TICKS.contains(&tick)) => {
                bad("a tick is as long as a call may be late: give --tick between 100us and 10ms")
            }
            _ if policy.pipeline == 0 => bad("a connection bears one call or more: give --pipeline at least 1"),
            _ if policy.send_buffer == Some(0) || policy.receive_buffer == Some(0) => {
                bad("a socket needs a buffer: give --send-buffer and --receive-buffer more than 0")
            }
            Load::SClients { .. } | Load::Log(_) if self.follow.is_some() => {
                bad("S-Clients and the requests of a log go by themselves: leave out --follow")
            }
            _ if self.follow.is_some() && self.workload.classes.iter().any(|class| class.expect.is_some()) => bad(
                "what a class expects is said of its own answers, which are redirects here: leave out --follow, or \
                 expect, and request the URL that they lead to",
            ),
            // When its calls are due, the log says.
            Load::Log(_) => Ok(()),
            Load::Sessions(sessions) => match &sessions.comes {
                SessionArrivals::Open { rate, arrivals } => {
                    Ok(Arrivals::new(arrivals.parse::<Process>()?, *rate, self.seed).map(drop)?)
                }
                SessionArrivals::Closed { .. } => Ok(()),
            },
            load if load.kind() == LoadKind::Open => self.arrivals().map(drop),
            _ => Ok(()),
        }
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

    /// Whether the load goes on until so many calls have ended, however long that takes: that of clients who wait for their
    /// answers does, and so does one of a number of sessions. An open one lasts as long as its schedule, however late the last
    /// answer.
    pub(crate) fn ends_with_its_last_call(&self) -> Result<bool, RunError> {
        let load = self.load()?;
        let counted = self.workload.sessions().is_some_and(|sessions| sessions.number.is_some());
        Ok(matches!(load, Load::Log(_)) || counted || self.calls < u64::MAX && load.kind() != LoadKind::Open)
    }

    /// Until when load is offered if nothing interrupts it.
    pub(crate) fn planned_window(&self) -> Result<Nanos, RunError> {
        let load = self.load()?;
        if self.calls == u64::MAX || load.kind() != LoadKind::Open || matches!(load, Load::Log(_) | Load::Sessions(_)) {
            return Ok(self.window);
        }
        let end = self.arrivals()?.end(Extent { window: self.window, calls: self.calls });
        // Calls of a trace that are all due at once have no rate of their own.
        Ok(if end == Nanos::ZERO { self.window } else { end })
    }
}

/// The number of clients, S-Clients or users of a load; 0 for a load without them.
fn clients(load: &Load) -> u64 {
    match load {
        Load::Closed { clients, .. } => *clients,
        Load::SClients { attempts } => *attempts,
        Load::Sessions(Sessions { comes: SessionArrivals::Closed { users, .. }, .. }) => *users,
        _ => 0,
    }
}
