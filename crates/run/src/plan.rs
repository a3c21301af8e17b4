//! The plan of a run: options that are known to be valid for their load. A variant of [`PlannedLoad`] has fields only
//! for the options that its kind of load allows.

use crate::{LoadOptions, RunError, RunOptions, ServerOptions};
use brimful_core::workload::{AttemptPace, Load, LoadKind, RequestClass, SessionArrivals, Sessions, Spread};
use brimful_core::{ClassId, Nanos};
use brimful_engine::{Config, ConnectionPolicy, RedirectPolicy};
use brimful_workload::{ArrivalProcess, Arrivals, Mix, Shard, Speed, WorkloadLimits};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Permitted intervals between ticks. Each call is late by up to one interval, so a longer one would delay calls too
/// much. A shorter one would use too much CPU time.
const TICKS: RangeInclusive<Nanos> = Nanos::from_micros(100)..=Nanos::from_millis(10);
/// Maximum number of threads of a run.
const MAX_THREADS: u64 = 1024;
/// Maximum number of clients, S-Clients or users. Each needs memory that is allocated before the load starts.
const MAX_CLIENTS: u64 = 10_000_000;

/// The plan of a run: options that are valid for their load, as checked by [`RunPlan::new`].
#[derive(Clone, Debug)]
pub struct RunPlan {
    options: RunOptions,
    load: PlannedLoad,
}

/// A load with the options that are valid for its kind. `follow` is the maximum number of successive redirects that are
/// followed.
#[derive(Clone, Debug)]
pub(crate) enum PlannedLoad {
    /// A schedule determines when calls are due, independent of the responses.
    Open { arrivals: Box<Arrivals>, tick: Option<Nanos>, follow: Option<u64> },
    /// Each client waits for its response and then for the think time `think` before it sends its next call.
    Closed { clients: u64, think: Nanos, follow: Option<u64> },
    /// Like `Closed`, but `burst_size` clients share a connection and send their requests together.
    ClosedBursts { clients: u64, burst_size: u32, think: Nanos, follow: Option<u64> },
    /// At most `attempts` connection attempts are under way, each by one S-Client. An attempt is abandoned after
    /// `timeout`.
    SClients { attempts: u64, timeout: Nanos, pace: PlannedPace },
    /// Users run sessions. `tick` is available only if sessions arrive at a rate.
    Sessions { sessions: Box<Sessions>, back_off: bool, tick: Option<Nanos>, follow: Option<u64> },
    /// Each request of a log is sent at its time in the log. The log is read during the run.
    Log { tick: Option<Nanos> },
}

/// When an S-Client begins its next connection attempt.
#[derive(Clone, Debug)]
pub(crate) enum PlannedPace {
    /// The next attempt begins this think time after a successful attempt, and at once after an abandoned one.
    Think(Nanos),
    /// The next attempt begins when the next arrival of this process is due and the S-Client is free.
    Arrivals(Box<Arrivals>),
}

impl RunPlan {
    /// Checks that the options are valid for the load.
    ///
    /// # Errors
    /// [`RunError::BadLoad`], or the error in the workload.
    pub fn new(options: RunOptions) -> Result<RunPlan, RunError> {
        let workload = &options.load.workload;
        workload.validate()?;
        if let Some(file) = workload.unread_file() {
            return bad_load(format!("{file} has not been read: give the workload by --workload FILE"));
        }
        let Some(load) = &workload.load else {
            return bad_load(
                "no load was given. Add one: --rate 1000, --clients 10, --s-clients 100, --stage 30s:1000 or \
                 --arrivals trace:FILE",
            );
        };
        check_size(&options, load)?;
        check_connections(&options)?;
        let load = PlannedLoad::parse(&options, load)?;
        Ok(RunPlan { options, load })
    }

    /// The options of the run.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Returns the options of the run, for example to change them for another plan.
    pub fn into_options(self) -> RunOptions {
        self.options
    }

