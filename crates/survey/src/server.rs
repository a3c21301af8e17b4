//! The server under test: its CPUs, the ways to monitor it, and the reference server.

use crate::SurveyError;
use brimful_core::Nanos;
use brimful_monitor::{
    Intervals, LimitGuard, Monitor, MonitorConfig, PinGuard, ProcessSelector, ProcessTree, RemoteConfig, limit_tree,
    online_cpus, pin_tree,
};
use brimful_run::{Endpoint, Guardian, MonitorTarget, ServerChange};
use brimful_target::ReferenceCpuTimes;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The server under test.
#[derive(Debug)]
pub struct Server {
    monitoring: Monitoring,
    /// The server's CPUs; empty if they cannot be observed.
    pub cpus: Vec<usize>,
    /// The server's TCP port, if it has one.
    port: Option<u16>,
    /// Guards that exist while the server is pinned to CPUs. Dropping them restores the server's CPUs. If the survey is
    /// killed, a separate process (the [`Guardian`]) does so.
    _pin: Option<(PinGuard, Guardian)>,
    /// Guards that exist while the survey limits the server by a CPU quota. Dropping them removes the quota. If the
    /// survey is killed, a separate process (the [`Guardian`]) does so.
    quota: Option<(LimitGuard, Guardian)>,
}

/// The way to monitor the server.
#[derive(Clone, Debug)]
enum Monitoring {
    /// The server runs on this host, and its processes are monitored.
    Local(Vec<ProcessSelector>),
    /// The server runs on another host, and is monitored by `brimful watch --serve` on that host.
    Remote(RemoteConfig),
    /// The server is not monitored. Only its responses are known.
    BlackBox,
}

impl Server {
    /// Creates a server on this host from its processes. If `cpus` is given, the processes are pinned to these CPUs
    /// until this value is dropped.
    pub fn local(
        endpoint: &Endpoint,
        selectors: Vec<ProcessSelector>,
        cpus: Option<Vec<usize>>,
    ) -> Result<Server, SurveyError> {
        let tree = ProcessTree::open(&selectors, endpoint.port().as_slice())?;
        let pin = cpus.as_ref().map(|cpus| pin(&tree, cpus)).transpose()?;
        let cpus = cpus.unwrap_or_else(online_cpus);
        Ok(Server { monitoring: Monitoring::Local(selectors), cpus, port: endpoint.port(), _pin: pin, quota: None })
    }

    /// Creates a server on another host. The monitor on that host reports the server's CPUs.
    pub fn remote(endpoint: &Endpoint, config: RemoteConfig) -> Result<Server, SurveyError> {
        let sample = Monitor::connect(&config)?.finish(Nanos::ZERO, None);
        if sample.process.is_empty() {
            let message = format!(
                "the monitor at {} sees no processes of the server: start it with --process there",
                config.address
            );
            return Err(SurveyError::NotSurveyable(message));
        }
        let cpus = sample.kernel.cpus;
        Ok(Server { monitoring: Monitoring::Remote(config), cpus, port: endpoint.port(), _pin: None, quota: None })
    }

    /// Creates a server that is not monitored.
    pub fn black_box(endpoint: &Endpoint) -> Server {
        let monitoring = Monitoring::BlackBox;
        Server { monitoring, cpus: Vec::new(), port: endpoint.port(), _pin: None, quota: None }
    }

    /// Limits the CPU time of the server's processes to this number of CPUs; `None` removes the limit.
    pub fn set_cpu_quota(&mut self, cpus: Option<f64>) -> Result<(), SurveyError> {
        self.quota = None;
        let Some(cpus) = cpus else { return Ok(()) };
        let Monitoring::Local(selectors) = &self.monitoring else {
            return Err(SurveyError::NotSurveyable(
                "only a server whose processes are on this host can be given a quota".to_owned(),
            ));
        };
        self.quota = Some(limit(&ProcessTree::open(selectors, self.port.as_slice())?, cpus)?);
        Ok(())
    }

    /// The server's CPUs if the server runs on this host.
    pub fn local_cpus(&self) -> Option<&[usize]> {
        matches!(self.monitoring, Monitoring::Local(_)).then_some(&self.cpus)
    }

