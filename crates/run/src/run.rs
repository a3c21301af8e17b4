//! Runs one plan: generates its load with the engine, observes the calls, monitors the server, and derives one
//! [`Record`] from all results.

use crate::observer::{ResultsSoFar, RunObserver, ShardObserver};
use crate::plan::PlannedLoad;
use crate::record::{self, RunContext, RunOutput};
use crate::shard::SharedLoad;
use crate::stream::{self, Feed};
use crate::{MonitorTarget, RunError, RunOptions, RunPlan};
use brimful_core::Nanos;
use brimful_core::record::Record;
use brimful_core::server::HostProbe;
use brimful_monitor::host;
use brimful_os::clock;
use brimful_os::cpus::pin_this_thread;
use brimful_stats::{Account, Collector};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// Runs the load of a plan until it ends or `stop` is set.
///
/// # Errors
/// [`RunError`] if the run cannot be started. A failed call is not an error: it is counted in the Record.
pub fn run(plan: &RunPlan, observer: &RunObserver, stop: &AtomicBool) -> Result<RunOutput, RunError> {
    execute(plan, None, observer, Probing::ProbeHost, stop)
}

/// Replays a log ([`brimful_core::workload::Load::Log`]), whose calls `feed` reads during the run.
///
/// # Errors
/// The errors of [`run`]; also if `feed` reads no call at all.
pub fn run_log(
    plan: &RunPlan,
    feed: Feed<'_>,
    observer: &RunObserver,
    stop: &AtomicBool,
) -> Result<RunOutput, RunError> {
    execute(plan, Some(feed), observer, Probing::ProbeHost, stop)
}

/// Runs a plan without measuring the host's speed first, which would disturb other runs at the same time.
pub(crate) fn run_unprobed(plan: &RunPlan, observer: &RunObserver, stop: &AtomicBool) -> Result<Record, RunError> {
    execute(plan, None, observer, Probing::SkipProbe, stop).map(|output| output.record)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Probing {
    ProbeHost,
    SkipProbe,
}

fn execute(
    plan: &RunPlan,
    feed: Option<Feed<'_>>,
    observer: &RunObserver,
    probing: Probing,
    stop: &AtomicBool,
) -> Result<RunOutput, RunError> {
    let options = plan.options();
    let mut config = plan.engine_config();
    let shared = SharedLoad::new(plan)?;
    let window = plan.planned_window();
    let agreed_start = options.fleet.start.map(|start| start.at);
    if let Some(start) = agreed_start {
        wait_until_shortly_before(start, stop);
    }
    if let ResultsSoFar::Shown(live) = &observer.results_so_far {
        live.restart();
    }
    let host_probe = (probing == Probing::ProbeHost).then(|| probe_host(options)).flatten();
    let monitor = options.monitor.as_ref().map(MonitorTarget::start).transpose()?;
    // If the user has stopped the run before the agreed start, the engine must not wait for that start.
    let agreed_start = agreed_start.filter(|_| !stop.load(Ordering::Relaxed)).map(clock::monotonic_at);
    config.start = agreed_start.unwrap_or(Nanos::ZERO);
    let anchor = clock::ClockAnchor::now();
    let new_observers =
        || (new_collector(options, observer, window), ShardObserver::new(observer, options.load.window));
    let drive = |stop: &AtomicBool| match (plan.load(), feed) {
        (PlannedLoad::Log { .. }, Some(feed)) => stream::drive(plan, &config, feed, new_observers, stop),
        _ => {
            let new_shard = |shard| Ok((shared.load(shard)?, shared.requests(), new_observers()));
            let shards = plan.shards().map(new_shard).collect::<Result<_, RunError>>()?;
            Ok(brimful_engine::run(&config, shards, stop)?)
        }
    };
    let run = match &observer.stop_when {
        Some(conditions) => conditions.watch_during(stop, drive).map_err(RunError::StopThread)??,
        None => drive(stop)?,
    };
    let stopped_by = observer.stop_when.as_ref().and_then(|conditions| conditions.met_condition()).map(str::to_owned);
    let may_end_early = run.interrupted || plan.ends_with_last_call();
    let window = if may_end_early { window.min(run.duration) } else { window };
    let start = Nanos(run.started_monotonic_ns);
    let server = monitor.map(|monitor| monitor.finish(start, Some((start, start + window))));
    record::finish(options, observer, run, RunContext { window, anchor, agreed_start, stopped_by, server, host_probe })
}

/// Creates the observer that collects the metrics of the Record in one shard.
fn new_collector(options: &RunOptions, observer: &RunObserver, window: Nanos) -> Collector {
    let RunOptions { server, load, record, .. } = options;
    let names: Vec<String> = load.workload.classes.iter().map(|class| class.name.clone()).collect();
    let new_account = || {
        let mut account = Account::new(&names, window).with_interval_length(record.interval);
        if load.workload.sessions().is_some() {
            account = account.with_sessions();
        }
        if load.max_redirects.is_some() {
            account = account.with_redirects();
        }
        if server.tls.is_some() {
            account = account.with_tls();
        }
        account
    };
    match &observer.results_so_far {
        ResultsSoFar::Unused => Collector::new(new_account()),
        ResultsSoFar::Shown(live) => Collector::with_live(new_account(), live),
        ResultsSoFar::Kept(backup) => Collector::with_result_backup(new_account(), backup, new_account()),
    }
}

/// Measures the speed of this host before the load, on the CPU of the first shard if it is pinned.
fn probe_host(options: &RunOptions) -> Option<HostProbe> {
    // For a load of sessions, uses a function that frees its memory: `host::probe` would keep 16 MiB, which would count
    // as memory of the sessions.
    let has_sessions = options.load.workload.sessions().is_some();
    let probe = || if has_sessions { host::SpeedProbe::new().measure() } else { host::probe() };
    let measure = || options.generator.cpus.first().is_none_or(|&cpu| pin_this_thread(cpu).is_ok()).then(probe);
    // Uses another thread, because the measurement pins its thread to a CPU.
    thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, measure).ok()?.join().ok()?)
}

/// Sleeps until shortly before the start, which leaves time to prepare the run. Returns early once `stop` is set.
fn wait_until_shortly_before(start: SystemTime, stop: &AtomicBool) {
    const PREPARATION: Duration = Duration::from_secs(2);
    const STOP_CHECK: Duration = Duration::from_millis(50);
    while let Some(left) = start.duration_since(SystemTime::now()).ok().and_then(|left| left.checked_sub(PREPARATION))
        && !stop.load(Ordering::Relaxed)
    {
        thread::sleep(left.min(STOP_CHECK));
    }
}
