//! Compares the eBPF program's numbers of connections with /proc/net/tcp, each test in its own network namespace. These
//! tests must run as root.

use super::*;
use crate::fixture::TEST_TIMEOUT;
use proptest::prelude::*;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, SocketAddrV6, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

const PORT: u16 = 8080;
const OTHER: u16 = 9090;
const KEPT: [usize; 6] = [1, 4, 5, 8, 9, 11];

/// Runs a test in its own network namespace, whose loopback device is up.
pub(in crate::ebpf) fn in_own_namespace<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let body = move || {
        // SAFETY: the call changes the network namespace of this thread only, and the thread has no sockets.
        let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(done, 0, "this test must run as root: {}", io::Error::last_os_error());
        set_loopback(libc::IFF_UP);
        test()
    };
    thread::spawn(body).join().unwrap()
}

/// Sets the flags of the loopback device in this thread's network namespace.
fn set_loopback(flags: libc::c_int) {
    let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the kernel reads the ifreq, which outlives the call.
    assert_eq!(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCSIFFLAGS, &request) }, 0);
}

/// Creates a listener on this port, for IPv4 and IPv6.
pub(in crate::ebpf) fn listener(port: u16) -> TcpListener {
    let socket = socket_with(AddressFamily::INET6, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&socket, &SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0)).unwrap();
    listen(&socket, 4096).unwrap();
    socket.into()
}

/// Connects to this port on the loopback device.
pub(in crate::ebpf) fn client(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).unwrap()
}

/// Closes the socket so that the kernel resets the connection.
fn abort(socket: TcpStream) {
    set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
}

/// Number of sockets of a port in each state, from /proc/net/tcp and tcp6. The small records that replace closed
/// sockets (timer 03) are not counted.
fn listed(port: u16) -> [i64; STATES] {
    let mut states = [0; STATES];
    for file in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let of_port = fields[1].ends_with(&format!(":{port:04X}"));
            if of_port && !fields[5].starts_with("03:") {
                states[usize::from_str_radix(fields[3], 16).unwrap()] += 1;
            }
        }
    }
    std::array::from_fn(|state| if KEPT.contains(&state) { states[state] } else { 0 })
}

/// Waits until the eBPF program's counts have the expected values: a packet reaches the other side a moment after it is
/// sent.
#[track_caller]
fn settle(gauges: &Gauges, index: usize, expected: [i64; STATES]) {
    let begun = Instant::now();
    while gauges.read(index).states != expected {
        assert!(begun.elapsed() < TEST_TIMEOUT, "{:?} instead of {expected:?}", gauges.read(index).states);
        thread::yield_now();
    }
}

fn states(counts: &[(usize, i64)]) -> [i64; STATES] {
    let mut states = [0; STATES];
    counts.iter().for_each(|&(state, count)| states[state] = count);
    states
}

#[test]
fn every_way_to_end_a_connection_is_followed() {
    in_own_namespace(|| {
        let gauges = Gauges::attach(&[OTHER, PORT], own_network_namespace().unwrap()).unwrap();
        let listener = listener(PORT);
        let mut clients: Vec<TcpStream> = (0..20).map(|_| client(PORT)).collect();
        let mut served: Vec<TcpStream> = (0..15).map(|_| listener.accept().unwrap().0).collect();
        let check = |expected: &[(usize, i64)]| {
            settle(&gauges, 1, states(expected));
            assert_eq!(listed(PORT), states(expected));
            assert_eq!(gauges.read(1).accepted, 20);
        };
        check(&[(1, 20)]);
        served.drain(..3); // the server closes: FIN_WAIT1, FIN_WAIT2, then a record replaces each socket
        clients.drain(..3);
        check(&[(1, 17)]);
        served[..2].iter().for_each(|socket| socket.shutdown(Shutdown::Write).unwrap());
        check(&[(1, 15), (5, 2)]);
        clients.drain(..4); // two of these clients close first, two after the server
        check(&[(1, 13), (8, 2)]);
        served.drain(..4);
        check(&[(1, 13)]);
        clients.drain(..2).for_each(abort);
        check(&[(1, 11)]);
        served.drain(2..4).for_each(abort);
        check(&[(1, 9)]);
        served.drain(..2); // the clients of these two connections have already reset them
        check(&[(1, 9)]);
        drop(listener); // resets the five connections in the accept queue
        check(&[(1, 4)]);
        drop(served);
        drop(clients);
        check(&[]);
        assert_eq!(gauges.read(0), PortGauges { states: [0; STATES], accepted: 0 });
    });
}

