//! Addresses of servers: TCP addresses and Unix sockets.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The address of a TCP server.
    Tcp(SocketAddr),
    /// The address of a Unix socket. A connection attempt succeeds or fails at once: if the server's accept queue is
    /// full, the attempt is refused.
    Unix(SocketAddrUnix),
}

impl Address {
    /// The address of a Unix socket; `None` if the path is longer than the kernel allows (107 bytes).
    pub fn unix(path: &Path) -> Option<Address> {
        SocketAddrUnix::new(path).ok().map(Address::Unix)
    }

    /// The TCP address; `None` for a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    /// The address family: IPv4, IPv6 or Unix.
    pub(crate) fn family(&self) -> AddressFamily {
        match self {
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        }
    }

    /// The address in the kernel's format.
    pub(crate) fn raw(&self) -> SocketAddrAny {
        match self {
            Address::Tcp(address) => (*address).into(),
            Address::Unix(address) => address.clone().into(),
        }
    }

    /// Replaces `EAGAIN` by `ECONNREFUSED` for a Unix socket. The kernel reports `EAGAIN` if the server's accept queue
    /// is full, and never signals that the queue has room again.
    pub(crate) fn failure(&self, errno: Errno) -> Errno {
        match self {
            Address::Unix(_) if errno == Errno::AGAIN => Errno::CONNREFUSED,
            _ => errno,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(address) => match address.path() {
                Some(path) => f.write_str(&path.to_string_lossy()),
                None => f.write_str("a Unix socket without a name"),
            },
        }
    }
}
