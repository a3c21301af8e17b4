//! The time of a shard's latest clock reading, and how much of the time until then the shard worked or waited.

use crate::clock::Clock;
use crate::contention;
use crate::pacing::WaitTimes;
use brimful_core::Nanos;
use brimful_os::clock;
use std::sync::atomic::AtomicBool;

/// If an iteration of the event loop exceeds its planned duration by more than this, it is a stall: requests that it
/// sent may have left late.
const STALL: Nanos = Nanos::from_millis(1);

/// The time of a shard's latest clock reading, and how much of the time until then the shard worked or waited.
#[derive(Debug)]
pub struct ShardTime {
    clock: Clock,
    now: Nanos,
    /// The time at which the current iteration of the event loop began. This is the end of the wait before.
    turn_began: Nanos,
    /// Total time spent waiting for events so far.
    waited: Nanos,
    /// Part of `waited` during which the thread spun.
    busy_waited: Nanos,
    longest_gap: Nanos,
    /// CPU time of the thread when the run began.
    cpu_before: Nanos,
    /// Time for which the thread had waited for a CPU when the run began; `None` if unknown.
    cpu_wait_before: Option<Nanos>,
}

/// An iteration of the event loop that took much longer than planned.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// The time at which the iteration began.
    pub since: Nanos,
    /// The latest time at which a request of the iteration can have been sent.
    pub until: Nanos,
}

impl ShardTime {
    /// Creates the state of a shard whose run has not started.
    pub fn new(clock: Clock) -> ShardTime {
        ShardTime {
            clock,
            now: Nanos::ZERO,
            turn_began: Nanos::ZERO,
            waited: Nanos::ZERO,
            busy_waited: Nanos::ZERO,
            longest_gap: Nanos::ZERO,
            cpu_before: Nanos::ZERO,
            cpu_wait_before: None,
        }
    }

    /// Waits for the start of the run, or until `stop` is set.
    pub fn wait_for_start(&mut self, stop: &AtomicBool) {
        // Reads this before the start, because reading it later would delay the first call.
        self.cpu_wait_before = contention::thread_cpu_wait();
        self.clock.wait_for_start(stop);
        self.cpu_before = clock::thread_cpu();
    }

    /// The run's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time of the latest clock reading.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Reads the clock, and returns its time.
    #[inline]
    pub fn update(&mut self) -> Nanos {
        self.now = self.clock.now();
        self.now
    }

    /// Ends an iteration of the event loop after its wait, and begins the next one. Returns a stall if the iteration
    /// took much longer than planned, because the thread was stopped or did not get a CPU.
    pub fn end_turn(&mut self, waited: WaitTimes) -> Option<Stall> {
        self.waited += waited.total;
        self.busy_waited += waited.busy_waited;
        let began = self.turn_began;
        self.turn_began = self.update();
        let gap = self.turn_began - began - waited.total + waited.overslept;
        self.longest_gap = self.longest_gap.max(gap);
        // An iteration sends all requests before it sleeps, so none was sent after `until`.
        (gap > STALL).then(|| Stall { since: began, until: began + gap })
    }

    /// Fraction of the time so far during which the shard was busy: the larger of the time outside waits and the CPU
    /// time without spinning, divided by the time so far. The time outside waits includes time in which the thread did
    /// not get a CPU. The CPU time includes the work of the kernel during a wait.
    pub fn busy_share(&self) -> f64 {
        let working = clock::thread_cpu().0.saturating_sub(self.cpu_before.0 + self.busy_waited.0);
        let outside_waits = self.now.0.saturating_sub(self.waited.0);
        working.max(outside_waits).min(self.now.0) as f64 / self.now.0.max(1) as f64
    }

    /// The longest time for which the shard did not check for events, apart from deliberate sleep.
    pub fn longest_gap(&self) -> Nanos {
        self.longest_gap
    }

    /// Time during the run for which the thread was ready to run but waited for a CPU; `None` if unknown.
    pub fn cpu_wait(&self) -> Option<Nanos> {
        let after = contention::thread_cpu_wait()?;
        Some(Nanos(after.0.saturating_sub(self.cpu_wait_before?.0)))
    }
}
