//! Overloaded servers: one whose accept queue is full, and one that serves only a few connections per second.

use crate::Counters;
use crate::head::Finder;
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Backlog of the server with a full accept queue. On Linux, the queue contains one connection more than the backlog.
pub(crate) const FULL_BACKLOG: i32 = 1;
/// Maximum time that the slow server waits for the request of a connected client.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(100);

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// Fills the server's own accept queue, and never accepts a connection.
pub(crate) fn full(_listener: &OwnedFd, addr: SocketAddr) -> io::Result<Vec<u8>> {
    let _held = (0..=FULL_BACKLOG).map(|_| TcpStream::connect(addr)).collect::<io::Result<Vec<_>>>()?;
    loop {
        thread::park();
    }
}

/// Serves one connection in each time slot of length `slot`. Only requests with a response are counted.
pub(crate) fn slow(listener: &OwnedFd, slot: Duration, counters: &Counters) -> io::Result<Vec<u8>> {
    let mut free = Instant::now();
    loop {
        let socket = accept_with(listener, SocketFlags::CLOEXEC)?;
        counters.connections.fetch_add(1, Ordering::Relaxed);
        // `free` becomes the end of this connection's slot. The slot starts at the end of the previous one, or now if
        // the server was idle since then.
        free = free.max(Instant::now() - slot) + slot;
        thread::sleep(free.saturating_duration_since(Instant::now()));
        // Ignore errors: the client may have closed its connection.
        if answer_one(&socket).unwrap_or(false) {
            counters.requests.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reads a request and responds. Returns `false` if the client sent no request in time.
fn answer_one(socket: &OwnedFd) -> rustix::io::Result<bool> {
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(REQUEST_TIMEOUT))?;
    let mut input = [0; 4096];
    let mut filled = 0;
    while Finder::default().find(&input[..filled]).is_none() {
        let n = recv(socket, &mut input[filled..], RecvFlags::empty())?.0;
        if n == 0 {
            return Ok(false);
        }
        filled += n;
    }
    Ok(send(socket, ANSWER, SendFlags::NOSIGNAL)? == ANSWER.len())
}
