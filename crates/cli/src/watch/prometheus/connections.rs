//! The connections of the HTTP server that serves metrics. One thread serves all of them and never blocks on any of
//! them: a client that sends half a request delays no other client.
//!
//! The number and the duration of connections are limited. If there are too many, the oldest connection is closed and
//! never the newest, so that a client that sends its request at once always gets a response.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 64;
/// Time limit for receiving a request and sending its response.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A function that makes the response to a request. It returns `None` while the request is incomplete.
pub type Reply<'a> = &'a dyn Fn(&[u8]) -> Option<String>;

/// A listening socket and its open connections.
pub struct Connections {
    listener: TcpListener,
    /// The open connections, beginning with the oldest, which is the first to reach its time limit.
    open: VecDeque<Connection>,
    /// The response to a connection that exceeds the time limit.
    timeout_response: String,
}

struct Connection {
    socket: TcpStream,
    until: Instant,
    request: Vec<u8>,
    /// The part of the response that has not been sent; `None` if there is no response yet.
    response: Option<Vec<u8>>,
}

impl Connections {
    /// Prepares to serve a listening socket.
    pub fn new(listener: TcpListener, timeout_response: String) -> io::Result<Connections> {
        listener.set_nonblocking(true)?;
        Ok(Connections { listener, open: VecDeque::new(), timeout_response })
    }

    /// Waits until a socket is ready, or until the oldest connection reaches its time limit.
    pub fn wait(&self, now: Instant) {
        let wanted =
            |connection: &Connection| if connection.response.is_some() { PollFlags::OUT } else { PollFlags::IN };
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.open.iter().map(|connection| PollFd::new(&connection.socket, wanted(connection))));
        let left = self.open.front().map(|oldest| oldest.until.saturating_duration_since(now));
        let left = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        // An error is ignored: a signal may end the wait early.
        let _ = poll(&mut fds, left.as_ref());
    }

    /// Reads, writes and accepts as much as is possible without waiting.
    pub fn serve(&mut self, now: Instant, reply: Reply<'_>) {
        // Open connections are served before new ones, because a finished connection makes room for a new one.
        self.open.retain_mut(|connection| connection.advance(reply).is_ok_and(|done| !done));
        self.accept(now, reply);
        while let Some(oldest) = self.open.front().filter(|oldest| oldest.until <= now) {
            if oldest.response.is_none() {
                // A full socket buffer is ignored: the connection is closed without the response, because its time
                // limit is reached.
                let _ = (&oldest.socket).write(self.timeout_response.as_bytes());
            }
            self.open.pop_front();
        }
    }

    /// Accepts new connections. If there are too many connections, each new one replaces the oldest.
    fn accept(&mut self, now: Instant, reply: Reply<'_>) {
        for _ in 0..MAX_CONNECTIONS {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    let mut connection =
                        Connection { socket, until: now + REQUEST_TIMEOUT, request: Vec::new(), response: None };
                    // An error closes only this connection.
                    let done = connection.socket.set_nonblocking(true).and_then(|()| connection.advance(reply));
                    if done.is_ok_and(|done| !done) {
                        self.open.push_back(connection);
                    }
                    if self.open.len() > MAX_CONNECTIONS {
                        self.open.pop_front();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                // Accepting can fail because the process has no free file descriptor. Closing the oldest connection
                // frees one. If no connection is open, the loop waits.
                Err(_) if self.open.pop_front().is_some() => {}
                Err(_) => return std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

impl Connection {
    /// Reads and writes as much as is possible without waiting. Returns whether the connection is finished.
    fn advance(&mut self, reply: Reply<'_>) -> io::Result<bool> {
        loop {
            if let Some(left) = &mut self.response {
                match self.socket.write(left) {
                    Ok(n) if n == left.len() => return Ok(true),
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(n) => drop(left.drain(..n)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let mut chunk = [0; 1024];
            match self.socket.read(&mut chunk) {
                Ok(0) => return Ok(true),
                Ok(n) => {
                    self.request.extend_from_slice(&chunk[..n]);
                    self.response = reply(&self.request).map(String::into_bytes);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(request: &[u8]) -> Option<String> {
        request.ends_with(b".").then(|| "answered".to_owned())
    }

    fn connections() -> (Connections, impl Fn() -> TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (Connections::new(listener, "late".to_owned()).unwrap(), move || TcpStream::connect(address).unwrap())
    }

    /// All data that a client receives until the connection is closed.
    fn received(connections: &mut Connections, now: Instant, mut socket: &TcpStream) -> String {
        socket.set_nonblocking(true).unwrap();
        let mut bytes = Vec::new();
        loop {
            let mut chunk = [0; 100];
            match socket.read(&mut chunk) {
                Ok(0) => return String::from_utf8(bytes).unwrap(),
                Ok(n) => bytes.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => connections.serve(now, &reply),
                Err(error) => panic!("{error} after {bytes:?}"),
            }
        }
    }

    /// A client with a whole request gets its response although other clients have sent half a request. The test's
    /// clock does not advance, so no connection exceeds its time limit.
    #[test]
    fn half_a_request_delays_no_other_client() {
        let ((mut connections, connect), now) = (connections(), Instant::now());
        let half: Vec<TcpStream> = (0..3 * MAX_CONNECTIONS)
            .map(|_| {
                let mut socket = connect();
                socket.write_all(b"half").unwrap();
                connections.serve(now, &reply);
                socket
            })
            .collect();
        let whole = connect();
        (&whole).write_all(b"whole.").unwrap();
        assert_eq!(received(&mut connections, now, &whole), "answered");
        assert_eq!(connections.open.len(), MAX_CONNECTIONS);
        let newest = half.last().unwrap();
        newest.set_nonblocking(true).unwrap();
        assert!(
            (&*newest).read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "the newest connection stays open"
        );
        (&*newest).write_all(b".").unwrap();
        assert_eq!(received(&mut connections, now, newest), "answered");
    }

    #[test]
    fn a_late_client_gets_the_timeout_response() {
        let ((mut connections, connect), now) = (connections(), Instant::now());
        let late = connect();
        while connections.open.is_empty() {
            connections.serve(now, &reply);
        }
        connections.wait(now + REQUEST_TIMEOUT);
        connections.serve(now + REQUEST_TIMEOUT - Duration::from_nanos(1), &reply);
        assert_eq!(connections.open.len(), 1);
        assert_eq!(received(&mut connections, now + REQUEST_TIMEOUT, &late), "late");
    }
}
