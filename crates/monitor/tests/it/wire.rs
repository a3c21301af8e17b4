//! Compares the SYNs that the monitor counts at a listening socket with the packets on the wire: **SYNs = accepted +
//! dropped**. In some tests, the kernel's own TCP connects, and a packet socket counts the SYNs. In others, the test
//! simulates the network and all clients, and sends arbitrary packets. Network namespaces exclude other traffic;
//! creating one needs root.

use super::connections::defer_accept;
use super::netns::Namespace;
use super::{begin_connect, listen_at, wait_for};
use brimful_monitor::{MonitorConfig, NetNamespace, Sampler};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

/// Two samplers of the listening socket in the namespace: one with eBPF, and one without.
struct Watch([Sampler; 2]);

/// Number of connections accepted and SYNs dropped since monitoring began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrivals {
    accepted: u64,
    dropped: u64,
}

impl Watch {
    fn new(namespace: &Namespace, port: u16) -> Watch {
        let netns = NetNamespace::File(namespace.path());
        let config = MonitorConfig { ports: vec![port], netns, ..MonitorConfig::default() };
        Watch([true, false].map(|ebpf| Sampler::open(&MonitorConfig { ebpf, ..config.clone() }).unwrap()))
    }

    fn source(&self) -> String {
        self.0[0].sources().remove("listener").unwrap()
    }

    /// The arrivals that each sampler counts. The namespace was created just before monitoring began, so all counters
    /// begin at zero.
    fn both(&mut self) -> [Arrivals; 2] {
        self.0.each_mut().map(|sampler| {
            let connections = sampler.sample().groups.connections.unwrap();
            let accepted = connections.ports[0].accepted.or(connections.passive_opens).unwrap();
            Arrivals { accepted, dropped: connections.ports[0].drops.unwrap() }
        })
    }

    /// The arrivals since monitoring began. Both samplers must report the same arrivals if no SYN arrives in between.
    fn arrivals(&mut self) -> Arrivals {
        let [by_ebpf, without] = self.both();
        assert_eq!(by_ebpf, without);
        by_ebpf
    }
}

#[test]
fn every_syn_of_a_forced_overflow_is_accounted_for() {
    let namespace = Namespace::new();
    let (listener, address) = namespace.inside(|| super::listener(8));
    let tap = Tap::new(&namespace, address.port());
    let mut watch = Watch::new(&namespace, address.port());
    let connect =
        |count: u32| -> Vec<OwnedFd> { namespace.inside(|| (0..count).map(|_| begin_connect(address)).collect()) };
    let mut syns = 0;
    // Waits for a moment when no SYN is on its way. The kernel decides when refused SYNs are retransmitted.
    let mut account = |at_least: u64, accepted: u64| {
        wait_for("all SYNs to be accepted or dropped", || {
            syns += tap.syns();
            let exact = Arrivals { accepted, dropped: syns.checked_sub(accepted)? };
            (watch.both() == [exact; 2] && syns >= at_least).then_some(())
        });
    };
    let first = connect(50);
    account(50, 9);
    let accepted: Vec<OwnedFd> = (0..3).map(|_| rustix::net::accept(&listener).unwrap()).collect();
    let second = connect(3);
    account(53, 12);
    account(53 + 41, 12); // the clients try again after a second
    assert!(!watch.source().contains("no SYNs"), "{}", watch.source());
    drop((first, second, accepted));
}

#[test]
fn segments_that_are_no_syns_are_not_taken_for_some() {
    let namespace = Namespace::new();
    let mut wire = Wire::new(&namespace);
    let listener = namespace.inside(|| listen_at(SocketAddr::from((Wire::SERVER, Wire::PORT)), 8));
    let mut watch = Watch::new(&namespace, Wire::PORT);
    for client in 1..=5 {
        wire.syn(client);
        wire.ack(client);
    }
    assert_eq!(watch.arrivals(), Arrivals { accepted: 5, dropped: 0 });
    (11..=18).for_each(|client| wire.syn(client));
    (11..=14).for_each(|client| wire.ack(client));
    assert_eq!(
        watch.arrivals(),
        Arrivals { accepted: 9, dropped: 0 },
        "the queue has one connection more than the backlog, and four are half-open"
    );

    (21..=23).for_each(|client| wire.syn(client));
    wire.ack(15);
    wire.ack(15);
    wire.send(16, ACK, 1001, b"GET / HTTP/1.0\r\n\r\n");
    wire.send(16, FIN | ACK, 1019, &[]);
    wire.send(18, RST, 1001, &[]);
    assert_eq!(watch.arrivals(), Arrivals { accepted: 9, dropped: 3 });
    let source = watch.source();
    assert!(source.contains("; 9 segments that were dropped but were no SYNs are not counted"), "{source}");

    // The queue has room again. Every SYN must now be accounted for, except that of the connection that was reset.
    let served: Vec<OwnedFd> = (0..4).map(|_| rustix::net::accept(&listener).unwrap()).collect();
    (15..=17).for_each(|client| wire.ack(client));
    assert_eq!(watch.arrivals(), Arrivals { accepted: 5 + 8 - 1, dropped: 3 });
    drop(served);
}

