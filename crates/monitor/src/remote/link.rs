//! A connection that carries one JSON message per line, over plain TCP or TLS.
//!
//! The socket never blocks: every wait is limited in time, and can be cut short by closing a pipe. Data from the other
//! side is not trusted: the length of a line is limited, and a message that cannot be parsed ends the connection with a
//! reason in words.

use super::protocol::{LinkError, sanitize};
use super::{bounds, tls};
use crate::sys;
use brimful_core::Nanos;
use rustix::event::{PollFd, PollFlags};
use rustls::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::BorrowedFd;

/// Maximum time that the other side may take to answer, or to receive a message.
pub const ANSWER_TIMEOUT: Nanos = Nanos::from_secs(5);

/// One end of a connection: a socket, TLS if it is used, and received data.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    received: Vec<u8>,
    /// Number of bytes at the start of `received` that are known to contain no line end.
    searched: usize,
    longest: usize,
}

/// The result of waiting for a message.
#[derive(Debug)]
pub enum Received<T> {
    /// A message arrived.
    Message(T),
    /// No message arrived in time.
    Timeout,
    /// The pipe `stop` was closed.
    Stopped,
}

/// The byte stream, encrypted or not.
#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    tls: Option<Box<Connection>>,
}

impl Link {
    /// Creates a link from a connected socket. With TLS, the handshake is completed first. `longest` is the maximum
    /// length of a received line in bytes.
    pub fn open(socket: TcpStream, tls: Option<Connection>, longest: usize) -> Result<Link, LinkError> {
        socket.set_nonblocking(true)?;
        // With Nagle's algorithm, a clock reading could be delayed until more data follows.
        socket.set_nodelay(true)?;
        let tls = tls.map(Box::new);
        let mut link = Link { stream: Stream { socket, tls }, received: Vec::new(), searched: 0, longest };
        let until = sys::now() + ANSWER_TIMEOUT;
        while link.stream.is_handshaking() {
            match link.stream.pump() {
                Ok(0) => {
                    return Err(LinkError("the other side closed the connection during the TLS handshake".to_owned()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if matches!(link.wait(PollFlags::IN, until, None)?, Received::Timeout) {
                        return Err(LinkError(format!("no TLS handshake within {ANSWER_TIMEOUT}")));
                    }
                }
                Ok(_) => {}
                Err(error) => return Err(tls::explain(error)),
            }
        }
        Ok(link)
    }

    /// Sends a message. Fails if sending takes longer than [`ANSWER_TIMEOUT`].
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), LinkError> {
        let mut line = serde_json::to_vec(message).map_err(|error| LinkError(error.to_string()))?;
        line.push(b'\n');
        let until = sys::now() + ANSWER_TIMEOUT;
        let mut rest = line.as_slice();
        loop {
            let done = match rest {
                [] => self.stream.flush().map(|()| true),
                _ => self.stream.write(rest).map(|written| {
                    rest = &rest[written..];
                    false
                }),
            };
            match done {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if matches!(self.wait(PollFlags::OUT, until, None)?, Received::Timeout) {
                        return Err(LinkError(format!("the other side accepted no data for {ANSWER_TIMEOUT}")));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for a message until a given instant, or until `stop` is closed.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        until: Nanos,
        stop: Option<BorrowedFd<'_>>,
    ) -> Result<Received<T>, LinkError> {
        loop {
            if let Some(end) = self.received[self.searched..].iter().position(|&byte| byte == b'\n') {
                let after = self.searched + end + 1;
                let message = parse(&self.received[..after]);
                self.received.drain(..after);
                self.searched = 0;
                return message.map(Received::Message);
            }
            self.searched = self.received.len();
            if self.searched > self.longest {
                let what = format!("a line of more than {} bytes", self.longest);
                return Err(foreign(&self.received, &what));
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(LinkError("the other side closed the connection".to_owned())),
                Ok(n) => self.received.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => match self.wait(PollFlags::IN, until, stop)? {
                    Received::Message(()) => {}
                    Received::Timeout => return Ok(Received::Timeout),
                    Received::Stopped => return Ok(Received::Stopped),
                },
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for an answer. Fails if the answer takes longer than [`ANSWER_TIMEOUT`].
    pub fn receive_answer<T: DeserializeOwned>(&mut self) -> Result<T, LinkError> {
        match self.receive(sys::now() + ANSWER_TIMEOUT, None)? {
            Received::Message(message) => Ok(message),
            Received::Timeout | Received::Stopped => Err(LinkError(format!("no answer within {ANSWER_TIMEOUT}"))),
        }
    }

    /// Waits until the socket is ready for `what`, `stop` is closed, or the time is `until`.
    fn wait(&self, what: PollFlags, until: Nanos, stop: Option<BorrowedFd<'_>>) -> Result<Received<()>, LinkError> {
        let socket = PollFd::new(&self.stream.socket, what);
        // Nothing is ever written to this pipe. It becomes ready when its other end is closed.
        let mut fds = [Some(socket), stop.map(|stop| PollFd::from_borrowed_fd(stop, PollFlags::IN))];
        let mut fds: Vec<PollFd<'_>> = fds.iter_mut().filter_map(Option::take).collect();
        if !sys::wait(&mut fds, until)? {
            return Ok(Received::Timeout);
        }
        let stopped = fds.get(1).is_some_and(|stop| !stop.revents().is_empty());
        Ok(if stopped { Received::Stopped } else { Received::Message(()) })
    }
}

impl Stream {
    fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Sends pending TLS data, and reads and decrypts received data. Returns the number of bytes received.
    fn pump(&mut self) -> io::Result<usize> {
        self.flush()?;
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let read = tls.read_tls(&mut self.socket)?;
        if let Err(error) = tls.process_new_packets() {
            // Sends the reason (a TLS alert) to the other side. This side reports the error in any case.
            let _ = tls.write_tls(&mut self.socket);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        Ok(read)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.pump()?,
                done => return done,
            };
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // TLS buffers only a limited number of unsent bytes, so earlier bytes must be sent first.
        self.flush()?;
        match &mut self.tls {
            Some(tls) => tls.writer().write(bytes),
            None => self.socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            // A TLS close notification proves to the other side that nobody else cut the connection. A failure is
            // ignored, because the other side notices the end in any case.
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
    }
}

/// Parses a message, unless it has more values than the limits allow.
fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, LinkError> {
    bounds::check(line).map_err(|what| foreign(line, &what))?;
    serde_json::from_slice(line).map_err(|error| foreign(line, &error))
}

/// The error for received data that does not follow this protocol.
fn foreign(line: &[u8], what: &dyn fmt::Display) -> LinkError {
    let begins = sanitize(&String::from_utf8_lossy(&line[..line.len().min(60)]));
    LinkError(format!("the received data is not of brimful's protocol ({what}); it begins with `{begins}`"))
}
