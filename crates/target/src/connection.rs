//! One connection: what is left of its input, what is left of its output, and the turns it takes.
//!
//! A turn reads at most once, serves at most one request and writes what fits; then the connection queues up again.
//! While a response is not wholly written nothing more is read, so a client that does not read cannot make the server
//! buffer.

use crate::desk::Desk;
use crate::pages::{self, Page, Response};
use crate::request::{Reader, Request, Step};
use crate::truth::Charge;
use brimful_core::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::sync::Arc;

/// How much a refused client may still send before it is cut off, in bytes.
const LINGER: usize = 256 << 10;

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    /// CPU time spent on the request to come, booked but not yet claimed by its class.
    pub(crate) carried: Nanos,
    reader: Reader,
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
    pub(crate) fn new(socket: OwnedFd, carried: Nanos) -> Connection {
        let phase = Phase::Reading;
        Connection { socket, carried, reader: Reader::default(), input: Vec::new(), taken: 0, phase, last: None }
    }

    /// Takes one turn, at the desk of the worker who calls.
    pub(crate) fn turn(&mut self, desk: &mut Desk) -> (Next, Charge) {
        match std::mem::replace(&mut self.phase, Phase::Reading) {
            Phase::Reading => self.read(desk),
            Phase::Writing { bytes, at, end, then } => (self.write(&bytes, at, end, then), self.wake()),
            Phase::Lingering { left } => (self.linger(left, &mut desk.scratch), self.wake()),
        }
    }

    fn read(&mut self, desk: &mut Desk) -> (Next, Charge) {
        let pages = &desk.site.pages;
        if self.taken < self.input.len() {
            let (used, step) = self.reader.feed(&self.input[self.taken..], pages);
            self.taken += used;
            if step != Step::More {
                return self.act(step, desk);
            }
        }
        self.input.drain(..self.taken);
        self.taken = 0;
        let read = match recv(&self.socket, &mut *desk.scratch, RecvFlags::empty()) {
            Ok((0, _)) => return (Next::Close, self.wake()),
            Ok((n, _)) => &desk.scratch[..n],
            Err(Errno::AGAIN | Errno::INTR) => {
                return (Next::Await(EventFlags::IN), Charge::Pending);
            }
            Err(_) => return (Next::Close, self.wake()),
        };
        let step = if self.input.is_empty() {
            let (used, step) = self.reader.feed(read, pages);
            self.input.extend_from_slice(&read[used..]);
            step
        } else {
            self.input.extend_from_slice(read);
            let (used, step) = self.reader.feed(&self.input, pages);
            self.taken = used;
            step
        };
        self.act(step, desk)
    }

    fn act(&mut self, step: Step, desk: &mut Desk) -> (Next, Charge) {
        match step {
            Step::More => (Next::Await(EventFlags::IN), Charge::Pending),
            Step::Proceed => (self.respond(&desk.site.pages.proceed, false, Then::Read), Charge::Pending),
            Step::Whole(request) => self.serve(request, desk),
            Step::Refused(page) => self.answer(page, false, Then::Linger, desk),
        }
    }

    fn serve(&mut self, request: Request, desk: &mut Desk) -> (Next, Charge) {
        let mut page = request.page;
        if let Page::Class(class) = page
            && desk.admits()
        {
            self.last = Some(class);
            if !desk.serve(class) {
                return (Next::Close, self.wake());
            }
        } else if let Page::Class(_) = page {
            page = Page::TooManyRequests;
        }
        // A server that stops answers what is there and hangs up.
        let then = if request.close || desk.stopping() { Then::Close } else { Then::Read };
        self.answer(page, request.head_only, then, desk)
    }

    fn answer(&mut self, page: Page, head_only: bool, then: Then, desk: &Desk) -> (Next, Charge) {
        let charge = if let Page::Class(class) = page { Charge::Served(class) } else { Charge::Other };
        let close = then != Then::Read;
        let next = match desk.site.pages.get(page, close) {
            Some(response) => self.respond(response, head_only, then),
            None => {
                let truth = serde_json::to_vec(&desk.site.truth()).unwrap_or_default();
                self.respond(&pages::render("200 OK", "application/json", "", close, &truth), head_only, then)
            }
        };
        (next, charge)
    }

    fn respond(&mut self, response: &Response, head_only: bool, then: Then) -> Next {
        let end = if head_only { response.head } else { response.bytes.len() };
        self.write(&response.bytes, 0, end, then)
    }

    fn write(&mut self, bytes: &Arc<[u8]>, mut at: usize, end: usize, then: Then) -> Next {
        while at < end {
            match send(&self.socket, &bytes[at..end], SendFlags::NOSIGNAL) {
                Ok(n) => at += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.phase = Phase::Writing { bytes: Arc::clone(bytes), at, end, then };
                    return Next::Await(EventFlags::OUT);
                }
                Err(_) => return Next::Close,
            }
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
