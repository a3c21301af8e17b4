//! Waiting for sockets or for an instant, whichever comes first.
//!
//! A sleeping thread wakes some 40 µs late and a spinning one burns a core, so: sleep until [`SPIN`] before the instant,
//! then poll without sleeping.

use crate::clock::Clock;
use brimful_core::Nanos;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::Timespec;

/// How long before the instant sleeping gives way to polling.
const SPIN: Nanos = Nanos::from_micros(50);
/// Longest sleep: how soon a stop is noticed.
const NAP: Nanos = Nanos::from_millis(50);
/// Most events taken at once.
const BATCH: usize = 64;

/// Readiness of one socket.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// As registered.
    pub token: u64,
    /// May be written to.
    pub writable: bool,
    /// Has bytes, an end of stream or an error to read.
    pub readable: bool,
    /// The peer has closed or reset: whoever reads must read on to the end.
    pub hung_up: bool,
}

/// An epoll instance, edge-triggered.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    taken: usize,
    /// Time spent waiting with nothing to do.
    pub idle: Nanos,
}

impl Poller {
    pub fn new() -> rustix::io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, events: Vec::with_capacity(BATCH), taken: 0, idle: Nanos::ZERO })
    }

    /// Registers a socket once for its whole life.
    pub fn add(&self, socket: &impl AsFd, token: u64) -> rustix::io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)
    }

    /// Returns when a socket is ready, `until` has come, or a short while has passed. Then take events by
    /// [`Poller::take`]. Time that passes in here without an event counts as idle.
    pub fn wait(&mut self, clock: Clock, until: Nanos) -> rustix::io::Result<()> {
        let began = clock.now();
        let mut now = began;
        let limit = until.min(began + NAP);
        loop {
            let left = limit - now;
            let sleep = if left > SPIN { left - SPIN } else { Nanos::ZERO };
            self.poll(sleep)?;
            now = clock.now();
            if !self.events.is_empty() || now >= limit {
                break;
            }
        }
        self.idle += now - began;
        Ok(())
    }

    /// Takes events that are there already, without waiting.
    pub fn poll_now(&mut self) -> rustix::io::Result<()> {
        self.poll(Nanos::ZERO)
    }

    /// The next event that was found.
    pub fn take(&mut self) -> Option<Ready> {
        let event = self.events.get(self.taken)?;
        self.taken += 1;
        let flags = event.flags;
        let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        Some(Ready {
            token: event.data.u64(),
            writable: flags.contains(EventFlags::OUT),
            readable: hung_up || flags.contains(EventFlags::IN),
            hung_up,
        })
    }

    fn poll(&mut self, sleep: Nanos) -> rustix::io::Result<()> {
        self.events.clear();
        self.taken = 0;
        let timeout = Timespec { tv_sec: (sleep.0 / 1_000_000_000) as i64, tv_nsec: (sleep.0 % 1_000_000_000) as i64 };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}
