//! `brimful load`: one load, one Record.

use crate::args::{Arrivals, Close, Http, LoadArgs, RequestArgs};
use crate::exit::{self, Exit, UsageError};
use crate::output::{OutFile, deliver};
use crate::progress;
use brimful_core::Nanos;
use brimful_core::workload::Workload;
use brimful_engine::Progress;
use brimful_http::Version;
use brimful_monitor::{MonitorConfig, ProcessSelector};
use brimful_survey::{Endpoint, Pace, RunPlan, run};
use brimful_workload::Process;
use std::time::SystemTime;

/// Without `--duration` and `--requests`.
const DEFAULT_DURATION: Nanos = Nanos::from_secs(10);

/// Runs it.
pub fn main(args: &LoadArgs) -> anyhow::Result<Exit> {
    let plan = plan(args)?;
    plan.validate()?;
    let out = args.output.out.as_deref().map(OutFile::create).transpose()?;
    let stop = progress::stop_flag()?;
    let live = Progress::default();
    let record = progress::during("load", plan.window, &live, args.output.quiet, || run(&plan, &stop, &live))?;
    let json = brimful_report::json::record(&record)?;
    let text = if args.output.json { json.clone() } else { brimful_report::load::text(&record) };
    deliver(out, &json, &text)?;
    Ok(exit::of_verdict(&record.verdict, record.interrupted))
}

fn plan(args: &LoadArgs) -> anyhow::Result<RunPlan> {
    let process = match args.arrivals {
        Arrivals::Constant => Process::Constant,
        Arrivals::Poisson => Process::Poisson,
    };
    let pace = match (args.rate, args.clients) {
        (Some(rate), _) => Pace::Open { rate, process },
        (None, Some(clients)) => Pace::Closed { clients: clients.0, think: args.think },
        (None, None) => {
            return Err(UsageError("say how much load: --rate 1000 or --clients 10".to_owned()).into());
        }
    };
    let mut plan = request_plan(&args.url, &args.request, pace)?;
    plan.calls = args.requests.map_or(u64::MAX, |count| count.0);
    plan.window = match (args.duration, args.requests) {
        (Some(duration), _) => duration,
        (None, Some(_)) => Nanos::MAX,
        (None, None) => DEFAULT_DURATION,
    };
    if args.request.workload.is_none() {
        let class = &mut plan.workload.classes[0];
        class.method.clone_from(&args.method);
        class.body.clone_from(&args.data);
    }
    if !args.process.is_empty() {
        plan.monitor = Some(MonitorConfig {
            processes: selectors(&args.process),
            port: Some(plan.endpoint.address.port()),
            ..MonitorConfig::default()
        });
    }
    Ok(plan)
}

/// What `load` and `survey` read alike from the command line.
pub fn request_plan(url: &str, args: &RequestArgs, pace: Pace) -> anyhow::Result<RunPlan> {
    let workload = args.workload()?;
    let endpoint = Endpoint::resolve(url, args.connect_timeout)?;
    let workload = workload.unwrap_or_else(|| Workload::single("GET", &endpoint.path));
    let cpus = args.cpus();
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |d| d.as_micros() as u64);
    Ok(RunPlan {
        endpoint,
        workload,
        pace,
        window: DEFAULT_DURATION,
        calls: u64::MAX,
        version: match args.http {
            Http::V10 => Version::Http10,
            Http::V11 => Version::Http11,
        },
        headers: args.headers.clone(),
        calls_per_connection: if args.new_connection { Some(1) } else { args.calls_per_connection.map(|n| n.0) },
        close: match args.close {
            Close::Server => brimful_engine::Close::Server,
            Close::Fin => brimful_engine::Close::Fin,
            Close::Rst => brimful_engine::Close::Rst,
        },
        warm_connections: 0,
        connect_timeout: args.connect_timeout,
        response_timeout: args.timeout,
        threads: args.threads.map_or(cpus.len().max(1) as u64, |count| count.0),
        cpus,
        seed: args.seed.unwrap_or_else(clock),
        monitor: None,
        command: std::env::args().collect(),
    })
}

/// Programs by name or pid.
pub fn selectors(names: &[String]) -> Vec<ProcessSelector> {
    let select = |name: &String| match name.parse() {
        Ok(pid) => ProcessSelector::Pid(pid),
        Err(_) => ProcessSelector::Name(name.clone()),
    };
    names.iter().map(select).collect()
}
