//! Ports of 127.0.0.1 for tests: free ports, ports that refuse connections, and ports that do not reply to connection
//! attempts, like those of a server that has stopped accepting.

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Returns a TCP port of 127.0.0.1 that is free at this moment, for servers that cannot choose a port themselves.
/// Another process may bind the port before the server does; then the caller must try again. For a port that must
/// refuse connections, see [`RefusingPort`].
pub fn free_port() -> u16 {
    free_listener().local_addr().expect("read the address of a bound listener").port()
}

/// Listens on a free port of 127.0.0.1.
pub(crate) fn free_listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).expect("bind a free port of 127.0.0.1")
}

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

/// A listening socket with a full accept queue. Linux drops the SYNs of further connection attempts, so the client
/// repeats them until it times out.
pub struct FullBacklog {
    listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl FullBacklog {
    /// The address of the listener.
    pub fn addr(&self) -> SocketAddr {
        self.listener.local_addr().expect("read the address of a bound listener")
    }

    /// The URL of the listener: `http://ADDRESS/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr())
    }

    /// The listening socket, for a test that empties the queue by accepting connections.
    pub fn listener(&self) -> &TcpListener {
        &self.listener
    }
}

/// Listens on 127.0.0.1 with a backlog of zero, and connects until a connection attempt gets no reply.
pub fn full_backlog_listener() -> FullBacklog {
    let listener = free_listener();
    // A second call of listen() only changes the length of the accept queue.
    listen(&listener, 0).expect("shorten the accept queue");
    let addr = listener.local_addr().expect("read the address of a bound listener");
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&addr, Duration::from_millis(100)) {
        queued.push(stream);
        assert!(queued.len() < 16, "a listener with a backlog of zero keeps accepting: is this Linux?");
    }
    FullBacklog { listener, _queued: queued }
}
