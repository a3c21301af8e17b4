//! A host of the test bed: a network namespace with a loopback device, a TUN device and addresses.
//!
//! A thread creates the namespace and is then in it. The namespace has no name outside of the test bed; only an open
//! file descriptor and the processes in it keep it in existence.

use crate::TestbedError;
use crate::address::{HostNumber, SERVER};
use crate::cpus::cpu_mask;
use crate::router::MTU;
use crate::sys::{open_tun, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// Name of the TUN device through which a host exchanges packets with the router.
pub const TUN_DEVICE: &str = "wan";
/// Maximum number of packets from a host that wait for the router. At 50,000 packets per second, the kernel's default
/// of 500 packets would be full after 10 ms.
const QUEUE_PACKETS: usize = 10_000;

/// The network namespace of a host.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// An open file of the namespace, by which threads enter it.
    pub file: File,
    /// Whether IPv6 works on the host.
    pub ipv6: bool,
    /// Whether the host's packets are received on the CPUs that were chosen for this host.
    pub has_packet_steering: bool,
    /// The open file /proc/net/dev of the namespace, with the packet counts of its devices.
    device_counts: File,
}

impl Namespace {
    /// Creates a host whose packets are received on `cpus`. Also returns the file descriptor of its TUN device.
    pub fn create(host: HostNumber, cpus: &[usize]) -> Result<(Namespace, OwnedFd), TestbedError> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(host.name());
            let thread = thread.spawn_scoped(scope, || enter_new(host, cpus));
            match thread.map_err(TestbedError::kernel("start a thread"))?.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Number of packets from the host that were dropped because the router had not read earlier ones.
    pub fn unread_packets(&mut self) -> u64 {
        let mut text = String::new();
        // Errors are ignored: without the file, the number is unknown and counts as zero.
        let _ = self.device_counts.rewind();
        let _ = self.device_counts.read_to_string(&mut text);
        dropped_packets(&text)
    }
}

/// Moves the calling thread into a new network namespace, and configures the namespace.
fn enter_new(host: HostNumber, cpus: &[usize]) -> Result<(Namespace, OwnedFd), TestbedError> {
    unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS).map_err(|error| TestbedError::Namespace(error.into()))?;
    let file = File::open("/proc/thread-self/ns/net").map_err(TestbedError::kernel("open a network namespace"))?;
    let device_counts = File::open("/proc/thread-self/net/dev").map_err(TestbedError::kernel("open /proc/net/dev"))?;
    let tun = open_tun(TUN_DEVICE).map_err(|error| TestbedError::Tun(error.into()))?;
    // Gives the device no link-local address. Without one, the kernel sends no router solicitations.
    set_sysctl("net/ipv6/conf/wan/addr_gen_mode", "1").ok();
    if host != SERVER {
        set_sysctl("net/ipv4/ip_local_port_range", "1024 65535")?;
    }
    run_ip(host, &ipv4_commands(host))?;
    let ipv6 = run_ip(host, &ipv6_commands(host)).is_ok();
    let has_packet_steering = !cpus.is_empty() && steer_receive_work(cpus).is_ok();
    Ok((Namespace { file, ipv6, has_packet_steering, device_counts }, tun))
}

fn ipv4_commands(host: HostNumber) -> String {
    let address = host.ipv4();
    let network = host.ipv4_network();
    let sources = if host == SERVER { String::new() } else { format!("route add local {network} dev lo\n") };
    format!(
        "link set lo up\n\
         link set {TUN_DEVICE} mtu {MTU} txqueuelen {QUEUE_PACKETS} up\n\
         address add {address}/32 dev {TUN_DEVICE}\n\
         route add default dev {TUN_DEVICE} src {address}\n\
         {sources}"
    )
}

fn ipv6_commands(host: HostNumber) -> String {
    let address = host.ipv6();
    let network = host.ipv6_network();
    let sources = if host == SERVER { String::new() } else { format!("route add local {network} dev lo\n") };
    format!("address add {address}/128 dev {TUN_DEVICE} nodad\nroute add ::/0 dev {TUN_DEVICE}\n{sources}")
}

/// Runs commands of the program `ip` in the network namespace of this thread.
fn run_ip(host: HostNumber, commands: &str) -> Result<(), TestbedError> {
    let mut ip = Command::new("ip");
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = ip.spawn().map_err(TestbedError::NoIp)?;
    if let Some(mut stdin) = child.stdin.take() {
        // An error means that `ip` has ended, and its exit status and message show why.
        let _ = stdin.write_all(commands.as_bytes());
    }
    let output = child.wait_with_output().map_err(TestbedError::NoIp)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', ", ");
    Err(TestbedError::Ip { host: host.name(), message })
}

/// Sets a kernel setting (sysctl) in the network namespace of this thread.
fn set_sysctl(name: &str, value: &str) -> Result<(), TestbedError> {
    let path = format!("/proc/sys/{name}");
    fs::write(&path, value).map_err(|source| TestbedError::Setting { path, source })
}

/// Moves the receive work for this thread's namespace to these CPUs. The setting is in /sys, which must be mounted
/// again because it shows the devices of the namespace in which it was mounted.
fn steer_receive_work(cpus: &[usize]) -> Result<(), TestbedError> {
    let mount_error = |what| move |source: rustix::io::Errno| TestbedError::Mount { what, source: source.into() };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(mount_error("/ privately"))?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None::<&CStr>).map_err(mount_error("sysfs on /sys"))?;
    let path = format!("/sys/class/net/{TUN_DEVICE}/queues/rx-0/rps_cpus");
    fs::write(&path, cpu_mask(cpus)).map_err(|source| TestbedError::Setting { path, source })
}

/// Number of outgoing packets that the device [`TUN_DEVICE`] has dropped. `text` is the content of /proc/net/dev.
fn dropped_packets(text: &str) -> u64 {
    let device = text.lines().find_map(|line| line.trim_start().strip_prefix(TUN_DEVICE)?.strip_prefix(':'));
    let fields = device.unwrap_or_default().split_ascii_whitespace();
    // A line has eight columns for received packets. The columns bytes, packets, errors and drops for sent packets
    // follow.
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
        assert_eq!(dropped_packets(text), 12);
        assert_eq!((dropped_packets(""), dropped_packets("wan: 1 2 3")), (0, 0));
    }

    #[test]
    fn only_clients_have_several_addresses() {
        assert!(ipv4_commands(HostNumber(2)).ends_with("route add local 198.18.2.0/24 dev lo\n"));
        assert!(!ipv4_commands(SERVER).contains("local"));
    }
}
