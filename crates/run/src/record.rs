//! Derives the Record (the result document) of a run: the final one, or one of the results so far, which is used if the
//! process is killed.

use crate::observer::Observers;
use crate::{Endpoint, FleetOptions, ResultsSoFar, RunError, RunObserver, RunOptions, RunPlan};
use brimful_core::Nanos;
use brimful_core::counts::Counts;
use brimful_core::record::{Generator, Record, ShardOrigin};
use brimful_core::server::{HostProbe, Server};
use brimful_engine::Run;
use brimful_http::Version;
use brimful_os::clock;
use brimful_os::machine::{host_name, this_machine};
use brimful_stats::{Account, ConnectionDetail, ResultBackup, RunFacts, derive};
use std::time::{Duration, SystemTime};

/// The result of a run: its Record, and optional metrics.
#[derive(Debug)]
pub struct RunOutput {
    /// The result document of the run.
    pub record: Record,
    /// Metrics of connections and sessions; `None` unless [`crate::RunObserver::detail`] is set.
    pub detail: Option<ConnectionDetail>,
}

/// Facts about a finished run that the engine does not know.
pub(crate) struct RunContext {
    /// The time for which load was generated.
    pub window: Nanos,
    /// The wall clock and `CLOCK_MONOTONIC` at the same instant before the start, for conversion between them.
    pub anchor: clock::ClockAnchor,
    /// The start time that the hosts of a fleet agreed on, on `CLOCK_MONOTONIC`; `None` without a fleet.
    pub agreed_start: Option<Nanos>,
    /// The condition of `--stop-when` that ended the run, if any.
    pub stopped_by: Option<String>,
    /// The monitor's measurements of the server; `None` if no server was monitored.
    pub server: Option<Server>,
    /// Speed of this host, measured before the load; `None` if it was not measured.
    pub host_probe: Option<HostProbe>,
}

/// Derives the Record of a finished run.
pub(crate) fn finish(
    options: &RunOptions,
    observer: &RunObserver,
    run: Run<Observers>,
    context: RunContext,
) -> Result<RunOutput, RunError> {
    let (collector, shard_observer) = run.observer;
    let account = match &observer.results_so_far {
        ResultsSoFar::Kept(backup) => backup.complete(collector.into_account())?,
        ResultsSoFar::Unused | ResultsSoFar::Shown(_) => collector.into_account(),
    };
    let start = Nanos(run.started_monotonic_ns);
    let cpu_split = run.cpu.user_and_system();
    let mut facts = RunFacts {
        started_at: fleet_timestamp(options, context.anchor.wall_time(start)),
        started_monotonic_ns: run.started_monotonic_ns,
        duration: run.duration,
        window: context.window,
        interrupted: run.interrupted && context.stopped_by.is_none(),
        stopped_by: context.stopped_by,
        wants_tls: wants_tls(&options.server.endpoint, &account.counts()),
        server: context.server,
        server_software: shard_observer.server_software(),
        ..planned_facts(options)
    };
    facts.generator = Generator {
        cpu_s: Some(run.cpu.total.as_secs_f64()),
        cpu_user_s: cpu_split.map(|(user, _)| user.as_secs_f64()),
        cpu_system_s: cpu_split.map(|(_, system)| system.as_secs_f64()),
        busy: run.busy_share,
        longest_gap_s: Some(run.longest_gap.as_secs_f64()),
        max_open_connections: run.max_open_connections,
        engine: run.engine.to_owned(),
        host: run.host,
        host_probe: context.host_probe,
        panics: run.panics,
        body_error: run.body_error,
        ..facts.generator
    };
    for shard in &mut facts.shards {
        shard.offset_us = context.agreed_start.map(|agreed| (start - agreed).as_micros_f64());
    }
    Ok(RunOutput { record: derive(&account, facts), detail: shard_observer.into_detail() })
}

/// Derives the Record of the results so far, which is used if this process is killed. In a fleet, it contains the time
/// when this process was lost; otherwise, it is marked as interrupted. Values that are known only at the end of a run
/// are absent. Returns `None` if there are no results yet.
pub fn partial_record(plan: &RunPlan, backup: &ResultBackup) -> Option<Record> {
    // `collect` requests the results of all shards, and waits for them.
    backup.collect().ok()?;
    backup.read_partial(|account, elapsed| lost_record(plan.options(), account, elapsed))?
}

fn lost_record(options: &RunOptions, account: &Account, elapsed: Nanos) -> Option<Record> {
    let agreed_start = options.fleet.start.map(|start| start.at);
    let started = agreed_start.or(SystemTime::now().checked_sub(Duration::from_nanos(elapsed.0)))?;
    let mut facts = RunFacts {
        started_at: fleet_timestamp(options, started),
        started_monotonic_ns: clock::monotonic_at(started).0,
        duration: elapsed,
        window: elapsed.min(options.load.window),
        ..planned_facts(options)
    };
    // For a shard of a fleet, the field `lost_at_s` reports the interruption instead.
    facts.interrupted = facts.shards.is_empty();
    for shard in &mut facts.shards {
        shard.lost_at_s = Some(elapsed.as_secs_f64());
    }
    Some(derive(account, facts))
}

/// The facts about a run that are known before it starts.
fn planned_facts(options: &RunOptions) -> RunFacts {
    let RunOptions { server, load, generator, record, .. } = options;
    RunFacts {
        brimful_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        command: record.command.clone(),
        labels: record.labels.clone(),
        machine: Some(this_machine()),
        target: server.endpoint.url.clone(),
        workload: Some(load.workload.clone().without_secrets(&record.secret_headers)),
        seed: load.seed,
        tls: server.tls.as_ref().and_then(|tls| tls.negotiated.clone()),
        http: Some(version_number(server.version).to_owned()),
        generator: Generator {
            threads: generator.threads,
            tick_s: load.tick.map(Nanos::as_secs_f64),
            max_rate: generator.max_rate,
            ..Generator::default()
        },
        shards: shard_origin(options.fleet).into_iter().collect(),
        ..RunFacts::default()
    }
}

/// Describes this process as a shard of a fleet: its number, its host and its clock. Returns `None` if this process
/// generates the whole load.
fn shard_origin(fleet: FleetOptions) -> Option<ShardOrigin> {
    fleet.shard.map(|shard| ShardOrigin {
        index: shard.index + 1,
        total: shard.count,
        host: host_name(),
        clock_ahead_us: fleet.clock().map(|clock| clock.ahead_ns as f64 / 1e3),
        clock_error_us: fleet.clock().map(|clock| clock.error.as_micros_f64()),
        ..ShardOrigin::default()
    })
}

/// Formats a time of this host's clock. In a fleet, converts it to the fleet's clock first.
fn fleet_timestamp(options: &RunOptions, local: SystemTime) -> String {
    let instant = options.fleet.clock().map_or(Some(local), |clock| clock.to_fleet(local)).unwrap_or(local);
    humantime::format_rfc3339_micros(instant).to_string()
}

/// Whether the server probably requires TLS: calls without TLS failed in a way that is typical of such a server, and a
/// TLS handshake with the server succeeds now.
fn wants_tls(endpoint: &Endpoint, counts: &Counts) -> bool {
    /// Maximum duration of the handshake. It is short, because its result only determines a hint to the user.
    const PATIENCE: Nanos = Nanos::from_secs(1);
    let looks_like_it = match counts.completed {
        0 => counts.malformed + counts.reset > 0,
        completed => counts.status.s4xx == completed,
    };
    looks_like_it && !endpoint.is_secure && endpoint.speaks_tls(PATIENCE)
}

fn version_number(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2",
    }
}
