//! One connection: what is left of its input, what is left of its output, and the turns it takes.
//!
//! A turn reads at most once, serves at most one request and writes what fits; then the connection queues up again.
//! While a response is not wholly written nothing more is read, so a client that does not read cannot make the server
//! buffer.

use crate::desk::Desk;
use crate::pages::{self, Page, Response};
use crate::request::{Request, Step};
use crate::speaks::Speaks;
use crate::transport::Transport;
use crate::truth::Charge;
use brimful_core::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::sync::Arc;

/// How much a refused client may still send before it is cut off, in bytes.
const LINGER: usize = 256 << 10;

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    /// CPU time spent on the request to come, booked but not yet claimed by its class.
    pub(crate) carried: Nanos,
    transport: Transport,
    speaks: Speaks,
    /// Bytes read; those before `taken` are used. Empty unless the client pipelines or sends heads in pieces.
    input: Vec<u8>,
    taken: usize,
    phase: Phase,
    /// The class served last.
    last: Option<usize>,
}

/// How a turn left the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It wants another turn when the socket is ready for this.
    Await(EventFlags),
    /// It is over.
    Close,
}

#[derive(Debug)]
enum Phase {
    Reading,
    /// The rest of a response, from `at` to `end`.
    Writing {
        bytes: Arc<[u8]>,
        at: usize,
        end: usize,
        then: Then,
    },
    /// What HTTP/2 has to send.
    WritingFrames {
        then: Then,
    },
    /// Refused, and shut down for writing. Closing while input is unread would make the kernel send a reset, which
    /// could destroy the refusal before the client reads it (RFC 9112 §9.6).
    Lingering {
        left: usize,
    },
}

