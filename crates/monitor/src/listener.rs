//! The listening sockets of some ports: length and limit of the accept queue, and the number of dropped SYNs.
//!
//! **SYNs = connections established + SYNs dropped**, exactly, as long as every handshake that begins also ends. The
//! kernel counts drops for each listening socket: one for each SYN that is dropped because the accept queue is full or
//! there is no memory. But it also counts other segments, which `drops.rs` subtracts:
//!
//! - The last segment of a handshake, if the queue has filled up since the handshake's SYN was admitted. Every later
//!   segment of this connection counts too, until there is room. Each of these segments counts twice, as a drop and as
//!   a segment without a receiver. This happens only over a network: on one host the handshake ends before the next SYN
//!   arrives.
//! - With `TCP_DEFER_ACCEPT`, which Apache sets, the last segment of every handshake, because it carries no data.
//! - The reset of a half-open connection.
//!
//! Some errors remain. A retransmitted SYN whose first copy got a reply is not counted. But while the queue overflows,
//! such a SYN counts as a segment of the first kind above. An out-of-order segment for a half-open connection counts as
//! the first kind too. A SYN whose handshake never ends (the client is gone, or a SYN cookie does not return) counts
//! neither as established nor as dropped. If several of the watched ports drop segments in the same period, the other
//! segments are divided in proportion to the drops. Source: Linux 6.18, `tcp_conn_request`, `tcp_check_req`,
//! `tcp_v4_syn_recv_sock`, and `tcp_v4_rcv` from `discard_and_relse` on.
//!
//! A server may open its port several times (IPv4 and IPv6; `SO_REUSEPORT`, one socket per worker). Queues, limits and
//! drops are then sums over the sockets. The server may also restart: sockets are identified by their cookie, and drops
//! accumulate.

mod drops;

use crate::sock_diag::{ListenSocket, SockDiag};
use crate::sys;
use brimful_core::Nanos;
use brimful_core::server::AcceptQueue;
use drops::SynDrops;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The listening sockets of one port at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerSample {
    /// Number of connections that wait to be accepted.
    pub accept_queue: u64,
    /// The maximum of `accept_queue` since the previous sample of the [`History`](crate::History).
    pub accept_queue_max: u64,
    /// Maximum length of the accept queue, in connections.
    pub backlog: u64,
    /// Number of listening sockets.
    pub sockets: u64,
    /// Length and limit of the fullest accept queue of any listening socket since the previous sample of the
    /// [`History`](crate::History).
    #[serde(default)]
    pub fullest: AcceptQueue,
}

/// Reads samples of the listening sockets.
#[derive(Debug)]
pub(crate) struct ListenerWatch {
    ports: Vec<Port>,
    /// The sockets of all ports, as last read.
    sockets: Vec<ListenSocket>,
    /// The kernel's error, if the sockets could not be read.
    error: Option<io::Error>,
    /// The time at which to list all listening sockets again, to find additional sockets of a port.
    search_at: Nanos,
    syn_drops: SynDrops,
}

#[derive(Debug)]
struct Port {
    number: u16,
    drops: u64,
}

/// Maximum time between two lists of all listening sockets. Between the lists, only known sockets are looked up, which
/// is faster.
const SEARCH_INTERVAL: Nanos = Nanos::from_secs(5);

impl ListenerWatch {
    /// Opens the sources. If a source is missing, [`ListenerWatch::source`] says so, and every reading tries again.
    /// `net` is the path of /proc/net in the network namespace of `diag`.
    pub fn open(net: &Path, ports: &[u16], diag: &mut io::Result<SockDiag>) -> ListenerWatch {
        let ports = ports.iter().map(|&number| Port { number, drops: 0 }).collect();
        let syn_drops = SynDrops::open(net, &mut Vec::new());
        let mut watch = ListenerWatch { ports, sockets: Vec::new(), error: None, search_at: Nanos::ZERO, syn_drops };
        watch.refresh(diag); // drops from before monitoring began do not count
        watch
    }

    /// Reads the ports, in their order. For each port, returns its listening sockets (`None` while there are none), and
    /// the number of SYNs dropped since monitoring began (`None` if unknown).
    pub fn read(
        &mut self,
        diag: &mut io::Result<SockDiag>,
        buffer: &mut Vec<u8>,
    ) -> Vec<(Option<ListenerSample>, Option<u64>)> {
        let before = self.refresh(diag);
        self.count_drops(&before, buffer);
        let known = diag.is_ok() && self.error.is_none();
        self.ports.iter().map(|port| (self.sample(port), known.then_some(port.drops))).collect()
    }