    /// Sets the highest known rate that this client can generate without being the limit.
    pub fn with_max_rate(mut self, max_rate: Option<f64>) -> RunPlan {
        self.options.generator.max_rate = max_rate;
        self
    }

    /// Returns the due time and the class of each call of an open load, in order.
    ///
    /// # Errors
    /// [`RunError::BadLoad`] if the load has no schedule.
    pub fn schedule(&self) -> Result<impl Iterator<Item = (Nanos, ClassId)> + use<>, RunError> {
        let PlannedLoad::Open { arrivals, .. } = &self.load else {
            return bad_load("this load has no schedule: give --rate, --stage or a trace");
        };
        let LoadOptions { workload, window, calls, seed, .. } = &self.options.load;
        let window = *window;
        let due_times = Arrivals::clone(arrivals).take_while(move |due| *due < window);
        let classes = Mix::from_workload(workload, *seed)?.map(|call| call.class);
        Ok(due_times.take(usize::try_from(*calls).unwrap_or(usize::MAX)).zip(classes))
    }

    /// The load, with the options that are valid for its kind.
    pub(crate) fn load(&self) -> &PlannedLoad {
        &self.load
    }

    /// The shards of this process, one for each thread.
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> {
        self.options.fleet.shard.unwrap_or(Shard::WHOLE).split(self.options.generator.threads)
    }

    /// The engine's configuration without the start time, which the caller must set.
    pub(crate) fn engine_config(&self) -> Config {
        let RunOptions { server, load, generator, fleet, .. } = &self.options;
        let first_index = fleet.shard.map_or(0, |shard| (shard.index * generator.threads) as usize);
        Config {
            address: server.endpoint.destination().with_first_index(first_index),
            tls: server.tls.as_ref().map(|tls| Arc::clone(&tls.security)),
            http2: server.is_http2(),
            connections: self.connection_policy(),
            min_connections: self.connections_at_once(),
            start: Nanos::ZERO,
            window: load.window,
            cpus: generator.cpus.clone(),
            engine: generator.engine,
            tick: self.load.tick(),
        }
    }

    fn connection_policy(&self) -> ConnectionPolicy {
        /// Maximum number of requests in a pipeline. Further simultaneous requests are sent on another connection.
        const MAX_PIPELINE: u64 = 256;
        let server = &self.options.server;
        let mut policy =
            ConnectionPolicy { max_per_shard: self.options.max_connections_per_shard(), ..server.connections.clone() };
        match &self.load {
            PlannedLoad::SClients { .. } => {
                policy.calls_per_connection = Some(1);
                // S-Clients make one connection attempt per call, so a retry would add an attempt.
                policy.retry_closed = false;
                policy.retry_refused = false;
            }
            PlannedLoad::Sessions { sessions, .. } if sessions.pipelined => {
                let max_burst = sessions.max_burst_calls().unwrap_or(MAX_PIPELINE);
                policy.pipeline = max_burst.clamp(1, MAX_PIPELINE) as usize;
            }
            _ => {}
        }
        if policy.calls_per_connection == Some(1) || matches!(self.load, PlannedLoad::ClosedBursts { .. }) {
            policy.warm_connections = 0;
        }
        policy
    }

    /// Minimum number of connections that this process has open at once. It is 0 unless clients or users call again at
    /// once after a response and so keep their connections busy.
    fn connections_at_once(&self) -> u64 {
        let policy = &self.options.server.connections;
        let connections = match &self.load {
            PlannedLoad::Closed { clients, think: Nanos::ZERO, .. }
            | PlannedLoad::ClosedBursts { clients, think: Nanos::ZERO, .. } => {
                let clients_per_connection =
                    if policy.calls_per_connection == Some(1) { 1 } else { (policy.pipeline as u64).max(1) };
                clients.div_ceil(clients_per_connection)
            }
            PlannedLoad::Sessions { sessions, .. } => match &sessions.session_arrivals {
                SessionArrivals::Closed { users, rest_s } if is_zero(rest_s) && is_zero(&sessions.think_s) => *users,
                _ => 0,
            },
            _ => 0,
        };
        let shard = self.options.fleet.shard.unwrap_or(Shard::WHOLE);
        shard.item_count(connections).min(shard.item_count(self.options.load.calls))
    }

