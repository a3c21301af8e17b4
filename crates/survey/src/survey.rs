//! The entry point of a survey: finds or starts the server, and runs the method.

use crate::SurveyError;
use crate::method::run_survey;
use crate::objective::default_objective;
use crate::runner::SurveyEvent;
use crate::server::{DemoServer, Server, demo_service};
use crate::server_bench::ServerBench;
use crate::setup::{Change, ConnectionLimit, ConnectionPolicy, Header, ImpactLimits, PlannedChange, Setup};
use brimful_core::survey::Survey;
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate, SloSpec};
use brimful_monitor::{ProcessSelector, RemoteConfig};
use brimful_run::{Endpoint, RunOptions, RunPlan, SurveyFleet};
use brimful_stats::{LiveProgress, check_objectives};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

/// Default maximum mean load during calibration, as a share of the server's capacity.
pub(crate) const DEFAULT_MAX_LOAD: f64 = 0.5;
/// Default maximum delay that calibration may cause for a call of another client.
pub(crate) const DEFAULT_MAX_DELAY: Nanos = Nanos::from_millis(200);

/// The user's options of a survey.
#[derive(Clone, Debug)]
pub struct SurveyPlan {
    /// The server to survey.
    pub subject: Subject,
    /// The options of all runs. The survey chooses the load and its duration.
    pub template: RunOptions,
    /// Receives the results of a running load, for the display; `None` without a display.
    pub live: Option<Arc<LiveProgress>>,
    /// CPUs that the server is pinned to during the survey; `None` does not pin it.
    pub server_cpus: Option<Vec<usize>>,
    /// Duration of the measurement of a load level (`--level`). Most runs last a fixed multiple of it.
    pub level_duration: Nanos,
    /// Maximum mean load during calibration, as a share of the server's capacity. If it is set, higher loads are also
    /// left out after calibration. With `None`, a default applies to calibration only.
    pub max_load: Option<f64>,
    /// Maximum time for which a call of another client may wait during calibration because of the survey's calls. If it
    /// is set, loads above the maximum mean load are also left out after calibration.
    pub max_delay: Option<Nanos>,
    /// The maximum number of connections of an open load.
    pub connection_limit: ConnectionLimit,
    /// The performance objectives. For each, the survey predicts and measures the highest rate that meets it. If the
    /// list is empty, the only objective is a 99th percentile of response times below ten times its value at light
    /// load.
    pub objectives: Vec<SloSpec>,
    /// Whether to measure additional load levels after calibration, which test the model but are not needed for the
    /// result.
    pub thorough: bool,
    /// A change of the server that the survey predicts, makes and measures at its end; `None` for no change.
    pub change: Option<Change>,
    /// Version of brimful, for the document.
    pub version: String,
}

/// The server to survey, and the way to monitor it.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A server on this host, identified by its processes.
    Local(Vec<ProcessSelector>),
    /// A server on another host, monitored by `brimful watch --serve` on that host.
    Remote(RemoteConfig),
    /// A server that is not monitored. Only its responses are known.
    BlackBox,
    /// The reference server of the demonstration, which is started for the survey. The survey does not know the
    /// server's service demands.
    Demo,
}

/// The workload of the demonstration: two classes in the ratio 4 : 1. The reference server serves the same classes.
pub fn demo_classes() -> Workload {
    let class = |name: &str, weight: f64| brimful_core::workload::RequestClass {
        name: name.to_owned(),
        weight,
        ..Workload::single_class("GET", &format!("/{name}")).classes.remove(0)
    };
    Workload { classes: vec![class("light", 0.8), class("heavy", 0.2)], load: None, tls: None }
}

