//! `brimful load`: generates one load, and prints its Record or writes it to files.

pub mod args;
mod choosers;
mod keep;
mod levels;
mod repeat;
mod sessions;
mod sweep;
mod trace;

use crate::exit::{Exit, UsageError};
use crate::flags::values::{Arrivals, MaxConnections};
use crate::output::{LinesFile, OutFile, deliver, first_failure, print_note};
use crate::progress;
use crate::remote::remote_config;
use crate::results::{deliver_record, drop_details, write_record_page};
use crate::run_options::{DEFAULT_DURATION, run_options};
use args::{DistributedLoadArgs, LoadArgs, MonitorArgs};
use brimful_core::quantity;
use brimful_core::record::Record;
use brimful_core::text::strip_bom_bytes;
use brimful_core::workload::{self, AttemptPace, Load, LoadKind, Stage, Workload};
use brimful_core::{Bytes, Nanos, Rate};
use brimful_engine::Address;
use brimful_monitor::{MonitorConfig, ProcessSelector, RemoteConfig, socket_owners};
use brimful_run::{
    AgreedStart, Endpoint, FleetOptions, LoadOptions, MAX_WARM_UP, MonitorTarget, RunObserver, RunOptions, RunPlan,
    StopConditions, client_limit, run, warm_up,
};
use brimful_stats::{check_objectives, judge_objectives};
use brimful_workload::{ArrivalProcess, Speed, Trace};
use keep::PartialRecordFile;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use trace::CallTrace;

/// Number of clients of a closed loop if no flag and no workload defines the load.
const DEFAULT_CLIENTS: u64 = 10;

/// Generates the load, and prints its Record or writes it to the file of `--out`.
pub fn main(args: &LoadArgs) -> anyhow::Result<Exit> {
    let mut options = options(args)?;
    let workload = &mut options.load.workload;
    let limit_only = wants_client_limit_only(args, workload)?;
    if limit_only && args.record_to.is_some() {
        let message = "--record-to appends a run, but --calibrate alone makes none: define a load, like --rate";
        return Err(UsageError(message.to_owned()).into());
    }
    if limit_only {
        // The client's limit depends on the kind of load. If no flag defines a load, the limit is measured for an open
        // loop.
        workload.load.get_or_insert_with(|| Load::poisson(Rate(client_limit::START_RATE)));
    }
    let plan = RunPlan::new(options)?;
    let workload = &plan.options().load.workload;
    let classes: Vec<&str> = workload.classes.iter().map(|class| class.name.as_str()).collect();
    check_objectives(&classes, &args.slo)?;
    let stop_when = stop_conditions(args, workload)?;
    if let Some(levels) = args.sweep.levels() {
        return sweep::main(args, &plan, levels);
    }
    if let Some(repetitions) = args.repeat {
        return repeat::main(args, &plan, repetitions);
    }
    let out = OutFile::create_optional(args.output.out.as_deref(), "--out")?;
    let html = OutFile::create_optional(args.html.as_deref(), "--html")?;
    let history = LinesFile::open_optional(args.record_to.as_deref(), "--record-to")?;
    let hdr = args.hdr.open()?;
    let kept = args.distributed.keep.as_deref().map(PartialRecordFile::create).transpose()?;
    let stop = progress::stop_flag()?;
    if args.distributed.until_stdin_ends {
        keep::stop_when_stdin_ends(&stop)?;
    }
    let found = args.calibrate.then(|| find_client_limit(plan.options(), args.output.quiet, &stop)).transpose()?;
    if let Some(record) = found.as_ref().filter(|_| limit_only) {
        let delivered = deliver_client_limit(record, args, out);
        return first_failure(
            delivered,
            [hdr.map_or(Ok(()), |file| file.write(record)), write_record_page(record, html)],
        );
    }
    let limit = found.as_ref().and_then(|record| record.generator.max_rate);
    let plan = plan.with_max_rate(limit.or(args.distributed.client_max.map(|max| max.0)));
    let warm_up_s = warmed_up(args, &plan, &stop)?;
    let trace = CallTrace::new(&args.tracing, plan.options())?;
    let observer = RunObserver { stop_when, ..trace.observer() };
    let load = |observer: &RunObserver| run(&plan, observer, &stop).map(|output| output.record);
    let mut record = match &kept {
        Some(kept) => kept.write_during_run(&plan, observer, load),
        None => progress::run_with_bar("load", plan.options().load.window, args.output.quiet, observer, load),
    }?;
    let judged = judge_objectives(&record, &args.slo).map(|objectives| record.objectives = objectives);
    record.warm_up_s = warm_up_s;
    record.calibration = found.and_then(|record| record.calibration);
    // The Record is the main result, so it is printed and written before all other outputs.
    let delivered = deliver_record(&record, &args.output, args.detail, out);
    let others = [
        judged.map_err(anyhow::Error::from),
        kept.as_ref().map_or(Ok(()), |kept| kept.write(&record)),
        history.map_or(Ok(()), |file| append_record(file, &record)),
        trace.finish(),
        hdr.map_or(Ok(()), |file| file.write(&record)),
        write_record_page(&record, html),
    ];
    first_failure(delivered, others)
}

