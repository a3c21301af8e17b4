//! A running test bed: the hosts of the server and the clients, and the router between them. This module starts them,
//! and collects their packet counts at the end.

use crate::TestbedError;
use crate::address::HostNumber;
use crate::cpus::Cpus;
use crate::namespace::Namespace;
use crate::router::{ClientCounts, MTU, NetworkSettings};
use crate::router_thread::{RouterResults, RouterThread};
use crate::sys::unshare;
use brimful_core::testbed;
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space};
use std::fs::{self, File};
use std::os::fd::AsFd;

/// A running test bed. Dropping this value stops the router. A host (network namespace) exists until the last process
/// in it has ended.
#[derive(Debug)]
pub struct RunningTestbed {
    settings: NetworkSettings,
    cpus: Cpus,
    /// The server's host, then the clients' hosts in the order of their numbers.
    hosts: Vec<Namespace>,
    router: RouterThread,
    /// Number of packets that the kernel had dropped on full receive queues (CPU backlogs) before the test bed started.
    backlog_drops_before: u64,
}

/// The results of a test bed, which are part of its JSON document.
#[derive(Clone, Debug, PartialEq)]
pub struct TestbedResults {
    /// The settings of the network between the server and the clients.
    pub shape: testbed::LinkProperties,
    /// The server's host, with the counts of its packets.
    pub server: testbed::Host,
    /// The clients' hosts, in the order of their numbers, with the counts of their packets.
    pub clients: Vec<testbed::Client>,
    /// The router's packet counts, lateness and CPU time.
    pub router: testbed::Router,
}

/// Moves this process into a new user namespace in which it is root. Does nothing if the process may already create
/// network namespaces. The process must not have started a thread before.
///
/// # Errors
/// [`TestbedError`] if the kernel does not permit users to create user namespaces.
pub fn become_root() -> Result<(), TestbedError> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        return Ok(());
    }
    let user = getuid().as_raw();
    let group = getgid().as_raw();
    unshare(UnshareFlags::NEWUSER).map_err(|error| TestbedError::Namespace(error.into()))?;
    for (path, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(path, text).map_err(|source| TestbedError::UserNamespace { path, source })?;
    }
    Ok(())
}

impl RunningTestbed {
    /// Starts the hosts and the router of a test bed.
    ///
    /// # Errors
    /// [`TestbedError`] if this process may not create network namespaces, or if a TUN device or the program `ip` is
    /// missing.
    pub fn start(settings: NetworkSettings, cpus: Cpus) -> Result<RunningTestbed, TestbedError> {
        let mut hosts = Vec::new();
        let mut devices = Vec::new();
        for number in 0..=settings.clients {
            let host = HostNumber(number);
            let (namespace, tun) = Namespace::create(host, cpus.of_host(host))?;
            hosts.push(namespace);
            devices.push(tun);
        }
        let router = RouterThread::start(&settings, devices, cpus.router_placement())
            .map_err(TestbedError::kernel("start the router"))?;
        Ok(RunningTestbed { settings, cpus, hosts, router, backlog_drops_before: backlog_drops() })
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.settings.clients
    }

    /// The CPUs of the server, the clients and the router.
    pub fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    /// Whether each host's packets are received on the CPUs that were chosen for the host.
    pub fn has_packet_steering(&self) -> bool {
        self.hosts.iter().all(|host| host.has_packet_steering)
    }

    /// Runs `body` in a thread on a host of the test bed. The sockets that `body` opens belong to that host, even if
    /// other threads use them.
    ///
    /// # Errors
    /// [`TestbedError`] if the host does not exist or cannot be entered.
    pub fn on_host<T: Send>(&self, host: HostNumber, body: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        let enter = || {
            let namespace = self.hosts.get(host.0).ok_or(rustix::io::Errno::NOENT)?;
            move_into_link_name_space(namespace.file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(body())
        };
        let result = std::thread::scope(|scope| match scope.spawn(enter).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        result.map_err(|error: rustix::io::Errno| TestbedError::Namespace(error.into()))
    }

    /// The hosts, each with an open file of its network namespace, by which a thread can enter it.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = (HostNumber, &File)> {
        self.hosts.iter().enumerate().map(|(number, host)| (HostNumber(number), &host.file))
    }

    /// Stops the router, and returns the results of the test bed; `None` if the router thread panicked.
    pub fn stop(self) -> Option<TestbedResults> {
        let RunningTestbed { settings, cpus, mut hosts, router, backlog_drops_before } = self;
        let results = router.stop()?;
        let backlog_packets = backlog_drops().saturating_sub(backlog_drops_before);
        let mut described =
            hosts.iter_mut().enumerate().map(|(number, host)| describe_host(HostNumber(number), host, &cpus));
        let server = described.next()?;
        let mut clients = Vec::new();
        for (index, (host, counts)) in described.zip(results.router.clients()).enumerate() {
            let rtt = settings.rtts.range_for_client(index, settings.clients);
            let sources = HostNumber(index + 1).ipv4_network();
            let rtt_s = [rtt.min.as_secs_f64(), rtt.max.as_secs_f64()];
            let ClientCounts { up, down, drawn_rtts: drawn } = counts;
            clients.push(testbed::Client { host, sources, rtt_s, drawn, up, down });
        }
        let network = testbed::LinkProperties {
            loss: settings.link.loss,
            up_share: settings.up_share,
            reorder: settings.link.reorder,
            rate_bits_per_s: settings.link.bytes_per_s.map(|rate| rate * 8.0),
            queue_s: settings.link.queue.as_secs_f64(),
            mtu_bytes: MTU as u64,
        };
        let router = describe_router(&results, &cpus, backlog_packets);
        Some(TestbedResults { shape: network, server, clients, router })
    }
}

fn describe_host(number: HostNumber, host: &mut Namespace, cpus: &Cpus) -> testbed::Host {
    testbed::Host {
        name: number.name(),
        ipv4: number.ipv4().to_string(),
        ipv6: host.ipv6.then(|| number.ipv6().to_string()),
        cpus: if host.has_packet_steering { cpus.of_host(number).to_vec() } else { Vec::new() },
        unread_packets: host.unread_packets(),
    }
}

fn describe_router(results: &RouterResults, cpus: &Cpus, backlog_packets: u64) -> testbed::Router {
    let (no_room_packets, no_host_packets) = results.router.dropped();
    testbed::Router {
        cpu: cpus.router,
        delivered_packets: results.lateness.count(),
        late_us: results.lateness.summary(),
        no_room_packets,
        no_host_packets,
        refused_packets: results.refused,
        backlog_packets,
        cpu_s: results.cpu.as_secs_f64(),
    }
}

/// Number of packets that the kernel has dropped on full receive queues (CPU backlogs) since boot: the sum of the
/// second, hexadecimal column of /proc/net/softnet_stat.
fn backlog_drops() -> u64 {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    let dropped = |line: &str| u64::from_str_radix(line.split_ascii_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(dropped).sum()
}
