//! The server under test: its processes, its CPUs, and what it tells of itself.

use crate::SurveyError;
use crate::guardian::{Guardian, Undo};
use brimful_core::Nanos;
use brimful_monitor::{
    Intervals, LimitGuard, Monitor, MonitorConfig, PinGuard, ProcessSelector, ProcessTree, RemoteConfig, limit_tree,
    online_cpus, pin_tree,
};
use brimful_run::{Endpoint, MonitorTarget};
use brimful_target::Truth;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server, and how it is seen.
#[derive(Debug)]
pub struct Server {
    seen: Seen,
    /// Its CPUs; none where nothing is seen of it.
    pub cpus: Vec<usize>,
    /// The TCP port, if it has one.
    port: Option<u16>,
    /// Puts the server back on its former CPUs when the survey is over, and the other one if it is killed.
    _pin: Option<(PinGuard, Guardian)>,
    /// The same of a quota, as long as it has one.
    limited: Option<(LimitGuard, Guardian)>,
}

/// How a server is seen.
#[derive(Clone, Debug)]
enum Seen {
    /// On this host: its programs.
    Here(Vec<ProcessSelector>),
    /// On another one, through a `brimful watch --serve` there.
    There(RemoteConfig),
    /// Not at all.
    BlackBox,
}

impl Server {
    /// Finds the server's processes and, if asked, keeps them on `cpus` until this is dropped.
    pub fn find(
        endpoint: &Endpoint,
        selectors: Vec<ProcessSelector>,
        cpus: Option<Vec<usize>>,
    ) -> Result<Server, SurveyError> {
        let tree = ProcessTree::open(&selectors, endpoint.port().as_slice())?;
        let pin = cpus.as_ref().map(|cpus| pin(&tree, cpus)).transpose()?;
        let cpus = cpus.unwrap_or_else(online_cpus);
        Ok(Server { seen: Seen::Here(selectors), cpus, port: endpoint.port(), _pin: pin, limited: None })
    }

    /// Asks who watches it on its own host which CPUs it has.
    pub fn there(endpoint: &Endpoint, config: RemoteConfig) -> Result<Server, SurveyError> {
        let found = Monitor::connect(&config)?.finish(Nanos::ZERO, None);
        if found.process.is_empty() {
            let what = format!(
                "who watches at {} sees no processes of the server: start it with --process there",
                config.address
            );
            return Err(SurveyError::Unfit(what));
        }
        let cpus = found.kernel.cpus;
        Ok(Server { seen: Seen::There(config), cpus, port: endpoint.port(), _pin: None, limited: None })
    }

    /// One of which only the answers are known.
    pub fn black_box(endpoint: &Endpoint) -> Server {
        Server { seen: Seen::BlackBox, cpus: Vec::new(), port: endpoint.port(), _pin: None, limited: None }
    }

    /// Lets its processes use so many CPUs; `None` lets them use all again.
    pub fn limit(&mut self, cpus: Option<f64>) -> Result<(), SurveyError> {
        self.limited = None;
        let Some(cpus) = cpus else { return Ok(()) };
        let Seen::Here(selectors) = &self.seen else {
            return Err(SurveyError::Unfit(
                "a quota can be given only to a server whose processes are here".to_owned(),
            ));
        };
        self.limited = Some(limit(&ProcessTree::open(selectors, self.port.as_slice())?, cpus)?);
        Ok(())
    }

    /// Its CPUs, if they are this host's.
    pub fn cpus_here(&self) -> Option<&[usize]> {
        matches!(self.seen, Seen::Here(_)).then_some(&self.cpus)
    }

    /// What the monitor is to watch during a load, this often; its own thread stays on `pin`.
    pub fn watched(&self, interval: Nanos, pin: Option<usize>) -> Option<MonitorTarget> {
        let intervals = Intervals::every(interval);
        match &self.seen {
            Seen::Here(selectors) => Some(MonitorTarget::Local(MonitorConfig {
                processes: selectors.clone(),
                ports: self.port.into_iter().collect(),
                cpus: self.cpus.clone(),
                pin,
                intervals,
                ..MonitorConfig::default()
            })),
            Seen::There(config) => Some(MonitorTarget::Remote(RemoteConfig { intervals, ..config.clone() })),
            Seen::BlackBox => None,
        }
    }
}

/// Keeps the server to so many CPUs; undone by whichever of the two is there at the end.
fn limit(tree: &ProcessTree, cpus: f64) -> Result<(LimitGuard, Guardian), SurveyError> {
    let mut guardian = Guardian::start().map_err(SurveyError::Guardian)?;
    let guard = limit_tree(tree, cpus, |moved| guardian.announce(&Undo::Quota(moved.clone())))?;
    Ok((guard, guardian))
}

fn pin(tree: &ProcessTree, cpus: &[usize]) -> Result<(PinGuard, Guardian), SurveyError> {
    let mut guardian = Guardian::start().map_err(SurveyError::Guardian)?;
    let pin = pin_tree(tree, cpus, |former| guardian.announce(&Undo::Cpus(former.clone())))?;
    Ok((pin, guardian))
}

/// Whether anything accepts connections at `address`.
pub fn is_alive(address: SocketAddr) -> bool {
    // One that is swamped takes no connection until it has got some of its backlog done.
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

/// What the reference server has really spent so far; `None` from any other server.
pub fn truth(address: SocketAddr) -> Option<Truth> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.write_all(b"GET /__truth HTTP/1.1\r\nHost: target\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = Vec::new();
    stream.take(1 << 20).read_to_end(&mut response).ok()?;
    let body = response.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    response.starts_with(b"HTTP/1.1 200").then(|| serde_json::from_slice(&response[body..]).ok()).flatten()
}

/// The reference server in a process of its own, so that its CPU time is its own. Ends with its owner.
#[derive(Debug)]
pub struct DemoServer {
    child: Child,
    pub url: String,
}

impl DemoServer {
    /// Starts `brimful target`, serving `service` on `cpu` with one worker.
    pub fn start(service: &str, cpu: Option<usize>, seed: u64) -> Result<DemoServer, SurveyError> {
        let unfit = |what: String| SurveyError::Unfit(format!("cannot start the reference server: {what}"));
        let program = std::env::current_exe().map_err(|error| unfit(error.to_string()))?;
        let mut command = Command::new(program);
        command.args(["target", "--listen", "127.0.0.1:0", "--service", service]);
        command.args(["--workers", "1", "--with-parent", "--seed", &seed.to_string()]);
        if let Some(cpu) = cpu {
            command.args(["--cpus", &cpu.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| unfit(error.to_string()))?;
        let mut line = String::new();
        let told = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let url = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let server = DemoServer { child, url: url.clone().unwrap_or_default() };
        match (told, url) {
            (Some(Ok(_)), Some(_)) => Ok(server),
            _ => Err(unfit("it did not say where it listens; see its message above".to_owned())),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        // Either fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Classes of the demonstration: names and demands, drawn from the seed so that nobody knows them. They are work that
/// touches memory and calls the kernel, so that what it costs depends on the load, as it does with real servers.
pub fn demo_service(seed: u64) -> String {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
    let light = rng.random_range(80..=160);
    let heavy = rng.random_range(300..=600);
    format!("light=work:{light}us/1KiB,heavy=work:{heavy}us/8KiB")
}
