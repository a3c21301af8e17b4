//! Server, clients and router, from their beginning to their figures.

use crate::TestbedError;
use crate::address::{HostNumber, SERVER};
use crate::cpus::Cpus;
use crate::namespace::Namespace;
use crate::pump::{Ended, Pump};
use crate::router::{ClientCounts, MTU, Shape};
use crate::sys::unshare;
use brimful_core::testbed;
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space};
use std::fs::{self, File};
use std::os::fd::AsFd;

/// A test bed that is there. Dropped, it is gone but for what still runs in it.
#[derive(Debug)]
pub struct Bed {
    shape: Shape,
    cpus: Cpus,
    /// The server, then the clients.
    hosts: Vec<Namespace>,
    pump: Pump,
    /// Packets that the CPUs' backlogs had dropped before.
    backlog: u64,
}

/// What of a test bed goes into its document.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The network.
    pub shape: testbed::Shape,
    /// The server.
    pub server: testbed::Host,
    /// The clients, in order.
    pub clients: Vec<testbed::Client>,
    /// The router.
    pub router: testbed::Router,
}

/// Makes this process root in a user namespace of its own, unless it may make namespaces as it is. Only for a process
/// that has no threads yet.
///
/// # Errors
/// Where the kernel does not let users do that.
pub fn become_root() -> Result<(), TestbedError> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        return Ok(());
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
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

impl Bed {
    /// Makes one.
    ///
    /// # Errors
    /// Without the privilege, a TUN device or the program `ip`.
    pub fn start(shape: Shape, cpus: Cpus) -> Result<Bed, TestbedError> {
        let (mut hosts, mut devices) = (Vec::new(), Vec::new());
        for number in 0..=shape.clients {
            let host = HostNumber(number);
            let of_host = if host == SERVER { &cpus.server } else { &cpus.clients };
            let (namespace, tun) = Namespace::make(host, of_host)?;
            hosts.push(namespace);
            devices.push(tun);
        }
        let pump =
            Pump::start(&shape, devices, cpus.router_place()).map_err(TestbedError::kernel("start the router"))?;
        Ok(Bed { shape, cpus, hosts, pump, backlog: backlog_drops() })
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.shape.clients
    }

    /// Which CPUs do whose work.
    pub fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    /// Whether the receive work of all is done by the CPUs that were chosen for it.
    pub fn is_steered(&self) -> bool {
        self.hosts.iter().all(|host| host.steered)
    }

    /// Runs this in a thread that is on a host: the sockets that it opens are that host's, wherever they are used.
    ///
    /// # Errors
    /// When there is no such host, or it cannot be entered.
    pub fn on<T: Send>(&self, host: HostNumber, body: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
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

    /// The hosts and the descriptors that hold their namespaces.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = (HostNumber, &File)> {
        self.hosts.iter().enumerate().map(|(number, host)| (HostNumber(number), &host.file))
    }

    /// Ends the router and says what it did; `None` if it had ended by itself.
    pub fn stop(self) -> Option<Measured> {
        let Bed { shape, cpus, mut hosts, pump, backlog } = self;
        let ended = pump.stop()?;
        let backlog = backlog_drops().saturating_sub(backlog);
        let counts: Vec<ClientCounts> = ended.router.clients().collect();
        let mut described =
            hosts.iter_mut().enumerate().map(|(number, host)| describe(HostNumber(number), host, &cpus));
        let server = described.next()?;
        let clients = described.zip(counts).enumerate().map(|(index, (host, counts))| {
            let rtt = shape.rtts.of_client(index, shape.clients);
            let sources = HostNumber(index + 1).ipv4_network();
            let rtt_s = [rtt.least.as_secs_f64(), rtt.most.as_secs_f64()];
            let ClientCounts { up, down, drawn } = counts;
            testbed::Client { host, sources, rtt_s, drawn, up, down }
        });
        let clients = clients.collect();
        let network = testbed::Shape {
            loss: shape.link.loss,
            up_share: shape.up_share,
            reorder: shape.link.reorder,
            rate_bits_per_s: shape.link.bytes_per_s.map(|rate| rate * 8.0),
            queue_s: shape.link.queue.as_secs_f64(),
            mtu_bytes: MTU as u64,
        };
        Some(Measured { shape: network, server, clients, router: router(&ended, &cpus, backlog) })
    }
}

fn describe(number: HostNumber, host: &mut Namespace, cpus: &Cpus) -> testbed::Host {
    let own = if number == SERVER { &cpus.server } else { &cpus.clients };
    testbed::Host {
        name: number.name(),
        ipv4: number.ipv4().to_string(),
        ipv6: host.ipv6.then(|| number.ipv6().to_string()),
        cpus: if host.steered { own.clone() } else { Vec::new() },
        unread_packets: host.unread(),
    }
}

fn router(ended: &Ended, cpus: &Cpus, backlog_packets: u64) -> testbed::Router {
    let (no_room_packets, no_host_packets) = ended.router.dropped();
    testbed::Router {
        cpu: cpus.router,
        delivered_packets: ended.late.count(),
        late_us: ended.late.summary(),
        no_room_packets,
        no_host_packets,
        refused_packets: ended.refused,
        backlog_packets,
        cpu_s: ended.cpu.as_secs_f64(),
    }
}

/// Packets that all CPUs have dropped as their backlogs were full: the second column, in hexadecimal.
fn backlog_drops() -> u64 {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    let dropped = |line: &str| u64::from_str_radix(line.split_ascii_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(dropped).sum()
}