#[test]
fn handshakes_that_the_kernel_puts_off_until_data_come_are_no_drops() {
    let namespace = Namespace::new();
    let (listener, address) = namespace.inside(|| super::listener(64));
    defer_accept(&listener, 30);
    let mut watch = Watch::new(&namespace, address.port());
    let clients: Vec<TcpStream> = namespace.inside(|| (0..20).map(|_| TcpStream::connect(address).unwrap()).collect());
    assert_eq!(watch.arrivals(), Arrivals { accepted: 0, dropped: 0 });
    clients.iter().for_each(|mut client| client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap());
    wait_for("all clients to be accepted", || (watch.arrivals().accepted == 20).then_some(()));
    assert_eq!(watch.arrivals(), Arrivals { accepted: 20, dropped: 0 });
    assert!(watch.source().contains("; 20 segments that were dropped but"), "{}", watch.source());
}

// --- Packets: a capture of the namespace's traffic, and a simulated network ----------------------------------------

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A TCP packet to or from the server's port.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: u16,
    to: u16,
    sequence: u32,
    acknowledged: u32,
    flags: u8,
}

impl Segment {
    /// Parses an IPv4 packet; `None` for other protocols.
    fn of(packet: &[u8]) -> Option<Segment> {
        let tcp = packet.get(20..40).filter(|_| packet[0] == 0x45 && packet[9] == 6)?;
        let u16_at = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        let (sequence, acknowledged) = (u32_at(4), u32_at(8));
        Some(Segment { from: u16_at(0), to: u16_at(2), sequence, acknowledged, flags: tcp[13] })
    }

    fn packet(self, source: Ipv4Addr, target: Ipv4Addr, data: &[u8]) -> Vec<u8> {
        let mut tcp = [&self.from.to_be_bytes()[..], &self.to.to_be_bytes(), &self.sequence.to_be_bytes()].concat();
        tcp.extend(self.acknowledged.to_be_bytes());
        tcp.extend([5 << 4, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(data);
        let length = (tcp.len() as u16).to_be_bytes();
        let pseudo = [&source.octets()[..], &target.octets(), &[0, 6], &length, &tcp].concat();
        tcp[16..18].copy_from_slice(&checksum(&pseudo));
        let total = (20 + tcp.len() as u16).to_be_bytes();
        let mut ip = [&[0x45, 0], &total[..], &[0, 1, 0, 0, 64, 6, 0, 0], &source.octets(), &target.octets()].concat();
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum);
        [ip, tcp].concat()
    }
}

/// The internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (!(sum + (sum >> 16)) as u16).to_be_bytes()
}

/// Captures every IPv4 packet that an interface of the namespace receives.
struct Tap {
    socket: OwnedFd,
    port: u16,
}

impl Tap {
    fn new(namespace: &Namespace, port: u16) -> Tap {
        let ipv4 = Protocol::from_raw(u32::from(0x0800u16.to_be()).try_into().unwrap());
        let open = || socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(ipv4));
        Tap { socket: namespace.inside(open).unwrap(), port }
    }

    /// Number of SYNs to the port since the last call.
    fn syns(&self) -> u64 {
        let (mut packet, mut syns) = ([0; 2048], 0);
        while let Ok((_, length)) = recv(&self.socket, &mut packet[..], RecvFlags::DONTWAIT) {
            let is_syn = |segment: Segment| segment.to == self.port && segment.flags & (SYN | ACK) == SYN;
            syns += u64::from(Segment::of(&packet[..length]).is_some_and(is_syn));
        }
        syns
    }
}

/// A simulated network with one host, 10.9.0.2, each of whose ports is a client. The namespace has the address
/// 10.9.0.1.
struct Wire {
    device: OwnedFd,
    /// The next sequence number to acknowledge, by the client's port.
    answers: BTreeMap<u16, u32>,
}

impl Wire {
    const PORT: u16 = 8080;
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

    fn new(namespace: &Namespace) -> Wire {
        let device = namespace.inside(|| {
            let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let device = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).unwrap();
            // SAFETY: all zeros is a valid ifreq.
            let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
            request.ifr_name[..3].copy_from_slice(&b"tun".map(|byte| byte as libc::c_char));
            request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
            // SAFETY: the kernel reads and writes the ifreq, which outlives the call.
            let made = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
            assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
            for words in [&["address", "add", "10.9.0.1/24", "dev", "tun"][..], &["link", "set", "tun", "up"]] {
                assert!(Command::new("ip").args(words).status().unwrap().success());
            }
            device
        });
        Wire { device, answers: BTreeMap::new() }
    }

    /// Sends a segment, and processes the kernel's replies.
    fn send(&mut self, from: u16, flags: u8, sequence: u32, data: &[u8]) {
        let acknowledged = if flags & ACK == 0 { 0 } else { self.answers[&from] };
        let segment = Segment { from, to: Wire::PORT, sequence, acknowledged, flags };
        rustix::io::write(&self.device, &segment.packet(Wire::CLIENT, Wire::SERVER, data)).unwrap();
        let mut packet = [0; 2048];
        // When the write returns, the kernel has already processed the packet.
        while let Ok(length) = rustix::io::read(&self.device, &mut packet[..]) {
            if let Some(answer) = Segment::of(&packet[..length]).filter(|answer| answer.flags == SYN | ACK) {
                self.answers.insert(answer.to, answer.sequence.wrapping_add(1));
            }
        }
    }

    fn syn(&mut self, from: u16) {
        self.send(from, SYN, 1000, &[]);
    }

    fn ack(&mut self, from: u16) {
        self.send(from, ACK, 1001, &[]);
    }
}