#[test]
fn a_peer_that_is_silent_keeps_the_server_waiting_in_each_state() {
    in_own_namespace(|| {
        let gauges = Gauges::attach(&[PORT], own_network_namespace().unwrap()).unwrap();
        let listener = listener(PORT);
        let (first, second, third) = (client(PORT), client(PORT), client(PORT));
        let mut served: Vec<TcpStream> = (0..3).map(|_| listener.accept().unwrap().0).collect();
        settle(&gauges, 0, states(&[(1, 3)]));
        second.shutdown(Shutdown::Write).unwrap();
        settle(&gauges, 0, states(&[(1, 2), (8, 1)]));
        // Takes the loopback device down, so all packets are lost from now on.
        set_loopback(0);
        served.drain(..2);
        settle(&gauges, 0, states(&[(1, 1), (4, 1), (9, 1)]));
        assert_eq!(listed(PORT), states(&[(1, 1), (4, 1), (9, 1)]));
        drop((first, second, third, served));
    });
}

#[test]
fn sockets_from_before_attaching_leave_negative_gauges() {
    in_own_namespace(|| {
        let listener = listener(PORT);
        let clients: Vec<TcpStream> = (0..5).map(|_| client(PORT)).collect();
        let served: Vec<TcpStream> = (0..5).map(|_| listener.accept().unwrap().0).collect();
        let gauges = Gauges::attach(&[PORT, PORT], own_network_namespace().unwrap()).unwrap();
        let baseline = listed(PORT);
        let check = |expected: &[(usize, i64)]| {
            for index in 0..2 {
                settle(&gauges, index, states(expected));
            }
            let sum: [i64; STATES] = std::array::from_fn(|state| baseline[state] + states(expected)[state]);
            assert_eq!(listed(PORT), sum);
        };
        check(&[]);
        drop(clients);
        check(&[(1, -5), (8, 5)]);
        drop(served);
        check(&[(1, -5)]);
        let _more = client(PORT);
        check(&[(1, -4)]);
        assert_eq!(gauges.read(0).accepted, 1);
    });
}

#[test]
fn a_client_that_uses_the_port_is_counted_but_not_accepted() {
    in_own_namespace(|| {
        let gauges = Gauges::attach(&[PORT, OTHER], own_network_namespace().unwrap()).unwrap();
        let listener = listener(PORT);
        let from = |target: SocketAddr| {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
            bind(&socket, &SocketAddr::from(([127, 0, 0, 1], OTHER))).unwrap();
            connect(&socket, &target).map(|()| TcpStream::from(socket))
        };
        assert!(from(SocketAddr::from(([127, 0, 0, 1], 1))).is_err()); // refused: SYN_SENT, CLOSE
        settle(&gauges, 1, states(&[]));
        let active = from(SocketAddr::from(([127, 0, 0, 1], PORT))).unwrap();
        settle(&gauges, 1, states(&[(1, 1)]));
        settle(&gauges, 0, states(&[(1, 1)]));
        let passive = listener.accept().unwrap().0;
        assert_eq!((gauges.read(0).accepted, gauges.read(1).accepted), (1, 0));
        drop(passive);
        settle(&gauges, 1, states(&[(8, 1)]));
        drop(active);
        settle(&gauges, 1, states(&[]));
        settle(&gauges, 0, states(&[]));
    });
}

#[test]
fn an_abandoned_handshake_is_no_connection() {
    in_own_namespace(|| {
        let gauges = Gauges::attach(&[PORT], own_network_namespace().unwrap()).unwrap();
        let listener = listener(PORT);
        // With TCP_DEFER_ACCEPT, the kernel creates a socket for a connection only when its first byte arrives. So a
        // client can abort its connection before the listening side has a socket.
        let seconds: libc::c_int = 30;
        let size = size_of_val(&seconds) as libc::socklen_t;
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT);
        // SAFETY: the kernel reads `size` bytes of `seconds`, which outlives the call.
        let done = unsafe { libc::setsockopt(listener.as_raw_fd(), level, name, (&raw const seconds).cast(), size) };
        assert_eq!(done, 0);
        for _ in 0..10 {
            abort(client(PORT));
        }
        io::Write::write_all(&mut client(PORT), b"x").unwrap();
        let _only = listener.accept().unwrap();
        assert_eq!(gauges.read(0).accepted, 1);
        settle(&gauges, 0, states(&[(8, 1)]));
    });
}

