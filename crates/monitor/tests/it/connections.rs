//! Tests that each source of connections by state counts exactly the connections that the test has opened. Each test
//! runs in its own network namespace, which excludes other connections. Creating a namespace needs root.

use super::listeners::become_nobody;
use super::netns::Namespace;
use super::{TEST_TIMEOUT, wait_for};
use brimful_core::server::State::{
    self, CloseWait, Closing, Established, FinWait1, FinWait2, LastAck, SynReceived, SynSent, TimeWait,
};
use brimful_monitor::{MonitorConfig, NetNamespace, PortSample, Sampler};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

type Counts = BTreeMap<State, u64>;

/// A listening socket and its connections: a different number of connections in each state.
struct Crowd {
    address: SocketAddr,
    listener: TcpListener,
    /// Established connections: the client's and the server's socket of each.
    established: Vec<(TcpStream, TcpStream)>,
    close_wait: Vec<(TcpStream, TcpStream)>,
    others: Vec<TcpStream>,
}

impl Crowd {
    fn new(address: SocketAddr) -> Crowd {
        let listener = TcpListener::bind(address).unwrap();
        let mut crowd = Crowd { address, listener, established: vec![], close_wait: vec![], others: vec![] };
        crowd.established = (0..7).map(|_| crowd.pair()).collect();
        crowd.close_wait = (0..5).map(|_| crowd.pair()).collect();
        crowd.close_wait.iter().for_each(|(client, _)| client.shutdown(Shutdown::Write).unwrap());
        for _ in 0..4 {
            let (client, server) = crowd.pair();
            server.shutdown(Shutdown::Write).unwrap();
            crowd.others.extend([client, server]);
        }
        for _ in 0..3 {
            let (client, server) = crowd.pair();
            drop(server); // half closed, and no process holds the connection
            crowd.others.push(client);
        }
        for _ in 0..2 {
            let (mut client, server) = crowd.pair();
            drop(server);
            assert_eq!(client.read(&mut [0]).unwrap(), 0); // the client closes too
        }
        // With TCP_DEFER_ACCEPT the kernel ignores the last segment of the handshake until data arrives. No data
        // arrives here, so these connections stay half-open.
        defer_accept(&crowd.listener, 60);
        crowd.others.extend((0..6).map(|_| TcpStream::connect(address).unwrap()));
        crowd
    }

    fn pair(&self) -> (TcpStream, TcpStream) {
        (TcpStream::connect(self.address).unwrap(), self.listener.accept().unwrap().0)
    }

    fn truth() -> Counts {
        let some = [(Established, 7), (CloseWait, 5), (FinWait2, 4 + 3), (TimeWait, 2), (SynReceived, 6)];
        some.into_iter().chain([SynSent, FinWait1, LastAck, Closing].map(|state| (state, 0))).collect()
    }

    /// Drops all packets from now on.
    fn cut_off(&mut self, namespace: &Namespace) {
        let cut = || Command::new("ip").args(["link", "set", "lo", "down"]).status().unwrap();
        assert!(namespace.inside(cut).success());
        self.others.extend(self.established.drain(..2).map(|(client, _)| client));
        self.others.extend(self.close_wait.drain(..3).map(|(client, _)| client));
    }

    fn truth_when_cut_off() -> Counts {
        let mut truth = Crowd::truth();
        truth.extend([(Established, 5), (FinWait1, 2), (CloseWait, 2), (LastAck, 3)]);
        truth
    }
}

/// Sets TCP_DEFER_ACCEPT, as Apache does: a connection is not accepted before data has arrived.
pub fn defer_accept(listener: impl AsFd, seconds: libc::c_int) {
    let size = size_of_val(&seconds) as libc::socklen_t;
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT);
    // SAFETY: the kernel reads `size` bytes of `seconds`, which outlives the call.
    let done =
        unsafe { libc::setsockopt(listener.as_fd().as_raw_fd(), level, name, (&raw const seconds).cast(), size) };
    assert_eq!(done, 0);
}

