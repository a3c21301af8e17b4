//! A shard's clock as last read, and how the shard has spent the time so far.

use crate::clock::Clock;
use crate::contention;
use crate::pacing::WaitTimes;
use brimful_core::Nanos;
use brimful_os::clock;
use std::sync::atomic::AtomicBool;

/// A gap in a turn that is longer than this counts as a stall: it has delayed the requests sent in that turn.
const STALL: Nanos = Nanos::from_millis(1);

/// The clock as last read, and how the time until then was spent.
#[derive(Debug)]
pub struct ShardTime {
    clock: Clock,
    now: Nanos,
    /// The time at which the current turn began, that is, when the latest wait ended.
    turn_began: Nanos,
    /// Total time in waits so far.
    waited: Nanos,
    /// Part of the waits in which the thread spun.
    busy_waited: Nanos,
    longest_gap: Nanos,
    /// CPU time of the thread when the run began.
    cpu_before: Nanos,
    /// Time for which the thread had waited for a CPU before the run began.
    cpu_wait_before: Option<Nanos>,
}

/// A turn that took much longer than planned.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// The time at which the turn began.
    pub since: Nanos,
    /// The latest time at which the requests of the turn can have been sent.
    pub until: Nanos,
}

impl ShardTime {
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
        // Read before the start, because reading it would make the first call late.
        self.cpu_wait_before = contention::thread_cpu_wait();
        self.clock.wait_for_start(stop);
        self.cpu_before = clock::thread_cpu();
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time at which the clock was last read.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Reads the clock.
    #[inline]
    pub fn update(&mut self) -> Nanos {
        self.now = self.clock.now();
        self.now
    }

    /// Ends a turn after its wait, and begins the next. Returns a stall if the turn took much longer than its
    /// deliberate sleep. A stall shows that the thread was stopped or kept from its CPU.
    pub fn end_turn(&mut self, waited: WaitTimes) -> Option<Stall> {
        self.waited += waited.total;
        self.busy_waited += waited.busy_waited;
        let began = self.turn_began;
        self.turn_began = self.update();
        let gap = self.turn_began - began - waited.total + waited.overslept;
        self.longest_gap = self.longest_gap.max(gap);
        // No request of the turn left later than `until`, because a turn sends everything before it sleeps.
        (gap > STALL).then(|| Stall { since: began, until: began + gap })
    }

    /// Share of the time so far in which the shard had work to do: the time outside waits, or the CPU time used
    /// without spinning, whichever is larger. The time outside waits includes time for which the thread was kept from
    /// its CPU. The CPU time includes work that the kernel does during a wait.
    pub fn busy_share(&self) -> f64 {
        let working = clock::thread_cpu().0.saturating_sub(self.cpu_before.0 + self.busy_waited.0);
        let outside_waits = self.now.0.saturating_sub(self.waited.0);
        working.max(outside_waits).min(self.now.0) as f64 / self.now.0.max(1) as f64
    }

    /// The longest time for which the shard could not work.
    pub fn longest_gap(&self) -> Nanos {
        self.longest_gap
    }

    /// Time during the run for which the thread was ready to run while something else used the CPU.
    pub fn cpu_wait(&self) -> Option<Nanos> {
        let after = contention::thread_cpu_wait()?;
        Some(Nanos(after.0.saturating_sub(self.cpu_wait_before?.0)))
    }
}
