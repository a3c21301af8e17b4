//! Reads the TCP sockets of some local ports by `sock_diag` netlink. For one listening socket, an exact look-up takes
//! microseconds, whatever the number of connections. For all connections, a dump is needed, which the kernel filters by
//! port.
//!
//! For a listening socket, the kernel reports the length of the accept queue in the field for the receive queue. It
//! reports the limit of the accept queue in the field for the send queue, and dropped segments among the memory
//! statistics. Source: sock_diag(7), linux/inet_diag.h (layouts), net/ipv4/inet_diag.c. Netlink is in host byte order,
//! ports and addresses in network byte order.
//!
//! No function here waits. The kernel's answer to a look-up, and the first part of a dump, are ready when `send`
//! returns. Each further part is ready when the previous part has been received. A dump does not show one moment: the
//! kernel walks its table of sockets in steps. Sockets that are opened or closed meanwhile may be missing; all other
//! sockets are included.

mod filter;
mod message;

use message::{DIAG_BY_FAMILY, Header, Kind, TCP_DIAG, u16_at, u32_at};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// A netlink socket for the socket tables of the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct SockDiag {
    fd: OwnedFd,
    ports: Vec<u16>,
    /// Program by which the kernel selects the sockets of a dump: those of the wanted ports.
    filter: Vec<u8>,
    sequence: u32,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

/// One listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListenSocket {
    family: u8,
    /// `struct inet_diag_sockid` as the kernel returned it: ports, addresses, interface, cookie.
    id: [u8; SOCKID],
    /// Number of connections that wait to be accepted.
    pub queue: u32,
    /// The limit of the accept queue.
    pub backlog: u32,
    /// Number of segments dropped since the socket was opened, modulo 2³². `None` if the kernel is older than Linux 4.7
    /// and does not report the number.
    pub drops: Option<u32>,
    /// The inode of the socket, as in `socket:[inode]` of its descriptors.
    pub inode: u32,
}

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectedSocket {
    /// The local port.
    pub port: u16,
    /// The kernel's number of the connection's state (include/net/tcp_states.h). TIME_WAIT and half-open connections
    /// are included.
    pub state: u8,
    /// Whether the kernel keeps only a small record of the connection, because no process has it open any more:
    /// TIME_WAIT, and some connections in FIN_WAIT2.
    pub record: bool,
}

const SOCKID: usize = 48; // struct inet_diag_sockid
const MESSAGE: usize = 72; // struct inet_diag_msg
/// Size of the receive buffer. The kernel fills at most 32 KiB at once (af_netlink.c); this leaves room for later
/// kernels.
const BUFFER: usize = 128 * 1024;
const REQ_BYTECODE: u16 = 1;
const LISTEN: u32 = 1 << 10;
/// Bit mask of the TCP states 1 to 11 without LISTEN and CLOSE. The kernel itself adds state 12 (`TCP_NEW_SYN_RECV`) to
/// SYN_RECV. State 13 (`TCP_BOUND_INACTIVE`) is left out: such a socket is bound to a port but not connected.
const CONNECTIONS: u32 = 0x0fff & !LISTEN & !(1 << 7);
const SKMEMINFO: u16 = 7;
const SKMEMINFO_DROPS: usize = 8;
const RECORD_TIMER: u8 = 3;

impl SockDiag {
    /// Opens a netlink socket in the network namespace of the calling thread.
    pub fn open(ports: &[u16]) -> io::Result<SockDiag> {
        let protocol = Some(netlink::SOCK_DIAG);
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        let (ports, filter) = (ports.to_vec(), filter::equal(ports));
        Ok(SockDiag { fd, ports, filter, sequence: 0, request: Vec::new(), buffer: vec![0; BUFFER] })
    }

    /// All sockets, IPv4 and IPv6, that listen on one of the ports.
    pub fn listening(&mut self) -> io::Result<Vec<ListenSocket>> {
        let mut sockets = Vec::new();
        self.dump(LISTEN, SKMEMINFO, &mut |body| sockets.extend(listen_socket(body)))?;
        sockets.retain(|socket| self.ports.contains(&socket.port()));
        Ok(sockets)
    }

