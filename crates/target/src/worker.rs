//! The workers, and the one queue they serve.
//!
//! Every socket is in one epoll instance, armed for one event at a time (`EPOLLONESHOT`), so a connection is with at
//! most one worker. A worker of several takes one event at a time: had it taken two, the second would wait for it while
//! a colleague idles. A single worker may take many, for they come in the order in which they became ready.

use crate::burn::Sampler;
use crate::connection::{Connection, Next};
use crate::desk::{Desk, Site, lock};
use crate::transport::{Security, Transport};
use crate::truth::Charge;
use brimful_core::Nanos;
use brimful_os::clock::thread_cpu;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{Resource, getrlimit};
use rustix::time::Timespec;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Event data of the listening socket; connections have their descriptor.
pub(crate) const LISTENER: u64 = u64::MAX;
/// Event data of the descriptor that tells the workers to stop.
pub(crate) const STOP: u64 = u64::MAX - 1;
/// Events that a single worker takes at once.
const EVENTS: usize = 64;
/// Connections accepted between two readings of the clock.
const ACCEPTS: usize = 64;
/// How long a server that stops goes on answering what is already there.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// How long a server out of descriptors waits before it tries to accept again, unless a connection ends first.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What the workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) epoll: OwnedFd,
    pub(crate) listener: OwnedFd,
    /// Only where connections are secured.
    pub(crate) security: Option<Security>,
    /// Readable when the workers are to stop.
    pub(crate) stop: OwnedFd,
    pub(crate) table: Table,
    /// Whether the listening socket is disarmed for want of descriptors.
    pub(crate) paused: AtomicBool,
}

impl Shared {
    fn resume_accepting(&self) {
        if self.paused.swap(false, Ordering::AcqRel) {
            self.arm_listener();
        }
    }

    fn arm_listener(&self) {
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        // Cannot fail: the socket is registered, and re-arming allocates nothing.
        let _ = epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags);
    }
}

/// The connections by descriptor. It grows by chunks that never move, so that finding one takes no lock but its own.
#[derive(Debug)]
pub(crate) struct Table {
    chunks: Box<[OnceLock<Box<[Slot]>>]>,
}

type Slot = Mutex<Option<Connection>>;

impl Table {
    const CHUNK: usize = 1024;
    /// More descriptors than a process can have by default, even where there is no limit.
    const MOST: u64 = 1 << 24;

    /// Room for as many descriptors as this process could ever be granted.
    pub(crate) fn new() -> Table {
        let limit = getrlimit(Resource::Nofile).maximum.map_or(Table::MOST, |n| n.min(Table::MOST));
        Table { chunks: (0..(limit as usize).div_ceil(Table::CHUNK)).map(|_| OnceLock::new()).collect() }
    }

    fn slot(&self, descriptor: usize) -> Option<&Slot> {
        let chunk = self.chunks.get(descriptor / Table::CHUNK)?;
        chunk.get_or_init(|| (0..Table::CHUNK).map(|_| Slot::default()).collect()).get(descriptor % Table::CHUNK)
    }
}

/// One worker, on its own thread.
#[derive(Debug)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    desk: Desk,
    index: usize,
    /// The last reading of the thread's CPU clock.
    clock: Nanos,
    accepted: Vec<OwnedFd>,
}

impl Worker {
    /// Call on the thread, and on the CPU, that the worker is to run on.
    pub(crate) fn new(shared: Arc<Shared>, index: usize, sampler: Sampler) -> Worker {
        let desk = Desk::new(Arc::clone(&shared.site), sampler);
        Worker { shared, desk, index, clock: thread_cpu(), accepted: Vec::with_capacity(ACCEPTS) }
    }