#[test]
fn other_namespaces_and_other_ports_do_not_count() {
    in_own_namespace(|| {
        let gauges = Gauges::attach(&[PORT], own_network_namespace().unwrap()).unwrap();
        in_own_namespace(|| {
            let listener = listener(PORT);
            let pair = (client(PORT), listener.accept().unwrap());
            drop(pair);
        });
        let listener = listener(OTHER);
        let pair = (client(OTHER), listener.accept().unwrap());
        drop(pair);
        assert_eq!(gauges.read(0), PortGauges { states: [0; STATES], accepted: 0 });
    });
}

#[test]
fn sixteen_ports_are_followed_and_not_one_more() {
    let ports: Vec<u16> = (8001..=8017).collect();
    let error = Gauges::attach(&ports, 1).err().unwrap();
    assert!(error.to_string().contains("at most 16 ports"), "{error}");
    in_own_namespace(move || {
        let gauges = Gauges::attach(&ports[..16], own_network_namespace().unwrap()).unwrap();
        let listeners: Vec<TcpListener> = ports[..16].iter().map(|&port| listener(port)).collect();
        let clients: Vec<Vec<TcpStream>> =
            (0..16).map(|index| (0..index).map(|_| client(ports[index])).collect()).collect();
        for index in 0..16 {
            settle(&gauges, index, states(&[(1, index as i64)]));
            assert_eq!(gauges.read(index).accepted, index as u64);
        }
        drop((clients, listeners));
    });
}

/// A step that opens a connection, or changes one end of an open connection.
#[derive(Debug, Clone, Copy)]
enum Step {
    Open,
    Shutdown,
    Close,
    Abort,
}

const STEPS: &[Step] = &[Step::Open, Step::Open, Step::Shutdown, Step::Close, Step::Abort];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn after_any_churn_the_gauges_are_what_proc_lists(
        steps in prop::collection::vec((prop::sample::select(STEPS), any::<prop::sample::Index>()), 0..400),
    ) {
        let (seen, listed, accepted, passive_opens) = in_own_namespace(move || churn(&steps));
        prop_assert_eq!(seen, listed);
        prop_assert_eq!(accepted, passive_opens);
    }
}

/// Performs the steps. Returns the eBPF program's counts by state, the numbers of sockets that /proc lists, the number
/// of accepted connections, and the number of passive opens of the network namespace.
fn churn(steps: &[(Step, prop::sample::Index)]) -> ([i64; STATES], [i64; STATES], u64, u64) {
    let gauges = Gauges::attach(&[PORT], own_network_namespace().unwrap()).unwrap();
    let listener = listener(PORT);
    let mut ends = Vec::new(); // the clients' and the server's sockets
    for (step, which) in steps {
        match step {
            Step::Open => ends.extend([client(PORT), listener.accept().unwrap().0]),
            _ if ends.is_empty() => {}
            // The error is ignored: shutdown(2) fails if the other side has reset the connection.
            Step::Shutdown => drop(which.get(&ends).shutdown(Shutdown::Write)),
            Step::Close => drop(ends.swap_remove(which.index(ends.len()))),
            Step::Abort => abort(ends.swap_remove(which.index(ends.len()))),
        }
    }
    let begun = Instant::now();
    // A connection may change its state between two readings, so both readings are repeated until they agree.
    let (seen, listed) = loop {
        let (seen, listed) = (gauges.read(0).states, listed(PORT));
        if seen == listed || begun.elapsed() >= TEST_TIMEOUT {
            break (seen, listed);
        }
        thread::yield_now();
    };
    let snmp = fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let tcp = snmp.lines().filter(|line| line.starts_with("Tcp:")).nth(1).unwrap();
    let passive_opens = tcp.split_whitespace().nth(6).unwrap().parse().unwrap();
    (seen, listed, gauges.read(0).accepted, passive_opens)
}
