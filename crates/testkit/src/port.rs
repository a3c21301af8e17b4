//! A port on which nothing listens yet, and which nobody else can take meanwhile.

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

/// A TCP port of 127.0.0.1 that is bound: connections to it are refused until it is told to listen, and no other
/// process gets it for as long as this lives.
pub struct SilentPort {
    socket: OwnedFd,
    addr: SocketAddr,
}

impl SilentPort {
    /// Takes one that is free.
    pub fn reserve() -> SilentPort {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("create a socket");
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("bind a free port of 127.0.0.1");
        let addr = getsockname(&socket).expect("read the address of a bound socket");
        SilentPort { socket, addr: addr.try_into().expect("an address of the family that was bound") }
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its number.
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Listens there from now on.
    pub fn listen(self) -> TcpListener {
        listen(&self.socket, 128).expect("listen at a bound port");
        TcpListener::from(self.socket)
    }
}
