//! A reserved port on which nothing listens yet.

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

/// A bound TCP port of 127.0.0.1. It refuses connections until [`RefusingPort::listen`] is called, and no other process
/// can bind it.
pub struct RefusingPort {
    socket: OwnedFd,
    addr: SocketAddr,
}

impl RefusingPort {
    /// Binds a free port without listening on it.
    pub fn reserve() -> RefusingPort {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("create a socket");
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("bind a free port of 127.0.0.1");
        let addr = getsockname(&socket).expect("read the address of a bound socket");
        RefusingPort { socket, addr: addr.try_into().expect("an address of the family that was bound") }
    }

    /// The bound address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The bound port.
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Starts to listen on the port.
    pub fn listen(self) -> TcpListener {
        listen(&self.socket, 128).expect("listen at a bound port");
        TcpListener::from(self.socket)
    }
}