    /// The limits of the load: the time for which it is generated, and its number of calls.
    pub(crate) fn workload_limits(&self) -> WorkloadLimits {
        WorkloadLimits { window: self.options.load.window, calls: self.options.load.calls }
    }

    /// Whether the load ends only when its last call has ended. Other loads end at a time that is known in advance.
    pub(crate) fn ends_with_last_call(&self) -> bool {
        let is_counted = self.options.load.calls < u64::MAX;
        match &self.load {
            PlannedLoad::Open { .. } => false,
            PlannedLoad::Closed { .. } | PlannedLoad::ClosedBursts { .. } | PlannedLoad::SClients { .. } => is_counted,
            PlannedLoad::Sessions { sessions, .. } => {
                sessions.max_sessions.is_some() || is_counted && sessions.kind() != LoadKind::Open
            }
            PlannedLoad::Log { .. } => true,
        }
    }

    /// The time for which load is generated unless the run is interrupted.
    pub(crate) fn planned_window(&self) -> Nanos {
        match &self.load {
            PlannedLoad::Open { arrivals, .. } if self.options.load.calls < u64::MAX => {
                match Arrivals::clone(arrivals).end_time(self.workload_limits()) {
                    // All calls of the trace are due at the same time, so the schedule has no length.
                    Nanos::ZERO => self.options.load.window,
                    end => end,
                }
            }
            _ => self.options.load.window,
        }
    }

    /// How redirects are followed; `None` if they are not.
    pub(crate) fn redirect_policy(&self) -> Option<RedirectPolicy> {
        let RunOptions { server, load, .. } = &self.options;
        self.load.follow().map(|max_hops| RedirectPolicy::new(max_hops, &load.workload, &server.request_settings()))
    }
}

impl PlannedLoad {
    fn parse(options: &RunOptions, load: &Load) -> Result<PlannedLoad, RunError> {
        Ok(match load {
            Load::Open { .. } | Load::Stages { .. } | Load::Trace(_) => {
                let arrivals = Box::new(parse_arrivals(options, load)?);
                let tick = parse_tick(options)?;
                PlannedLoad::Open { arrivals, tick, follow: parse_follow(options)? }
            }
            Load::Closed { clients, think } => {
                refuse_tick(options)?;
                let follow = parse_follow(options)?;
                match burst_size(&options.server) {
                    None => PlannedLoad::Closed { clients: *clients, think: *think, follow },
                    Some(burst_size) => {
                        PlannedLoad::ClosedBursts { clients: *clients, burst_size, think: *think, follow }
                    }
                }
            }
            Load::SClients { attempts, pace } => {
                let policy = &options.server.connections;
                if policy.pipeline > 1 {
                    return bad_load(
                        "S-Clients make one call per connection: leave out --pipeline, or give a --rate instead",
                    );
                }
                refuse_tick(options)?;
                refuse_follow(options)?;
                let timeout = policy.connect_timeout.unwrap_or(policy.response_timeout);
                let pace = match pace {
                    AttemptPace::Think(think) => PlannedPace::Think(*think),
                    AttemptPace::Schedule(load) => PlannedPace::Arrivals(Box::new(parse_arrivals(options, load)?)),
                };
                PlannedLoad::SClients { attempts: *attempts, timeout, pace }
            }
            Load::Sessions(sessions) => {
                check_sessions(options)?;
                let tick = match &sessions.session_arrivals {
                    SessionArrivals::Open { rate, arrivals } => {
                        Arrivals::new(arrivals.parse::<ArrivalProcess>()?, *rate, options.load.seed)?;
                        parse_tick(options)?
                    }
                    SessionArrivals::Closed { .. } => {
                        refuse_tick(options)?;
                        None
                    }
                };
                PlannedLoad::Sessions {
                    sessions: Box::new(sessions.clone()),
                    back_off: options.load.back_off,
                    tick,
                    follow: parse_follow(options)?,
                }
            }
            Load::Log(_) => {
                refuse_follow(options)?;
                PlannedLoad::Log { tick: parse_tick(options)? }
            }
        })
    }

