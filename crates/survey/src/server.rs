//! The server under test: its CPUs, the way to observe it, and the reference server.

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
    /// The server's CPUs; empty for a black box.
    pub cpus: Vec<usize>,
    /// The server's TCP port, if it has one.
    port: Option<u16>,
    /// Set while the server is pinned to CPUs. The guard moves the server back when dropped; the guardian does so if
    /// the survey is killed.
    _pin: Option<(PinGuard, Guardian)>,
    /// Set while the server has a quota. The guard removes the quota when dropped; the guardian does so if the survey
    /// is killed.
    quota: Option<(LimitGuard, Guardian)>,
}

/// The way to observe the server.
#[derive(Clone, Debug)]
enum Monitoring {
    /// The server runs on this host and is observed by its processes.
    Local(Vec<ProcessSelector>),
    /// The server runs on another host and is observed through `brimful watch --serve` on that host.
    Remote(RemoteConfig),
    /// The server is observed by its answers only.
    BlackBox,
}

impl Server {
    /// Finds the server's processes on this host. If `cpus` is given, keeps the processes on these CPUs until this
    /// value is dropped.
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

    /// A server on another host. The monitor on that host reports the server's CPUs.
    pub fn remote(endpoint: &Endpoint, config: RemoteConfig) -> Result<Server, SurveyError> {
        let sample = Monitor::connect(&config)?.finish(Nanos::ZERO, None);
        if sample.process.is_empty() {
            let message = format!(
                "the monitor at {} sees no processes of the server: start it with --process there",
                config.address
            );
            return Err(SurveyError::Unfit(message));
        }
        let cpus = sample.kernel.cpus;
        Ok(Server { monitoring: Monitoring::Remote(config), cpus, port: endpoint.port(), _pin: None, quota: None })
    }

    /// A server that is observed by its answers only.
    pub fn black_box(endpoint: &Endpoint) -> Server {
        let monitoring = Monitoring::BlackBox;
        Server { monitoring, cpus: Vec::new(), port: endpoint.port(), _pin: None, quota: None }
    }

    /// Limits the server's processes to this number of CPUs; `None` removes the limit.
    pub fn limit(&mut self, cpus: Option<f64>) -> Result<(), SurveyError> {
        self.quota = None;
        let Some(cpus) = cpus else { return Ok(()) };
        let Monitoring::Local(selectors) = &self.monitoring else {
            return Err(SurveyError::Unfit(
                "only a server whose processes are on this host can be given a quota".to_owned(),
            ));
        };
        self.quota = Some(limit(&ProcessTree::open(selectors, self.port.as_slice())?, cpus)?);
        Ok(())
    }

    /// The server's CPUs, if they are CPUs of this host.
    pub fn local_cpus(&self) -> Option<&[usize]> {
        matches!(self.monitoring, Monitoring::Local(_)).then_some(&self.cpus)
    }

    /// The target that the monitor observes during a load. The monitor's own thread stays on the CPU `pin`.
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

/// Whether a server accepts connections at `address`.
pub fn is_alive(address: SocketAddr) -> bool {
    // An overloaded server may accept no connection until it has processed some of its backlog, hence the long timeout.
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

/// The CPU time that the reference server has really used so far; `None` for any other server.
pub fn fetch_reference_cpu_times(address: SocketAddr) -> Option<ReferenceCpuTimes> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.write_all(b"GET /__truth HTTP/1.1\r\nHost: target\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = Vec::new();
    stream.take(1 << 20).read_to_end(&mut response).ok()?;
    let body = response.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    response.starts_with(b"HTTP/1.1 200").then(|| serde_json::from_slice(&response[body..]).ok()).flatten()
}

/// The reference server, in a process of its own so that its CPU time is separate from the generator's. Dropping this
/// value ends the process.
#[derive(Debug)]
pub struct DemoServer {
    child: Child,
    pub url: String,
}

impl DemoServer {
    /// Starts `brimful target` on `cpu` with one worker. `service` describes its classes.
    pub fn start(service: &str, cpu: Option<usize>, seed: u64) -> Result<DemoServer, SurveyError> {
        let start_error = |reason: String| SurveyError::Unfit(format!("cannot start the reference server: {reason}"));
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

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The classes of the demonstration. Their demands are drawn from the seed, so that neither the user nor the survey
/// knows them. Requests access memory and call the kernel, so that their cost depends on the load, as on real servers.
pub fn demo_service(seed: u64) -> String {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
    let light = rng.random_range(80..=160);
    let heavy = rng.random_range(300..=600);
    format!("light=work:{light}us/1KiB,heavy=work:{heavy}us/8KiB")
}
