//! `brimful load`: one load, one Record.

use crate::args::{Arrivals, DetailArgs, LoadArgs, MaxConnections, OutputArgs, RequestArgs, WatchedArgs};
use crate::exit::{self, Exit, UsageError};
use crate::keep::KeptFile;
use crate::output::{OutFile, deliver, first_failure, page, say, text_or_document};
use crate::trace::CallTrace;
use crate::{command_line, keep, progress, token};
use brimful_core::quantity;
use brimful_core::record::Record;
use brimful_core::text::bytes_without_mark;
use brimful_core::tls::{Tls, TlsSpoken};
use brimful_core::workload::{self, Load, LoadKind, Stage, Workload};
use brimful_core::{Bytes, Nanos, Rate};
use brimful_engine::{Address, ConnectionPolicy, Security, SecurityOptions};
use brimful_http::Version;
use brimful_monitor::{MonitorConfig, ProcessSelector, RemoteConfig, socket_owners};
use brimful_report::load::Detail;
use brimful_run::{Endpoint, MonitorTarget, RunError, RunPlan, client_limit, run};
use brimful_stats::{check_objectives, judge_objectives};
use brimful_workload::{Process, Speed, Trace};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// Without `--duration` and `--requests`.
const DEFAULT_DURATION: Nanos = Nanos::from_secs(10);
/// Where nothing says how calls come.
const DEFAULT_CLIENTS: u64 = 10;
/// Without `--connect-timeout`, but for closed loops.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(3);

/// Runs it.
pub fn main(args: &LoadArgs) -> anyhow::Result<Exit> {
    let mut plan = plan(args)?;
    let limit_only = wants_client_limit_only(args, &plan)?;
    if limit_only {
        // It is one for loads of some kind.
        plan.workload.load.get_or_insert_with(|| Load::poisson(Rate(client_limit::START)));
    }
    plan.validate()?;
    let classes: Vec<&str> = plan.workload.classes.iter().map(|class| class.name.as_str()).collect();
    check_objectives(&classes, &args.slo)?;
    let out = OutFile::optional(args.output.out.as_deref(), "--out")?;
    let html = OutFile::optional(args.html.as_deref(), "--html")?;
    let hdr = args.hdr.open()?;
    let kept = args.part.keep.as_deref().map(KeptFile::create).transpose()?;
    let stop = progress::stop_flag()?;
    if args.part.until_stdin_ends {
        keep::stop_when_stdin_ends(&stop)?;
    }
    let found = args.calibrate.then(|| find_client_limit(&plan, args.output.quiet, &stop)).transpose()?;
    if let Some(record) = found.as_ref().filter(|_| limit_only) {
        let delivered = deliver_client_limit(record, args, out);
        return first_failure(delivered, [hdr.map_or(Ok(()), |file| file.write(record)), write_page(record, html)]);
    }
    let limit = found.as_ref().and_then(|record| record.generator.max_rate);
    plan.client_max = limit.or(args.part.client_max.map(|max| max.0));
    plan.keeper = kept.as_ref().map(|_| Arc::default());
    plan.live = (kept.is_none() && progress::is_shown(plan.window, args.output.quiet)).then(Arc::default);
    let trace = CallTrace::of(&args.look, &plan)?;
    let load = || run(&plan, &trace.observer(), &stop).map(|output| output.record);
    let load = || match &kept {
        Some(kept) => kept.during(&plan, load),
        None => load(),
    };
    let mut record = progress::during("load", plan.window, plan.live.as_deref(), load)?;
    let judged = judge_objectives(&record, &args.slo).map(|objectives| record.objectives = objectives);
    record.calibration = found.and_then(|record| record.calibration);
    // The Record is the main result, so it is delivered before everything else.
    let delivered = deliver_record(&record, &args.output, args.detail, out);
    let others = [
        judged.map_err(anyhow::Error::from),
        kept.as_ref().map_or(Ok(()), |kept| kept.write(&record)),
        trace.finish(),
        hdr.map_or(Ok(()), |file| file.write(&record)),
        write_page(&record, html),
    ];
    first_failure(delivered, others)
}

/// The Record as a page, if there is a file for it.
fn write_page(record: &Record, file: Option<OutFile>) -> anyhow::Result<()> {
    file.map_or(Ok(()), |file| file.commit(&page(|| brimful_report::html::load(record))?))
}

