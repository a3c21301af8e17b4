//! One connection of a client, with its unprocessed input and unsent output.
//!
//! Workers process a connection in turns. In a turn, a worker reads at most once from the socket, serves at most one
//! request, and writes as much as the socket accepts. Then the connection waits in the queue for its next turn. While a
//! response is not completely written, no input is read, so that a client that does not read its responses cannot fill
//! the server's memory.

use crate::pages::{self, Page, Response};
use crate::protocol::Protocol;
use crate::request::{ParseStep, Request};
use crate::state::WorkerState;
use crate::transport::Transport;
use crate::truth::Charge;
use brimful_core::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::sync::Arc;

/// Maximum number of bytes that are read and discarded after a request was rejected, before the connection is closed.
const MAX_LINGER: usize = 256 << 10;

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The connection's TCP socket.
    pub(crate) socket: OwnedFd,
    /// CPU time already spent on the next request, before the request's class was known. Until then, it is accounted to
    /// no class ("other").
    pub(crate) carried: Nanos,
    transport: Transport,
    protocol: Protocol,
    /// Received bytes. The first `taken` bytes were already processed. Empty unless the client pipelines requests or
    /// sends the head of a request in pieces.
    input: Vec<u8>,
    taken: usize,
    phase: Phase,
    /// Index of the class of the last served request; `None` before the first one.
    last: Option<usize>,
}

/// The action that follows a turn of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait until the socket is ready for these events, then begin another turn.
    Await(EventFlags),
    /// Close the connection.
    Close,
}

#[derive(Debug)]
enum Phase {
    Reading,
    /// The rest of a response must be written: the bytes from `at` to `end`.
    Writing {
        bytes: Arc<[u8]>,
        at: usize,
        end: usize,
        then: Then,
    },
    /// HTTP/2 frames must be written.
    WritingFrames {
        then: Then,
    },
    /// The request was rejected and the socket is shut down for writing. Further input is read and discarded. If the
    /// socket were closed with unread input, the kernel would send a reset, and the client might lose the response (RFC
    /// 9112 §9.6).
    Lingering {
        left: usize,
    },
}

/// The action that follows when a response was written completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Read,
    Close,
    Linger,
}

impl Connection {
    /// Creates a connection. `carried` is the CPU time that was spent on accepting it.
    pub(crate) fn new(socket: OwnedFd, transport: Transport, carried: Nanos) -> Connection {
        let (protocol, phase) = (Protocol::Unknown, Phase::Reading);
        Connection { socket, carried, transport, protocol, input: Vec::new(), taken: 0, phase, last: None }
    }

    /// Processes the connection for one turn: reads at most once, serves at most one request, and writes. `worker` is
    /// the state of the worker that processes it.
    pub(crate) fn turn(&mut self, worker: &mut WorkerState) -> (Next, Charge) {
        match std::mem::replace(&mut self.phase, Phase::Reading) {
            Phase::Reading => self.read(worker),
            Phase::Writing { bytes, at, end, then } => (self.write(&bytes, at, end, then), self.charge_after()),
            Phase::WritingFrames { then } => (self.write_frames(then), self.charge_after()),
            Phase::Lingering { left } => (self.linger(left, &mut worker.receive_buffer), self.charge_after()),
        }
    }

    fn read(&mut self, worker: &mut WorkerState) -> (Next, Charge) {
        let pages = &worker.server.pages;
        if self.taken < self.input.len() {
            let (used, step) = self.protocol.feed(&self.input[self.taken..], pages);
            self.taken += used;
            if step != ParseStep::More {
                return self.act(step, worker);
            }
        }
        self.input.drain(..self.taken);
        self.taken = 0;
        let read = match self.transport.recv(&self.socket, &mut worker.receive_buffer) {
            Ok([]) => return (Next::Close, self.charge_after()),
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => {
                return (Next::Await(EventFlags::IN), Charge::Pending);
            }
            Err(_) => return (Next::Close, self.charge_after()),
        };
        let step = if self.input.is_empty() {
            let (used, step) = self.protocol.feed(read, pages);
            self.input.extend_from_slice(&read[used..]);
            step
        } else {
            self.input.extend_from_slice(read);
            let (used, step) = self.protocol.feed(&self.input, pages);
            self.taken = used;
            step
        };
        self.act(step, worker)
    }

    fn act(&mut self, step: ParseStep, worker: &mut WorkerState) -> (Next, Charge) {
        match step {
            // HTTP/2 may have frames to send although no request is complete, such as an acknowledgement of SETTINGS.
            ParseStep::More if self.protocol.http2().is_some() => (self.write_frames(Then::Read), Charge::Pending),
            ParseStep::More => (Next::Await(EventFlags::IN), Charge::Pending),
            ParseStep::Broken => (self.write_frames(Then::Linger), Charge::Other),
            ParseStep::Proceed => {
                let proceed = &worker.server.pages.proceed;
                (self.write(&proceed.bytes, 0, proceed.head, Then::Read), Charge::Pending)
            }
            ParseStep::Whole(request) => self.serve(request, worker),
            ParseStep::Refused(page) => {
                let refused = Request { page, close: true, head_only: false, stream: 0 };
                self.answer(refused, Then::Linger, worker)
            }
        }
    }

