//! Servers at their limit: one whose accept queue is full, and one that serves few connections in a second.

use crate::Counters;
use crate::head::Finder;
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Linux accepts one connection more than this into the queue.
pub(crate) const FULL_BACKLOG: i32 = 1;
/// How long the slow server waits for a client that has connected and says nothing.
const PATIENCE: Duration = Duration::from_millis(100);

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// Fills its own accept queue and leaves it so.
pub(crate) fn full(_listener: &OwnedFd, addr: SocketAddr) -> io::Result<Vec<u8>> {
    let _held = (0..=FULL_BACKLOG).map(|_| TcpStream::connect(addr)).collect::<io::Result<Vec<_>>>()?;
    loop {
        thread::park();
    }
}

/// Serves one connection per `slot`. It counts as requests those it answered.
pub(crate) fn slow(listener: &OwnedFd, slot: Duration, counters: &Counters) -> io::Result<Vec<u8>> {
    let mut free = Instant::now();
    loop {
        let socket = accept_with(listener, SocketFlags::CLOEXEC)?;
        counters.connections.fetch_add(1, Ordering::Relaxed);
        // From now if it was idle; else from when the last slot ended, so that no time is lost between two.
        free = free.max(Instant::now() - slot) + slot;
        thread::sleep(free.saturating_duration_since(Instant::now()));
        // A client that has gone away is no failure of the server.
        if answer_one(&socket).unwrap_or(false) {
            counters.requests.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reads a request and answers it; `false` if none came.
fn answer_one(socket: &OwnedFd) -> rustix::io::Result<bool> {
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
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