    /// The source of the metrics, or the reason why there are none.
    pub fn source(&self, diag: &io::Result<SockDiag>) -> String {
        if let Some(error) = diag.as_ref().err().or(self.error.as_ref()) {
            return match error.kind() {
                io::ErrorKind::Unsupported => format!("none: sock_diag: {error}: boot a newer one"),
                _ => format!("none: sock_diag: {error}; try: sudo modprobe -a tcp_diag inet_diag"),
            };
        }
        let absent: Vec<String> = self
            .ports
            .iter()
            .filter(|port| self.sockets_of(port).next().is_none())
            .map(|port| port.number.to_string())
            .collect();
        let nothing = format!(
            "nothing listens on TCP port {} in this network namespace; `ss -ltn` lists what does",
            absent.join(" and ")
        );
        if absent.len() == self.ports.len() {
            return format!("none: {nothing}");
        }
        let sockets: Vec<String> = self.sockets.iter().map(ListenSocket::to_string).collect();
        let mut source = format!("sock_diag: {}", sockets.join(", "));
        if !absent.is_empty() {
            source += "; ";
            source += &nothing;
        }
        match self.syn_drops.other_drops() {
            0 => {}
            others => source += &format!("; {others} segments that were dropped but were no SYNs are not counted"),
        }
        source
    }

    fn sample(&self, port: &Port) -> Option<ListenerSample> {
        let sum =
            |figure: fn(&ListenSocket) -> u32| self.sockets_of(port).map(|socket| u64::from(figure(socket))).sum();
        let accept_queue = sum(|socket| socket.queue);
        let sample = ListenerSample {
            accept_queue,
            accept_queue_max: accept_queue,
            backlog: sum(|socket| socket.backlog),
            sockets: sum(|_| 1),
            fullest: self.sockets_of(port).map(queue_of).reduce(AcceptQueue::fuller).unwrap_or_default(),
        };
        (sample.sockets > 0 && self.error.is_none()).then_some(sample)
    }

    fn sockets_of(&self, port: &Port) -> impl Iterator<Item = &ListenSocket> {
        let number = port.number;
        self.sockets.iter().filter(move |socket| socket.port() == number)
    }

    /// Looks up each known socket. Lists all sockets instead if a socket is gone or ambiguous, if a port has none,
    /// after an error, or when `search_at` is reached. Returns the sockets as they were at the previous reading.
    fn refresh(&mut self, diag: &mut io::Result<SockDiag>) -> Vec<ListenSocket> {
        let Ok(diag) = diag else { return Vec::new() };
        let now = sys::now();
        let known = now < self.search_at && self.error.is_none() && self.can_be_looked_up();
        let looked_up: Option<Vec<ListenSocket>> = match known {
            true => self.sockets.iter().map(|socket| diag.look_up(socket).ok()).collect(),
            false => None,
        };
        let found = looked_up.map_or_else(
            || {
                self.search_at = now + SEARCH_INTERVAL;
                diag.listening()
            },
            Ok,
        );
        match found.and_then(require_drops) {
            Ok(sockets) => {
                self.error = None;
                std::mem::replace(&mut self.sockets, sockets)
            }
            Err(error) => {
                self.error = Some(error);
                self.sockets.clone()
            }
        }
    }

    fn can_be_looked_up(&self) -> bool {
        let alone =
            |(i, socket): (usize, &ListenSocket)| !self.sockets[..i].iter().any(|other| other.shares_address(socket));
        self.ports.iter().all(|port| self.sockets_of(port).next().is_some())
            && self.sockets.iter().enumerate().all(alone)
    }

    fn count_drops(&mut self, before: &[ListenSocket], buffer: &mut Vec<u8>) {
        let drops = |port: &Port| -> u64 { self.sockets_of(port).map(|socket| new_drops(socket, before)).sum() };
        let new: Vec<u64> = self.ports.iter().map(drops).collect();
        let all: u64 = new.iter().sum();
        if all == 0 {
            return;
        }
        let (mut syns, mut left) = (self.syn_drops.count_syns(all, buffer), all);
        for (port, new) in self.ports.iter_mut().zip(new).filter(|(_, new)| *new > 0) {
            // SYNs are attributed to the ports in proportion to their new drops. `left` is the number of drops of the
            // ports that are not done yet, so rounding loses no SYN.
            let own = (u128::from(syns) * u128::from(new) / u128::from(left)) as u64;
            (syns, left) = (syns - own, left - new);
            port.drops += own;
        }
    }
}

fn queue_of(socket: &ListenSocket) -> AcceptQueue {
    AcceptQueue { length: socket.queue.into(), limit: socket.backlog.into() }
}

