//! Tests the metrics of listening sockets, and the search for the processes that own them.

use super::netns::Namespace;
use super::{begin_connect, drops_of, listener, listener_of, open_socket, wait_for};
use brimful_monitor::{
    ListenerSample, Membership, MonitorConfig, NetNamespace, ProcessSelector, Rates, Sampler, listener_owners,
};
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use rustix::thread::{Gid, Uid, UnshareFlags, set_thread_res_gid, set_thread_res_uid, unshare_unsafe};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

fn sampler(ports: &[u16]) -> Sampler {
    Sampler::open(&MonitorConfig { ports: ports.to_vec(), ..MonitorConfig::default() }).unwrap()
}

/// Takes samples until the listening socket has the expected state: a busy kernel may finish a handshake after
/// `connect` has returned.
fn settled(sampler: &mut Sampler, expected: impl Fn(&ListenerSample, u64) -> bool) -> (ListenerSample, u64) {
    wait_for("a listener as expected", || {
        let sample = sampler.sample();
        let (listener, drops) = (listener_of(&sample)?, drops_of(&sample));
        expected(&listener, drops).then_some((listener, drops))
    })
}

#[test]
fn a_full_accept_queue_and_its_drops_are_seen() {
    let (_listener, address) = listener(8);
    let mut sampler = sampler(&[address.port()]);
    let (empty, drops) = settled(&mut sampler, |_, _| true);
    assert_eq!((empty.accept_queue, empty.backlog, drops), (0, 8, 0));

    // Linux accepts one connection more into the queue than the backlog.
    let connections: Vec<OwnedFd> = (0..9).map(|_| begin_connect(address)).collect();
    let (full, drops) = settled(&mut sampler, |listener, _| listener.accept_queue == 9);
    assert_eq!((full.accept_queue, full.backlog, drops), (9, 8, 0));

    let refused: Vec<OwnedFd> = (0..5).map(|_| begin_connect(address)).collect();
    let (overflowing, _) = settled(&mut sampler, |_, drops| drops >= 5);
    assert_eq!(overflowing.accept_queue, 9);
    assert!(sampler.sources()["listener"].contains(&address.to_string()), "{:?}", sampler.sources());
    drop((connections, refused));
}

#[test]
fn a_listener_that_is_replaced_is_found_again_and_its_absence_is_said() {
    let (first, address) = listener(8);
    let mut sampler = sampler(&[address.port()]);
    assert_eq!(listener_of(&sampler.sample()).map(|l| l.backlog), Some(8));
    let connections: Vec<OwnedFd> = (0..12).map(|_| begin_connect(address)).collect();
    settled(&mut sampler, |_, drops| drops >= 3);
    drop((first, connections));
    // Another test may just have forked a process, which has a copy of the socket until it executes its program.
    wait_for("the end of the listener", || listener_of(&sampler.sample()).is_none().then_some(()));
    assert!(sampler.sources()["listener"].starts_with("none: nothing listens on TCP port"), "{:?}", sampler.sources());
    let second = std::net::TcpListener::bind(address).unwrap();
    let (found, drops) = settled(&mut sampler, |_, _| true);
    assert!(found.backlog > 8 && drops >= 3, "{found:?}, {drops} dropped");
    drop(second);
}

#[test]
fn every_way_to_listen_on_a_port_is_seen_and_summed() {
    let open = |address: &str, backlog, v6_only: bool| {
        let address: SocketAddr = format!("{address}:8080").parse().unwrap();
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        if address.is_ipv6() {
            set_ipv6_v6only(&fd, v6_only).unwrap();
        }
        set_socket_reuseport(&fd, true).unwrap();
        bind(&fd, &address).unwrap();
        listen(&fd, backlog).unwrap();
        fd
    };
    type Way = (&'static [(&'static str, i32, bool)], &'static [&'static str]);
    let ways: [Way; 7] = [
        (&[("0.0.0.0", 1, false)], &["127.0.0.1", "127.9.9.9"]),
        (&[("127.0.0.1", 1, false)], &["127.0.0.1"]),
        (&[("[::]", 2, true)], &["[::1]"]),
        (&[("[::]", 4, false)], &["127.0.0.1", "[::1]"]), // dual-stack
        (&[("[::ffff:127.0.0.1]", 8, false)], &["127.0.0.1"]),
        (&[("0.0.0.0", 16, false), ("[::]", 32, true)], &["127.0.0.1", "[::1]"]),
        (&[("0.0.0.0", 1, false), ("0.0.0.0", 2, false), ("127.0.0.1", 4, false), ("[::1]", 8, false)], &["127.0.0.1"]),
    ];
    for (sockets, targets) in ways {
        let namespace = Namespace::new();
        let held: Vec<OwnedFd> = namespace
            .inside(|| sockets.iter().map(|&(address, backlog, v6_only)| open(address, backlog, v6_only)).collect());
        let netns = NetNamespace::File(namespace.path());
        let mut sampler =
            Sampler::open(&MonitorConfig { ports: vec![8080], netns, ..MonitorConfig::default() }).unwrap();
        let connections: Vec<TcpStream> = namespace
            .inside(|| targets.iter().map(|target| TcpStream::connect(format!("{target}:8080")).unwrap()).collect());
        let backlog: i32 = sockets.iter().map(|(_, backlog, _)| backlog).sum();
        let (found, drops) = settled(&mut sampler, |listener, _| {
            (listener.sockets, listener.accept_queue) == (sockets.len() as u64, targets.len() as u64)
        });
        assert_eq!((found.backlog, drops), (backlog as u64, 0), "{sockets:?}");
        drop((held, connections));
    }
}