    /// The processes or the remote monitor to observe during a load. The monitor's own thread is pinned to the CPU
    /// `pin`.
    pub fn monitor_target(&self, interval: Nanos, pin: Option<usize>) -> Option<MonitorTarget> {
        let intervals = Intervals::uniform(interval);
        match &self.monitoring {
            Monitoring::Local(selectors) => Some(MonitorTarget::Local(MonitorConfig {
                processes: selectors.clone(),
                ports: self.port.into_iter().collect(),
                cpus: self.cpus.clone(),
                pin,
                intervals,
                ..MonitorConfig::default()
            })),
            Monitoring::Remote(config) => Some(MonitorTarget::Remote(RemoteConfig { intervals, ..config.clone() })),
            Monitoring::BlackBox => None,
        }
    }
}

fn limit(tree: &ProcessTree, cpus: f64) -> Result<(LimitGuard, Guardian), SurveyError> {
    let mut guardian = Guardian::start().map_err(SurveyError::Guardian)?;
    let guard = limit_tree(tree, cpus, |moved| guardian.set_undo(&ServerChange::Quota(moved.clone())))?;
    Ok((guard, guardian))
}

fn pin(tree: &ProcessTree, cpus: &[usize]) -> Result<(PinGuard, Guardian), SurveyError> {
    let mut guardian = Guardian::start().map_err(SurveyError::Guardian)?;
    let pin = pin_tree(tree, cpus, |former| guardian.set_undo(&ServerChange::Cpus(former.clone())))?;
    Ok((pin, guardian))
}

/// Whether a server accepts TCP connections at `address`.
pub fn is_alive(address: SocketAddr) -> bool {
    // An overloaded server may accept no connection until its queue becomes shorter, so the timeout is long.
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

/// The CPU time of each class that the reference server has reported so far; `None` for any other server.
pub fn fetch_reference_cpu_times(address: SocketAddr) -> Option<ReferenceCpuTimes> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.write_all(b"GET /__truth HTTP/1.1\r\nHost: target\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = Vec::new();
    stream.take(1 << 20).read_to_end(&mut response).ok()?;
    let body = response.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    response.starts_with(b"HTTP/1.1 200").then(|| serde_json::from_slice(&response[body..]).ok()).flatten()
}

/// The reference server of the demonstration. It is a separate process, so that its CPU time can be distinguished from
/// that of the load generator. Dropping this value ends the process.
#[derive(Debug)]
pub struct DemoServer {
    child: Child,
    /// The URL at which the server listens.
    pub url: String,
}

impl DemoServer {
    /// Starts `brimful target` with one worker, pinned to `cpu`. `service` describes its request classes.
    pub fn start(service: &str, cpu: Option<usize>, seed: u64) -> Result<DemoServer, SurveyError> {
        let start_error =
            |reason: String| SurveyError::NotSurveyable(format!("cannot start the reference server: {reason}"));
        let program = std::env::current_exe().map_err(|error| start_error(error.to_string()))?;
        let mut command = Command::new(program);
        command.args(["target", "--listen", "127.0.0.1:0", "--service", service]);
        command.args(["--workers", "1", "--with-parent", "--seed", &seed.to_string()]);
        if let Some(cpu) = cpu {
            command.args(["--cpus", &cpu.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| start_error(error.to_string()))?;
        let mut line = String::new();
        let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let url = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let server = DemoServer { child, url: url.clone().unwrap_or_default() };
        match (read, url) {
            (Some(Ok(_)), Some(_)) => Ok(server),
            _ => Err(start_error("it did not say where it listens; see its message above".to_owned())),
        }
    }

    /// Process ID of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        // Ignore errors: they mean that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The request classes of the demonstration. Their service demands are random, so that neither the user nor the survey
/// knows them. The requests access memory and call the kernel, so that their cost depends on the load as on real
/// servers.
pub fn demo_service(seed: u64) -> String {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
    let light = rng.random_range(80..=160);
    let heavy = rng.random_range(300..=600);
    format!("light=work:{light}us/1KiB,heavy=work:{heavy}us/8KiB")
}