/// Shows the Record, and what a script has to make of it.
pub fn deliver_record(
    record: &Record,
    args: &OutputArgs,
    detail: DetailArgs,
    out: Option<OutFile>,
) -> anyhow::Result<Exit> {
    let json = brimful_report::json::record(record)?;
    let detail = if detail.full { Detail::Full } else { Detail::Main };
    let text = || brimful_report::load::text(record, detail);
    let text = if args.json { json.clone() } else { text_or_document(text, &json) };
    deliver(out, &json, &text)?;
    // The text has it already.
    if let Some(warning) = brimful_report::load::warning(record).filter(|_| args.json && !args.quiet) {
        say(&warning);
    }
    Ok(exit::of_run(record))
}

/// Says which load it is that nobody has asked for in particular.
fn say_default(plan: &RunPlan) {
    let lasts = match plan.calls {
        u64::MAX => format!("for {}", plan.window.rounded()),
        calls => format!("until {} calls are made", quantity::count(calls)),
    };
    say(&format!(
        "no load was asked for: {DEFAULT_CLIENTS} clients, each waiting for its answer before its next call, {lasts} \
         (--clients N); --rate N makes N calls per second, whatever the server does"
    ));
}

/// Whether there is no load to run once the client's maximum is known.
fn wants_client_limit_only(args: &LoadArgs, plan: &RunPlan) -> Result<bool, UsageError> {
    match (args.calibrate && plan.workload.load.is_none(), args.part.client_limit_only) {
        (true, true) => Err(UsageError(
            "a fleet finds what its hosts can offer for a load: give it one, like --rate; `brimful load URL --calibrate` \
             says it of one host"
                .to_owned(),
        )),
        (no_load, only) => Ok(no_load || only),
    }
}

/// Finds the client's maximum for loads of this shape.
fn find_client_limit(plan: &RunPlan, quiet: bool, stop: &AtomicBool) -> anyhow::Result<Record> {
    let note = |text: String| {
        if !quiet {
            say(&text);
        }
    };
    note(format!(
        "what this client can offer before it is the limit itself ({})",
        client_limit::TYPICAL_DURATION.rounded()
    ));
    // The limit of S-Clients is found by attempts that nobody answers.
    let response = if plan.is_s_clients() { Bytes(0) } else { client_limit::response_size(plan, stop)? };
    Ok(client_limit::find(plan, response, None, stop, &mut |text| note(format!("  {text}")))?)
}

fn deliver_client_limit(record: &Record, args: &LoadArgs, out: Option<OutFile>) -> anyhow::Result<Exit> {
    let json = brimful_report::json::record(record)?;
    let text = || record.calibration.as_ref().map(brimful_report::load::client_limit).unwrap_or_default();
    deliver(out, &json, &if args.output.json { json.clone() } else { text() })?;
    Ok(match record.generator.max_rate {
        _ if record.interrupted => Exit::Interrupted,
        Some(_) => Exit::Ok,
        None => Exit::Generator,
    })
}

fn plan(args: &LoadArgs) -> anyhow::Result<RunPlan> {
    // By this host's clock.
    let start_at = match (args.part.start_at, args.part.clock_ahead) {
        (Some(at), Some(clock)) => clock.to_local(at),
        (at, _) => at,
    };
    if start_at.is_some_and(|at| at <= SystemTime::now()) {
        let message = "the instant of --start-at is over: give all shards one that is some seconds ahead";
        return Err(UsageError(message.to_owned()).into());
    }
    let (load, trace) = load(args)?;
    let mut plan = request_plan(&args.url, &args.request)?;
    if args.request.workload.is_none() {
        args.call.apply(&mut plan.workload.classes[0]);
    }
    args.choosers.apply(&mut plan)?;
    plan.trace = trace;
    if load.is_some() {
        plan.workload.load = load;
    } else if let Some(Load::Trace(named)) = &plan.workload.load {
        plan.trace = Some(read_trace(Path::new(&named.file))?);
    }
    args.sessions.apply(&mut plan.workload, &args.arrivals)?;
    let is_paced = args.arrivals != Arrivals::Process(Process::Constant) || args.tick.is_some();
    let by_default = plan.workload.load.is_none() && !is_paced && !args.calibrate;
    if by_default {
        plan.workload.load = Some(Load::Closed { clients: DEFAULT_CLIENTS, think: args.think });
    }
    let scheduled = match (&plan.workload.load, &plan.trace) {
        (Some(Load::Stages { stages, .. }), _) => Some(Stage::total(stages)),
        (Some(Load::Trace(named)), Some(trace)) => Some(trace.window(Speed::new(named.speed)?)),
        _ => None,
    };
    let listed = plan.workload.calls_listed_once().unwrap_or(u64::MAX);
    plan.calls = args.requests.map_or(u64::MAX, |count| count.0).min(listed);
    let counted = (plan.calls < u64::MAX).then_some(plan.calls);
    plan.window = match (args.duration, scheduled, counted) {
        (Some(duration), _, _) => duration,
        (None, Some(scheduled), _) => scheduled,
        (None, None, Some(_)) => Nanos::MAX,
        // Until they have all ended.
        (None, None, None) if plan.workload.sessions().is_some_and(|sessions| sessions.number.is_some()) => Nanos::MAX,
        (None, None, None) => DEFAULT_DURATION,
    };
    // Clients by the simple scheme leave it to the kernel to try again, or they could not be told from S-Clients.
    if matches!(plan.workload.load, Some(Load::Closed { .. })) {
        plan.connections.connect_timeout = args.request.connections.connect_timeout;
    }
    plan.follow = args.call.follow.map(|count| count.0);
    plan.tick = args.tick;
    plan.shard = args.part.shard;
    plan.interval = args.part.interval;
    let parts = args.part.shard.map_or(1, |shard| shard.count);
    plan.connections.warm_connections = args.part.warm_connections.div_ceil(parts);
    plan.connections.most_per_shard = most_per_shard(args, &plan, parts)?;
    (plan.start_at, plan.clock) = (start_at, args.part.clock_ahead);
    plan.monitor = watched(&args.watched, &plan.endpoint)?;
    if by_default && !args.output.quiet {
        say_default(&plan);
    }
    Ok(plan)
}