    /// Reads a listening socket again. Returns an error if the socket is closed.
    pub fn look_up(&mut self, socket: &ListenSocket) -> io::Result<ListenSocket> {
        let mut found = None;
        self.prepare_look_up(socket);
        self.ask(&mut |body| found = listen_socket(body))?;
        found.filter(|now| now.id == socket.id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Calls `see` for every connection of the ports, with IPv4 and IPv6. If an error is returned, some connections may
    /// have been missed.
    pub fn connections(&mut self, mut see: impl FnMut(ConnectedSocket)) -> io::Result<()> {
        self.dump(CONNECTIONS, 0, &mut |body| connected_socket(body).into_iter().for_each(&mut see))
    }

    fn dump(&mut self, states: u32, extension: u16, see: &mut impl FnMut(&[u8])) -> io::Result<()> {
        self.prepare_dump(states, extension);
        match self.ask(see) {
            // A kernel before 4.16 cannot compare ports for equality, so the filter is replaced by one that checks that
            // a port is at least and at most the wanted port.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                self.filter = filter::between(&self.ports);
                self.prepare_dump(states, extension);
                self.ask(see)
            }
            answer => answer,
        }
    }

    /// Builds the request of a look-up: `struct nlmsghdr` and `struct inet_diag_req_v2`.
    fn prepare_look_up(&mut self, socket: &ListenSocket) {
        self.start(DIAG_BY_FAMILY, 0);
        self.request.extend_from_slice(&[socket.family, libc::IPPROTO_TCP as u8, bit_of(SKMEMINFO), 0]);
        self.request.extend_from_slice(&LISTEN.to_ne_bytes());
        self.request.extend_from_slice(&socket.id);
        message::set_length(&mut self.request);
    }

    /// Builds the request of a dump: `struct nlmsghdr`, `struct inet_diag_req` and the filter. This older form of a
    /// request asks for IPv4 and IPv6 at once, which saves the kernel a second walk over its sockets.
    fn prepare_dump(&mut self, states: u32, extension: u16) {
        self.start(TCP_DIAG, message::DUMP);
        self.request.extend_from_slice(&[libc::AF_INET as u8, 0, 0, bit_of(extension)]);
        self.request.extend_from_slice(&[0; SOCKID]);
        self.request.extend_from_slice(&states.to_ne_bytes());
        self.request.extend_from_slice(&[0; 4]);
        self.request.extend_from_slice(&(4 + self.filter.len() as u16).to_ne_bytes());
        self.request.extend_from_slice(&REQ_BYTECODE.to_ne_bytes());
        self.request.extend_from_slice(&self.filter);
        message::set_length(&mut self.request);
    }

    fn start(&mut self, kind: u16, flags: u16) {
        self.sequence = self.sequence.wrapping_add(1);
        message::start(&mut self.request, kind, flags, self.sequence);
    }

    /// Sends the request, and calls `see` with the body of every message of the answer.
    fn ask(&mut self, see: &mut impl FnMut(&[u8])) -> io::Result<()> {
        match self.try_ask(see) {
            // A signal interrupted an earlier dump, and the kernel ends it only when its remaining messages have been
            // received.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                while recv(&self.fd, &mut self.buffer[..], RecvFlags::DONTWAIT).is_ok() {}
                self.try_ask(see)
            }
            answer => answer,
        }
    }