/// Returns an error if the kernel does not report the number of drops of every socket.
fn require_drops(sockets: Vec<ListenSocket>) -> io::Result<Vec<ListenSocket>> {
    match sockets.iter().all(|socket| socket.drops.is_some()) {
        true => Ok(sockets),
        false => {
            let why = "this kernel does not report what a listening socket drops; Linux 4.7 and newer do";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}

/// Number of drops since the earlier reading. For a socket opened in between, all drops are new.
fn new_drops(socket: &ListenSocket, before: &[ListenSocket]) -> u64 {
    let same = before.iter().find(|before| before.cookie() == socket.cookie());
    let drops = |socket: &ListenSocket| socket.drops.unwrap_or_default();
    u64::from(drops(socket).wrapping_sub(same.map_or(0, drops)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt};
    use std::net::SocketAddr;
    use std::os::fd::OwnedFd;

    fn open(port: u16) -> (OwnedFd, u16) {
        open_at([127, 0, 0, 1], port)
    }

    fn open_at(address: [u8; 4], port: u16) -> (OwnedFd, u16) {
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        sockopt::set_socket_reuseport(&fd, true).unwrap();
        bind(&fd, &SocketAddr::from((address, port))).unwrap();
        listen(&fd, 8).unwrap();
        let address: SocketAddr = getsockname(&fd).unwrap().try_into().unwrap();
        (fd, address.port())
    }

    #[test]
    fn a_socket_that_joins_is_found_when_it_is_time_to_search() {
        let (_first, port) = open(0);
        let mut diag = SockDiag::open(&[port]);
        let mut watch = ListenerWatch::open(Path::new("/proc/thread-self/net"), &[port], &mut diag);
        let mut sockets = |watch: &mut ListenerWatch| watch.read(&mut diag, &mut Vec::new())[0].0.map(|l| l.sockets);
        watch.search_at = Nanos::MAX;
        // The second socket has another address, so that a look-up of the first socket cannot find it.
        let (_second, _) = open_at([127, 0, 0, 2], port);
        assert_eq!(sockets(&mut watch), Some(1));
        watch.search_at = Nanos::ZERO;
        assert_eq!(sockets(&mut watch), Some(2));
        assert!(watch.search_at > Nanos::ZERO, "the next search is scheduled");
    }

    #[test]
    fn a_socket_is_full_however_much_room_another_has() {
        let mut diag = SockDiag::open(&[7]);
        let mut watch = ListenerWatch::open(Path::new("/proc/thread-self/net"), &[7], &mut diag);
        let (_held, port) = open(0);
        let mut socket = SockDiag::open(&[port]).unwrap().listening().unwrap().remove(0);
        watch.ports[0].number = port;
        (socket.queue, socket.backlog) = (0, 4000);
        watch.sockets.push(socket);
        (socket.queue, socket.backlog) = (65, 64);
        watch.sockets.push(socket);
        let sample = watch.sample(&watch.ports[0]).unwrap();
        assert_eq!((sample.accept_queue, sample.backlog), (65, 4064));
        assert_eq!((sample.fullest, sample.fullest.fullness()), (AcceptQueue { length: 65, limit: 64 }, 1.0));
    }

    /// A look-up by an address that two sockets share finds either socket. If it finds the younger socket, the answer
    /// does not match the older socket. Then both sockets must be listed at once.
    #[test]
    fn a_socket_that_joins_at_the_same_address_is_found_at_the_latest_when_it_is_time_to_search() {
        let (_first, port) = open(0);
        let mut diag = SockDiag::open(&[port]);
        let mut watch = ListenerWatch::open(Path::new("/proc/thread-self/net"), &[port], &mut diag);
        let mut sockets = |watch: &mut ListenerWatch| watch.read(&mut diag, &mut Vec::new())[0].0.map(|l| l.sockets);
        watch.search_at = Nanos::MAX;
        let (_second, _) = open(port);
        assert!(matches!(sockets(&mut watch), Some(1 | 2)));
        watch.search_at = Nanos::ZERO;
        assert_eq!(sockets(&mut watch), Some(2));
        watch.search_at = Nanos::MAX;
        assert_eq!(sockets(&mut watch), Some(2), "sockets that a look-up could confuse are listed");
    }

    #[test]
    fn a_kernel_that_does_not_tell_drops_is_said_not_to() {
        let (_socket, port) = open(0);
        let mut diag = SockDiag::open(&[port]);
        let mut sockets = diag.as_mut().unwrap().listening().unwrap();
        sockets[0].drops = None;
        let mut watch = ListenerWatch::open(Path::new("/proc/thread-self/net"), &[port], &mut diag);
        watch.error = require_drops(sockets).err();
        assert_eq!(watch.sample(&watch.ports[0]), None);
        assert!(watch.source(&diag).starts_with("none: sock_diag: this kernel"), "{}", watch.source(&diag));
    }
}
