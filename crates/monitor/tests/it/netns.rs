//! Tests the monitor with servers in their own network namespaces. Creating a namespace needs root; without root these
//! tests fail and say so.

use super::{Shell, begin_connect, copy_of_sleep, drops_of, listener, listener_of, wait_for};
use brimful_monitor::{
    MetricsTracker, MonitorConfig, NetNamespace, ProcessSelector, Rates, Sample, Sampler, TcpSample,
};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, capabilities, move_into_link_name_space, set_capabilities};
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// A network namespace with only a loopback device. Dropping this value removes the namespace.
pub struct Namespace(String);

impl Namespace {
    /// Creates a namespace, and activates its loopback device.
    pub fn new() -> Namespace {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("brimful-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        ip(&["netns", "add", &name]);
        let namespace = Namespace(name);
        ip(&["-n", &namespace.0, "link", "set", "lo", "up"]);
        namespace
    }

    /// Path of the file that represents the namespace.
    pub fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.0)
    }

    /// Runs `body` in a thread inside the namespace. Sockets and child processes of the thread stay in the namespace.
    pub fn inside<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let file = File::open(self.path()).unwrap();
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                body()
            });
            thread.join().unwrap()
        })
    }

    fn listener(&self, backlog: i32) -> (OwnedFd, SocketAddr) {
        self.inside(|| listener(backlog))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "needs root and the program ip: ip {arguments:?}: {said}");
}

/// A process that waits; it is killed when this value is dropped.
struct Waiting(Child);

