//! A plan whose options fit its load. Only [`ValidPlan::parse`] makes a [`ValidPlan`], and a run needs one. Each kind
//! of [`PlannedLoad`] has fields only for the options that it allows.

use crate::{RunError, RunPlan};
use brimful_core::workload::{Load, LoadKind, RequestClass, SessionArrivals, Sessions, Spread};
use brimful_core::{ClassId, Nanos};
use brimful_engine::{Config, ConnectionPolicy, RedirectPolicy};
use brimful_http::Version;
use brimful_workload::{ArrivalProcess, Arrivals, Mix, Shard, Speed, WorkloadLimits};
use std::ops::RangeInclusive;

/// Permitted lengths of a tick. A call may be late by one tick, so ticks must not be too long. Shorter ticks would use
/// too much CPU time.
const TICKS: RangeInclusive<Nanos> = Nanos::from_micros(100)..=Nanos::from_millis(10);
/// Upper bound of the number of threads.
const MAX_THREADS: u64 = 1024;
/// Upper bound of the number of clients, S-Clients or users. Memory for each is allocated before the load starts.
const MAX_CLIENTS: u64 = 10_000_000;

/// A plan and its parsed load.
pub(crate) struct ValidPlan<'p> {
    pub plan: &'p RunPlan,
    pub load: PlannedLoad<'p>,
}

/// A load, with the options that its kind allows. `follow` is the number of redirects in a row that are followed.
pub(crate) enum PlannedLoad<'p> {
    /// Calls are due by a schedule that does not depend on the server.
    Open { arrivals: Box<Arrivals>, tick: Option<Nanos>, follow: Option<u64> },
    /// Each client waits for its answer, and then for `think`, before it makes its next call.
    Closed { clients: u64, think: Nanos, follow: Option<u64> },
    /// Like `Closed`, but groups of `burst_size` clients share a connection and send their calls together.
    ClosedBursts { clients: u64, burst_size: u32, think: Nanos, follow: Option<u64> },
    /// S-Clients keep `attempts` connection attempts in progress and abandon each after `timeout`.
    SClients { attempts: u64, timeout: Nanos },
    /// Sessions of users. `tick` is set only if sessions arrive at a rate.
    Sessions { sessions: &'p Sessions, back_off: bool, tick: Option<Nanos>, follow: Option<u64> },
    /// The requests of a log, which are read during the run.
    Log { tick: Option<Nanos> },
}

impl RunPlan {
    /// Checks that the options fit the load. [`crate::run`] makes the same check before it starts.
    ///
    /// # Errors
    /// [`RunError::BadLoad`], or the error in the workload.
    pub fn validate(&self) -> Result<(), RunError> {
        ValidPlan::parse(self).map(drop)
    }

    /// Due time and class of each call of an open load, in order.
    ///
    /// # Errors
    /// [`RunError`] when the load has no schedule, or the plan is not valid.
    pub fn schedule(&self) -> Result<impl Iterator<Item = (Nanos, ClassId)> + use<>, RunError> {
        let PlannedLoad::Open { arrivals, .. } = ValidPlan::parse(self)?.load else {
            return bad_load("this load has no schedule: give --rate, --stage or a trace");
        };
        let window = self.window;
        let calls = usize::try_from(self.calls).unwrap_or(usize::MAX);
        let due_times = arrivals.take_while(move |due| *due < window).take(calls);
        Ok(due_times.zip(Mix::from_workload(&self.workload, self.seed)?).map(|(due, call)| (due, call.class)))
    }
}