    fn tick(&self) -> Option<Nanos> {
        match self {
            PlannedLoad::Open { tick, .. } | PlannedLoad::Sessions { tick, .. } | PlannedLoad::Log { tick } => *tick,
            PlannedLoad::Closed { .. } | PlannedLoad::ClosedBursts { .. } | PlannedLoad::SClients { .. } => None,
        }
    }

    fn follow(&self) -> Option<u64> {
        match self {
            PlannedLoad::Open { follow, .. }
            | PlannedLoad::Closed { follow, .. }
            | PlannedLoad::ClosedBursts { follow, .. }
            | PlannedLoad::Sessions { follow, .. } => *follow,
            PlannedLoad::SClients { .. } | PlannedLoad::Log { .. } => None,
        }
    }
}

/// Returns the arrivals of a load with a schedule: an open load, a load of stages (periods with different rates), or a
/// trace.
fn parse_arrivals(options: &RunOptions, load: &Load) -> Result<Arrivals, RunError> {
    let LoadOptions { seed, trace, .. } = &options.load;
    match load {
        Load::Open { rate, arrivals } => Ok(Arrivals::new(arrivals.parse()?, *rate, *seed)?),
        Load::Stages { start, stages, arrivals } => Ok(Arrivals::stages(arrivals.parse()?, *start, stages, *seed)?),
        Load::Trace(named) => match trace {
            Some(trace) => Ok(Arrivals::trace(trace.clone(), Speed::new(named.speed)?)),
            None => bad_load(format!("the trace {} has not been read: give --arrivals trace:FILE", named.file)),
        },
        _ => bad_load("this load has no schedule: give --rate, --stage or a trace"),
    }
}

/// Checks that the load has a duration, calls and threads, and not too many clients or threads.
fn check_size(options: &RunOptions, load: &Load) -> Result<(), RunError> {
    let clients = match load {
        Load::Closed { clients, .. } => *clients,
        Load::SClients { attempts, .. } => *attempts,
        Load::Sessions(Sessions { session_arrivals: SessionArrivals::Closed { users, .. }, .. }) => *users,
        _ => 0,
    };
    if clients > MAX_CLIENTS {
        return bad_load(format!(
            "{clients} clients need too much memory: ask for at most {MAX_CLIENTS}, or for a --rate instead"
        ));
    }
    let threads = options.generator.threads;
    if threads > MAX_THREADS {
        return bad_load(format!(
            "{threads} threads are more than any host has CPUs for: give --threads at most {MAX_THREADS}"
        ));
    }
    if threads == 0 {
        return bad_load("no threads make no load: give --threads at least 1");
    }
    if options.load.window == Nanos::ZERO {
        return bad_load("a run of no length measures nothing: give --duration more than 0s");
    }
    if options.load.calls == 0 {
        return bad_load("no requests make no load: give --requests at least 1");
    }
    Ok(())
}

/// Checks the connection options that apply to every kind of load.
fn check_connections(options: &RunOptions) -> Result<(), RunError> {
    let policy = &options.server.connections;
    if policy.response_timeout == Nanos::ZERO || policy.connect_timeout == Some(Nanos::ZERO) {
        return bad_load("a timeout of 0 fails every call: give --timeout and --connect-timeout more than 0s");
    }
    if policy.calls_per_connection == Some(0) {
        return bad_load("a connection without calls makes no load: give --calls-per-connection at least 1");
    }
    if policy.pipeline == 0 {
        return bad_load("a pipeline without calls makes no load: give --pipeline at least 1");
    }
    if policy.send_buffer == Some(0) || policy.receive_buffer == Some(0) {
        return bad_load("a socket needs a buffer: give --send-buffer and --receive-buffer more than 0");
    }
    let pipelines = policy.pipeline > 1 || options.load.workload.sessions().is_some_and(|sessions| sessions.pipelined);
    if pipelines && !options.server.is_http2() && has_exclusive_bodies(options) {
        return bad_load(
            "a request whose body comes from a file, or waits for 100 Continue, cannot share its connection: leave out \
             --pipeline, and pipelined = true under [load.sessions]",
        );
    }
    Ok(())
}