/// Forbids this thread to open netlink sockets, as container sandboxes do.
fn refuse_netlink() {
    let op = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let (load, equal, give) = (0x20, 0x15, 0x06);
    let mut filter = [
        op(load, 0, 0, 0), // the number of the system call
        op(equal, libc::SYS_socket as u32, 0, 3),
        op(load, 16, 0, 0), // the first argument of the system call
        op(equal, libc::AF_NETLINK as u32, 0, 1),
        op(give, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32, 0, 0),
        op(give, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel reads `program` and its filter, which outlive the call; this thread alone is confined.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(done, 0);
}

/// A sampler of the group `connections`, in the given network namespace or in that of the calling thread.
fn sampler(namespace: Option<&Namespace>, ports: &[u16], ebpf: bool) -> Sampler {
    let netns = namespace.map_or(NetNamespace::Own, |namespace| NetNamespace::File(namespace.path()));
    let config = MonitorConfig { ports: ports.to_vec(), netns, ebpf, ..MonitorConfig::default() };
    Sampler::open(&config).unwrap()
}

fn ports(sampler: &mut Sampler) -> Vec<PortSample> {
    sampler.sample().groups.connections.unwrap().ports
}

fn counts(sampler: &mut Sampler) -> Option<Counts> {
    ports(sampler).remove(0).connections
}

/// Waits until the connections have the expected states, because packets arrive a moment after they were sent.
#[track_caller]
fn settle(expected: &Counts, mut found: impl FnMut() -> Option<Counts>) {
    let begun = Instant::now();
    loop {
        let found = found();
        if found.as_ref() == Some(expected) {
            return;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "{found:?} instead of {expected:?}");
    }
}

#[test]
fn all_sources_tell_the_truth_as_far_as_they_can_tell() {
    for address in ["127.0.0.1:8080", "[::1]:8080"] {
        let namespace = Namespace::new();
        let [mut from_the_start, mut ended] = [(); 2].map(|()| sampler(Some(&namespace), &[8080], true));
        let mut crowd = namespace.inside(|| Crowd::new(address.parse().unwrap()));
        let mut on_a_count = sampler(Some(&namespace), &[8080], true);
        let mut check = |truth: &Counts| {
            // A new sampler is used for each attempt, because a sampler pauses between two counts.
            settle(truth, || counts(&mut sampler(Some(&namespace), &[8080], false)));
            let by_tables = || {
                refuse_netlink();
                settle(truth, || counts(&mut sampler(Some(&namespace), &[8080], false)));
            };
            std::thread::scope(|scope| scope.spawn(by_tables).join().unwrap());
            settle(truth, || counts(&mut from_the_start));
            settle(truth, || counts(&mut on_a_count));
        };
        check(&Crowd::truth());
        crowd.cut_off(&namespace);
        check(&Crowd::truth_when_cut_off());
        assert_eq!(
            ports(&mut ended)[0].accepted,
            Some(7 + 5 + 4 + 3 + 2),
            "half-open connections do not count as accepted"
        );
    }
}

#[test]
fn a_source_that_is_refused_leaves_its_place_to_the_next_and_that_is_said() {
    let namespace = Namespace::new();
    let _crowd = namespace.inside(|| Crowd::new("127.0.0.1:8080".parse().unwrap()));
    let said = |namespace: Option<&Namespace>, ebpf: bool| {
        let mut sampler = sampler(namespace, &[8080], ebpf);
        let sample = ports(&mut sampler).remove(0);
        assert_eq!(sample.connections.unwrap()[&Established], 7);
        let sources = sampler.sources();
        (sample.listener, sources["connections"].clone(), sources["listener"].clone())
    };
    let (listener, connections, listeners) = said(Some(&namespace), true);
    assert!(connections.starts_with("eBPF: gauges") && connections.contains("--no-ebpf"), "{connections}");
    assert!(listeners.contains("connections: eBPF, each port's own"), "{listeners}");
    let (by_diag, connections, listeners) = said(Some(&namespace), false);
    assert!(
        connections.starts_with("sock_diag: a count took") && connections.contains("it is turned off"),
        "{connections}"
    );
    assert!(listeners.contains("PassiveOpens, all ports"), "{listeners}");
    assert_eq!(listener.unwrap().sockets, by_diag.unwrap().sockets);

    std::thread::scope(|scope| {
        let confined = || {
            refuse_netlink();
            for (ebpf, source) in [(true, "eBPF: gauges"), (false, "/proc/net/tcp and tcp6")] {
                let (listener, connections, listeners) = said(Some(&namespace), ebpf);
                assert!(connections.starts_with(source) && connections.contains("modprobe"), "{connections}");
                assert!(listener.is_none() && listeners.starts_with("none: sock_diag: Permission"), "{listeners}");
            }
        };
        scope.spawn(confined).join().unwrap();
    });
    namespace.inside(|| {
        become_nobody();
        let (listener, connections, _) = said(None, true);
        assert_eq!(listener.unwrap().sockets, by_diag.unwrap().sockets, "any user may read listening sockets");
        assert!(connections.starts_with("sock_diag") && connections.contains("sudo setcap"), "{connections}");
    });
}

#[test]
fn gauges_end_up_exact_even_if_they_are_attached_amid_arrivals() {
    let namespace = Namespace::new();
    let (done, listener) = (AtomicBool::new(false), namespace.inside(|| TcpListener::bind("[::]:8080").unwrap()));
    let open: Vec<(TcpStream, TcpStream)> = std::thread::scope(|scope| {
        let churn = || {
            let mut open = Vec::new();
            namespace.inside(|| {
                for target in ["127.0.0.1:8080", "[::1]:8080"].into_iter().cycle() {
                    open.push((TcpStream::connect(target).unwrap(), listener.accept().unwrap().0));
                    open.truncate(open.len() % 150 + 1);
                    if done.load(Ordering::Relaxed) {
                        return open;
                    }
                }
                unreachable!()
            })
        };
        let churning = scope.spawn(churn);
        let mut samplers: Vec<Sampler> = (0..5).map(|_| sampler(Some(&namespace), &[8080], true)).collect();
        let before = ports(&mut samplers[0])[0].accepted.unwrap();
        let accepted = |sampler: &mut Sampler| ports(sampler)[0].accepted.unwrap();
        wait_for("many arrivals", || (accepted(&mut samplers[0]) >= before + 300).then_some(()));
        done.store(true, Ordering::Relaxed);
        let open = churning.join().unwrap();
        let truth = open.len() as u64;
        // On a busy machine the last FIN may arrive a little later.
        wait_for("the closed connections to leave ESTABLISHED", || {
            let established = counts(&mut sampler(Some(&namespace), &[8080], false)).unwrap()[&Established];
            (established == truth).then_some(())
        });
        for sampler in &mut samplers {
            wait_for("an exact gauge", || {
                let exact = !sampler.sources()["connections"].contains("within");
                (counts(sampler).unwrap()[&Established] == truth && exact).then_some(())
            });
        }
        open
    });
    drop(open);
}

#[test]
fn a_count_rests_and_several_ports_share_it() {
    let namespace = Namespace::new();
    let numbers = [8080, 8081, 8082];
    let listeners = namespace.inside(|| numbers.map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap()));
    let connect = |count: u64| -> Vec<TcpStream> {
        (0..count).map(|_| TcpStream::connect(listeners[1].local_addr().unwrap()).unwrap()).collect()
    };
    let clients: Vec<TcpStream> = namespace.inside(|| connect(40));
    let mut sampler = sampler(Some(&namespace), &numbers, false);
    let established = |sample: Vec<PortSample>| -> Vec<Option<u64>> {
        sample.into_iter().map(|port| Some(port.connections?[&Established])).collect()
    };
    assert_eq!(established(ports(&mut sampler)), [Some(0), Some(40), Some(0)]);
    let next = |sampler: &mut Sampler, expected| {
        wait_for("a sample with the expected counts", || (established(ports(sampler)) == expected).then_some(()));
    };
    next(&mut sampler, [None; 3]); // this sample has no count
    next(&mut sampler, [Some(0), Some(40), Some(0)]);
    let more: Vec<TcpStream> = namespace.inside(|| connect(2));
    next(&mut sampler, [None; 3]); // the counter pauses again
    assert_eq!(established(sampler.last_sample().groups.connections.unwrap().ports), [Some(0), Some(42), Some(0)]);
    drop((clients, more));
}