/// Appends the Record to the file of `--record-to`.
fn append_record(file: LinesFile, record: &Record) -> anyhow::Result<()> {
    let mut record = record.clone();
    drop_details(&mut record);
    file.append(&record)
}

/// The conditions of `--stop-when`; `None` if there are none.
fn stop_conditions(args: &LoadArgs, workload: &Workload) -> Result<Option<Arc<StopConditions>>, UsageError> {
    let conditions = Some(&args.stop_when).filter(|conditions| !conditions.is_empty());
    let conditions = conditions.map(|conditions| StopConditions::new(conditions, workload).map_err(UsageError));
    Ok(conditions.transpose()?.map(Arc::new))
}

/// Warms the server up as `--warm-up` requests. Returns the length of the warm-up in seconds; `None` without one.
fn warmed_up(args: &LoadArgs, plan: &RunPlan, stop: &AtomicBool) -> anyhow::Result<Option<f64>> {
    let Some(kind) = args.warm_up else { return Ok(None) };
    let live = Arc::default();
    let shown = progress::is_shown(MAX_WARM_UP, args.output.quiet).then_some(&*live);
    let load = || warm_up(plan, kind, &live, stop);
    let outcome = progress::with_progress_bar("warm-up", kind.max_length(), shown, load)?;
    if !outcome.is_steady && !stop.load(Ordering::Relaxed) {
        let length = outcome.length.to_rounded_string();
        print_note(&format!(
            "response times still changed after a warm-up of {length}; give a longer one, like --warm-up 5m"
        ));
    }
    Ok(Some(outcome.length.as_secs_f64()))
}

/// If no flag defines a load, prints which load is generated.
fn say_default_load(load: &LoadOptions) {
    let until = match load.calls {
        u64::MAX => format!("for {}", load.window.to_rounded_string()),
        calls => format!("until {} calls are made", quantity::count(calls)),
    };
    print_note(&format!(
        "no load is defined, so {DEFAULT_CLIENTS} clients call, each waiting for a response before its next call, {until} \
         (--clients N); --rate N makes N calls per second, whatever the server does"
    ));
}

/// Whether only the client's limit is measured, and no load is generated.
fn wants_client_limit_only(args: &LoadArgs, workload: &Workload) -> Result<bool, UsageError> {
    match (args.calibrate && workload.load.is_none(), args.distributed.client_limit_only) {
        (true, true) => Err(UsageError(
            "a fleet measures its hosts' limits for a given load: define one, like --rate; `brimful load URL --calibrate` \
             measures one host without a load"
                .to_owned(),
        )),
        (no_load, only) => Ok(no_load || only),
    }
}

/// Measures the highest load that this client can generate, for loads of the kind of `like`.
fn find_client_limit(like: &RunOptions, quiet: bool, stop: &AtomicBool) -> anyhow::Result<Record> {
    let note = |text: String| {
        if !quiet {
            print_note(&text);
        }
    };
    note(format!(
        "measuring the highest load that this client can generate ({})",
        client_limit::typical_duration(None).to_rounded_string()
    ));
    // S-Clients (Banga & Druschel 1997) abandon connection attempts, so their limit is measured with attempts that get
    // no response.
    let response = if like.load.is_s_clients() { Bytes(0) } else { client_limit::response_size(like, stop)? };
    Ok(client_limit::measure(like, response, None, None, stop, &mut |text| note(format!("  {text}")))?)
}

fn deliver_client_limit(record: &Record, args: &LoadArgs, out: Option<OutFile>) -> anyhow::Result<Exit> {
    let json = brimful_report::json::record(record)?;
    let text = || record.calibration.as_ref().map(brimful_report::load::client_limit).unwrap_or_default();
    deliver(out, &json, &if args.output.json { json.clone() } else { text() })?;
    Ok(match record.generator.max_rate {
        _ if record.interrupted => Exit::Interrupted,
        Some(_) => Exit::Ok,
        None => Exit::GeneratorLimit,
    })
}