impl Waiting {
    fn start(program: &str) -> Waiting {
        Waiting(Command::new(program).arg("60").spawn().unwrap())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tcp(sample: &Sample) -> TcpSample {
    sample.groups.network.as_ref().unwrap().tcp
}

/// Takes samples until a sample has the expected values: a busy kernel may finish a handshake after `connect` has
/// returned.
fn settled(sampler: &mut Sampler, expected: impl Fn(&Sample) -> bool) -> Sample {
    wait_for("a sample as expected", || Some(sampler.sample()).filter(&expected))
}

fn interfaces(sample: &Sample) -> Vec<&str> {
    sample
        .groups
        .network
        .as_ref()
        .unwrap()
        .interfaces
        .as_ref()
        .unwrap()
        .iter()
        .map(|interface| &*interface.name)
        .collect()
}

#[test]
fn a_server_in_another_namespace_is_watched_there() {
    let namespace = Namespace::new();
    let process = namespace.inside(|| Waiting::start("sleep"));
    let (listening, address) = namespace.listener(8);
    let config = MonitorConfig {
        processes: vec![ProcessSelector::Pid(process.0.id())],
        ports: vec![address.port()],
        ..MonitorConfig::default()
    };
    let mut sampler = Sampler::open(&config).unwrap();
    let before = sampler.sample();
    assert_eq!(interfaces(&before), ["lo"]);

    let connections: Vec<TcpStream> =
        namespace.inside(|| (0..5).map(|_| TcpStream::connect(address).unwrap()).collect());
    settled(&mut sampler, |sample| listener_of(sample).is_some_and(|listener| listener.accept_queue == 5));
    let after = sampler.sample(); // by now the counters include the last handshake
    let (tcp_before, tcp_after) = (tcp(&before), tcp(&after));
    let grown = |counter: fn(&TcpSample) -> Option<u64>| counter(&tcp_after).unwrap() - counter(&tcp_before).unwrap();
    // No other program uses the namespace, so the counters are exact. Each connection causes three segments.
    assert_eq!((grown(|tcp| tcp.active_opens), grown(|tcp| tcp.passive_opens)), (5, 5));
    assert_eq!((grown(|tcp| tcp.segments_in), grown(|tcp| tcp.segments_out)), (15, 15));
    assert_eq!((tcp_before.in_use, tcp_after.in_use), (Some(1), Some(11)));
    assert_eq!(listener_of(&after).map(|listener| (listener.accept_queue, listener.backlog)), Some((5, 8)));

    let network = Rates::between(&before, &after).network.unwrap();
    let (seconds, lo) = (network.length().as_secs_f64(), network.metrics.interfaces["lo"]);
    assert!((lo.rx_packets_per_s * seconds - 15.0).abs() < 1e-6, "{lo:?} over {seconds} s");
    assert_eq!((lo.rx_bytes_per_s, lo.rx_errors_per_s), (lo.tx_bytes_per_s, 0.0));
    assert_eq!(network.metrics.all, Some(lo));
    let tcp = network.metrics.tcp.unwrap();
    assert!((tcp.passive_opens_per_s.unwrap() * seconds - 5.0).abs() < 1e-6, "{tcp:?}");
    assert_eq!((tcp.retransmitted_per_s, tcp.listen_drops_per_s), (Some(0.0), Some(0.0)));

    let sources = sampler.sources();
    for key in ["network", "tcp", "listener"] {
        let remark = format!("in the network namespace of process {}, which is watched", process.0.id());
        assert!(sources[key].contains(&remark) && sources[key].contains("--netns own"), "{}", sources[key]);
    }
    drop((listening, connections));
}

#[test]
fn the_owner_of_a_port_is_looked_for_where_the_port_is() {
    let namespace = Namespace::new();
    let (listening, address) = namespace.listener(8);
    let process = Waiting(Command::new("sleep").arg("60").stdin(listening).spawn().unwrap());
    for ebpf in [true, false] {
        let config = MonitorConfig {
            processes: vec![ProcessSelector::Port(address.port())],
            ports: vec![address.port()],
            netns: NetNamespace::File(namespace.path()),
            ebpf,
            ..MonitorConfig::default()
        };
        let mut sampler = Sampler::open(&config).unwrap();
        sampler.require_processes().unwrap();
        wait_for("the owner of the port", || {
            let program = sampler.sample().groups.process.unwrap().remove(0);
            (*program.pids == [process.0.id()]).then_some(())
        });
    }
}

#[test]
fn an_overflow_is_seen_by_name_even_when_the_name_is_gone() {
    let namespace = Namespace::new();
    let (listening, address) = namespace.listener(1);
    let config =
        MonitorConfig { ports: vec![address.port()], netns: namespace.0.parse().unwrap(), ..MonitorConfig::default() };
    assert_eq!(config.netns, NetNamespace::File(namespace.path()));
    let mut sampler = Sampler::open(&config).unwrap();
    // This open descriptor keeps the namespace alive.
    let namespace_file = File::open(namespace.path()).unwrap();
    drop(namespace);

    let connections: Vec<OwnedFd> = std::thread::scope(|scope| {
        let inside = || {
            move_into_link_name_space(namespace_file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            // Linux accepts one connection more into the queue than the backlog, so three connections are refused.
            (0..5).map(|_| begin_connect(address)).collect()
        };
        scope.spawn(inside).join().unwrap()
    });
    // Refused SYNs are retransmitted after a second, and refused again.
    let agreed = |sample: &Sample| {
        let drops = drops_of(sample);
        drops >= 3 && tcp(sample).listen_drops == Some(drops)
    };
    let sample = settled(&mut sampler, agreed);
    let tcp = tcp(&sample);
    assert_eq!((tcp.passive_opens, listener_of(&sample).unwrap().accept_queue), (Some(2), 2));
    assert_eq!(tcp.listen_overflows, tcp.listen_drops);
    drop((listening, connections));
}

#[test]
fn a_server_that_is_started_anew_elsewhere_is_followed() {
    let namespace = Namespace::new();
    let directory = tempfile::tempdir().unwrap();
    // A process name that no other process has.
    let name = format!("bf{}", std::process::id());
    let program = copy_of_sleep(directory.path(), &name);
    let start = || Waiting::start(program.to_str().unwrap());

    let first = start();
    let config =
        MonitorConfig { processes: vec![ProcessSelector::Name(name)], ports: vec![1], ..MonitorConfig::default() };
    let mut sampler = Sampler::open(&config).unwrap();
    let mut tracker = MetricsTracker::default();
    let here = sampler.sample();
    assert!(interfaces(&here).len() > 1, "this host has no interface but lo: {:?}", interfaces(&here));
    tracker.advance(&here);
    drop(first);
    let _second = namespace.inside(start);

    let arrived = wait_for("the process to be in the new namespace", || {
        let sample = sampler.sample();
        if sample.netns != here.netns {
            return Some(sample);
        }
        assert!(tracker.advance(&sample).network.is_some());
        None
    });
    assert_eq!(interfaces(&arrived), ["lo"]);
    let rates = tracker.advance(&arrived);
    assert_eq!((rates.network, rates.connections), (None, None), "samples of two namespaces yield no rates");
    assert!(rates.kernel.is_some());
    let stayed = sampler.sample();
    assert_eq!(stayed.netns, arrived.netns);
    assert!(tracker.advance(&stayed).network.is_some());
    let source = &sampler.sources()["tcp"];
    assert!(source.ends_with("the server has been there only for a part of the time"), "{source}");
}

#[test]
fn the_monitors_own_namespace_can_be_insisted_on() {
    let namespace = Namespace::new();
    let process = namespace.inside(|| Waiting::start("sleep"));
    let config = MonitorConfig {
        processes: vec![ProcessSelector::Pid(process.0.id())],
        netns: NetNamespace::Own,
        ..MonitorConfig::default()
    };
    let mut sampler = Sampler::open(&config).unwrap();
    let own = Sampler::open(&MonitorConfig::default()).unwrap().sample();
    let sample = sampler.sample();
    assert_eq!((sample.netns, interfaces(&sample)), (own.netns, interfaces(&own)));
    let source = &sampler.sources()["network"];
    assert!(source.contains(&format!("`--netns {}` shows that of process", process.0.id())), "{source}");
}

#[test]
fn without_the_privilege_what_can_be_read_is_read_and_the_rest_says_the_command() {
    let namespace = Namespace::new();
    let process = namespace.inside(|| Waiting::start("sleep"));
    let (_listening, address) = namespace.listener(8);
    let pid = process.0.id();
    let config = |netns| MonitorConfig {
        processes: vec![ProcessSelector::Pid(pid)],
        ports: vec![address.port()],
        netns,
        ..MonitorConfig::default()
    };
    // Privileges belong to a thread, so this thread can drop its own.
    let unprivileged = || {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::SYS_ADMIN);
        set_capabilities(None, sets).unwrap();
        (Sampler::open(&config(NetNamespace::Server)), Sampler::open(&config(NetNamespace::Process(pid))))
    };
    let (found, asked_for) = std::thread::scope(|scope| scope.spawn(unprivileged).join().unwrap());
    let command = format!("sudo nsenter --net=/proc/{pid}/ns/net brimful watch");

    let mut found = found.unwrap();
    let sample = found.sample();
    assert_eq!((interfaces(&sample), &sample.groups.connections), (vec!["lo"], &None));
    let sources = found.sources();
    assert!(sources["listener"].starts_with("none: cannot enter") && sources["listener"].contains(&command));
    assert!(sources["network"].contains("/proc/net/dev"), "{}", sources["network"]);
    let error = asked_for.unwrap_err().to_string();
    assert!(error.contains(&command), "{error}");
}

#[test]
fn a_namespace_that_is_not_there_is_an_error() {
    let mut shell = Shell::start();
    let gone = shell.run("sleep 0 & wait $!; echo $!") as u32;
    for netns in [NetNamespace::Process(gone), "no-such-namespace".parse().unwrap()] {
        let error = Sampler::open(&MonitorConfig { netns, ..MonitorConfig::default() }).unwrap_err().to_string();
        assert!(error.starts_with("cannot enter the network namespace"), "{error}");
        assert!(error.ends_with("`sudo lsns -t net` lists the existing ones"), "{error}");
    }
}
