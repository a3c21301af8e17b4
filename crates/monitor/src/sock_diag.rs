//! Listening TCP sockets by `sock_diag` netlink: an exact look-up costs microseconds whatever the number of
//! connections, where /proc/net/tcp lists them all.
//!
//! For a listening socket the kernel puts the length of the accept queue where other sockets have their receive queue,
//! the queue's limit where they have their send queue, and the SYNs it dropped among its memory figures.
//! Source: sock_diag(7), linux/inet_diag.h (layouts), net/ipv4/inet_diag.c. Netlink is in host byte order, ports and
//! addresses in network byte order. The kernel's answer is complete when `send` returns, so nothing here waits.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// A netlink socket to the kernel's socket tables.
#[derive(Debug)]
pub(crate) struct SockDiag {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// One listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListenSocket {
    family: u8,
    /// `struct inet_diag_sockid` as the kernel gave it: ports, addresses, interface, cookie.
    id: [u8; SOCKID],
    /// Connections that wait to be accepted.
    pub queue: u32,
    /// How many may wait.
    pub backlog: u32,
    /// SYNs and connections it dropped since it was opened, modulo 2³².
    pub drops: u32,
    /// As in the `socket:[inode]` of its descriptors.
    pub inode: u32,
}

const HEADER: usize = 16; // struct nlmsghdr
const SOCKID: usize = 48; // struct inet_diag_sockid
const MESSAGE: usize = 72; // struct inet_diag_msg
const DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const LISTEN: u32 = 1 << 10;
const SKMEMINFO: u16 = 7;
const SKMEMINFO_DROPS: usize = 8;

/// What one netlink message says.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    Socket(ListenSocket),
    Error(i32),
    Done,
    Other,
}

impl SockDiag {
    pub fn open() -> io::Result<SockDiag> {
        let protocol = Some(netlink::SOCK_DIAG);
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Ok(SockDiag { fd, sequence: 0, buffer: vec![0; 32 * 1024] })
    }

    /// Every socket that listens on a port, of both families.
    pub fn listening(&mut self, port: u16) -> io::Result<Vec<ListenSocket>> {
        let mut id = [0; SOCKID];
        id[..2].copy_from_slice(&port.to_be_bytes());
        let mut sockets = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            match self.ask(family as u8, &id, DUMP, |socket| sockets.push(socket)) {
                // A kernel without IPv6 knows no such table.
                Err(error) if family == libc::AF_INET6 && error.raw_os_error() == Some(libc::ENOENT) => {}
                result => result?,
            }
        }
        sockets.retain(|socket| socket.port() == port);
        Ok(sockets)
    }

    /// The same socket as it is now; an error if it is closed.
    pub fn look_up(&mut self, socket: &ListenSocket) -> io::Result<ListenSocket> {
        let mut found = None;
        self.ask(socket.family, &socket.id, 0, |socket| found = Some(socket))?;
        found.filter(|now| now.id == socket.id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn ask(&mut self, family: u8, id: &[u8; SOCKID], flags: u16, mut see: impl FnMut(ListenSocket)) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.fd, &request(family, id, flags, self.sequence), SendFlags::empty())?;
        loop {
            let (_, length) = recv(&self.fd, &mut self.buffer[..], RecvFlags::DONTWAIT)?;
            let mut rest = self.buffer.get(..length).ok_or(io::ErrorKind::InvalidData)?;
            if rest.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            while let Some((message, tail)) = next_message(rest, self.sequence) {
                rest = tail;
                match message {
                    Message::Socket(socket) => see(socket),
                    Message::Error(errno) => return Err(io::Error::from_raw_os_error(errno)),
                    Message::Done => return Ok(()),
                    Message::Other => continue,
                }
                if flags & DUMP == 0 {
                    return Ok(());
                }
            }
        }
    }
}

impl ListenSocket {
    /// Tells this socket from one that is opened later at the same address.
    pub fn cookie(&self) -> u64 {
        u64::from_ne_bytes(self.bytes(40))
    }

    /// Whether a look-up could confuse the two: they share address, port and interface (`SO_REUSEPORT`).
    pub fn shares_address(&self, other: &ListenSocket) -> bool {
        (self.family, &self.id[..40]) == (other.family, &other.id[..40])
    }

