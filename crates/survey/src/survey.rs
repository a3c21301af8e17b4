//! A survey of a server on this host: finds or starts the server, and leaves the rest to the method.

use crate::SurveyError;
use crate::connections::ConnectionLimit;
use crate::found::Setup;
use crate::method::{Step, conduct};
use crate::server::{DemoServer, Server, demo_service};
use crate::server_bench::ServerBench;
use crate::what_if::Change;
use brimful_core::survey::Survey;
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_monitor::{ProcessSelector, RemoteConfig};
use brimful_run::{Crew, Endpoint, RunPlan};
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

/// The mean load of calibration where nothing is said, as a share of what the server can take.
pub const MAX_LOAD: f64 = 0.3;
/// How long a stranger's call may have to wait for those of calibration where nothing is said.
pub const MAX_DELAY: Nanos = Nanos::from_millis(200);

/// What a survey is told.
#[derive(Clone, Debug)]
pub struct SurveyPlan {
    /// Which server.
    pub subject: Subject,
    /// The load's shape; its endpoint, load and window are the survey's business.
    pub like: RunPlan,
    /// CPUs to keep the server on; none leaves it where it is.
    pub server_cpus: Option<Vec<usize>>,
    /// What the lengths of all runs are shares of.
    pub level: Nanos,
    /// The mean load of calibration, as a share of what the server can take; nothing else is measured then that loads it
    /// more. Where nothing is said, calibration is that gentle and the rest of the survey is not.
    pub max_load: Option<f64>,
    /// The same for how long a stranger's call may have to wait for ours.
    pub max_delay: Option<Nanos>,
    /// How many connections open loads may have at once.
    pub connection_limit: ConnectionLimit,
    /// What is to be changed in the end, after it was predicted.
    pub change: Option<Change>,
    /// For the document.
    pub version: String,
}

/// The server to survey.
#[derive(Clone, Debug)]
pub enum Subject {
    /// One that is running on this host: its processes.
    Running(Vec<ProcessSelector>),
    /// One on another host, through a `brimful watch --serve` there.
    There(RemoteConfig),
    /// One of which nothing is seen but its answers.
    BlackBox,
    /// The reference server, started for the survey, with demands that only it knows.
    Demo,
}

/// The classes that `brimful target` serves in a demonstration with this seed, as a workload.
pub fn demo_classes() -> Workload {
    let class = |name: &str, weight: f64| brimful_core::workload::RequestClass {
        name: name.to_owned(),
        weight,
        ..Workload::single("GET", &format!("/{name}")).classes.remove(0)
    };
    Workload { classes: vec![class("light", 0.8), class("heavy", 0.2)], load: None, tls: None }
}

/// Surveys a server, loaded by the crew if there is one, else by this process. Once the first level is measured there
/// is always a document: what stopped it early is in it.
///
/// # Errors
/// [`SurveyError`] when the survey cannot begin.
pub fn survey(
    plan: &SurveyPlan,
    crew: Option<Crew>,
    stop: &AtomicBool,
    news: &mut dyn FnMut(Step),
) -> Result<Survey, SurveyError> {
    // Which loads is the survey's business; whatever the workload says, it is another one.
    let mut like = plan.like.clone().with_load(Load::poisson(Rate(1.0)));
    let demo = match &plan.subject {
        Subject::Running(_) | Subject::There(_) | Subject::BlackBox => None,
        Subject::Demo => {
            let cpu = plan.server_cpus.as_ref().and_then(|cpus| cpus.first().copied());
            let server = DemoServer::start(&demo_service(like.seed), cpu, like.seed)?;
            like.endpoint = Endpoint::resolve(&server.url, Nanos::from_secs(1))?;
            Some(server)
        }
    };
    like.validate()?;
    if like.endpoint.port().is_none() {
        let what = "a survey first finds out what this client can offer, against a server of its own that listens by TCP: \
                    have this one listen on a port of 127.0.0.1 as well (`brimful load` takes its Unix socket)";
        return Err(SurveyError::Unfit(what.to_owned()));
    }
    let server = match &plan.subject {
        Subject::Running(selectors) => Server::find(&like.endpoint, selectors.clone(), plan.server_cpus.clone())?,
        Subject::There(config) => Server::there(&like.endpoint, config.clone())?,
        Subject::BlackBox => Server::black_box(&like.endpoint),
        Subject::Demo => {
            let selectors = demo.iter().map(|demo| ProcessSelector::Pid(demo.pid())).collect();
            Server::find(&like.endpoint, selectors, plan.server_cpus.clone())?
        }
    };
    let gentle = plan.max_load.is_some_and(|share| share < 1.0) || plan.max_delay.is_some();
    let is_demo = demo.is_some();
    if gentle && plan.change.is_some() && !is_demo {
        let what = "what a change does is measured at full load: leave out --max-load and --max-delay, or --what-if";
        return Err(SurveyError::Unfit(what.to_owned()));
    }
    let setup = Setup {
        started_at: SystemTime::now(),
        version: plan.version.clone(),
        command: like.command.clone(),
        url: like.endpoint.url.clone(),
        seed: like.seed,
        workload: like.workload.clone(),
        server_cpus: server.cpus.clone(),
        client_cpus: like.cpus.clone(),
        level: plan.level,
        max_load: plan.max_load.unwrap_or(MAX_LOAD),
        max_delay: plan.max_delay.unwrap_or(MAX_DELAY),
        gentle,
        change: plan.change.filter(|_| !gentle),
        lenient: is_demo,
        shards: crew.as_ref().map(Crew::shards),
        connection_limit: plan.connection_limit,
        new_connections: like.connections.calls_per_connection == Some(1),
        opens_ahead: like.tls.is_some() || like.connections.http2,
    };
    let began = Instant::now();
    let survey = conduct(&setup, &mut ServerBench::new(like, server, crew, stop), news);
    survey.map(|survey| Survey { elapsed_s: Some(began.elapsed().as_secs_f64()), ..survey })
}
