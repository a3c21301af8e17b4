//! The time at which a shard last read its clock, and how it has spent the time until then.

use crate::clock::Clock;
use crate::contention;
use crate::pacing::WaitTimes;
use brimful_core::Nanos;
use brimful_os::clock;
use std::sync::atomic::AtomicBool;

/// A turn of the event loop that took longer than planned by more than this time is a stall: it may have delayed the
/// requests that were sent in the turn.
const STALL: Nanos = Nanos::from_millis(1);

/// The time at which the clock was last read, and how the shard has spent the time until then.
#[derive(Debug)]
pub struct ShardTime {
    clock: Clock,
    now: Nanos,
    /// The time at which the current turn began, that is, when the latest wait ended.
    turn_began: Nanos,
    /// Total time in waits so far.
    waited: Nanos,
    /// Part of the time in waits during which the thread spun.
    busy_waited: Nanos,
    longest_gap: Nanos,
    /// CPU time of the thread when the run began.
    cpu_before: Nanos,
    /// Time for which the thread had waited for a CPU before the run began; `None` if unknown.
    cpu_wait_before: Option<Nanos>,
}

/// A turn of the event loop that took much longer than planned.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// The time at which the turn began.
    pub since: Nanos,
    /// An upper limit of the time at which the requests of the turn were sent.
    pub until: Nanos,
}

impl ShardTime {
    /// Creates the time of a shard whose run has not started.
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
        // This is read before the start, because the read would delay the first call.
        self.cpu_wait_before = contention::thread_cpu_wait();
        self.clock.wait_for_start(stop);
        self.cpu_before = clock::thread_cpu();
    }

    /// The run's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time at which the clock was last read.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Reads the clock, and returns the time.
    #[inline]
    pub fn update(&mut self) -> Nanos {
        self.now = self.clock.now();
        self.now
    }

    /// Ends a turn after its wait, and begins the next turn. Returns a stall if the turn took much longer than its
    /// deliberate sleep, because the thread was stopped or did not get a CPU.
    pub fn end_turn(&mut self, waited: WaitTimes) -> Option<Stall> {
        self.waited += waited.total;
        self.busy_waited += waited.busy_waited;
        let began = self.turn_began;
        self.turn_began = self.update();
        let gap = self.turn_began - began - waited.total + waited.overslept;
        self.longest_gap = self.longest_gap.max(gap);
        // No request of the turn was sent after `until`, because a turn sends all requests before it sleeps.
        (gap > STALL).then(|| Stall { since: began, until: began + gap })
    }

    /// Fraction of the time so far during which the shard had work to do: the larger of the time outside waits and the
    /// CPU time without spinning, divided by the time so far. The time outside waits includes time for which the thread
    /// did not get a CPU. The CPU time includes the work of the kernel during a wait.
    pub fn busy_share(&self) -> f64 {
        let working = clock::thread_cpu().0.saturating_sub(self.cpu_before.0 + self.busy_waited.0);
        let outside_waits = self.now.0.saturating_sub(self.waited.0);
        working.max(outside_waits).min(self.now.0) as f64 / self.now.0.max(1) as f64
    }

    /// The longest time for which the shard was not able to handle events.
    pub fn longest_gap(&self) -> Nanos {
        self.longest_gap
    }

    /// Time during the run for which the thread was ready to run but waited for a CPU; `None` if unknown.
    pub fn cpu_wait(&self) -> Option<Nanos> {
        let after = contention::thread_cpu_wait()?;
        Some(Nanos(after.0.saturating_sub(self.cpu_wait_before?.0)))
    }
}
