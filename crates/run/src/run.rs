//! One load: workload, engine, observer and monitor put together, and what they saw as one [`Record`].

use crate::beside::{Beside, Looks};
use crate::stream::{self, Feed};
use crate::{RunError, RunPlan, Watched, stateful};
use brimful_core::counts::Counts;
use brimful_core::record::{Generator, Record, ShardOrigin};
use brimful_core::server::HostProbe;
use brimful_core::workload::Load;
use brimful_core::{Nanos, Observer};
use brimful_engine::Run;
use brimful_monitor::{Monitor, MonitorError, host};
use brimful_os::clock;
use brimful_os::cpus::pin_this_thread;
use brimful_stats::{Account, Collector, Detail, Facts, derive};
use brimful_workload::{Closed, ClosedBursts, Extent, Mix, Open, SClients, Shard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// Runs it, until it is done or `stop` is set.
///
/// # Errors
/// [`RunError`] when the run cannot be started; what happens to calls is in the Record.
pub fn run(plan: &RunPlan, stop: &AtomicBool) -> Result<Record, RunError> {
    unbeheld(plan, stop, true)
}

/// The same, for those who want to know more of it: what they look at is said by `looks`.
///
/// # Errors
/// As [`run`].
pub fn run_beheld(plan: &RunPlan, looks: &Looks, stop: &AtomicBool) -> Result<(Record, Option<Detail>), RunError> {
    let (record, beside) = beheld(plan, looks, stop, true)?;
    Ok((record, beside.into_detail()))
}

/// The same of a [`Load::Log`]: `feed` says which calls there are, while they are made.
///
/// # Errors
/// As [`run`], and when there is no call at all.
pub fn run_stream(plan: &RunPlan, feed: Feed<'_>, stop: &AtomicBool) -> Result<Record, RunError> {
    carry_out::<false, ()>(plan, Some(feed), stop, true, || ()).map(|(record, ())| record)
}

/// The same without a look at the host's speed, for several runs at once: it would fall into another's load.
pub(crate) fn run_beside_another(plan: &RunPlan, stop: &AtomicBool) -> Result<Record, RunError> {
    unbeheld(plan, stop, false)
}

/// Runs it where nobody looks on. What is stateful or by TLS has no copy of the engine for that: an observer who has
/// nothing to look at costs a look at that for each event, and a copy for each kind of I/O is large.
fn unbeheld(plan: &RunPlan, stop: &AtomicBool, probe: bool) -> Result<Record, RunError> {
    let is_log = matches!(plan.load()?, Load::Log(_));
    if !is_log && (plan.is_stateful()? || plan.tls.is_some()) {
        return beheld(plan, &Looks::default(), stop, probe).map(|(record, _)| record);
    }
    carry_out::<false, ()>(plan, None, stop, probe, || ()).map(|(record, ())| record)
}

fn beheld(plan: &RunPlan, looks: &Looks, stop: &AtomicBool, probe: bool) -> Result<(Record, Beside), RunError> {
    carry_out::<true, Beside>(plan, None, stop, probe, || Beside::new(looks, plan.window))
}

/// Runs it, with another observer of each shard `beside` the collector. Where somebody looks on, there is one copy of the
/// engine for all loads.
fn carry_out<const LOOKED_ON: bool, B: Observer + Send>(
    plan: &RunPlan,
    feed: Option<Feed<'_>>,
    stop: &AtomicBool,
    probe: bool,
    beside: impl Fn() -> B,
) -> Result<(Record, B), RunError> {
    plan.validate()?;
    let (mut config, requests) = (plan.engine_config(), plan.requests()?);
    let extent = Extent { window: plan.window, calls: plan.calls };
    let names: Vec<String> = plan.workload.classes.iter().map(|class| class.name.clone()).collect();
    let window = plan.planned_window()?;
    let ends_with_its_last_call = plan.ends_with_its_last_call()?;
    if let Some(at) = plan.start_at {
        wait_until_shortly_before(at, stop);
    }
    if let Some(live) = &plan.live {
        live.restart();
    }
    let has_sessions = matches!(plan.load()?, Load::Sessions(_));
    let account = || {
        let account = Account::new(&names, window).in_intervals(plan.interval);
        let account = if has_sessions { account.of_sessions() } else { account };
        let account = if plan.follow.is_some() { account.of_redirects() } else { account };
        if plan.tls.is_some() { account.of_tls() } else { account }
    };
    let collector = || match (&plan.keeper, &plan.live) {
        (Some(keeper), _) => (Collector::kept(account(), keeper, account()), beside()),
        (None, Some(live)) => (Collector::shown(account(), live), beside()),
        (None, None) => (Collector::new(account()), beside()),
    };
    let host_probe = if probe { probe_host(&plan.cpus, has_sessions) } else { None };
    let monitor = plan.monitor.as_ref().map(Watched::start).transpose()?;
    // Who is stopped while waiting for it does not wait on.
    let agreed = plan.start_at.filter(|_| !stop.load(Ordering::Relaxed)).map(clock::of_wall);
    config.start = agreed.unwrap_or(Nanos::ZERO);
    let anchor = clock::Anchor::now();
    // Workloads that draw classes as calls end have orders of their own.
    let mix = if matches!(plan.load()?, Load::Log(_)) { None } else { Some(Mix::of(&plan.workload, plan.seed)?) };
    let shard_mix = |shard: Shard| {
        let mix = mix.clone().ok_or_else(|| RunError::BadLoad("a log has no mix".to_owned()))?;
        Ok::<Mix, RunError>(mix.of_shard(shard, plan.seed))
    };
    let shards = || plan.shards();
    let run = if LOOKED_ON {
        let mix = mix.clone().ok_or_else(|| RunError::BadLoad("a log has no mix".to_owned()))?;
        stateful::drive(plan, &config, &requests, (&mix, extent), collector, stop)?
    } else {
        match *plan.load()? {
            Load::Closed { clients, think } if plan.calls_in_bursts() => {
                let bursts = |shard| {
                    let bursts = ClosedBursts::new(clients, plan.burst_size(), think, shard_mix(shard)?, extent, shard);
                    Ok((bursts.seeded(plan.seed), &requests, collector()))
                };
                let shards = shards().map(bursts).collect::<Result<_, RunError>>()?;
                brimful_engine::run_plain(&config, shards, stop)?
            }
            Load::Closed { clients, think } => {
                let closed = |shard| {
                    let closed = Closed::new(clients, think, shard_mix(shard)?, extent, shard);
                    Ok((closed.seeded(plan.seed, shard), &requests, collector()))
                };
                let shards = shards().map(closed).collect::<Result<_, RunError>>()?;
                brimful_engine::run_plain(&config, shards, stop)?
            }
            Load::SClients { attempts } => {
                let timeout = plan.connections.connect_timeout.unwrap_or(plan.connections.response_timeout);
                let s_clients = |shard| {
                    Ok((SClients::new(attempts, timeout, shard_mix(shard)?, extent, shard), &requests, collector()))
                };
                let shards = shards().map(s_clients).collect::<Result<_, RunError>>()?;
                brimful_engine::run_plain(&config, shards, stop)?
            }
            Load::Log(_) => {
                let unread = || RunError::BadLoad("a log's requests are made by `brimful replay`".to_owned());
                stream::drive(plan, &config, feed.ok_or_else(unread)?, collector, stop)?
            }
            Load::Open { .. } | Load::Stages { .. } | Load::Trace(_) | Load::Sessions(_) => {
                let (arrivals, mix) = (plan.arrivals()?, Mix::of(&plan.workload, plan.seed)?);
                let open = |shard| (Open::new(arrivals.clone(), mix.clone(), extent, shard), &requests, collector());
                brimful_engine::run_plain(&config, shards().map(open).collect(), stop)?
            }
        }
    };
    // Load was offered until then.
    let window = if run.interrupted || ends_with_its_last_call { window.min(run.duration) } else { window };
    plan.record(run, (window, anchor), agreed, monitor, host_probe)
}

/// How fast this host is before the load: on the CPU of the first shard, if that is kept on one. Only `once`, its 16 MiB are
/// given back: sessions by the thousand are to take less.
fn probe_host(cpus: &[usize], once: bool) -> Option<HostProbe> {
    let probe = || if once { host::Prober::new().measure() } else { host::probe() };
    // On a thread of its own, as the caller's is not to be moved.
    let measure = || cpus.first().is_none_or(|&cpu| pin_this_thread(cpu).is_ok()).then(probe);
    thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, measure).ok()?.join().ok()?)
}