fn options(args: &LoadArgs) -> anyhow::Result<RunOptions> {
    let fleet = fleet_options(&args.distributed)?;
    let (load, trace) = load(args)?;
    let mut options = run_options(&args.url, &args.request)?;
    if args.request.workload.is_none() {
        args.call.apply(&mut options.load.workload.classes[0]);
    }
    args.choosers.apply(&mut options)?;
    let is_default_load = apply_load(args, load, trace, &mut options.load)?;
    // Clients of a closed loop have no default time limit for connection attempts, because the kernel retries these.
    // With a short time limit, they would keep abandoning attempts and making new ones, like S-Clients.
    if matches!(options.load.workload.load, Some(Load::Closed { .. })) {
        options.server.connections.connect_timeout = args.request.connections.connect_timeout;
    }
    let parts = fleet.shard.map_or(1, |shard| shard.count);
    options.server.connections.warm_connections = args.distributed.warm_connections.div_ceil(parts);
    options.server.connections.max_per_shard = max_per_shard(args, &options, parts)?;
    options.fleet = fleet;
    options.monitor = watched(&args.monitor, &options.server.endpoint)?;
    options.record.interval = args.distributed.interval;
    if is_default_load && !args.output.quiet {
        say_default_load(&options.load);
    }
    Ok(options)
}

fn fleet_options(args: &DistributedLoadArgs) -> Result<FleetOptions, UsageError> {
    let clock = args.clock_ahead;
    let to_local = |at| clock.map_or(Some(at), |clock| clock.to_local(at));
    let start = args.start_at.and_then(to_local).map(|at| AgreedStart { at, clock });
    if start.is_some_and(|start| start.at <= SystemTime::now()) {
        let message = "the instant of --start-at has passed: give all shards one that is some seconds in the future";
        return Err(UsageError(message.to_owned()));
    }
    Ok(FleetOptions { shard: args.shard, start })
}

/// Applies the flags that define the load. Returns whether no flag and no workload defines it.
fn apply_load(
    args: &LoadArgs,
    load: Option<Load>,
    trace: Option<Trace>,
    options: &mut LoadOptions,
) -> anyhow::Result<bool> {
    let workload = &mut options.workload;
    options.trace = trace;
    if load.is_some() {
        workload.load = load;
    } else if let Some(Load::Trace(named)) = workload.load.as_ref().map(Load::schedule) {
        options.trace = Some(read_trace(Path::new(&named.file))?);
    }
    args.sessions.apply(workload, &args.arrivals)?;
    let is_paced = has_arrival_process(args) || args.tick.is_some();
    let is_default_load = workload.load.is_none() && !is_paced && !args.calibrate;
    if is_default_load {
        workload.load = Some(Load::Closed { clients: DEFAULT_CLIENTS, think: args.think });
    }
    let scheduled = match (workload.load.as_ref().map(Load::schedule), &options.trace) {
        (Some(Load::Stages { stages, .. }), _) => Some(Stage::total_duration(stages)),
        (Some(Load::Trace(named)), Some(trace)) => Some(trace.window(Speed::new(named.speed)?)),
        _ => None,
    };
    let listed = workload.list_call_limit().unwrap_or(u64::MAX);
    options.calls = args.requests.map_or(u64::MAX, |count| count.0).min(listed);
    let is_counted = options.calls < u64::MAX;
    // If the number of sessions is limited, the run ends with the last session and needs no duration.
    let sessions_are_counted = workload.sessions().is_some_and(|sessions| sessions.max_sessions.is_some());
    let default = if is_counted || sessions_are_counted { Nanos::MAX } else { DEFAULT_DURATION };
    options.window = args.duration.or(scheduled).unwrap_or(default);
    options.tick = args.tick;
    options.max_redirects = args.call.follow.map(|count| count.0);
    Ok(is_default_load)
}

/// Maximum number of connections of one thread: `--max-connections` divided by the number of threads of all shards.
/// `parts` is the number of shards (the processes that together generate the load).
fn max_per_shard(args: &LoadArgs, options: &RunOptions, parts: u64) -> anyhow::Result<Option<u64>> {
    let Some(MaxConnections::AtMost(most)) = args.max_connections else { return Ok(None) };
    let workload = &options.load.workload;
    let is_open = workload.load.as_ref().is_none_or(|load| load.kind() == LoadKind::Open);
    if !is_open || workload.sessions().is_some() {
        let message = "--max-connections is for open loops (--rate): clients and sessions have their own connections";
        return Err(UsageError(message.to_owned()).into());
    }
    let threads = parts.saturating_mul(options.generator.threads);
    if most < threads {
        let message =
            format!("--max-connections {most} is less than one for each of {threads} threads: use fewer threads");
        return Err(UsageError(message).into());
    }
    Ok(Some(most / threads))
}

