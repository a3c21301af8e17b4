//! A minimal HTTP server with one thread and one epoll instance. All responses are small and equal.
//!
//! Responses to requests that arrive together are sent in one write. While a connection has responses that cannot be
//! written yet, the server does not read from it.

use crate::Counters;
use crate::head::{Finder, RequestCounts};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Number of responses in a buffer, one after another, so that one write can send several of them without copying.
const BATCH: usize = 64;
const EVENTS: usize = 256;
const LISTENER: u64 = u64::MAX;

/// The rendered responses, with the header fields that every origin server sends. They contain the date, as RFC 9110
/// §6.6.1 requires, so they are rendered again every second.
#[derive(Debug)]
struct Answers {
    second: i64,
    /// `BATCH` responses after which the connection stays open.
    keep: Vec<u8>,
    /// `BATCH` responses after which the connection stays open. They contain `Connection: keep-alive`, which an
    /// HTTP/1.0 client has requested.
    keep_asked: Vec<u8>,
    /// One response after which the connection is closed.
    close: Vec<u8>,
}

impl Answers {
    fn now() -> Answers {
        let date = httpdate::fmt_http_date(std::time::SystemTime::now());
        let answer = |connection: &str| {
            let head = format!("HTTP/1.1 200 OK\r\nServer: trivial\r\nDate: {date}\r\nContent-Type: text/plain\r\n");
            format!("{head}Content-Length: 12\r\n{connection}\r\nHello World\n").into_bytes()
        };
        Answers {
            second: second(),
            keep: answer("").repeat(BATCH),
            keep_asked: answer("Connection: keep-alive\r\n").repeat(BATCH),
            close: answer("Connection: close\r\n"),
        }
    }
}

fn second() -> i64 {
    clock_gettime(ClockId::RealtimeCoarse).tv_sec
}

/// The time at which the server responds to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    /// At once.
    AtOnce,
    /// At once. The server also records the arrival times of the first `limit` requests, and polls instead of sleeping.
    Stamp { limit: usize },
    /// After this delay.
    Hold(Duration),
}

#[derive(Debug)]
pub(crate) struct Answering {
    listener: OwnedFd,
    epoll: OwnedFd,
    mode: Mode,
    counters: &'static Counters,
    /// The open connections, indexed by file descriptor.
    connections: Vec<Option<Connection>>,
    finder: Finder,
    scratch: Box<[u8]>,
    answers: Answers,
    /// Delayed requests, in the order of their due times. All have the same delay.
    held: VecDeque<Held>,
    /// Recorded arrivals: the time in nanoseconds of `CLOCK_MONOTONIC`, and the number of the connection.
    stamps: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    number: u64,
    /// The received bytes of a request that is still incomplete.
    partial: Vec<u8>,
    /// Bytes that could not be written yet.
    unsent: Vec<u8>,
    /// Whether epoll reports when the connection is writable, instead of readable.
    blocked: bool,
    /// Whether to close the connection after everything was written.
    close: bool,
}

/// Requests of a connection that wait for their delayed responses. `number` identifies the connection, because file
/// descriptors are reused.
#[derive(Debug)]
struct Held {
    due: Instant,
    descriptor: usize,
    number: u64,
    counts: RequestCounts,
}

impl Answering {
    pub(crate) fn new(listener: OwnedFd, mode: Mode, counters: &'static Counters) -> io::Result<Answering> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&listener, true)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let limit = if let Mode::Stamp { limit } = mode { limit } else { 0 };
        // Write to the memory now, so that recording an arrival later causes no page fault.
        let mut stamps = vec![(u64::MAX, u64::MAX); limit];
        stamps.clear();
        Ok(Answering {
            listener,
            epoll,
            mode,
            counters,
            connections: Vec::new(),
            finder: Finder::default(),
            scratch: vec![0; 64 << 10].into_boxed_slice(),
            answers: Answers::now(),
            held: VecDeque::new(),
            stamps,
        })
    }