    fn port(&self) -> u16 {
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

/// `struct nlmsghdr`, then `struct inet_diag_req_v2`.
fn request(family: u8, id: &[u8; SOCKID], flags: u16, sequence: u32) -> [u8; HEADER + 8 + SOCKID] {
    let mut bytes = [0; HEADER + 8 + SOCKID];
    let length = bytes.len() as u32;
    bytes[0..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16..19].copy_from_slice(&[family, libc::IPPROTO_TCP as u8, 1 << (SKMEMINFO - 1)]);
    bytes[20..24].copy_from_slice(&LISTEN.to_ne_bytes());
    bytes[24..].copy_from_slice(id);
    bytes
}

/// Takes the first message off `bytes`; `None` at the end, or where the rest is no message.
fn next_message(bytes: &[u8], sequence: u32) -> Option<(Message, &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let body = bytes.get(HEADER..length)?;
    let rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    let message = match u16_at(bytes, 4)? {
        _ if u32_at(bytes, 8)? != sequence => Message::Other,
        NLMSG_DONE => Message::Done,
        NLMSG_ERROR => Message::Error((u32_at(body, 0)? as i32).wrapping_neg()),
        DIAG_BY_FAMILY => listen_socket(body).map_or(Message::Other, Message::Socket),
        _ => Message::Other,
    };
    Some((message, rest))
}

/// `struct inet_diag_msg` (family, state, timer, retransmissions, id, expiry, queues, uid, inode) and its attributes.
fn listen_socket(body: &[u8]) -> Option<ListenSocket> {
    let id = body.get(4..4 + SOCKID)?.try_into().ok()?;
    let (queue, backlog, inode) = (u32_at(body, 56)?, u32_at(body, 60)?, u32_at(body, 68)?);
    let mut socket = ListenSocket { family: *body.first()?, id, queue, backlog, drops: 0, inode };
    let mut attributes = body.get(MESSAGE..)?;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let Some(value) = attributes.get(4..usize::from(length)) else { break };
        if kind == SKMEMINFO {
            socket.drops = u32_at(value, 4 * SKMEMINFO_DROPS)?;
        }
        attributes = attributes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(socket)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message as the kernel writes it: 0.0.0.0:80, 3 of 8 waiting, 123 dropped, inode 4567.
    fn message() -> Vec<u8> {
        let mut bytes = vec![0; HEADER + MESSAGE + 4 + 36];
        let length = bytes.len() as u32;
        bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        bytes[4..6].copy_from_slice(&DIAG_BY_FAMILY.to_ne_bytes());
        bytes[8..12].copy_from_slice(&7u32.to_ne_bytes());
        bytes[16..18].copy_from_slice(&[libc::AF_INET as u8, 10]);
        bytes[20..22].copy_from_slice(&80u16.to_be_bytes());
        bytes[72..76].copy_from_slice(&3u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&8u32.to_ne_bytes());
        bytes[84..88].copy_from_slice(&4567u32.to_ne_bytes());
        bytes[88..90].copy_from_slice(&40u16.to_ne_bytes());
        bytes[90..92].copy_from_slice(&SKMEMINFO.to_ne_bytes());
        bytes[124..128].copy_from_slice(&123u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_listening_socket_is_read_from_its_message() {
        let bytes = message();
        let (Message::Socket(socket), rest) = next_message(&bytes, 7).unwrap() else { panic!("not a socket") };
        assert_eq!((socket.queue, socket.backlog, socket.drops, socket.inode), (3, 8, 123, 4567));
        assert_eq!(socket.to_string(), "0.0.0.0:80");
        assert!(rest.is_empty());
        assert_eq!(next_message(&bytes, 8).unwrap().0, Message::Other, "an answer to an earlier question");
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_parsing_ends(at in 0usize..128, bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let mut mixed = message();
            mixed.splice(at.., bytes.iter().copied());
            for mut rest in [&bytes[..], &mixed[..]] {
                while let Some((_, tail)) = next_message(rest, 7) {
                    prop_assert!(tail.len() < rest.len());
                    rest = tail;
                }
            }
        }
    }
}
