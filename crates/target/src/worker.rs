//! The workers, and the queue of ready sockets that they share.
//!
//! All sockets are registered with the same epoll instance. Each is armed for one event at a time (`EPOLLONESHOT`), so
//! that at most one worker processes a connection. If there are several workers, each takes one event at a time: a
//! second event would wait for this worker, although another worker may be idle. A single worker takes many events at
//! once, in the order in which the sockets became ready.

use crate::burn::Sampler;
use crate::connection::{Connection, Next};
use crate::state::{ServerState, WorkerState};
use crate::transport::{Security, Transport};
use crate::truth::Charge;
use brimful_core::Nanos;
use brimful_core::panics::lock;
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

/// Event number of the listening socket. The event number of a connection is its file descriptor.
pub(crate) const LISTENER: u64 = u64::MAX;
/// Event number of the eventfd that signals the workers to stop.
pub(crate) const STOP: u64 = u64::MAX - 1;
/// Maximum number of events that the only worker, or a worker of a stopping server, takes from epoll at once.
const MAX_EVENTS: usize = 64;
/// Maximum number of connections that a worker accepts between two readings of its CPU clock.
const MAX_ACCEPTS: usize = 64;
/// Time for which a stopping server continues to respond to requests that have arrived.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// If there are no free file descriptors, the server tries to accept again when a worker has waited for this time
/// without an event, or when a connection is closed.
const ACCEPT_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The sockets and connections, which all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The state of the server.
    pub(crate) server: Arc<ServerState>,
    /// The epoll instance with all sockets.
    pub(crate) epoll: OwnedFd,
    /// The listening socket.
    pub(crate) listener: OwnedFd,
    /// The TLS configuration; `None` without TLS.
    pub(crate) security: Option<Security>,
    /// An eventfd that becomes readable when the workers must stop.
    pub(crate) stop: OwnedFd,
    /// The connections.
    pub(crate) table: Table,
    /// Whether accepting is paused because there were no free file descriptors. The listening socket then causes no
    /// events.
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
        // Changing the events of a registered socket cannot fail: no memory is allocated.
        let _ = epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags);
    }
}

/// The connections, indexed by file descriptor. The table grows by chunks that never move in memory. So a look-up needs
/// no lock of the table; each connection has a lock of its own.
#[derive(Debug)]
pub(crate) struct Table {
    chunks: Box<[OnceLock<Box<[Slot]>>]>,
}

type Slot = Mutex<Option<Connection>>;

impl Table {
    const CHUNK: usize = 1024;
    /// Maximum number of file descriptors in the table. Even without a configured limit, a process can usually open
    /// fewer.
    const MAX_DESCRIPTORS: u64 = 1 << 24;

    /// Creates a table for all file descriptors that this process may have.
    pub(crate) fn new() -> Table {
        let limit =
            getrlimit(Resource::Nofile).maximum.map_or(Table::MAX_DESCRIPTORS, |n| n.min(Table::MAX_DESCRIPTORS));
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
    state: WorkerState,
    index: usize,
    /// The thread's CPU time at the last reading of its clock.
    clock: Nanos,
    accepted: Vec<OwnedFd>,
}

impl Worker {
    /// Creates a worker. Must be called on the worker's thread, after it was pinned.
    pub(crate) fn new(shared: Arc<Shared>, index: usize, sampler: Sampler) -> Worker {
        let state = WorkerState::new(Arc::clone(&shared.server), sampler);
        Worker { shared, state, index, clock: thread_cpu(), accepted: Vec::with_capacity(MAX_ACCEPTS) }
    }

    /// Serves requests until the server stops. Then serves the requests that have already arrived, for at most
    /// [`GRACE`].
    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut buffer = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        loop {
            let draining = self.state.is_stopping();
            let room = if draining || shared.server.ledgers.len() == 1 { MAX_EVENTS } else { 1 };
            let timeout = shared.paused.load(Ordering::Acquire).then_some(&ACCEPT_PAUSE);
            let events = match epoll::wait(&shared.epoll, &mut buffer[..room], timeout) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                // Apart from EINTR, epoll_wait(2) fails only for an invalid descriptor or buffer, and both are valid.
                Err(_) => return,
            };
            if events.is_empty() {
                shared.resume_accepting();
                self.book(Charge::Other, &mut Nanos(0));
            }
            let mut idle = true;
            for event in events {
                if shared.server.is_over() {
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

    /// Processes the connection with this file descriptor for one turn.
    fn serve(&mut self, descriptor: u64) {
        let shared = Arc::clone(&self.shared);
        let Some(slot) = shared.table.slot(descriptor as usize) else {
            return;
        };
        let mut guard = lock(slot);
        let Some(connection) = guard.as_mut() else {
            return;
        };
        let (next, charge) = connection.turn(&mut self.state);
        if let Next::Await(flags) = next {
            self.book(charge, &mut connection.carried);
            // From here on, another worker may receive an event of this connection. It waits until the guard is
            // dropped.
            let data = EventData::new_u64(descriptor);
            if epoll::modify(&shared.epoll, &connection.socket, data, flags | EventFlags::ONESHOT).is_ok() {
                return;
            }
        }
        let mut carried = connection.carried;
        // Remove the connection while its slot is locked: removing it closes its file descriptor, which the kernel may
        // reuse at once.
        *guard = None;
        shared.resume_accepting();
        self.book(charge, &mut carried);
    }

    /// Accepts all connections in the listen queue.
    fn accept(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut waiting = true;
        while waiting {
            waiting = self.accept_some();
            // The CPU time of accepting a connection is added to the account of its first request.
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

    /// Accepts at most [`MAX_ACCEPTS`] connections. Returns whether more may be in the queue.
    fn accept_some(&mut self) -> bool {
        let shared = &self.shared;
        while self.accepted.len() < MAX_ACCEPTS {
            match accept_with(&shared.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.accepted.push(socket),
                Err(Errno::AGAIN) => return false,
                // These errors concern only the connection that would have been accepted; it has left the queue
                // (accept(2), "Error handling").
                Err(
                    Errno::INTR
                    | Errno::CONNABORTED
                    | Errno::PROTO
                    | Errno::NETDOWN
                    | Errno::NETUNREACH
                    | Errno::HOSTDOWN
                    | Errno::HOSTUNREACH,
                ) => {}
                // No file descriptors or no memory are free. The connections stay in the queue. Accepting pauses,
                // because further attempts would fail and only use CPU time.
                Err(_) => {
                    shared.paused.store(true, Ordering::Release);
                    return false;
                }
            }
        }
        true
    }

    /// Ends a turn: reads the CPU clock, and adds the CPU time since the last reading to an account.
    fn book(&mut self, charge: Charge, carried: &mut Nanos) {
        let now = thread_cpu();
        let share = now - std::mem::replace(&mut self.clock, now);
        lock(&self.shared.server.ledgers[self.index]).book(charge, share, carried);
    }
}

impl Shared {
    /// Registers a new connection. Closes it if it cannot be registered.
    fn admit(&self, socket: OwnedFd, carried: Nanos) {
        let descriptor = socket.as_raw_fd();
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