/// Connections that one thread may have: `--max-connections` over all threads of all `parts` of the load.
fn most_per_shard(args: &LoadArgs, plan: &RunPlan, parts: u64) -> anyhow::Result<Option<u64>> {
    let Some(MaxConnections::AtMost(most)) = args.max_connections else { return Ok(None) };
    let is_open = plan.workload.load.as_ref().is_none_or(|load| load.kind() == LoadKind::Open);
    if !is_open || plan.workload.sessions().is_some() {
        let message =
            "--max-connections is for open loops (--rate): clients and sessions have connections of their own";
        return Err(UsageError(message.to_owned()).into());
    }
    let threads = parts.saturating_mul(plan.threads);
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
    Ok(Trace::parse(bytes_without_mark(&bytes)).map_err(|error| named(&error))?)
}

fn watched(args: &WatchedArgs, endpoint: &Endpoint) -> anyhow::Result<Option<MonitorTarget>> {
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
    let config = watched_from(address, args.token_file.as_deref(), args.watch_ca.clone())?;
    Ok(Some(MonitorTarget::Remote(RemoteConfig { intervals: here.intervals, ..config })))
}

/// The programs that listen there.
fn listening(endpoint: &Endpoint) -> anyhow::Result<Vec<ProcessSelector>> {
    Ok(match &endpoint.address {
        Address::Tcp(address) => vec![ProcessSelector::Port(address.port())],
        Address::Unix(_) => {
            let path = PathBuf::from(endpoint.address.to_string());
            socket_owners(&path)?.into_iter().map(ProcessSelector::Pid).collect()
        }
    })
}

/// Who watches on another host, and what is needed to be told.
pub fn watched_from(
    address: &str,
    token_file: Option<&Path>,
    authority: Option<PathBuf>,
) -> anyhow::Result<RemoteConfig> {
    let token = token::find(token_file)?.ok_or_else(|| {
        UsageError(format!(
            "the token of `brimful watch --serve` is missing: give it in the environment as {}, or by --token-file",
            token::VARIABLE
        ))
    })?;
    let intervals = MonitorConfig::default().intervals;
    Ok(RemoteConfig { address: address.to_owned(), token, authority, intervals })
}

/// How calls come, as the flags say it; `None` where they say nothing. And the trace, if it is one.
fn load(args: &LoadArgs) -> anyhow::Result<(Option<Load>, Option<Trace>)> {
    let usage = |message: &str| Err(UsageError(message.to_owned()).into());
    let load = |load| Ok((Some(load), None));
    if let Some(sessions) = args.sessions.load()? {
        return load(sessions);
    }
    match (&args.arrivals, args.rate) {
        _ if args.clients.is_some() => {
            load(Load::Closed { clients: args.clients.map_or(0, |n| n.0), think: args.think })
        }
        _ if args.s_clients.is_some() => load(Load::SClients { attempts: args.s_clients.map_or(0, |n| n.0) }),
        (Arrivals::Trace(_), _) if !args.stages.is_empty() => usage("a trace has a rate of its own: leave out --stage"),
        (Arrivals::Trace(_), Some(_)) => usage("a trace has a rate of its own: give --speed 2x instead of --rate"),
        (Arrivals::Trace(file), None) => {
            let trace = read_trace(file)?;
            let (file, speed) = (file.display().to_string(), args.speed.unwrap_or(Speed::ORIGINAL).get());
            Ok((Some(Load::Trace(workload::Trace { file, speed })), Some(trace)))
        }
        _ if args.speed.is_some() => usage("--speed is for traces: give --arrivals trace:FILE, or a higher --rate"),
        (Arrivals::Process(process), start) if !args.stages.is_empty() => {
            let (start, arrivals) = (start.unwrap_or(Rate(0.0)), process.to_string());
            load(Load::Stages { start, stages: args.stages.clone(), arrivals })
        }
        (Arrivals::Process(process), Some(rate)) => load(Load::Open { rate, arrivals: process.to_string() }),
        (Arrivals::Process(_), None) => Ok((None, None)),
    }
}