/// Checks that no option contradicts the sessions in the workload.
fn check_sessions(RunOptions { server, load, .. }: &RunOptions) -> Result<(), RunError> {
    // The number of calls may be limited by a list of URLs that sessions request only once. This is not a
    // contradiction.
    if load.calls < load.workload.list_call_limit().unwrap_or(u64::MAX) {
        return bad_load(
            "sessions end by themselves: leave out --requests, and give a --duration, or write how many there are, like \
             sessions = 100, under [load.sessions]",
        );
    }
    if server.connections.calls_per_connection.is_some() {
        return bad_load(
            "the workload defines the connections of sessions: leave out --calls-per-connection and --new-connection, and \
             write between_bursts = \"close\" or connections = 1 under [load.sessions]",
        );
    }
    if server.connections.pipeline > 1 && !server.is_http2() {
        return bad_load(
            "the workload defines how sessions use connections: leave out --pipeline, and write pipelined = true under \
             [load.sessions]",
        );
    }
    Ok(())
}

/// Number of clients that share a connection and send their requests together; `None` if each client has its own
/// connections. With HTTP/2, clients never share by groups, because streams do not wait for one another.
fn burst_size(server: &ServerOptions) -> Option<u32> {
    let policy = &server.connections;
    let shares = policy.pipeline > 1 && policy.calls_per_connection != Some(1) && !server.is_http2();
    shares.then(|| u32::try_from(policy.pipeline).unwrap_or(u32::MAX))
}

fn parse_tick(options: &RunOptions) -> Result<Option<Nanos>, RunError> {
    match options.load.tick {
        Some(tick) if !TICKS.contains(&tick) => {
            bad_load("calls are late by up to one tick: give --tick between 100us and 10ms")
        }
        tick => Ok(tick),
    }
}

fn refuse_tick(options: &RunOptions) -> Result<(), RunError> {
    match options.load.tick {
        Some(_) => {
            bad_load("clients that wait for their answers have no schedule, so ticks do not apply: leave out --tick")
        }
        None => Ok(()),
    }
}

fn parse_follow(options: &RunOptions) -> Result<Option<u64>, RunError> {
    let expects = options.load.workload.classes.iter().any(|class| class.expect.is_some());
    match options.load.max_redirects {
        Some(_) if expects => bad_load(
            "a class with `expect` checks its own responses, which are the redirects: leave out --follow, or leave out \
             expect and request the URL that the redirects lead to",
        ),
        follow => Ok(follow),
    }
}

fn refuse_follow(options: &RunOptions) -> Result<(), RunError> {
    match options.load.max_redirects {
        Some(_) => bad_load("S-Clients and replayed logs do not follow redirects: leave out --follow"),
        None => Ok(()),
    }
}

/// Whether a request may need a connection of its own until its body is sent: the body comes from a file, or waits for
/// `100 Continue`.
fn has_exclusive_bodies(options: &RunOptions) -> bool {
    let waits = |name: &str| name.eq_ignore_ascii_case("Expect");
    let class_has_one = |class: &RequestClass| {
        let targets = if class.differs_only_in_path() { 1 } else { class.len() };
        let mut headers = (0..targets).flat_map(|place| class.target(place).headers);
        !class.body_file.is_empty() || headers.any(|(name, _)| waits(name))
    };
    options.load.workload.classes.iter().any(class_has_one)
        || options.server.headers.iter().any(|(name, _)| waits(name))
}

fn is_zero(spread: &Spread) -> bool {
    *spread == Spread::Constant(0.0)
}

fn bad_load<T>(message: impl Into<String>) -> Result<T, RunError> {
    Err(RunError::BadLoad(message.into()))
}