/// Surveys a server. If there is a `fleet`, its generator processes (shards) generate the load; otherwise this process
/// does. `listener` is called with each event. Once the first load level is measured, the result is always a document.
/// If the survey ended early, the document states why.
///
/// # Errors
/// [`SurveyError`] if the survey fails before the first load level is measured.
pub fn survey(
    plan: &SurveyPlan,
    fleet: Option<SurveyFleet>,
    stop: &AtomicBool,
    listener: &mut dyn FnMut(SurveyEvent),
) -> Result<Survey, SurveyError> {
    // The survey chooses the loads, so a load in the workload is replaced.
    let mut template = plan.template.clone().with_load(Load::poisson(Rate(1.0)));
    let demo = start_demo(plan, &mut template)?;
    let template = RunPlan::new(template)?.into_options();
    let objectives = objectives(&plan.objectives, &template.load.workload)?;
    if template.server.endpoint.port().is_none() {
        let message = "a survey first measures what this client can offer, against a server of its own that listens on TCP: \
                       have your server listen on a port of 127.0.0.1 as well (`brimful load` accepts its Unix socket)";
        return Err(SurveyError::NotSurveyable(message.to_owned()));
    }
    let server = match &plan.subject {
        Subject::Local(selectors) => {
            Server::local(&template.server.endpoint, selectors.clone(), plan.server_cpus.clone())?
        }
        Subject::Remote(config) => Server::remote(&template.server.endpoint, config.clone())?,
        Subject::BlackBox => Server::black_box(&template.server.endpoint),
        Subject::Demo => {
            let selectors = demo.iter().map(|demo| ProcessSelector::Pid(demo.pid())).collect();
            Server::local(&template.server.endpoint, selectors, plan.server_cpus.clone())?
        }
    };
    let is_gentle = plan.max_load.is_some_and(|share| share < 1.0) || plan.max_delay.is_some();
    if is_gentle && plan.change.is_some() && demo.is_none() {
        let message =
            "the effect of a change is measured at full load: leave out --max-load and --max-delay, or --what-if";
        return Err(SurveyError::NotSurveyable(message.to_owned()));
    }
    let change = plan.change.filter(|_| !is_gentle);
    let setup = Setup {
        header: Header {
            started_at: SystemTime::now(),
            version: plan.version.clone(),
            command: template.record.command.clone(),
            url: template.server.endpoint.url.clone(),
        },
        seed: template.load.seed,
        workload: template.load.workload.clone(),
        server_cpus: server.cpus.clone(),
        client_cpus: template.generator.cpus.clone(),
        level_duration: plan.level_duration,
        objectives,
        thorough: plan.thorough,
        impact_limits: ImpactLimits {
            max_load: plan.max_load.unwrap_or(DEFAULT_MAX_LOAD),
            max_delay: plan.max_delay.unwrap_or(DEFAULT_MAX_DELAY),
            applies_after_calibration: is_gentle,
        },
        change: change.map(|change| PlannedChange { change, optional: demo.is_some() }),
        connections: ConnectionPolicy {
            limit: plan.connection_limit,
            one_call_each: template.server.connections.calls_per_connection == Some(1),
            opened_ahead: template.server.tls.is_some() || template.server.is_http2(),
        },
        shards: fleet.as_ref().map(SurveyFleet::shards),
    };
    let began = Instant::now();
    let survey = run_survey(&setup, &mut ServerBench::new(template, plan.live.clone(), server, fleet, stop), listener)?;
    Ok(Survey { elapsed_s: Some(began.elapsed().as_secs_f64()), ..survey })
}

/// The performance objectives of the survey, or the default one. An error for objectives that a survey cannot judge.
fn objectives(given: &[SloSpec], workload: &Workload) -> Result<Vec<SloSpec>, SurveyError> {
    let classes: Vec<&str> = workload.classes.iter().map(|class| class.name.as_str()).collect();
    let as_slos: Vec<_> = given.iter().map(|spec| spec.resolve(1.0)).collect();
    check_objectives(&classes, &as_slos)?;
    for (index, spec) in given.iter().enumerate() {
        if let Some(earlier) = given[..index].iter().find(|earlier| earlier.measure() == spec.measure()) {
            let message = format!("`{earlier}` and `{spec}` limit the same figure: give the stricter one alone");
            return Err(SurveyError::NotSurveyable(message));
        }
    }
    if given.is_empty() { Ok(vec![default_objective()]) } else { Ok(given.to_vec()) }
}

/// Starts the reference server if it is the server to survey, and makes it the target of all runs.
fn start_demo(plan: &SurveyPlan, template: &mut RunOptions) -> Result<Option<DemoServer>, SurveyError> {
    if !matches!(plan.subject, Subject::Demo) {
        return Ok(None);
    }
    let cpu = plan.server_cpus.as_ref().and_then(|cpus| cpus.first().copied());
    let server = DemoServer::start(&demo_service(template.load.seed), cpu, template.load.seed)?;
    template.server.endpoint = Endpoint::resolve(&server.url, Nanos::from_secs(1))?;
    Ok(Some(server))
}