    /// Serves until told to stop, and then until nothing is left to answer or [`GRACE`] is over.
    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut buffer = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        loop {
            let draining = self.desk.stopping();
            let room = if draining || shared.site.ledgers.len() == 1 { EVENTS } else { 1 };
            let timeout = shared.paused.load(Ordering::Acquire).then_some(&PAUSE);
            let events = match epoll::wait(&shared.epoll, &mut buffer[..room], timeout) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                // Impossible while the descriptor is open, which it is as long as `shared`.
                Err(_) => return,
            };
            if events.is_empty() {
                shared.resume_accepting();
                self.book(Charge::Other, &mut Nanos(0));
            }
            let mut idle = true;
            for event in events {
                if shared.site.is_over() {
                    return;
                }
                match event.data.u64() {
                    STOP => {}
                    LISTENER => self.accept(),
                    descriptor => {
                        self.serve(descriptor);
                        idle = false;
                    }
                }
            }
            if draining && idle {
                return;
            }
        }
    }

    /// Gives the connection its turn.
    fn serve(&mut self, descriptor: u64) {
        let shared = Arc::clone(&self.shared);
        let Some(slot) = shared.table.slot(descriptor as usize) else {
            return;
        };
        let mut guard = lock(slot);
        let Some(connection) = guard.as_mut() else {
            return;
        };
        let (next, charge) = connection.turn(&mut self.desk);
        if let Next::Await(flags) = next {
            self.book(charge, &mut connection.carried);
            // Another worker may have the connection from here on; it waits for the guard.
            let data = EventData::new_u64(descriptor);
            if epoll::modify(&shared.epoll, &connection.socket, data, flags | EventFlags::ONESHOT).is_ok() {
                return;
            }
        }
        let mut carried = connection.carried;
        // Under the guard: the kernel may give the descriptor away again at once.
        *guard = None;
        shared.resume_accepting();
        self.book(charge, &mut carried);
    }

    /// Accepts all who wait.
    fn accept(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut waiting = true;
        while waiting {
            waiting = self.accept_some();
            // A connection's first request bears the cost of its acceptance.
            let mut carried = Nanos::ZERO;
            let accepted = self.accepted.len().max(1) as u64;
            self.book(if self.accepted.is_empty() { Charge::Other } else { Charge::Pending }, &mut carried);
            for socket in self.accepted.drain(..) {
                shared.admit(socket, Nanos(carried.0 / accepted));
            }
        }
        if !shared.paused.load(Ordering::Acquire) {
            shared.arm_listener();
        }
        self.book(Charge::Other, &mut Nanos(0));
    }

    /// Accepts up to [`ACCEPTS`]; returns whether more may wait.
    fn accept_some(&mut self) -> bool {
        let shared = &self.shared;
        while self.accepted.len() < ACCEPTS {
            match accept_with(&shared.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.accepted.push(socket),
                Err(Errno::AGAIN) => return false,
                // These concern the client that was next, and it is gone from the queue (accept(2), "Error handling").
                Err(
                    Errno::INTR
                    | Errno::CONNABORTED
                    | Errno::PROTO
                    | Errno::NETDOWN
                    | Errno::NETUNREACH
                    | Errno::HOSTDOWN
                    | Errno::HOSTUNREACH,
                ) => {}
                // Out of descriptors or memory. The clients stay in the queue; trying again at once would spin.
                Err(_) => {
                    shared.paused.store(true, Ordering::Release);
                    return false;
                }
            }
        }
        true
    }

    /// Ends a turn: reads the clock, and books what passed since the last reading.
    fn book(&mut self, charge: Charge, carried: &mut Nanos) {
        let now = thread_cpu();
        let share = now - std::mem::replace(&mut self.clock, now);
        lock(&self.shared.site.ledgers[self.index]).book(charge, share, carried);
    }
}

impl Shared {
    /// Takes a new connection in.
    fn admit(&self, socket: OwnedFd, carried: Nanos) {
        let descriptor = socket.as_raw_fd();
        // A descriptor beyond the table or beyond what epoll can watch is closed: the host is out of room.
        let Some(slot) = self.table.slot(descriptor as usize) else {
            return;
        };
        let Some(transport) = Transport::new(self.security.as_ref()) else {
            return;
        };
        let mut guard = lock(slot);
        let connection = guard.insert(Connection::new(socket, transport, carried));
        let data = EventData::new_u64(descriptor as u64);
        if epoll::add(&self.epoll, &connection.socket, data, EventFlags::IN | EventFlags::ONESHOT).is_err() {
            *guard = None;
        }
    }
}