/// What `load` and `survey` read alike from the command line.
pub fn request_plan(url: &str, args: &RequestArgs) -> anyhow::Result<RunPlan> {
    let workload = args.workload()?;
    let connections = &args.connections;
    let connect_timeout = connections.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let endpoint = Endpoint::resolve_at(url, &connections.detour(), connect_timeout)?;
    connections.check(&endpoint)?;
    let mut workload = workload.unwrap_or_else(|| Workload::single("GET", &endpoint.path));
    let (tls, tls_spoken) = secured(&endpoint, args, &mut workload, connect_timeout)?;
    let cpus = args.generator.cpus();
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |d| d.as_micros() as u64);
    Ok(RunPlan {
        endpoint,
        workload,
        trace: None,
        window: DEFAULT_DURATION,
        calls: u64::MAX,
        version: args.http,
        tls,
        tls_spoken,
        headers: args.headers()?,
        secret_headers: args.secret_headers.clone(),
        connections: ConnectionPolicy {
            calls_per_connection: args.calls_per_connection()?,
            connections_per_session: None,
            most_per_shard: None,
            holds: false,
            pipeline: connections.pipeline.map_or(1, |count| count.0 as usize),
            http2: args.http == Version::Http2,
            close: connections.close,
            connect_timeout: Some(connect_timeout),
            retry_closed: connections.retry_closed,
            retry_refused: true,
            response_timeout: connections.timeout,
            source: connections.source_ip,
            send_buffer: buffer(connections.send_buffer)?,
            receive_buffer: buffer(connections.receive_buffer)?,
            warm_connections: 0,
            at_once: 0,
        },
        engine: args.generator.engine,
        tick: None,
        client_max: None,
        back_off: true,
        follow: None,
        threads: args.generator.threads.map_or(cpus.len().max(1) as u64, |count| count.0),
        cpus,
        shard: None,
        start_at: None,
        live: None,
        keeper: None,
        clock: None,
        interval: Nanos::from_secs(1),
        seed: args.generator.seed.unwrap_or_else(clock),
        monitor: None,
        command: command_line::for_documents(args),
    })
}

/// How connections to this server are secured, if they are, and what was agreed on in a first handshake.
fn secured(
    endpoint: &Endpoint,
    args: &RequestArgs,
    workload: &mut Workload,
    patience: Nanos,
) -> anyhow::Result<(Option<Arc<Security>>, Option<TlsSpoken>)> {
    if !endpoint.is_secure {
        return match args.tls.first_flag() {
            None => Ok((None, None)),
            Some(flag) => Err(UsageError(format!("{flag} is for https:// URLs, and {} is none", endpoint.url)).into()),
        };
    }
    let flags = &args.tls;
    let tls = flags.over(workload.tls.as_ref());
    let security = Security::new(&SecurityOptions {
        name: tls.sni.clone().unwrap_or_else(|| endpoint.host().to_owned()),
        authorities: flags.ca.clone(),
        identity: flags.cert.clone().zip(flags.key.clone()),
        insecure: tls.insecure,
        minimum: tls.minimum,
        resume: tls.resume,
        http2: args.http == Version::Http2,
    })
    .map_err(RunError::from)?;
    let spoken = endpoint.check(&security, patience)?;
    workload.tls = (tls != Tls::default()).then_some(tls);
    Ok((Some(Arc::new(security)), spoken))
}

fn buffer(size: Option<Bytes>) -> anyhow::Result<Option<u32>> {
    let too_large = || UsageError("a socket's buffer is less than 2 GiB: give a smaller size".to_owned());
    Ok(size.map(|size| i32::try_from(size.0).map(|bytes| bytes as u32)).transpose().map_err(|_| too_large())?)
}