/// What follows a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Read,
    Close,
    Linger,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, transport: Transport, carried: Nanos) -> Connection {
        let (speaks, phase) = (Speaks::Unknown, Phase::Reading);
        Connection { socket, carried, transport, speaks, input: Vec::new(), taken: 0, phase, last: None }
    }

    /// Takes one turn, at the desk of the worker who calls.
    pub(crate) fn turn(&mut self, desk: &mut Desk) -> (Next, Charge) {
        match std::mem::replace(&mut self.phase, Phase::Reading) {
            Phase::Reading => self.read(desk),
            Phase::Writing { bytes, at, end, then } => (self.write(&bytes, at, end, then), self.wake()),
            Phase::WritingFrames { then } => (self.write_frames(then), self.wake()),
            Phase::Lingering { left } => (self.linger(left, &mut desk.scratch), self.wake()),
        }
    }

    fn read(&mut self, desk: &mut Desk) -> (Next, Charge) {
        let pages = &desk.site.pages;
        if self.taken < self.input.len() {
            let (used, step) = self.speaks.feed(&self.input[self.taken..], pages);
            self.taken += used;
            if step != Step::More {
                return self.act(step, desk);
            }
        }
        self.input.drain(..self.taken);
        self.taken = 0;
        let read = match self.transport.recv(&self.socket, &mut desk.scratch) {
            Ok([]) => return (Next::Close, self.wake()),
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => {
                return (Next::Await(EventFlags::IN), Charge::Pending);
            }
            Err(_) => return (Next::Close, self.wake()),
        };
        let step = if self.input.is_empty() {
            let (used, step) = self.speaks.feed(read, pages);
            self.input.extend_from_slice(&read[used..]);
            step
        } else {
            self.input.extend_from_slice(read);
            let (used, step) = self.speaks.feed(&self.input, pages);
            self.taken = used;
            step
        };
        self.act(step, desk)
    }

    fn act(&mut self, step: Step, desk: &mut Desk) -> (Next, Charge) {
        match step {
            // Whoever has not asked may be answered nevertheless.
            Step::More if self.speaks.http2().is_some() => (self.write_frames(Then::Read), Charge::Pending),
            Step::More => (Next::Await(EventFlags::IN), Charge::Pending),
            Step::Broken => (self.write_frames(Then::Linger), Charge::Other),
            Step::Proceed => {
                let proceed = &desk.site.pages.proceed;
                (self.write(&proceed.bytes, 0, proceed.head, Then::Read), Charge::Pending)
            }
            Step::Whole(request) => self.serve(request, desk),
            Step::Refused(page) => {
                let refused = Request { page, close: true, head_only: false, stream: 0 };
                self.answer(refused, Then::Linger, desk)
            }
        }
    }

    fn serve(&mut self, mut request: Request, desk: &mut Desk) -> (Next, Charge) {
        if let Page::Class(class) = request.page
            && desk.admits()
        {
            self.last = Some(class);
            if !desk.serve(class) {
                return (Next::Close, self.wake());
            }
        } else if let Page::Class(_) = request.page {
            request.page = Page::TooManyRequests;
        }
        // A server that stops answers what is there and hangs up.
        let then = if request.close || desk.stopping() { Then::Close } else { Then::Read };
        self.answer(request, then, desk)
    }

    fn answer(&mut self, request: Request, then: Then, desk: &Desk) -> (Next, Charge) {
        let page = request.page;
        let charge = if let Page::Class(class) = page { Charge::Served(class) } else { Charge::Other };
        let close = then != Then::Read;
        let next = match desk.site.pages.get(page, close) {
            Some(response) => self.respond(request, response, then),
            None => {
                let truth = serde_json::to_vec(&desk.site.truth()).unwrap_or_default();
                self.respond(request, &pages::render("200 OK", "application/json", "", close, &truth), then)
            }
        };
        (next, charge)
    }

    fn respond(&mut self, request: Request, response: &Response, then: Then) -> Next {
        let Some(http2) = self.speaks.http2() else {
            let end = if request.head_only { response.head } else { response.bytes.len() };
            return self.write(&response.bytes, 0, end, then);
        };
        let body = if request.head_only { response.bytes.len() } else { response.head };
        http2.answer(request.stream, &response.block, &response.bytes, body);
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
            Ok(()) => self.written(then),
            Err(Errno::AGAIN | Errno::INTR) => {
                self.phase = Phase::Writing { bytes: Arc::clone(bytes), at, end, then };
                Next::Await(EventFlags::OUT)
            }
            Err(_) => Next::Close,
        }
    }

    /// The same for what HTTP/2 has to send.
    fn write_frames(&mut self, then: Then) -> Next {
        while let Some(http2) = self.speaks.http2().filter(|http2| !http2.output().is_empty()) {
            match self.transport.send(&self.socket, http2.output()) {
                Ok(n) => http2.sent(n),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.phase = Phase::WritingFrames { then };
                    return Next::Await(EventFlags::OUT);
                }
                Err(_) => return Next::Close,
            }
        }
        match self.transport.flush(&self.socket) {
            Ok(()) => self.written(then),
            Err(Errno::AGAIN | Errno::INTR) => {
                self.phase = Phase::WritingFrames { then };
                Next::Await(EventFlags::OUT)
            }
            Err(_) => Next::Close,
        }
    }

    /// All of it is with the kernel.
    fn written(&mut self, then: Then) -> Next {
        if then != Then::Read {
            self.transport.send_goaway(&self.socket);
        }
        match then {
            Then::Close => Next::Close,
            Then::Linger if shutdown(&self.socket, Shutdown::Write).is_err() => Next::Close,
            Then::Linger => {
                self.phase = Phase::Lingering { left: LINGER };
                Next::Await(EventFlags::IN)
            }
            // What is already here makes no event; that the socket can be written to does, behind all that are ready.
            Then::Read if self.taken < self.input.len() => Next::Await(EventFlags::IN | EventFlags::OUT),
            Then::Read => Next::Await(EventFlags::IN),
        }
    }

    fn linger(&mut self, left: usize, scratch: &mut [u8]) -> Next {
        let left = match recv(&self.socket, scratch, RecvFlags::empty()) {
            Ok((n, _)) if n > 0 && n < left => left - n,
            Err(Errno::AGAIN | Errno::INTR) => left,
            _ => return Next::Close,
        };
        self.phase = Phase::Lingering { left };
        Next::Await(EventFlags::IN)
    }

    /// Who is charged for work that follows a response.
    fn wake(&self) -> Charge {
        self.last.map_or(Charge::Other, Charge::Class)
    }
}
