//! The router at work: one thread that reads packets from the hosts' devices, and writes them when they are due.
//!
//! It sleeps until the next packet is due or one comes, but for a margin before that, in which it looks without
//! sleeping: a sleep ends late. On a CPU that it shares with clients it may spend a small share of the time so, or at
//! high rates it would take all of theirs. How late packets leave is measured after each was handed over.

use crate::address::{HostNumber, MOST_CLIENTS};
use crate::late::Late;
use crate::router::{Router, Shape};
use crate::sys;
use brimful_core::Nanos;
use brimful_os::clock::now;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::{Errno, read, write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

/// Most packets that are read from one host before others have their turn, and that are released before reading goes
/// on.
const BATCH: usize = 32;
/// How long before a packet is due to stop sleeping. Waking up takes as long where a hypervisor has to be asked for the
/// CPU.
const MARGIN: Nanos = Nanos::from_micros(80);
/// Share of the time that a thread may look without sleeping on a CPU that it shares: one part of this many,
const SHARED: u64 = 20;
/// of which it saves up this much at most.
const SAVED: Nanos = Nanos::from_millis(2);
/// What the event of the end is known by.
const END: u64 = u64::MAX;

/// A router that runs; ended when it is told to, or dropped.
#[derive(Debug)]
pub struct Pump {
    end: OwnedFd,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<Ended>>,
}

/// What it leaves behind.
#[derive(Debug)]
pub struct Ended {
    /// The router with its counts.
    pub router: Router,
    /// How late packets left.
    pub late: Late,
    /// Packets that a host's kernel did not take.
    pub refused: u64,
    /// CPU time of the thread.
    pub cpu: Nanos,
}

/// How the thread runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its CPU, if it has to have one.
    pub cpu: Option<usize>,
    /// Whether nobody else needs that CPU, so that waiting may take its time.
    pub alone: bool,
}

struct Work {
    router: Router,
    devices: Vec<OwnedFd>,
    epoll: OwnedFd,
    patience: Patience,
    late: Late,
    refused: u64,
}

/// How much time may be spent without sleeping.
#[derive(Debug)]
struct Patience {
    alone: bool,
    /// Whether it has not slept since it was asked last.
    awake: bool,
    saved: Nanos,
    /// Up to when it was saved up.
    at: Nanos,
}

impl Pump {
    /// Starts it between these devices: the server's, then the clients' in order.
    pub fn start(shape: &Shape, devices: Vec<OwnedFd>, place: Place) -> std::io::Result<Pump> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (number, device) in devices.iter().enumerate() {
            epoll::add(&epoll, device, EventData::new_u64(number as u64), EventFlags::IN)?;
        }
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &end, EventData::new_u64(END), EventFlags::IN)?;
        let mut work = Work {
            router: Router::new(shape),
            devices,
            epoll,
            patience: Patience { alone: place.alone, awake: false, saved: Nanos::ZERO, at: now() },
            late: Late::new(),
            refused: 0,
        };
        let run = move || {
            prepare(place);
            work.run();
            let Work { router, late, refused, .. } = work;
            Ended { router, late, refused, cpu: brimful_os::clock::thread_cpu() }
        };
        let thread = std::thread::Builder::new().name("router".to_owned()).spawn(run)?;
        Ok(Pump { end, thread: Some(thread) })
    }

    /// Ends it; packets that are still on their way are lost. `None` if it has panicked, which it does not.
    pub fn stop(mut self) -> Option<Ended> {
        self.end()
    }

    fn end(&mut self) -> Option<Ended> {
        let thread = self.thread.take()?;
        // An eventfd takes far more than this.
        let _ = write(&self.end, &1u64.to_ne_bytes());
        // A panic has said what it was.
        thread.join().ok()
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.end();
    }
}