    fn try_ask(&mut self, see: &mut impl FnMut(&[u8])) -> io::Result<()> {
        send(&self.fd, &self.request, SendFlags::empty())?;
        let (mut interrupted, mut more) = (false, true);
        while more {
            let (_, length) = recv(&self.fd, &mut self.buffer[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC)?;
            // A message longer than the buffer was cut off, which is an error.
            let mut rest = self.buffer.get(..length).ok_or(io::ErrorKind::InvalidData)?;
            if rest.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            while let Some((Header { kind, sequence, multi, inconsistent }, body, tail)) = message::next(rest) {
                rest = tail;
                if sequence != self.sequence {
                    continue;
                }
                interrupted |= inconsistent;
                match kind {
                    Kind::Socket => {
                        see(body);
                        more = multi;
                    }
                    Kind::End(0) => more = false,
                    Kind::End(errno) => return Err(io::Error::from_raw_os_error(errno)),
                    Kind::Other => {}
                }
            }
        }
        if interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

impl ListenSocket {
    /// A number that distinguishes this socket from a socket that is opened later at the same address.
    pub fn cookie(&self) -> u64 {
        u64::from_ne_bytes(self.bytes(40))
    }

    /// Whether a look-up could confuse the two sockets: they share address, port and interface (`SO_REUSEPORT`).
    pub fn shares_address(&self, other: &ListenSocket) -> bool {
        (self.family, &self.id[..40]) == (other.family, &other.id[..40])
    }

    /// The local port.
    pub fn port(&self) -> u16 {
        u16::from_be_bytes(self.bytes(0))
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|i| self.id[at + i])
    }
}

impl fmt::Display for ListenSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address: IpAddr = match i32::from(self.family) {
            libc::AF_INET => Ipv4Addr::from(self.bytes::<4>(4)).into(),
            _ => Ipv6Addr::from(self.bytes::<16>(4)).into(),
        };
        SocketAddr::from((address, self.port())).fmt(f)
    }
}

/// The bit that requests this extension of the answer; 0 for no extension.
fn bit_of(extension: u16) -> u8 {
    extension.checked_sub(1).map_or(0, |bit| 1 << bit)
}

/// Parses `struct inet_diag_msg` (family, state, timer, retransmissions, id, expiry, queues, uid, inode) and its
/// attributes.
fn listen_socket(body: &[u8]) -> Option<ListenSocket> {
    let id = body.get(4..4 + SOCKID)?.try_into().ok()?;
    let (queue, backlog, inode) = (u32_at(body, 56)?, u32_at(body, 60)?, u32_at(body, 68)?);
    let mut socket = ListenSocket { family: *body.first()?, id, queue, backlog, drops: None, inode };
    let mut attributes = body.get(MESSAGE..)?;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let Some(value) = attributes.get(4..usize::from(length)) else { break };
        if kind == SKMEMINFO {
            socket.drops = u32_at(value, 4 * SKMEMINFO_DROPS);
        }
        attributes = attributes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(socket)
}

