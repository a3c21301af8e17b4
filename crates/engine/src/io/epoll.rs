//! Network I/O by edge-triggered epoll and non-blocking system calls. Requires Linux 5.11 or later.

use super::unsent::SendQueue;
use super::{Io, IoEvent, Route, Settings, Token, WarmConnection, socket};
use crate::clock::Clock;
use crate::pacing::{Pacer, WaitTimes};
use crate::{Address, EngineError};
use brimful_core::Nanos;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg, sockopt};
use rustix::time::Timespec;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Maximum number of events that one wait returns.
const MAX_EVENTS: usize = 64;
/// Maximum number of successive reads from one connection before other connections are read.
const MAX_READS: u32 = 16;
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// An epoll instance and its sockets.
pub struct Epoll<'a> {
    epoll: OwnedFd,
    settings: Settings,
    sockets: Vec<Option<Socket<'a>>>,
    events: Vec<epoll::Event>,
    taken: usize,
    reading: Option<Reading>,
    /// Connections that may have more data to read, although epoll will not report this.
    unread: Vec<Reading>,
    /// Connections with requests to be sent in one write.
    gathering: Vec<Token>,
    /// Connections for which [`IoEvent::Sent`] must still be returned.
    sent: VecDeque<Token>,
    /// Number of connections in `sent` to report before the next wait: those that were in the list at the latest wait.
    /// Without this limit, a connection whose data is always accepted at once could delay all other connections
    /// forever.
    sent_due: usize,
    buffer: Vec<u8>,
    received: usize,
    pacer: Pacer,
}

struct Socket<'a> {
    generation: u32,
    connecting: bool,
    /// Whether a failed write has cleared the socket's error. The next read then reports the end of the stream,
    /// although the connection was reset.
    broken: bool,
    /// Whether [`IoEvent::Sent`] must be reported once the kernel has accepted all bytes.
    notify_sent: bool,
    fd: OwnedFd,
    unsent: SendQueue<'a>,
}

/// A connection with data to read.
#[derive(Clone, Copy)]
struct Reading {
    token: Token,
    /// Whether epoll has reported the end of the connection. No further event will come, so all of its data must be
    /// read now.
    hung_up: bool,
    /// Whether the connection has urgent (out-of-band) data. A read stops at urgent data even if more data follows.
    urgent: bool,
    reads_left: u32,
}