/// Sleeps until there is just time enough to get ready, or until `stop` is set: then the start is over.
fn wait_until_shortly_before(at: SystemTime, stop: &AtomicBool) {
    const GET_READY: Duration = Duration::from_secs(2);
    const LOOK: Duration = Duration::from_millis(50);
    while let Some(left) = at.duration_since(SystemTime::now()).ok().and_then(|left| left.checked_sub(GET_READY))
        && !stop.load(Ordering::Relaxed)
    {
        thread::sleep(left.min(LOOK));
    }
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

impl Watched {
    /// Begins to watch.
    ///
    /// # Errors
    /// What the monitor has to say against it.
    pub fn start(&self) -> Result<Monitor, MonitorError> {
        match self {
            Watched::Here(config) => Monitor::start(config.clone()),
            Watched::There(config) => Monitor::connect(config),
        }
    }
}

impl RunPlan {
    fn record<B>(
        &self,
        run: Run<(Collector, B)>,
        (window, anchor): (Nanos, clock::Anchor),
        agreed: Option<Nanos>,
        monitor: Option<Monitor>,
        host_probe: Option<HostProbe>,
    ) -> Result<(Record, B), RunError> {
        let epoch = Nanos(run.started_monotonic_ns);
        let server = monitor.map(|monitor| monitor.finish(epoch, Some((epoch, epoch + window))));
        let split = run.cpu.split();
        let generator = Generator {
            cpu_s: Some(run.cpu.total.as_secs_f64()),
            cpu_user_s: split.map(|(user, _)| user.as_secs_f64()),
            cpu_system_s: split.map(|(_, system)| system.as_secs_f64()),
            busy: run.busy,
            longest_gap_s: Some(run.longest_gap.as_secs_f64()),
            threads: self.threads,
            max_open_connections: run.max_open_connections,
            engine: run.engine.to_owned(),
            tick_s: self.tick.map(Nanos::as_secs_f64),
            max_rate: self.client_max,
            host: run.host,
            host_probe,
            panics: run.panics,
            body_error: run.body_error,
        };
        let (collector, beside) = run.observer;
        let account = collector.into_account();
        let account = match &self.keeper {
            Some(keeper) => keeper.complete(account)?,
            None => account,
        };
        let offset_us = agreed.map(|agreed| (epoch - agreed).as_micros_f64());
        let facts = Facts {
            started_at: self.by_the_fleets_clock(anchor.wall(epoch)),
            started_monotonic_ns: run.started_monotonic_ns,
            duration: run.duration,
            window,
            command: self.command.clone(),
            target: self.endpoint.url.clone(),
            workload: Some(self.workload.clone().without_secrets(&self.secret_headers)),
            seed: self.seed,
            interrupted: run.interrupted,
            tls: self.tls_spoken.clone(),
            wants_tls: self.wants_tls(&account.counts()),
            http: Some(self.http().to_owned()),
            generator,
            server,
            shards: self.origin().map(|origin| ShardOrigin { offset_us, ..origin }).into_iter().collect(),
        };
        Ok((derive(&account, facts), beside))
    }

    /// Whether what became of plain calls is what a server makes of them that wants TLS, and it does.
    fn wants_tls(&self, counts: &Counts) -> bool {
        /// Nobody waits longer for what is only a hint.
        const PATIENCE: Nanos = Nanos::from_secs(1);
        let Counts { completed, malformed, reset, ref status, .. } = *counts;
        let looks_like_it = if completed > 0 { status.s4xx == completed } else { malformed + reset > 0 };
        looks_like_it && !self.endpoint.is_secure && self.endpoint.speaks_tls(PATIENCE)
    }

    /// Which part of a load this is, and where it is made.
    pub(crate) fn origin(&self) -> Option<ShardOrigin> {
        self.shard.map(|shard| ShardOrigin {
            index: shard.index + 1,
            of: shard.count,
            host: host_name(),
            clock_ahead_us: self.clock.map(|clock| clock.ahead_ns as f64 / 1e3),
            clock_error_us: self.clock.map(|clock| clock.error.as_micros_f64()),
            ..ShardOrigin::default()
        })
    }

    /// An instant of this host's clock as documents have it.
    pub(crate) fn by_the_fleets_clock(&self, here: SystemTime) -> String {
        let instant = self.clock.map_or(Some(here), |clock| clock.in_fleet(here)).unwrap_or(here);
        humantime::format_rfc3339_micros(instant).to_string()
    }
}
