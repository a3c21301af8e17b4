//! Tests the monitor with real processes and real sockets. Network namespaces and processes of other users need root.
//! All traffic stays on 127.0.0.1.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod connections;
mod listeners;
mod module;
mod netns;
mod processes;
mod remote;
mod requests;
mod users;
mod wire;

use brimful_core::Nanos;
use brimful_monitor::{
    Intervals, ListenerSample, Monitor, MonitorConfig, ProcessSelector, ProcessTree, Sample, online_cpus, pin_tree,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time after which a test stops waiting and fails. Even a slow host needs less.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Calls `answer` until it returns a value, and fails after [`TEST_TIMEOUT`].
#[track_caller]
fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "timed out waiting for {what}");
        sleep(Duration::from_millis(1));
    }
}

/// Copies the program `sleep` under another name. Another process writes the file, because the kernel refuses to
/// execute a file that is open for writing: if this process wrote it, children started by other tests would inherit the
/// open descriptor for a moment.
fn copy_of_sleep(directory: &Path, name: &str) -> PathBuf {
    let copy = directory.join(name);
    assert!(Command::new("cp").arg("/bin/sleep").arg(&copy).status().unwrap().success());
    copy
}

/// A shell that runs one command per line and returns its output.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A shell command that uses about 100 ms of CPU.
const BURN: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";
/// A shell command that prints the CPU time of its shell in nanoseconds, from another source than the monitor's. The
/// kernel updates this time at each clock tick and whenever the shell waits, so this must be a separate command.
const OWN_NS: &str = "read -r ns rest < /proc/self/schedstat; echo $ns";

impl Shell {
    fn start() -> Shell {
        let script = "while read -r line; do eval \"$line\"; done";
        let mut command = Command::new("sh");
        let mut child = command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Shell { child, input, output }
    }

