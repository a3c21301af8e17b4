//! A host: a network namespace with a loopback device, a TUN device and addresses.
//!
//! It is made by a thread that goes there, and is held by a descriptor alone: it has no name outside of the test bed,
//! and ends with the processes in it and this one.

use crate::TestbedError;
use crate::address::{HostNumber, SERVER};
use crate::cpus::mask;
use crate::router::MTU;
use crate::sys::{open_tun, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// The device that leads to the router.
pub const DEVICE: &str = "wan";
/// Packets that wait for the router to read them; the kernel's own 500 are 10 ms at 50,000 packets a second.
const UNREAD: usize = 10_000;

/// A namespace and what is needed of it.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// By which it is entered.
    pub file: File,
    /// Whether it has IPv6.
    pub ipv6: bool,
    /// Whether its receive work is done by the CPUs that were asked for.
    pub steered: bool,
    /// Its /proc/net/dev.
    devices: File,
}

impl Namespace {
    /// Makes one, with its TUN device.
    pub fn make(host: HostNumber, cpus: &[usize]) -> Result<(Namespace, OwnedFd), TestbedError> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(host.name());
            let thread = thread.spawn_scoped(scope, || inside(host, cpus));
            match thread.map_err(TestbedError::kernel("start a thread"))?.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Packets that it sent and that found no room in the queue to the router.
    pub fn unread(&mut self) -> u64 {
        let mut text = String::new();
        // Unreadable, it counts none.
        let _ = self.devices.rewind();
        let _ = self.devices.read_to_string(&mut text);
        dropped(&text)
    }
}

/// What a thread does that is to be in it.
fn inside(host: HostNumber, cpus: &[usize]) -> Result<(Namespace, OwnedFd), TestbedError> {
    unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS).map_err(|error| TestbedError::Namespace(error.into()))?;
    let file = File::open("/proc/thread-self/ns/net").map_err(TestbedError::kernel("open a network namespace"))?;
    let devices = File::open("/proc/thread-self/net/dev").map_err(TestbedError::kernel("open /proc/net/dev"))?;
    let tun = open_tun(DEVICE).map_err(|error| TestbedError::Tun(error.into()))?;
    // No addresses of the link's own, and no router solicitations.
    set("net/ipv6/conf/wan/addr_gen_mode", "1").ok();
    if host != SERVER {
        set("net/ipv4/ip_local_port_range", "1024 65535")?;
    }
    ip(host, &ipv4_commands(host))?;
    let ipv6 = ip(host, &ipv6_commands(host)).is_ok();
    let steered = !cpus.is_empty() && steer(cpus).is_ok();
    Ok((Namespace { file, ipv6, steered, devices }, tun))
}

fn ipv4_commands(host: HostNumber) -> String {
    let (address, network) = (host.ipv4(), host.ipv4_network());
    let sources = if host == SERVER { String::new() } else { format!("route add local {network} dev lo\n") };
    format!(
        "link set lo up\n\
         link set {DEVICE} mtu {MTU} txqueuelen {UNREAD} up\n\
         address add {address}/32 dev {DEVICE}\n\
         route add default dev {DEVICE} src {address}\n\
         {sources}"
    )
}

fn ipv6_commands(host: HostNumber) -> String {
    let (address, network) = (host.ipv6(), host.ipv6_network());
    let sources = if host == SERVER { String::new() } else { format!("route add local {network} dev lo\n") };
    format!("address add {address}/128 dev {DEVICE} nodad\nroute add ::/0 dev {DEVICE}\n{sources}")
}

/// Runs commands of iproute2.
fn ip(host: HostNumber, commands: &str) -> Result<(), TestbedError> {
    let mut ip = Command::new("ip");
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = ip.spawn().map_err(TestbedError::NoIp)?;
    if let Some(mut stdin) = child.stdin.take() {
        // It says itself what it does not like.
        let _ = stdin.write_all(commands.as_bytes());
    }
    let output = child.wait_with_output().map_err(TestbedError::NoIp)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', ", ");
    Err(TestbedError::Ip { host: host.name(), said })
}

/// Sets a sysctl of this thread's network namespace.
fn set(name: &str, value: &str) -> Result<(), TestbedError> {
    let path = format!("/proc/sys/{name}");
    fs::write(&path, value).map_err(|source| TestbedError::Setting { path, source })
}

/// Has these CPUs do the receive work. Which devices /sys shows is settled when it is mounted.
fn steer(cpus: &[usize]) -> Result<(), TestbedError> {
    let mounting = |what| move |source: rustix::io::Errno| TestbedError::Mount { what, source: source.into() };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).map_err(mounting("nothing of /"))?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None::<&CStr>).map_err(mounting("sysfs on /sys"))?;
    let path = format!("/sys/class/net/{DEVICE}/queues/rx-0/rps_cpus");
    fs::write(&path, mask(cpus)).map_err(|source| TestbedError::Setting { path, source })
}

/// The packets that the device dropped as it sent them, of /proc/net/dev.
fn dropped(text: &str) -> u64 {
    let device = text.lines().find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'));
    let fields = device.unwrap_or_default().split_ascii_whitespace();
    // Eight columns of what was received, then bytes, packets, errors and drops of what was sent.
    fields.skip(11).find_map(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_devices_line() {
        let text = "Inter-|   Receive                            |  Transmit\n \
                    face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n    \
                    lo:       0       0    0    0    0     0          0         0    0       0    0    0\n   \
                    wan:    1       2    3    4    5     6          7         8      9      10   11   12   13\n";
        assert_eq!(dropped(text), 12);
        assert_eq!((dropped(""), dropped("wan: 1 2 3")), (0, 0));
    }

    #[test]
    fn only_clients_have_more_addresses_than_one() {
        assert!(ipv4_commands(HostNumber(2)).ends_with("route add local 198.18.2.0/24 dev lo\n"));
        assert!(!ipv4_commands(SERVER).contains("local"));
    }
}