fn connected_socket(body: &[u8]) -> Option<ConnectedSocket> {
    let port = u16::from_be_bytes(body.get(4..6)?.try_into().ok()?);
    Some(ConnectedSocket { port, state: *body.get(1)?, record: *body.get(2)? == RECORD_TIMER })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message of the kernel for a socket that listens on 0.0.0.0:80, with 3 of 8 connections waiting, 123 dropped
    /// segments and inode 4567.
    fn body() -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE + 4 + 36];
        bytes[..3].copy_from_slice(&[libc::AF_INET as u8, 10, 0]);
        bytes[4..6].copy_from_slice(&80u16.to_be_bytes());
        bytes[56..60].copy_from_slice(&3u32.to_ne_bytes());
        bytes[60..64].copy_from_slice(&8u32.to_ne_bytes());
        bytes[68..72].copy_from_slice(&4567u32.to_ne_bytes());
        bytes[72..74].copy_from_slice(&40u16.to_ne_bytes());
        bytes[74..76].copy_from_slice(&SKMEMINFO.to_ne_bytes());
        bytes[108..112].copy_from_slice(&123u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_listening_socket_is_read_from_its_message() {
        let socket = listen_socket(&body()).unwrap();
        assert_eq!((socket.queue, socket.backlog, socket.drops, socket.inode), (3, 8, Some(123), 4567));
        assert_eq!(socket.to_string(), "0.0.0.0:80");
        assert_eq!(connected_socket(&body()), Some(ConnectedSocket { port: 80, state: 10, record: false }));
        for length in 0..MESSAGE {
            assert_eq!(listen_socket(&body()[..length]), None);
        }
        for length in MESSAGE..body().len() {
            assert_eq!(listen_socket(&body()[..length]), Some(ListenSocket { drops: None, ..socket }));
        }
    }

    /// Opens more connections than fit into one part of a dump. Returns the port and all their sockets.
    fn crowd() -> (u16, Vec<OwnedFd>) {
        let open = || socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let listener = open();
        rustix::net::bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        rustix::net::listen(&listener, 400).unwrap();
        let address: SocketAddr = rustix::net::getsockname(&listener).unwrap().try_into().unwrap();
        let connect = |_| {
            let socket = open();
            rustix::net::connect(&socket, &address).unwrap();
            socket
        };
        (address.port(), (0..400).map(connect).chain([listener]).collect())
    }

    #[test]
    fn what_is_left_of_a_dump_does_not_disturb_the_next() {
        let (port, sockets) = crowd();
        let mut diag = SockDiag::open(&[port]).unwrap();
        let begin = |diag: &mut SockDiag| {
            diag.prepare_dump(CONNECTIONS, 0);
            send(&diag.fd, &diag.request, SendFlags::empty()).unwrap();
        };
        let go_on = |diag: &mut SockDiag| recv(&diag.fd, &mut diag.buffer[..], RecvFlags::DONTWAIT).is_ok();
        begin(&mut diag);
        while go_on(&mut diag) {} // after this the kernel knows how large a part may be
        begin(&mut diag);
        let parts = std::iter::repeat_with(|| go_on(&mut diag)).take_while(|more| *more).count();
        assert!(parts > 1, "the dump must have several parts for this test");
        for received in 0..parts {
            begin(&mut diag);
            assert!((0..received).all(|_| go_on(&mut diag)));
            let mut found = 0;
            diag.connections(|_| found += 1).unwrap();
            assert_eq!((found, diag.listening().unwrap().len()), (sockets.len() - 1, 1), "{received} of {parts} parts");
        }
    }

    #[test]
    fn an_answer_that_is_cut_off_is_no_answer() {
        let (port, _sockets) = crowd();
        let mut diag = SockDiag::open(&[port]).unwrap();
        diag.buffer.truncate(1024);
        let mut found = 0;
        let error = diag.connections(|_| found += 1).unwrap_err();
        assert_eq!((error.kind(), found), (io::ErrorKind::InvalidData, 0));
    }

    #[test]
    fn a_socket_is_looked_up_at_whatever_address_it_listens() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", "[::ffff:127.0.0.1]:0"] {
            let listener = std::net::TcpListener::bind(address).unwrap();
            let mut diag = SockDiag::open(&[listener.local_addr().unwrap().port()]).unwrap();
            let listed = diag.listening().unwrap();
            assert_eq!((listed.len(), listed[0].queue), (1, 0), "{address}");
            assert_eq!(diag.look_up(&listed[0]).unwrap(), listed[0], "{address}");
            drop(listener);
            // Another test may just have forked a process, which has a copy of the socket until it executes its
            // program.
            crate::fixture::wait_for("the end of the socket", || diag.look_up(&listed[0]).err());
        }
    }

    #[test]
    fn a_kernel_that_refuses_the_filter_is_asked_by_the_other() {
        let listener = std::net::TcpListener::bind("[::1]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut diag = SockDiag::open(&[1, port]).unwrap();
        diag.filter[0] = 99; // an invalid condition, like equality on a kernel before 4.16
        assert_eq!(diag.listening().unwrap().len(), 1);
        assert_eq!(diag.filter, filter::between(&[1, port]));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at in 0usize..112, bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let mut mixed = body();
            mixed.splice(at.., bytes.iter().copied());
            for bytes in [&bytes[..], &mixed[..]] {
                let _ = (listen_socket(bytes), connected_socket(bytes));
            }
        }
    }
}