    fn serve(&mut self, mut request: Request, worker: &mut WorkerState) -> (Next, Charge) {
        if let Page::Class(class) = request.page
            && worker.admits()
        {
            self.last = Some(class);
            if !worker.serve(class) {
                return (Next::Close, self.charge_after());
            }
        } else if let Page::Class(_) = request.page {
            request.page = Page::TooManyRequests;
        }
        // A stopping server closes the connection after this response.
        let then = if request.close || worker.is_stopping() { Then::Close } else { Then::Read };
        self.answer(request, then, worker)
    }

    fn answer(&mut self, request: Request, then: Then, worker: &WorkerState) -> (Next, Charge) {
        let page = request.page;
        let charge = if let Page::Class(class) = page { Charge::Served(class) } else { Charge::Other };
        let close = then != Then::Read;
        let next = match worker.server.pages.get(page, close) {
            Some(response) => self.respond(request, response, then),
            None => {
                let truth = serde_json::to_vec(&worker.server.cpu_times()).unwrap_or_default();
                self.respond(request, &pages::render("200 OK", "application/json", "", close, &truth), then)
            }
        };
        (next, charge)
    }

    fn respond(&mut self, request: Request, response: &Response, then: Then) -> Next {
        let Some(http2) = self.protocol.http2() else {
            let end = if request.head_only { response.head } else { response.bytes.len() };
            return self.write(&response.bytes, 0, end, then);
        };
        let body = if request.head_only { response.bytes.len() } else { response.head };
        http2.respond(request.stream, &response.block, &response.bytes, body);
        if then != Then::Read {
            http2.send_goaway();
        }
        self.write_frames(then)
    }

    fn write(&mut self, bytes: &Arc<[u8]>, mut at: usize, end: usize, then: Then) -> Next {
        while at < end {
            match self.transport.send(&self.socket, &bytes[at..end]) {
                Ok(n) => at += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.phase = Phase::Writing { bytes: Arc::clone(bytes), at, end, then };
                    return Next::Await(EventFlags::OUT);
                }
                Err(_) => return Next::Close,
            }
        }
        match self.transport.flush(&self.socket) {
            Ok(()) => self.continue_after(then),
            Err(Errno::AGAIN | Errno::INTR) => {
                self.phase = Phase::Writing { bytes: Arc::clone(bytes), at, end, then };
                Next::Await(EventFlags::OUT)
            }
            Err(_) => Next::Close,
        }
    }

    /// Writes HTTP/2 frames.
    fn write_frames(&mut self, then: Then) -> Next {
        while let Some(http2) = self.protocol.http2().filter(|http2| !http2.output().is_empty()) {
            match self.transport.send(&self.socket, http2.output()) {
                Ok(n) => http2.consume_output(n),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.phase = Phase::WritingFrames { then };
                    return Next::Await(EventFlags::OUT);
                }
                Err(_) => return Next::Close,
            }
        }
        match self.transport.flush(&self.socket) {
            Ok(()) => self.continue_after(then),
            Err(Errno::AGAIN | Errno::INTR) => {
                self.phase = Phase::WritingFrames { then };
                Next::Await(EventFlags::OUT)
            }
            Err(_) => Next::Close,
        }
    }

    /// Continues after a response was written completely.
    fn continue_after(&mut self, then: Then) -> Next {
        if then != Then::Read {
            self.transport.send_close_notify(&self.socket);
        }
        match then {
            Then::Close => Next::Close,
            Then::Linger if shutdown(&self.socket, Shutdown::Write).is_err() => Next::Close,
            Then::Linger => {
                self.phase = Phase::Lingering { left: MAX_LINGER };
                Next::Await(EventFlags::IN)
            }
            // The input that was already read would cause no event, so wait until the socket is writable too. The
            // connection then waits in the queue behind all other ready connections.
            Then::Read if self.taken < self.input.len() => Next::Await(EventFlags::IN | EventFlags::OUT),
            Then::Read => Next::Await(EventFlags::IN),
        }
    }

    fn linger(&mut self, left: usize, receive_buffer: &mut [u8]) -> Next {
        let left = match recv(&self.socket, receive_buffer, RecvFlags::empty()) {
            Ok((n, _)) if n > 0 && n < left => left - n,
            Err(Errno::AGAIN | Errno::INTR) => left,
            _ => return Next::Close,
        };
        self.phase = Phase::Lingering { left };
        Next::Await(EventFlags::IN)
    }

    /// The account to which CPU time after a response is added: the class of the last served request.
    fn charge_after(&self) -> Charge {
        self.last.map_or(Charge::Other, Charge::Class)
    }
}