impl<'a> Io<'a> for Epoll<'a> {
    const NAME: &'static str = "epoll";

    fn new(settings: &Settings) -> Result<Self, EngineError> {
        Ok(Epoll {
            epoll: epoll::create(CreateFlags::CLOEXEC).map_err(wait_failed)?,
            settings: settings.clone(),
            sockets: Vec::new(),
            events: Vec::with_capacity(MAX_EVENTS),
            taken: 0,
            reading: None,
            unread: Vec::new(),
            gathering: Vec::new(),
            sent: VecDeque::new(),
            sent_due: 0,
            buffer: vec![0; READ_BUFFER_BYTES],
            received: 0,
            pacer: Pacer::new(),
        })
    }

    fn adopt(&mut self, token: Token, warm: WarmConnection) -> Result<(), Errno> {
        self.watch(token, warm.socket, false)
    }

    fn connect(&mut self, token: Token, route: Route) -> Result<(), Errno> {
        let Settings { addresses, sources, options, .. } = &self.settings;
        let address = addresses.get(route.address).ok_or(Errno::ADDRNOTAVAIL)?;
        let socket = socket::open(address, options, sources.get(route.source))?;
        // Edge-triggered epoll reports the state of a newly registered socket at once, so an attempt that has already
        // succeeded needs no special case.
        self.watch(token, socket, true)
    }

    fn add_address(&mut self, address: Address) {
        self.settings.addresses.push(address);
    }

    fn send(&mut self, token: Token, request: Cow<'a, [u8]>) {
        let gather = self.settings.pipelined;
        let Some(socket) = self.get_mut(token) else { return };
        if gather || !socket.unsent.is_empty() {
            let first = socket.unsent.is_empty();
            socket.unsent.push(request);
            if first {
                self.gathering.push(token);
            }
            return;
        }
        let written = send(&socket.fd, &request, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        match socket.written(written) {
            Some(n) if n == request.len() => {}
            written => {
                socket.unsent.push(request);
                socket.unsent.remove(written.unwrap_or(0));
                if written.is_none() {
                    self.read_to_the_end(token);
                }
            }
        }
    }

    fn send_copied(&mut self, token: Token, bytes: &[u8]) {
        let Some(socket) = self.get_mut(token).filter(|socket| socket.unsent.is_empty()) else {
            return self.send(token, Cow::Owned(bytes.to_vec()));
        };
        let written = send(&socket.fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        let written = socket.written(written);
        if written != Some(bytes.len()) {
            socket.unsent.push(Cow::Owned(bytes.get(written.unwrap_or(0)..).unwrap_or_default().to_vec()));
            if written.is_none() {
                self.read_to_the_end(token);
            }
        }
    }

    fn notify_when_sent(&mut self, token: Token) {
        let Some(socket) = self.get_mut(token) else { return };
        if socket.unsent.is_empty() {
            self.sent.push_back(token);
        } else {
            socket.notify_sent = true;
        }
    }

    fn unsent(&self, slot: u32) -> usize {
        self.sockets.get(slot as usize).and_then(Option::as_ref).map_or(0, |socket| socket.unsent.bytes())
    }

    fn close(&mut self, token: Token) {
        if self.get_mut(token).is_some() {
            self.sockets[token.slot as usize] = None;
        }
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        while let Some(token) = self.gathering.pop() {
            self.write_unsent(token);
        }
        Ok(())
    }

    fn wait(&mut self, clock: Clock, until: Nanos) -> Result<WaitTimes, EngineError> {
        self.flush()?;
        self.sent_due = self.sent.len();
        let until = if self.unread.is_empty() && self.sent_due == 0 { until } else { Nanos::ZERO };
        let mut pacer = self.pacer;
        let waited = pacer.wait(clock, until, |sleep| {
            self.poll(sleep.unwrap_or_default())?;
            Ok(!self.events.is_empty())
        });
        self.pacer = pacer;
        waited
    }

    fn set_exact(&mut self, exactly: bool) {
        self.pacer.set_exact(exactly);
    }

    fn next(&mut self) -> Option<(Token, IoEvent)> {
        loop {
            if let Some(left) = self.sent_due.checked_sub(1)
                && let Some(token) = self.sent.pop_front()
            {
                self.sent_due = left;
                return Some((token, IoEvent::Sent));
            }
            if let Some(reading) = self.reading.take()
                && let Some(happened) = self.read(reading)
            {
                return Some((reading.token, happened));
            }
            if let Some(event) = self.events.get(self.taken).copied() {
                self.taken += 1;
                if let Some(happened) = self.ready(event) {
                    return Some(happened);
                }
            } else {
                // Connections with more data are read after all events. `read` returns a connection to the list if data
                // remains.
                let again = self.unread.iter().position(|reading| reading.reads_left > 0)?;
                self.reading = Some(self.unread.swap_remove(again));
            }
        }
    }

    fn attempts_have_begun(&self) -> bool {
        true
    }

    fn left_unread(&mut self) -> bool {
        // If the array of events is full, more events may be ready.
        !self.unread.is_empty() || self.events.len() == self.events.capacity()
    }

    fn received(&self) -> &[u8] {
        &self.buffer[..self.received]
    }
}

impl<'a> Epoll<'a> {
    fn get_mut(&mut self, token: Token) -> Option<&mut Socket<'a>> {
        let socket = self.sockets.get_mut(token.slot as usize)?.as_mut()?;
        (socket.generation == token.generation).then_some(socket)
    }

    /// Registers a socket with epoll for all events.
    fn watch(&mut self, token: Token, fd: OwnedFd, connecting: bool) -> Result<(), Errno> {
        let flags = EventFlags::IN | EventFlags::PRI | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &fd, EventData::new_u64(token.into()), flags)?;
        let slot = token.slot as usize;
        if slot >= self.sockets.len() {
            self.sockets.resize_with(slot + 1, || None);
        }
        let generation = token.generation;
        let unsent = SendQueue::default();
        self.sockets[slot] = Some(Socket { generation, connecting, broken: false, notify_sent: false, fd, unsent });
        Ok(())
    }

    fn poll(&mut self, sleep: Nanos) -> Result<(), EngineError> {
        self.events.clear();
        self.taken = 0;
        for reading in &mut self.unread {
            reading.reads_left = MAX_READS;
        }
        let timeout = Timespec { tv_sec: (sleep.0 / 1_000_000_000) as i64, tv_nsec: (sleep.0 % 1_000_000_000) as i64 };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(wait_failed(errno)),
        }
    }

    fn ready(&mut self, event: epoll::Event) -> Option<(Token, IoEvent)> {
        let token = Token::from(event.data.u64());
        let flags = event.flags;
        let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let socket = self.get_mut(token)?;
        let was_connecting = socket.connecting;
        if was_connecting {
            if !hung_up && !flags.contains(EventFlags::OUT) {
                return None;
            }
            if let Err(errno) = sockopt::socket_error(&socket.fd).unwrap_or_else(Err) {
                return Some((token, IoEvent::NotEstablished(errno)));
            }
            socket.connecting = false;
        } else if flags.contains(EventFlags::OUT) && !socket.unsent.is_empty() {
            self.write_unsent(token);
        }
        let urgent = flags.contains(EventFlags::PRI);
        if hung_up || urgent || flags.contains(EventFlags::IN) {
            self.reading = Some(Reading { token, hung_up, urgent, reads_left: MAX_READS });
        }
        was_connecting.then_some((token, IoEvent::Established))
    }

    fn read(&mut self, mut reading: Reading) -> Option<IoEvent> {
        let slot = self.sockets.get_mut(reading.token.slot as usize)?.as_mut()?;
        if slot.generation != reading.token.generation {
            return None;
        }
        match recv(&slot.fd, &mut self.buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Some(if slot.broken { IoEvent::Reset } else { IoEvent::EndOfStream }),
            Ok((n, _)) => {
                self.received = n;
                // Continues to read unless the read was short, which means that the socket is empty. After urgent data
                // or a reported end, a short read does not mean this, and no further event would come.
                if n == self.buffer.len() || reading.hung_up || reading.urgent {
                    reading.reads_left -= 1;
                    if reading.reads_left > 0 {
                        self.reading = Some(reading);
                    } else {
                        self.unread.push(reading);
                    }
                }
                Some(IoEvent::Received { last: reading.hung_up })
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(_) => Some(IoEvent::Reset),
        }
    }

    fn write_unsent(&mut self, token: Token) {
        let Some(socket) = self.get_mut(token) else { return };
        while !socket.unsent.is_empty() {
            let (pieces, n) = socket.unsent.io_slices();
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let written = sendmsg(&socket.fd, &pieces[..n], &mut SendAncillaryBuffer::default(), flags);
            match socket.written(written) {
                Some(0) => return,
                Some(n) => socket.unsent.remove(n),
                None => return self.read_to_the_end(token),
            }
        }
        if std::mem::take(&mut socket.notify_sent) {
            self.sent.push_back(token);
        }
    }

    /// Schedules reads of all remaining data after a failed write. The server may have sent a response and closed the
    /// connection before it read all requests.
    fn read_to_the_end(&mut self, token: Token) {
        self.unread.push(Reading { token, hung_up: true, urgent: false, reads_left: MAX_READS });
    }
}

impl Socket<'_> {
    /// Returns the number of bytes written; `None` if the write failed and no more can be sent on the connection.
    fn written(&mut self, result: rustix::io::Result<usize>) -> Option<usize> {
        match result {
            Ok(n) => Some(n),
            Err(Errno::AGAIN | Errno::INTR) => Some(0),
            Err(errno) => {
                // EPIPE means that the server ended its stream before it reset the connection, so the reads report the
                // correct end.
                self.broken |= errno != Errno::PIPE;
                None
            }
        }
    }
}

fn wait_failed(errno: Errno) -> EngineError {
    EngineError::Wait(errno.into())
}