    /// Serves requests until the server is stopped. Returns the recorded arrivals as bytes.
    pub(crate) fn run(mut self) -> io::Result<Vec<u8>> {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        while !self.counters.stop.load(Ordering::Relaxed) {
            let timeout = self.timeout();
            let ready = match epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()) {
                Ok((ready, _)) => ready,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if self.answers.second != second() {
                self.answers = Answers::now();
            }
            for event in ready {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    descriptor => self.handle_event(descriptor as usize),
                }
            }
            self.release();
        }
        Ok(self.stamps.iter().flat_map(|&(at, number)| [at.to_le_bytes(), number.to_le_bytes()]).flatten().collect())
    }

    fn timeout(&self) -> Option<Timespec> {
        let wait = match self.mode {
            Mode::AtOnce => return None,
            Mode::Stamp { .. } => Duration::ZERO,
            Mode::Hold(_) => self.held.front()?.due.saturating_duration_since(Instant::now()),
        };
        Some(Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) })
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                // No file descriptors or no memory are left. The server fails, because the comparison would not be
                // valid.
                Err(errno) => return Err(errno.into()),
            };
            let number = self.counters.connections.fetch_add(1, Ordering::Relaxed);
            let descriptor = socket.as_raw_fd() as usize;
            if self.connections.len() <= descriptor {
                self.connections.resize_with(descriptor + 1, || None);
            }
            epoll::add(&self.epoll, &socket, EventData::new_u64(descriptor as u64), EventFlags::IN)?;
            let connection =
                Connection { socket, number, partial: Vec::new(), unsent: Vec::new(), blocked: false, close: false };
            self.connections[descriptor] = Some(connection);
        }
    }

    /// Handles an event of a connection. Removes the connection if it has ended.
    fn handle_event(&mut self, descriptor: usize) {
        let Some(mut connection) = self.connections.get_mut(descriptor).and_then(Option::take) else { return };
        let is_open = if connection.blocked { self.flush(&mut connection) } else { self.read(&mut connection) };
        if is_open {
            self.connections[descriptor] = Some(connection);
        }
    }

    /// Reads requests and responds to them. Like `answer`, `flush` and `update_interest`, returns whether the
    /// connection stays open.
    fn read(&mut self, connection: &mut Connection) -> bool {
        let n = match recv(&connection.socket, &mut *self.scratch, RecvFlags::empty()) {
            Ok((n, _)) if n > 0 => n,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            _ => return false,
        };
        let counts = if connection.partial.is_empty() {
            let (counts, used) = self.finder.find_all(&self.scratch[..n]);
            connection.partial.extend_from_slice(&self.scratch[used..n]);
            counts
        } else {
            connection.partial.extend_from_slice(&self.scratch[..n]);
            let (counts, used) = self.finder.find_all(&connection.partial);
            connection.partial.drain(..used);
            counts
        };
        connection.close |= counts.close;
        match self.mode {
            Mode::AtOnce => self.answer(connection, counts),
            Mode::Stamp { limit } => {
                self.stamp(connection.number, counts.requests().min(limit - self.stamps.len()));
                self.answer(connection, counts)
            }
            Mode::Hold(pause) => {
                let descriptor = connection.socket.as_raw_fd() as usize;
                self.held.push_back(Held {
                    due: Instant::now() + pause,
                    descriptor,
                    number: connection.number,
                    counts,
                });
                true
            }
        }
    }

    fn stamp(&mut self, number: u64, requests: usize) {
        let now = clock_gettime(ClockId::Monotonic);
        let at = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        self.stamps.extend(std::iter::repeat_n((at, number), requests));
    }

    /// Responds to the delayed requests that are due.
    fn release(&mut self) {
        while self.held.front().is_some_and(|held| held.due <= Instant::now())
            && let Some(held) = self.held.pop_front()
        {
            let Some(mut connection) = self.connections.get_mut(held.descriptor).and_then(Option::take) else {
                continue;
            };
            if connection.number != held.number || self.answer(&mut connection, held.counts) {
                self.connections[held.descriptor] = Some(connection);
            }
        }
    }

    fn answer(&self, connection: &mut Connection, counts: RequestCounts) -> bool {
        self.counters.requests.fetch_add(counts.requests() as u64, Ordering::Relaxed);
        let Answers { keep, keep_asked, close, .. } = &self.answers;
        send_repeated(connection, keep, counts.keep * keep.len() / BATCH)
            && send_repeated(connection, keep_asked, counts.keep_asked * keep_asked.len() / BATCH)
            && send_repeated(connection, close, if counts.close { close.len() } else { 0 })
            && self.update_interest(connection)
    }

    fn flush(&self, connection: &mut Connection) -> bool {
        let unsent = std::mem::take(&mut connection.unsent);
        send_repeated(connection, &unsent, unsent.len()) && self.update_interest(connection)
    }

    /// Sets the event that epoll reports: writable if bytes are unsent, otherwise readable.
    fn update_interest(&self, connection: &mut Connection) -> bool {
        let blocked = !connection.unsent.is_empty();
        if blocked != std::mem::replace(&mut connection.blocked, blocked) {
            let data = EventData::new_u64(connection.socket.as_raw_fd() as u64);
            let flags = if blocked { EventFlags::OUT } else { EventFlags::IN };
            return epoll::modify(&self.epoll, &connection.socket, data, flags).is_ok();
        }
        blocked || !connection.close
    }
}

