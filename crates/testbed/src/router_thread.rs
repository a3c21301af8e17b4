//! The thread of the router: it reads packets from the TUN devices of the hosts, and writes each packet to its
//! receiver's device when the packet is due.
//!
//! The thread sleeps until a packet arrives, or until shortly before the next packet is due. For the rest of the time
//! ([`MARGIN`]), it polls, because the kernel ends a sleep late. If the thread shares its CPU with clients, it may poll
//! only for a small share of the time: at high rates, polling would otherwise use all of the clients' CPU time. The
//! lateness of a packet is measured after the packet was written.

use crate::address::{HostNumber, MAX_CLIENTS};
use crate::cpus::ThreadPlacement;
use crate::lateness::Lateness;
use crate::router::{NetworkSettings, Router};
use crate::sys;
use brimful_core::Nanos;
use brimful_os::clock::now;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::{Errno, read, write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

/// Maximum number of packets that the thread reads from one host before it reads from the next. Also the maximum number
/// of packets that it delivers before it reads again.
const BATCH: usize = 32;
/// Time before the due time of the next packet at which the thread's sleep must end. It is about the time to wake a
/// thread in a virtual machine.
const MARGIN: Nanos = Nanos::from_micros(80);
/// On a shared CPU, the thread may poll for at most this fraction of the time: 1/20.
const POLL_DIVISOR: u64 = 20;
/// Maximum unused polling time that the thread keeps for later.
const MAX_SAVED: Nanos = Nanos::from_millis(2);
/// The epoll data of the request to stop the thread. All other values are numbers of hosts.
const END: u64 = u64::MAX;

/// A running router thread. Dropping this value stops the thread.
#[derive(Debug)]
pub struct RouterThread {
    end: OwnedFd,
    /// Handle of the thread; `None` after the thread has ended.
    thread: Option<JoinHandle<RouterResults>>,
}

/// The results of the router's thread.
#[derive(Debug)]
pub struct RouterResults {
    /// The router, with its counts of packets.
    pub router: Router,
    /// Lateness of the packets that were delivered.
    pub lateness: Lateness,
    /// Number of packets that the receiver's device did not accept.
    pub refused: u64,
    /// CPU time of the thread.
    pub cpu: Nanos,
}

/// The state of the router's thread.
struct Forwarder {
    router: Router,
    devices: Vec<OwnedFd>,
    epoll: OwnedFd,
    polling: PollBudget,
    lateness: Lateness,
    refused: u64,
}

/// The time for which the thread may poll instead of sleeping.
#[derive(Debug)]
struct PollBudget {
    /// Whether the server and the clients use other CPUs, so that polling does not slow them down.
    is_exclusive: bool,
    /// Whether the last decision was to poll.
    is_polling: bool,
    /// Polling time that was permitted but not used, for later.
    saved: Nanos,
    /// Time of the last decision to poll or to sleep.
    updated_at: Nanos,
}

impl RouterThread {
    /// Starts the router's thread. `devices` are the TUN devices: first the server's, then the clients' in order.
    pub fn start(
        settings: &NetworkSettings,
        devices: Vec<OwnedFd>,
        placement: ThreadPlacement,
    ) -> std::io::Result<RouterThread> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (number, device) in devices.iter().enumerate() {
            epoll::add(&epoll, device, EventData::new_u64(number as u64), EventFlags::IN)?;
        }
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &end, EventData::new_u64(END), EventFlags::IN)?;
        let mut forwarder = Forwarder {
            router: Router::new(settings),
            devices,
            epoll,
            polling: PollBudget::new(placement.is_exclusive, now()),
            lateness: Lateness::new(),
            refused: 0,
        };
        let run = move || {
            prioritize(placement);
            forwarder.run();
            let Forwarder { router, lateness, refused, .. } = forwarder;
            RouterResults { router, lateness, refused, cpu: brimful_os::clock::thread_cpu() }
        };
        let thread = std::thread::Builder::new().name("router".to_owned()).spawn(run)?;
        Ok(RouterThread { end, thread: Some(thread) })
    }

    /// Stops the thread, and returns its results; `None` if it panicked. Packets in the router are lost.
    pub fn stop(mut self) -> Option<RouterResults> {
        self.end()
    }

    fn end(&mut self) -> Option<RouterResults> {
        let thread = self.thread.take()?;
        // An error is not possible, because the counter of the eventfd is far below its maximum.
        let _ = write(&self.end, &1u64.to_ne_bytes());
        // If the thread panicked, Rust has already printed the message.
        thread.join().ok()
    }
}

impl Drop for RouterThread {
    fn drop(&mut self) {
        self.end();
    }
}