    fn run(&mut self, command: &str) -> u64 {
        writeln!(self.input, "{command}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer.trim().parse().unwrap()
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn tree(&self) -> ProcessTree {
        ProcessTree::open(&[ProcessSelector::Pid(self.pid())], &[]).unwrap()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn near(found: u64, truth: u64, tolerance: f64) -> bool {
    found.abs_diff(truth) as f64 <= tolerance * truth as f64
}

/// Opens a TCP socket that child processes do not inherit.
fn open_socket(flags: SocketFlags) -> OwnedFd {
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC | flags, None).unwrap()
}

/// Listens on a free port with a given backlog.
fn listener(backlog: i32) -> (OwnedFd, SocketAddr) {
    let fd = listen_at((Ipv4Addr::LOCALHOST, 0).into(), backlog);
    let address = getsockname(&fd).unwrap().try_into().unwrap();
    (fd, address)
}

fn listen_at(address: SocketAddr, backlog: i32) -> OwnedFd {
    let fd = open_socket(SocketFlags::empty());
    bind(&fd, &address).unwrap();
    listen(&fd, backlog).unwrap();
    fd
}

/// Starts to connect without waiting for the result.
fn begin_connect(address: SocketAddr) -> OwnedFd {
    let fd = open_socket(SocketFlags::NONBLOCK);
    let _ = connect(&fd, &address);
    fd
}

/// The state of the listening socket, if only one port is watched.
fn listener_of(sample: &Sample) -> Option<ListenerSample> {
    sample.groups.connections.as_ref()?.ports[0].listener
}

/// The number of dropped SYNs, if only one port is watched.
fn drops_of(sample: &Sample) -> u64 {
    sample.groups.connections.as_ref().unwrap().ports[0].drops.unwrap()
}

#[test]
fn a_run_is_watched_from_start_to_finish() {
    let mut shell = Shell::start();
    let (_listener, address) = listener(8);
    let config = MonitorConfig {
        processes: vec![ProcessSelector::Pid(shell.pid())],
        ports: vec![address.port()],
        cpus: vec![0],
        intervals: Intervals::uniform(Nanos::from_millis(20)),
        pin: online_cpus().last().copied(),
        ..MonitorConfig::default()
    };
    let before = shell.run(OWN_NS);
    let monitor = Monitor::start(config).unwrap();
    let connections: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    shell.run(&format!("{BURN}; echo 0"));
    let burnt = shell.run(OWN_NS) - before;
    let server = monitor.finish(Nanos::ZERO, None);
    drop(connections);

    let process = &server.process[0];
    assert_eq!((process.name.as_str(), process.pids.as_slice()), ("sh", [shell.pid()].as_slice()));
    assert!(near((process.cpu_s * 1e9) as u64, burnt, 0.03), "{process:?}, {burnt} ns burnt");
    assert!(process.rss_bytes > 100_000 && process.context_switches > Some(0), "{process:?}");
    let listener = server.connections.listener.unwrap();
    assert_eq!((listener.accept_queue_max, listener.backlog), (3, 8));
    assert!(listener.syn_per_s.unwrap() > 0.0 && listener.accepted_per_s.unwrap() > 0.0, "{listener:?}");
    let cpu = server.kernel.cpu.unwrap();
    assert!((cpu.user + cpu.system + cpu.idle + cpu.steal - 1.0).abs() < 1e-9, "{cpu:?}");
    assert_eq!(server.kernel.cpus, [0]);
    let overhead = server.overhead;
    assert!(
        overhead.samples - 1 - server.intervals.len() as u64 <= 1,
        "every pair of samples makes an interval, except perhaps the last pair"
    );
    assert!(overhead.samples >= 2 && overhead.per_sample_us > 0.0 && overhead.monitor_cpu_s > 0.0, "{overhead:?}");
    for group in ["cpu", "process", "listener"] {
        assert!(!server.sources[group].starts_with("none"), "{:?}", server.sources);
    }
}

#[test]
fn what_cannot_be_watched_is_an_error_or_said() {
    let named = |name: &str| vec![ProcessSelector::Name(name.to_owned())];
    let start = |config| Monitor::start(config).unwrap_err().to_string();
    let error = start(MonitorConfig { processes: named("no-such-server"), ..MonitorConfig::default() });
    assert!(error.starts_with("no process named `no-such-server` is running: start the server first"), "{error}");
    for config in [
        MonitorConfig { cpus: vec![99_999], ..MonitorConfig::default() },
        MonitorConfig { pin: Some(99_999), ..MonitorConfig::default() },
    ] {
        let error = start(config);
        assert!(error.starts_with("CPU 99999 is not online: choose among 0"), "{error}");
    }
    let server = Monitor::start(MonitorConfig::default()).unwrap().finish(Nanos::ZERO, None);
    assert_eq!((server.connections.listener, server.process.len()), (None, 0));
    assert_eq!(server.sources["process"], "none: no process was named");
    assert_eq!(server.sources["listener"], "none: no port was named");
}

#[test]
fn a_pinned_tree_is_put_back_and_its_newborn_with_it() {
    let affinity = |pid: u32| sched_getaffinity(Pid::from_raw(pid as i32)).unwrap();
    let mut shell = Shell::start();
    let elder = shell.run("sleep 600 > /dev/null & echo $!") as u32;
    let mut tree = shell.tree();
    let former = affinity(shell.pid());
    let cpu = online_cpus().into_iter().rfind(|&cpu| former.is_set(cpu)).unwrap();
    let mut wanted = CpuSet::new();
    wanted.set(cpu);

    let guard = pin_tree(&tree, &[cpu], |_| Ok(())).unwrap();
    let process_started_during_watch = shell.run("sleep 600 > /dev/null & echo $!") as u32;
    for pid in [shell.pid(), elder, process_started_during_watch] {
        assert_eq!(affinity(pid), wanted, "the process is pinned");
    }
    drop(guard);
    for pid in [shell.pid(), elder, process_started_during_watch] {
        assert_eq!(affinity(pid), former, "the process has its former CPUs again");
    }
    shell.run(&format!("kill {elder} {process_started_during_watch}; wait; echo 0"));
    tree.cpu_ns();
    assert_eq!(tree.pids(), [shell.pid()]);
}
