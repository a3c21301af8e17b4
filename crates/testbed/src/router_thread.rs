//! The thread of the router: it reads packets from the TUN devices of the hosts, and writes each packet to its
//! receiver's device when the packet is due.
//!
//! The thread sleeps until a packet arrives, or until shortly before the next packet is due. For the remaining time
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

/// Maximum number of packets that are read from one host before the thread reads from the next host. Also the maximum
/// number of packets that are delivered before packets are read again.
const BATCH: usize = 32;
/// The thread ends its sleep this long before the next packet is due. Waking up a thread in a virtual machine takes
/// about this long.
const MARGIN: Nanos = Nanos::from_micros(80);
/// On a shared CPU, the thread may poll for at most the elapsed time divided by this number.
const POLL_DIVISOR: u64 = 20;
/// Maximum polling time that the thread may save for later.
const MAX_SAVED: Nanos = Nanos::from_millis(2);
/// The event number of the request to end the thread. Other event numbers are those of hosts.
const END: u64 = u64::MAX;

/// A running router thread. Dropping this value ends the thread.
#[derive(Debug)]
pub struct RouterThread {
    end: OwnedFd,
    /// Handle of the thread; `None` once it has been joined.
    thread: Option<JoinHandle<RouterResults>>,
}

/// The results of a router's thread, after its end.
#[derive(Debug)]
pub struct RouterResults {
    /// The router, which contains the counts of packets.
    pub router: Router,
    /// Lateness of the packets.
    pub lateness: Lateness,
    /// Number of packets that could not be written to the receiver's device.
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

/// The time that the thread may spend polling instead of sleeping.
#[derive(Debug)]
struct PollBudget {
    /// Whether the server and the clients use other CPUs, so that polling slows nothing down.
    is_exclusive: bool,
    /// Whether the last decision was to poll.
    is_polling: bool,
    /// Polling time that was permitted so far, but not used.
    saved: Nanos,
    /// Time of the last decision to poll or to sleep.
    updated_at: Nanos,
}

impl RouterThread {
    /// Starts a router between these TUN devices: first the server's, then the clients' in order.
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

    /// Ends the thread and returns its results; `None` if the thread panicked. Packets that are still in the router are
    /// lost.
    pub fn stop(mut self) -> Option<RouterResults> {
        self.end()
    }

    fn end(&mut self) -> Option<RouterResults> {
        let thread = self.thread.take()?;
        // Writing to an eventfd fails only if its counter is near its maximum; here, it is at most 1.
        let _ = write(&self.end, &1u64.to_ne_bytes());
        // Rust has already printed the message of a panic.
        thread.join().ok()
    }
}

impl Drop for RouterThread {
    fn drop(&mut self) {
        self.end();
    }
}

/// Pins the calling thread to its CPU and raises its priority. Errors are ignored: without these settings, packets are
/// later, which the measured lateness shows.
fn prioritize(placement: ThreadPlacement) {
    if let Some(cpu) = placement.cpu {
        let _ = brimful_os::cpus::pin_this_thread(cpu);
    }
    // Set the slack of timers to its minimum, 1 ns. By default, the kernel may end sleeps up to 50 µs late.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    // On a shared CPU, the thread needs real-time scheduling: otherwise, it would wait until the time slice of the
    // running thread ends, whatever the priorities are. On an exclusive CPU, the thread may poll all the time, and with
    // real-time scheduling it would block the kernel's own threads there. Both settings need root.
    if !placement.is_exclusive && sys::set_realtime_scheduling().is_ok() {
        return;
    }
    // On Linux, this sets the priority of this thread only, not of the process.
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
                // The documentation lists no other errors for a valid epoll descriptor.
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

    /// Time to sleep, zero to poll; `None` if the router contains no packets, so that the thread sleeps until a packet
    /// arrives.
    fn sleep_time(&mut self) -> Option<Nanos> {
        let due = self.router.next_due()?;
        let now = now();
        Some(self.polling.sleep_time(due - now, now))
    }

    /// Reads the packets that a host has sent, and passes them to the router.
    fn read(&mut self, number: usize) {
        let Some(device) = self.devices.get(number) else { return };
        for _ in 0..BATCH {
            let mut buffer = self.router.buffer();
            match read(device, &mut buffer[..]) {
                Ok(length) => self.router.receive(HostNumber(number), buffer, length, now()),
                // The device has no more packets, or it was removed.
                Err(_) => return self.router.recycle(buffer),
            }
        }
    }

    /// Writes packets that are due to their receivers' devices. Returns whether more packets may be due.
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

    /// Time to sleep if the next packet is due after `remaining`; zero to poll. After that time, the caller calls this
    /// again.
    fn sleep_time(&mut self, remaining: Nanos, now: Nanos) -> Nanos {
        let elapsed = now - std::mem::replace(&mut self.updated_at, now);
        if std::mem::take(&mut self.is_polling) {
            self.saved = self.saved - elapsed;
        }
        self.saved = (self.saved + Nanos(elapsed.0 / POLL_DIVISOR)).min(MAX_SAVED);
        // If the saved polling time does not suffice for a whole margin, the thread sleeps until the packet is due, and
        // keeps the saved time for a later packet.
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
        // Simulated: a packet is due every 100 µs, and each poll takes 1 µs.
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