#[test]
fn each_port_has_its_own_and_the_one_without_is_named() {
    let ((_first, first), (_second, second)) = (listener(3), listener(5));
    let idle = open_socket(SocketFlags::empty());
    bind(&idle, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let idle_at: SocketAddr = getsockname(&idle).unwrap().try_into().unwrap();
    let mut sampler = sampler(&[first.port(), idle_at.port(), second.port()]);
    let waiting: Vec<OwnedFd> = [first, second, second].map(begin_connect).into();
    wait_for("both listeners with their waiting connections", || {
        let ports = sampler.sample().groups.connections.unwrap().ports;
        let found: Vec<_> = ports.iter().map(|port| port.listener.map(|l| (l.accept_queue, l.backlog))).collect();
        (found == [Some((1, 3)), None, Some((2, 5))]).then_some(())
    });
    let source = sampler.sources().remove("listener").unwrap();
    assert!(source.starts_with("sock_diag: 127.0.0.1:"), "{source}");
    assert!(source.contains(&format!("nothing listens on TCP port {} in", idle_at.port())), "{source}");
    drop(waiting);
}

#[test]
fn a_port_belongs_to_the_process_that_holds_it_or_to_the_child_it_left_it_to() {
    let (fd, address) = listener(8);
    let heir = fd.try_clone().unwrap();
    let owners = || listener_owners(address.port()).unwrap();
    let own = owners();
    let child = Holder::of(heir);
    let shared = owners();
    drop(fd);
    // Another test may just have forked a process, which has a copy of the socket until it executes its program.
    assert_eq!((own, shared), (vec![std::process::id()], vec![std::process::id()]));
    wait_for("the child as the only owner", || (owners() == [child.0.id()]).then_some(()));
}

#[test]
fn a_port_that_is_not_listened_on_has_no_owner() {
    let fd = open_socket(SocketFlags::empty());
    bind(&fd, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = getsockname(&fd).unwrap().try_into().unwrap();
    let error = listener_owners(address.port()).unwrap_err().to_string();
    assert!(error.contains("nothing listens there") && error.contains("--process"), "{error}");
}

/// Two threads that run as another user look for the owner of a port. For one of them, /proc also hides the processes
/// of other users. Both errors must name a remedy.
#[test]
fn an_owner_that_this_user_may_not_see_is_said_to_be_so_and_how_to_see_it() {
    let (fd, address) = listener(8);
    let _holder = Holder::of(fd);
    let error_as_nobody = |hidden: bool| {
        let look = move || {
            if hidden {
                // SAFETY: gives this thread its own mount namespace. The thread opens no relative paths.
                unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.expect("needs root");
                for mount in ["mount --make-rprivate /", "mount -t proc -o hidepid=2 proc /proc"] {
                    let mut words = mount.split(' ');
                    assert!(Command::new(words.next().unwrap()).args(words).status().unwrap().success(), "{mount}");
                }
            }
            become_nobody();
            // Directly after fork the child is still a copy of this process, which may be inspected.
            wait_for("a refusal", || listener_owners(address.port()).err()).to_string()
        };
        std::thread::spawn(look).join().unwrap()
    };
    let (seen, hidden) = (error_as_nobody(false), error_as_nobody(true));
    assert!(seen.contains("may look into holds it; run as root, or name the process"), "{seen}");
    assert!(hidden.contains("run as root, or remount /proc without hidepid"), "{hidden}");
}

#[test]
fn a_server_that_this_user_may_not_look_into_has_no_figures() {
    let (fd, address) = listener(8);
    let _holder = Holder::of(fd);
    let look = || {
        become_nobody();
        let processes = vec![ProcessSelector::Port(address.port())];
        let config = MonitorConfig { processes, ports: vec![address.port()], ..MonitorConfig::default() };
        let hidden = wait_for("the holder of the socket to be hidden", || {
            let mut sampler = Sampler::open(&config).unwrap();
            let samples = [sampler.sample(), sampler.sample()];
            let program = &samples[1].groups.process.as_ref()?[0];
            (program.membership == Membership::Hidden).then_some((samples, sampler.sources().remove("process")))
        });
        (Rates::between(&hidden.0[0], &hidden.0[1]).process.unwrap().metrics.process, hidden.1.unwrap())
    };
    let (figures, source) = std::thread::scope(|scope| scope.spawn(look).join().unwrap());
    assert_eq!(figures, [], "unknown figures are absent, not zero");
    assert!(source.contains("may look into holds it; run as root"), "{source}");
}

/// Makes this thread an unprivileged user.
pub fn become_nobody() {
    let (uid, gid) = (Uid::from_raw(65_534), Gid::from_raw(65_534));
    let left = set_thread_res_gid(gid, gid, gid).and_then(|()| set_thread_res_uid(uid, uid, uid));
    assert!(left.is_ok(), "needs root: {left:?}");
}

/// A process that holds a socket. It is killed when this value is dropped.
struct Holder(Child);

impl Holder {
    fn of(socket: OwnedFd) -> Holder {
        Holder(Command::new("sleep").arg("60").stdin(socket).spawn().unwrap())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