/// Gives the thread its CPU and its priority, as far as it may have them: what it misses shows in how late packets
/// leave.
fn prepare(place: Place) {
    if let Some(cpu) = place.cpu {
        let _ = brimful_os::cpus::pin_this_thread(cpu);
    }
    // Sleeps end 50 µs late on purpose unless they are told not to; 1 is the least.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    // On a CPU that it shares packets would wait for the end of a program's slice of time, whatever its priority is. On
    // one of its own it may be awake all the time, and would keep the kernel's threads from it. Either takes root.
    if !place.alone && sys::run_before_others().is_ok() {
        return;
    }
    // Of this thread alone, as Linux has it.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -20);
}

impl Work {
    fn run(&mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(MOST_CLIENTS + 2);
        loop {
            let more = self.release();
            let timeout = if more { Some(Nanos::ZERO) } else { self.sleep() };
            let timeout = timeout.map(|nanos| Timespec {
                tv_sec: (nanos.0 / 1_000_000_000) as _,
                tv_nsec: (nanos.0 % 1_000_000_000) as _,
            });
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                // The kernel has no other; without it nothing can be forwarded.
                Err(_) => return,
            }
            for event in &events {
                match event.data.u64() {
                    END => return,
                    number => self.read(number as usize),
                }
            }
        }
    }

    /// How long to sleep; `None` until something comes.
    fn sleep(&mut self) -> Option<Nanos> {
        let (due, now) = (self.router.next()?, now());
        Some(self.patience.sleep(due - now, now))
    }

    /// Reads what a host has sent.
    fn read(&mut self, number: usize) {
        let Some(device) = self.devices.get(number) else { return };
        for _ in 0..BATCH {
            let mut buffer = self.router.buffer();
            match read(device, &mut buffer[..]) {
                Ok(length) => self.router.take(HostNumber(number), buffer, length, now()),
                // Nothing more, or a device that is gone.
                Err(_) => return self.router.keep(buffer),
            }
        }
    }

    /// Hands over what is due; returns whether there may be more.
    fn release(&mut self) -> bool {
        let Work { router, devices, late, refused, .. } = self;
        router.release(now(), BATCH, |to, packet, due| {
            let Some(device) = devices.get(to.0) else { return };
            match write(device.as_fd(), packet) {
                Ok(_) => late.record(now() - due),
                Err(_) => *refused += 1,
            }
        })
    }
}

impl Patience {
    /// How long to sleep when there is so much left to wait; it is asked again when that has passed.
    fn sleep(&mut self, left: Nanos, now: Nanos) -> Nanos {
        let passed = now - std::mem::replace(&mut self.at, now);
        if std::mem::take(&mut self.awake) {
            self.saved = self.saved - passed;
        }
        self.saved = (self.saved + Nanos(passed.0 / SHARED)).min(SAVED);
        // What is not enough for a whole margin is saved for a later one.
        if !self.alone && self.saved < left.min(MARGIN) {
            return left;
        }
        self.awake = left <= MARGIN;
        left - MARGIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Nanos = Nanos::from_micros;

    #[test]
    fn alone_it_stops_sleeping_a_margin_before() {
        let mut patience = Patience { alone: true, awake: false, saved: Nanos::ZERO, at: Nanos::ZERO };
        assert_eq!(patience.sleep(US(500), US(1)), US(420));
        assert_eq!(patience.sleep(US(50), US(2)), Nanos::ZERO);
    }

    #[test]
    fn on_a_shared_cpu_no_more_than_its_share_is_spent_awake() {
        let mut patience = Patience { alone: false, awake: false, saved: Nanos::ZERO, at: Nanos::ZERO };
        let (mut now, mut awake) = (Nanos::ZERO, Nanos::ZERO);
        // Something is due every 100 µs; a look takes 1 µs.
        for number in 1..=100_000 {
            let due = US(100 * number);
            while now < due {
                let sleep = patience.sleep(due - now, now);
                awake += if sleep == Nanos::ZERO { US(1) } else { Nanos::ZERO };
                now += sleep.max(US(1));
            }
        }
        let share = awake.as_secs_f64() / now.as_secs_f64();
        assert!(share > 0.02 && share < 0.06, "{share}");
    }
}