/// Pins the calling thread to its CPU and raises its priority. Errors are ignored: they make packets later, which the
/// measured lateness shows.
fn prioritize(placement: ThreadPlacement) {
    if let Some(cpu) = placement.cpu {
        let _ = brimful_os::cpus::pin_this_thread(cpu);
    }
    // Reduces the timer slack, by which the kernel may end a sleep late, from 50 µs to its minimum of 1 ns.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    // On a shared CPU, the thread needs real-time scheduling. Otherwise, it would wait for the end of the running
    // thread's time slice, whatever the priorities are. On an exclusive CPU, real-time scheduling would block the
    // kernel's own threads, because the thread may poll all the time. Both settings need root.
    if !placement.is_exclusive && sys::set_realtime_scheduling().is_ok() {
        return;
    }
    // On Linux, this sets the priority of the thread only, not that of the process.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -20);
}

impl Forwarder {
    fn run(&mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(MAX_CLIENTS + 2);
        loop {
            let has_more = self.release();
            let timeout = if has_more { Some(Nanos::ZERO) } else { self.sleep_time() };
            let timeout = timeout.map(|nanos| Timespec {
                tv_sec: (nanos.0 / 1_000_000_000) as _,
                tv_nsec: (nanos.0 % 1_000_000_000) as _,
            });
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                // No other error is documented for a valid epoll descriptor.
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

    /// Time to sleep; zero to poll; `None` to sleep until a packet arrives, because the router contains no packets.
    fn sleep_time(&mut self) -> Option<Nanos> {
        let due = self.router.next_due()?;
        let now = now();
        Some(self.polling.sleep_time(due - now, now))
    }

    /// Reads the packets that one host has sent, and passes them to the router.
    fn read(&mut self, number: usize) {
        let Some(device) = self.devices.get(number) else { return };
        for _ in 0..BATCH {
            let mut buffer = self.router.buffer();
            match read(device, &mut buffer[..]) {
                Ok(length) => self.router.receive(HostNumber(number), buffer, length, now()),
                // The device contains no more packets, or it was removed.
                Err(_) => return self.router.recycle(buffer),
            }
        }
    }

    /// Writes due packets to the devices of their receivers. Returns whether more packets may be due.
    fn release(&mut self) -> bool {
        let Forwarder { router, devices, lateness, refused, .. } = self;
        router.deliver_due(now(), BATCH, |to, packet, due| {
            let Some(device) = devices.get(to.0) else { return };
            match write(device.as_fd(), packet) {
                Ok(_) => lateness.record(now() - due),
                Err(_) => *refused += 1,
            }
        })
    }
}

impl PollBudget {
    fn new(is_exclusive: bool, now: Nanos) -> PollBudget {
        PollBudget { is_exclusive, is_polling: false, saved: Nanos::ZERO, updated_at: now }
    }

    /// Time to sleep if the next packet is due after `remaining`; zero to poll. The caller calls this again after that
    /// time.
    fn sleep_time(&mut self, remaining: Nanos, now: Nanos) -> Nanos {
        let elapsed = now - std::mem::replace(&mut self.updated_at, now);
        if std::mem::take(&mut self.is_polling) {
            self.saved = self.saved - elapsed;
        }
        self.saved = (self.saved + Nanos(elapsed.0 / POLL_DIVISOR)).min(MAX_SAVED);
        // If the saved polling time is shorter than the margin, the thread sleeps until the packet is due, and keeps
        // the saved time for a later packet.
        if !self.is_exclusive && self.saved < remaining.min(MARGIN) {
            return remaining;
        }
        self.is_polling = remaining <= MARGIN;
        remaining - MARGIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Nanos = Nanos::from_micros;

    #[test]
    fn on_an_exclusive_cpu_sleep_ends_a_margin_early() {
        let mut polling = PollBudget::new(true, Nanos::ZERO);
        assert_eq!(polling.sleep_time(US(500), US(1)), US(420));
        assert_eq!(polling.sleep_time(US(50), US(2)), Nanos::ZERO);
    }

    #[test]
    fn on_a_shared_cpu_polling_is_limited_to_a_share_of_the_time() {
        let mut polling = PollBudget::new(false, Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let mut polled = Nanos::ZERO;
        // Simulates packets that are due every 100 µs, and polls that take 1 µs.
        for number in 1..=100_000 {
            let due = US(100 * number);
            while now < due {
                let sleep = polling.sleep_time(due - now, now);
                polled += if sleep == Nanos::ZERO { US(1) } else { Nanos::ZERO };
                now += sleep.max(US(1));
            }
        }
        let share = polled.as_secs_f64() / now.as_secs_f64();
        assert!(share > 0.02 && share < 0.06, "{share}");
    }
}