/// Sends `len` bytes of the repeated `pattern`. Bytes that the socket does not accept are stored in `unsent`. Returns
/// whether the connection is still usable.
fn send_repeated(connection: &mut Connection, pattern: &[u8], mut len: usize) -> bool {
    while len > 0 {
        let piece = &pattern[..len.min(pattern.len())];
        let sent = if connection.unsent.is_empty() {
            match send(&connection.socket, piece, SendFlags::NOSIGNAL) {
                Ok(n) => n,
                Err(Errno::AGAIN) => 0,
                Err(Errno::INTR) => continue,
                Err(_) => return false,
            }
        } else {
            0
        };
        connection.unsent.extend_from_slice(&piece[sent..]);
        len -= piece.len();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread::JoinHandle;

    fn start(mode: Mode) -> (TcpStream, &'static Counters, JoinHandle<io::Result<Vec<u8>>>) {
        let counters: &'static Counters = Box::leak(Box::default());
        let (listener, addr) = crate::listen(16).unwrap();
        let answering = Answering::new(listener, mode, counters).unwrap();
        (TcpStream::connect(addr).unwrap(), counters, std::thread::spawn(move || answering.run()))
    }

    fn receive_answers(client: &mut TcpStream, n: usize) {
        let mut bytes = vec![0; n * Answers::now().keep.len() / BATCH];
        client.read_exact(&mut bytes).unwrap();
        assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n") && bytes.ends_with(b"\r\n\r\nHello World\n"));
        assert_eq!(bytes.windows(2).filter(|pair| pair == b"\nH").count(), n - 1 + n, "heads and bodies alternate");
    }

    #[test]
    fn split_and_pipelined_requests_are_answered_and_close_is_honoured() {
        let (mut client, counters, _server) = start(Mode::AtOnce);
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").unwrap();
        client.write_all(b"\r\nGET").unwrap();
        receive_answers(&mut client, 1);
        client.write_all(" / HTTP/1.1\r\nHost: a\r\n\r\nGET".repeat(200).as_bytes()).unwrap();
        receive_answers(&mut client, 200);
        client.write_all(b" / HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\n\r\n").unwrap();
        let mut rest = Vec::new();
        // Reading may fail: the server closes the socket without having read the second request, so the kernel resets
        // the connection after the response.
        let _ = client.read_to_end(&mut rest);
        let rest = String::from_utf8(rest).unwrap();
        assert!(rest.contains("Connection: close") && rest.ends_with("\r\n\r\nHello World\n"), "{rest}");
        assert_eq!(counters.requests.load(Ordering::Relaxed), 202);
    }

    #[test]
    fn a_client_that_does_not_read_is_answered_later() {
        let (mut client, _, _server) = start(Mode::AtOnce);
        let requests = 200_000;
        let mut writer = client.try_clone().unwrap();
        let writing =
            std::thread::spawn(move || writer.write_all("GET / HTTP/1.1\r\n\r\n".repeat(requests).as_bytes()));
        let (mut left, mut buffer) = (requests * Answers::now().keep.len() / BATCH, [0; 4096]);
        while left > 0 {
            left -= client.read(&mut buffer).unwrap();
        }
        writing.join().unwrap().unwrap();
    }

    #[test]
    fn arrivals_are_recorded_up_to_the_limit() {
        let (mut client, counters, server) = start(Mode::Stamp { limit: 2 });
        for _ in 0..3 {
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            receive_answers(&mut client, 1);
        }
        counters.stop.store(true, Ordering::Relaxed);
        let arrivals = server.join().unwrap().unwrap();
        let word = |i: usize| u64::from_le_bytes(arrivals[8 * i..8 * i + 8].try_into().unwrap());
        assert_eq!(arrivals.len(), 2 * 16);
        assert!(word(0) < word(2) && word(2) - word(0) < 60_000_000_000, "{} {}", word(0), word(2));
        assert_eq!((word(1), word(3)), (0, 0));
    }

    #[test]
    fn a_held_answer_comes_after_the_pause() {
        let pause = Duration::from_millis(50);
        let (mut client, _, _server) = start(Mode::Hold(pause));
        let begun = Instant::now();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        receive_answers(&mut client, 1);
        assert!(begun.elapsed() >= pause);
    }
}
