//! The entry points of a comparison: one starts the servers, the other compares them.

use crate::AbError;
use crate::method::{AbEvent, AbPlan, measure_rounds};
use crate::outcome::{Origin, document};
use crate::process::ServerProcess;
use crate::server_bench::{LoadedServer, ServerBench};
use brimful_core::ab::{AbRun, AbTest};
use brimful_os::machine::this_machine;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// The user's description of a server: a URL, or a command that starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSource {
    /// URL of a running server.
    Url(String),
    /// A command that starts the server, and the path to request.
    Command {
        /// The shell command. `{port}` stands for the port on which the server must listen.
        command: String,
        /// The path of the requested URL.
        path: String,
    },
}

impl ServerSource {
    /// The URL or command, as the user wrote it.
    pub fn name(&self) -> &str {
        match self {
            ServerSource::Url(url) => url,
            ServerSource::Command { command, .. } => command,
        }
    }
}

/// The servers that brimful started with commands, and the URLs of all compared servers.
#[derive(Debug)]
pub struct StartedServers {
    processes: [Option<ServerProcess>; 2],
    control: Option<ServerProcess>,
    path: String,
    /// The URLs of A and B.
    pub urls: [String; 2],
}

/// Starts the servers that are defined by commands, and waits until they answer. A's command is started twice: the
/// second process is the control.
///
/// # Errors
/// If a command cannot be started, ends, or does not listen in time.
pub fn start_servers(sources: &[ServerSource; 2], stop: &AtomicBool) -> Result<StartedServers, AbError> {
    let start = |side: &'static str, source: &ServerSource| match source {
        ServerSource::Url(_) => Ok(None),
        ServerSource::Command { command, path } => ServerProcess::start(side, command, path, stop).map(Some),
    };
    let a = start("A", &sources[0])?;
    let control = start("A's second process", &sources[0])?;
    let b = start("B", &sources[1])?;
    let url = |source: &ServerSource, process: &Option<ServerProcess>| match (source, process) {
        (ServerSource::Command { path, .. }, Some(process)) => process.url(path),
        (source, _) => source.name().to_owned(),
    };
    let path = match &sources[0] {
        ServerSource::Command { path, .. } => path.clone(),
        ServerSource::Url(_) => String::new(),
    };
    Ok(StartedServers { urls: [url(&sources[0], &a), url(&sources[1], &b)], processes: [a, b], control, path })
}

impl StartedServers {
    /// The URL of the control, if it is a second process of A's command.
    pub fn control_url(&self) -> Option<String> {
        self.control.as_ref().map(|process| process.url(&self.path))
    }
}

/// Compares two servers. `control` has the options of the runs against the control, if the control is a second process
/// of A's command. `listener` is called with each event.
///
/// # Errors
/// [`AbError`] if a server cannot be measured, or if the servers cannot be compared.
pub fn ab(
    plan: &AbPlan,
    servers: StartedServers,
    control: Option<brimful_run::RunOptions>,
    stop: &AtomicBool,
    listener: &mut dyn FnMut(AbEvent),
) -> Result<AbTest, AbError> {
    let StartedServers { processes: [a, b], control: control_process, urls, .. } = servers;
    let template = |options: &brimful_run::RunOptions| {
        let mut options = options.clone();
        options.load.window = plan.slice_duration;
        options
    };
    let [of_a, of_b] = plan.run_options.each_ref().map(template);
    let record = of_a.record.clone();
    let origin = Origin {
        run: AbRun {
            brimful_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
            command: record.command,
            labels: record.labels,
            machine: Some(this_machine()),
        },
        workload: of_a.load.workload.clone().without_secrets(&record.secret_headers),
        seed: of_a.load.seed,
        control_is_second_process: control.is_some(),
        is_same_server: urls[0] == urls[1],
        urls,
    };
    let seed = origin.seed;
    let control = control.map(|options| {
        LoadedServer::new("A's second process", plan.names[0].clone(), template(&options), control_process)
    });
    let mut bench = ServerBench::new(
        LoadedServer::new("A", plan.names[0].clone(), of_a, a),
        LoadedServer::new("B", plan.names[1].clone(), of_b, b),
        control,
        stop,
    );
    let measured = measure_rounds(plan, seed, &mut bench, listener)?;
    document(plan, measured, origin)
}