fn read_trace(file: &Path) -> anyhow::Result<Trace> {
    let named = |error: &dyn std::fmt::Display| UsageError(format!("{}: {error}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| named(&error))?;
    Ok(Trace::parse(strip_bom_bytes(&bytes)).map_err(|error| named(&error))?)
}

fn watched(args: &MonitorArgs, endpoint: &Endpoint) -> anyhow::Result<Option<MonitorTarget>> {
    let here = MonitorConfig {
        processes: args.process.clone(),
        ports: endpoint.port().into_iter().collect(),
        ebpf: !args.no_ebpf,
        ..MonitorConfig::default()
    };
    let Some(address) = &args.watch_from else {
        return Ok(match (args.watch, args.process.is_empty()) {
            (_, false) => Some(MonitorTarget::Local(here)),
            (true, true) => Some(MonitorTarget::Local(MonitorConfig { processes: listening(endpoint)?, ..here })),
            (false, true) => None,
        });
    };
    let config = remote_config(address, args.token_file.as_deref(), args.watch_ca.clone())?;
    Ok(Some(MonitorTarget::Remote(RemoteConfig { intervals: here.intervals, ..config })))
}

/// Selectors of the programs that listen at the endpoint.
fn listening(endpoint: &Endpoint) -> anyhow::Result<Vec<ProcessSelector>> {
    Ok(match &endpoint.address {
        Address::Tcp(address) => vec![ProcessSelector::Port(address.port())],
        Address::Unix(_) => {
            let path = PathBuf::from(endpoint.address.to_string());
            socket_owners(&path)?.into_iter().map(ProcessSelector::Pid).collect()
        }
    })
}

/// The load that the flags define, or `None` if they define no load. The second value is the trace (a list of due
/// times) of `--arrivals`, if any.
fn load(args: &LoadArgs) -> anyhow::Result<(Option<Load>, Option<Trace>)> {
    let usage = |message: &str| Err(UsageError(message.to_owned()).into());
    let load = |load| Ok((Some(load), None));
    if let Some(levels) = args.sweep.levels() {
        return load(levels.load(levels.first(), &args.arrivals, args.think)?);
    }
    if let Some(sessions) = args.sessions.load()? {
        return load(sessions);
    }
    if let Some(clients) = args.clients {
        return load(Load::Closed { clients: clients.0, think: args.think });
    }
    let (scheduled, trace) = scheduled_load(args)?;
    let Some(s_clients) = args.s_clients else { return Ok((scheduled, trace)) };
    let pace = match scheduled {
        None if has_arrival_process(args) => {
            return usage("the arrival process of S-Clients needs a mean rate: add --rate");
        }
        None => AttemptPace::Think(args.think),
        Some(_) if args.think > Nanos::ZERO => {
            return usage("the schedule determines when S-Clients make attempts: leave out --think");
        }
        Some(scheduled) => AttemptPace::Schedule(Box::new(scheduled)),
    };
    Ok((Some(Load::SClients { attempts: s_clients.0, pace }), trace))
}

/// Whether the flags define an arrival process other than the default.
fn has_arrival_process(args: &LoadArgs) -> bool {
    args.arrivals != Arrivals::Process(ArrivalProcess::Constant)
}

/// The load that `--rate`, `--stage` or a trace defines; `None` if no flag defines such a load. The second value is the
/// trace (a list of due times), if any.
fn scheduled_load(args: &LoadArgs) -> anyhow::Result<(Option<Load>, Option<Trace>)> {
    let usage = |message: &str| Err(UsageError(message.to_owned()).into());
    let load = |load| Ok((Some(load), None));
    match (&args.arrivals, args.rate) {
        (Arrivals::Trace(_), _) if !args.stages.is_empty() => usage("a trace has its own rate: remove --stage"),
        (Arrivals::Trace(_), Some(_)) => usage("a trace has its own rate: use --speed 2x instead of --rate"),
        (Arrivals::Trace(file), None) => {
            let trace = read_trace(file)?;
            let file = file.display().to_string();
            let speed = args.speed.unwrap_or(Speed::ORIGINAL).get();
            Ok((Some(Load::Trace(workload::Trace { file, speed })), Some(trace)))
        }
        _ if args.speed.is_some() => usage("--speed is for traces: add --arrivals trace:FILE, or use a higher --rate"),
        (Arrivals::Process(process), start) if !args.stages.is_empty() => {
            let start = start.unwrap_or(Rate(0.0));
            let arrivals = process.to_string();
            load(Load::Stages { start, stages: args.stages.clone(), arrivals })
        }
        (Arrivals::Process(process), Some(rate)) => load(Load::Open { rate, arrivals: process.to_string() }),
        (Arrivals::Process(_), None) => Ok((None, None)),
    }
}
