//! Where a server is: at an address of the network, or at a Unix socket of this host.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// Where to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// By TCP.
    Tcp(SocketAddr),
    /// By a Unix socket. An attempt succeeds or fails at once: a server whose accept queue is full refuses.
    Unix(SocketAddrUnix),
}

impl Address {
    /// That of a Unix socket; `None` if the path is longer than the kernel takes (107 bytes).
    pub fn unix(path: &Path) -> Option<Address> {
        SocketAddrUnix::new(path).ok().map(Address::Unix)
    }

    /// The address of the network, if it is one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    pub(crate) fn family(&self) -> AddressFamily {
        match self {
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        }
    }

    /// As the kernel takes it.
    pub(crate) fn raw(&self) -> SocketAddrAny {
        match self {
            Address::Tcp(address) => (*address).into(),
            Address::Unix(address) => address.clone().into(),
        }
    }

    /// Why an attempt failed. A Unix socket says of a full accept queue that it would have to wait, and then nothing of its
    /// end: that is a refusal.
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
