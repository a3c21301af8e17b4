//! A listener whose accept queue is full, like the queue of a server that has stopped accepting.
use crate::free_listener;
use rustix::net::listen;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A listening socket with a full queue. Further connection attempts hang: Linux drops the SYN, and the client repeats
/// it.
pub struct FullBacklog {
    listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl FullBacklog {
    /// The listening address.
    pub fn addr(&self) -> SocketAddr {
        self.listener.local_addr().expect("read the address of a bound listener")
    }

    /// The URL of the listener: `http://ADDRESS/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr())
    }

    /// The listener, for a test that empties the queue by accepting connections.
    pub fn listener(&self) -> &TcpListener {
        &self.listener
    }
}

/// Listens on 127.0.0.1 with a backlog of zero and fills the queue until a connection attempt hangs.
pub fn full_backlog_listener() -> FullBacklog {
    let listener = free_listener();
    // A second listen() only changes the length of the queue.
    listen(&listener, 0).expect("shorten the accept queue");
    let addr = listener.local_addr().expect("read the address of a bound listener");
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&addr, Duration::from_millis(100)) {
        queued.push(stream);
        assert!(queued.len() < 16, "a listener with a backlog of zero keeps accepting: is this Linux?");
    }
    FullBacklog { listener, _queued: queued }
}