impl<'p> ValidPlan<'p> {
    pub fn parse(plan: &'p RunPlan) -> Result<ValidPlan<'p>, RunError> {
        plan.workload.validate()?;
        if let Some(file) = plan.workload.unread_file() {
            return bad_load(format!("{file} has not been read: give the workload by --workload FILE"));
        }
        let load = plan.load()?;
        check_size(plan, load)?;
        check_connections(plan)?;
        Ok(ValidPlan { plan, load: PlannedLoad::parse(plan, load)? })
    }

    /// The configuration of the engine, without its start, which is not known yet.
    pub fn engine_config(&self) -> Config {
        let plan = self.plan;
        let first_turn = plan.shard.map_or(0, |shard| (shard.index * plan.threads) as usize);
        Config {
            address: plan.endpoint.destination().with_first_turn(first_turn),
            tls: plan.tls.clone(),
            connections: self.connection_policy(),
            start: Nanos::ZERO,
            window: plan.window,
            cpus: plan.cpus.clone(),
            engine: plan.engine,
            tick: self.load.tick(),
        }
    }

    fn connection_policy(&self) -> ConnectionPolicy {
        /// Upper bound of the number of calls in a pipeline. A longer burst of a session continues on another
        /// connection.
        const MAX_PIPELINE: u64 = 256;
        let plan = self.plan;
        let mut policy = ConnectionPolicy {
            http2: plan.version == Version::Http2,
            min_concurrent: self.connections_at_once(),
            max_per_shard: plan.max_connections_per_shard(),
            ..plan.connections.clone()
        };
        match &self.load {
            PlannedLoad::SClients { .. } => {
                policy.calls_per_connection = Some(1);
                // Each attempt must be one call, but a call that is sent again would make a second attempt.
                policy.retry_closed = false;
                policy.retry_refused = false;
            }
            PlannedLoad::Sessions { sessions, .. } if sessions.pipelined => {
                let longest_burst = sessions.longest_burst().unwrap_or(MAX_PIPELINE);
                policy.pipeline = longest_burst.clamp(1, MAX_PIPELINE) as usize;
            }
            _ => {}
        }
        if policy.calls_per_connection == Some(1) || matches!(self.load, PlannedLoad::ClosedBursts { .. }) {
            policy.warm_connections = 0;
        }
        policy
    }

    /// The number of connections that this process certainly has open at the same time: the connections of clients and
    /// users that call again as soon as they have an answer. 0 if the number depends on the server.
    fn connections_at_once(&self) -> u64 {
        let plan = self.plan;
        let policy = &plan.connections;
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
        let shard = plan.shard.unwrap_or(Shard::WHOLE);
        shard.share(connections).min(shard.share(plan.calls))
    }

    /// The limits at which the load ends: its window, and its number of calls.
    pub fn extent(&self) -> WorkloadLimits {
        WorkloadLimits { window: self.plan.window, calls: self.plan.calls }
    }

    /// Whether the load lasts until its last call has ended, however long that takes. An open load ends with its
    /// schedule.
    pub fn ends_with_last_call(&self) -> bool {
        let is_counted = self.plan.calls < u64::MAX;
        match &self.load {
            PlannedLoad::Open { .. } => false,
            PlannedLoad::Closed { .. } | PlannedLoad::ClosedBursts { .. } | PlannedLoad::SClients { .. } => is_counted,
            PlannedLoad::Sessions { sessions, .. } => {
                sessions.number.is_some() || is_counted && sessions.kind() != LoadKind::Open
            }
            PlannedLoad::Log { .. } => true,
        }
    }

    /// The time during which load is offered if the run is not interrupted.
    pub fn planned_window(&self) -> Nanos {
        match &self.load {
            PlannedLoad::Open { arrivals, .. } if self.plan.calls < u64::MAX => {
                match Arrivals::clone(arrivals).end_time(self.extent()) {
                    // The calls of a trace may all be due at the same time. Such a trace has no rate of its own.
                    Nanos::ZERO => self.plan.window,
                    end => end,
                }
            }
            _ => self.plan.window,
        }
    }

    /// The policy for redirects; `None` if redirects are not followed.
    pub fn redirect_policy(&self) -> Option<RedirectPolicy> {
        self.load.follow().map(|max_hops| RedirectPolicy::new(max_hops, &self.plan.workload, &self.plan.wire()))
    }
}

impl<'p> PlannedLoad<'p> {
    fn parse(plan: &RunPlan, load: &'p Load) -> Result<PlannedLoad<'p>, RunError> {
        Ok(match load {
            Load::Open { .. } | Load::Stages { .. } | Load::Trace(_) => {
                let tick = parse_tick(plan)?;
                let follow = parse_follow(plan)?;
                PlannedLoad::Open { arrivals: Box::new(parse_arrivals(plan, load)?), tick, follow }
            }
            Load::Closed { clients, think } => {
                refuse_tick(plan)?;
                let follow = parse_follow(plan)?;
                match burst_size(plan) {
                    None => PlannedLoad::Closed { clients: *clients, think: *think, follow },
                    Some(burst_size) => {
                        PlannedLoad::ClosedBursts { clients: *clients, burst_size, think: *think, follow }
                    }
                }
            }
            Load::SClients { attempts } => {
                if plan.connections.pipeline > 1 {
                    return bad_load(
                        "S-Clients make one call per connection: leave out --pipeline, or give a --rate instead",
                    );
                }
                refuse_tick(plan)?;
                refuse_follow(plan)?;
                let timeout = plan.connections.connect_timeout.unwrap_or(plan.connections.response_timeout);
                PlannedLoad::SClients { attempts: *attempts, timeout }
            }
            Load::Sessions(sessions) => {
                check_sessions(plan)?;
                let tick = match &sessions.session_arrivals {
                    SessionArrivals::Open { rate, arrivals } => {
                        Arrivals::new(arrivals.parse::<ArrivalProcess>()?, *rate, plan.seed)?;
                        parse_tick(plan)?
                    }
                    SessionArrivals::Closed { .. } => {
                        refuse_tick(plan)?;
                        None
                    }
                };
                PlannedLoad::Sessions { sessions, back_off: plan.back_off, tick, follow: parse_follow(plan)? }
            }
            Load::Log(_) => {
                refuse_follow(plan)?;
                PlannedLoad::Log { tick: parse_tick(plan)? }
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

/// Checks the size and the duration of the load.
fn check_size(plan: &RunPlan, load: &Load) -> Result<(), RunError> {
    let clients = match load {
        Load::Closed { clients, .. } => *clients,
        Load::SClients { attempts } => *attempts,
        Load::Sessions(Sessions { session_arrivals: SessionArrivals::Closed { users, .. }, .. }) => *users,
        _ => 0,
    };
    if clients > MAX_CLIENTS {
        return bad_load(format!(
            "{clients} clients need too much memory: ask for at most {MAX_CLIENTS}, or for a --rate instead"
        ));
    }
    if plan.threads > MAX_THREADS {
        return bad_load(format!(
            "{} threads are more than any host has CPUs for: give --threads at most {MAX_THREADS}",
            plan.threads
        ));
    }
    if plan.threads == 0 {
        return bad_load("no threads make no load: give --threads at least 1");
    }
    if plan.window == Nanos::ZERO {
        return bad_load("a run of no length measures nothing: give --duration more than 0s");
    }
    if plan.calls == 0 {
        return bad_load("no requests make no load: give --requests at least 1");
    }
    Ok(())
}

/// Checks the rules that apply to the connections of every load.
fn check_connections(plan: &RunPlan) -> Result<(), RunError> {
    let policy = &plan.connections;
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
    let pipelines = policy.pipeline > 1 || plan.workload.sessions().is_some_and(|sessions| sessions.pipelined);
    if pipelines && plan.version != Version::Http2 && has_exclusive_bodies(plan) {
        return bad_load(
            "a request whose body comes from a file, or waits for 100 Continue, cannot share its connection: leave out \
             --pipeline, and pipelined = true under [load.sessions]",
        );
    }
    Ok(())
}

/// Checks that no flag contradicts the sessions of the workload.
fn check_sessions(plan: &RunPlan) -> Result<(), RunError> {
    // A list that is requested only once ends the load after its last URL, so the list determines the number of calls.
    if plan.calls < plan.workload.calls_listed_once().unwrap_or(u64::MAX) {
        return bad_load(
            "sessions end by themselves: leave out --requests, and give a --duration, or write how many there are, like \
             sessions = 100, under [load.sessions]",
        );
    }
    if plan.connections.calls_per_connection.is_some() {
        return bad_load(
            "the workload defines the connections of sessions: leave out --calls-per-connection and --new-connection, and \
             write between_bursts = \"close\" or connections = 1 under [load.sessions]",
        );
    }
    if plan.connections.pipeline > 1 && plan.version != Version::Http2 {
        return bad_load(
            "the workload defines how sessions use connections: leave out --pipeline, and write pipelined = true under \
             [load.sessions]",
        );
    }
    Ok(())
}

/// The number of clients that share a connection and call at the same time; `None` if each client has connections of
/// its own. HTTP/2 needs no bursts, because its streams do not wait for one another.
fn burst_size(plan: &RunPlan) -> Option<u32> {
    let policy = &plan.connections;
    let shares = policy.pipeline > 1 && policy.calls_per_connection != Some(1) && plan.version != Version::Http2;
    shares.then(|| u32::try_from(policy.pipeline).unwrap_or(u32::MAX))
}

fn parse_arrivals(plan: &RunPlan, load: &Load) -> Result<Arrivals, RunError> {
    match (load, &plan.trace) {
        (Load::Open { rate, arrivals }, _) => Ok(Arrivals::new(arrivals.parse()?, *rate, plan.seed)?),
        (Load::Stages { start, stages, arrivals }, _) => {
            Ok(Arrivals::stages(arrivals.parse()?, *start, stages, plan.seed)?)
        }
        (Load::Trace(named), Some(trace)) => Ok(Arrivals::trace(trace.clone(), Speed::new(named.speed)?)),
        (Load::Trace(named), None) => {
            bad_load(format!("the trace {} has not been read: give --arrivals trace:FILE", named.file))
        }
        _ => bad_load("this load has no schedule: give --rate, --stage or a trace"),
    }
}

fn parse_tick(plan: &RunPlan) -> Result<Option<Nanos>, RunError> {
    match plan.tick {
        Some(tick) if !TICKS.contains(&tick) => {
            bad_load("calls are late by up to one tick: give --tick between 100us and 10ms")
        }
        tick => Ok(tick),
    }
}

fn refuse_tick(plan: &RunPlan) -> Result<(), RunError> {
    match plan.tick {
        Some(_) => {
            bad_load("clients that wait for their answers have no schedule, so ticks do not apply: leave out --tick")
        }
        None => Ok(()),
    }
}

fn parse_follow(plan: &RunPlan) -> Result<Option<u64>, RunError> {
    let expects = plan.workload.classes.iter().any(|class| class.expect.is_some());
    match plan.max_redirects {
        Some(_) if expects => bad_load(
            "a class with `expect` checks its own responses, which are the redirects: leave out --follow, or leave out \
             expect and request the URL that the redirects lead to",
        ),
        follow => Ok(follow),
    }
}

fn refuse_follow(plan: &RunPlan) -> Result<(), RunError> {
    match plan.max_redirects {
        Some(_) => bad_load("S-Clients and replayed logs do not follow redirects: leave out --follow"),
        None => Ok(()),
    }
}

/// Whether a request has its connection for itself until its body is sent. This is the case if the body comes from a
/// file or waits for `100 Continue`.
fn has_exclusive_bodies(plan: &RunPlan) -> bool {
    let waits = |name: &str| name.eq_ignore_ascii_case("Expect");
    let class_has_one = |class: &RequestClass| {
        let targets = if class.differs_by_path_alone() { 1 } else { class.len() };
        let mut headers = (0..targets).flat_map(|place| class.target(place).headers);
        !class.body_file.is_empty() || headers.any(|(name, _)| waits(name))
    };
    plan.workload.classes.iter().any(class_has_one) || plan.headers.iter().any(|(name, _)| waits(name))
}

fn is_zero(spread: &Spread) -> bool {
    *spread == Spread::Constant(0.0)
}

fn bad_load<T>(message: impl Into<String>) -> Result<T, RunError> {
    Err(RunError::BadLoad(message.into()))
}
