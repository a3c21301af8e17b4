//! The run's clock: `CLOCK_MONOTONIC` since the start of the run.

use brimful_core::Nanos;
use brimful_os::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The run's clock. Before the start it reads zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: u64,
}

impl Clock {
    /// A clock whose zero is `delay` from now.
    pub fn starting_in(delay: Nanos) -> Clock {
        Clock { epoch_ns: clock::now().0 + delay.0 }
    }

    /// A clock whose zero is the time `epoch` of `CLOCK_MONOTONIC`, or `delay` from now if that is later.
    pub(crate) fn starting_at(epoch: Nanos, delay: Nanos) -> Clock {
        Clock { epoch_ns: epoch.0.max(clock::now().0 + delay.0) }
    }

    /// Time since the start.
    #[inline]
    pub fn now(self) -> Nanos {
        Nanos(clock::now().0.saturating_sub(self.epoch_ns))
    }

    /// Sleeps until shortly before the start, then spins. Returns early once `stop` is set.
    pub(crate) fn wait_for_start(self, stop: &AtomicBool) {
        const SPIN: Duration = Duration::from_micros(200);
        const STOP_CHECK: Duration = Duration::from_millis(50);
        let left = || Duration::from_nanos(self.epoch_ns.saturating_sub(clock::now().0));
        while let Some(sleep) = left().checked_sub(SPIN)
            && !stop.load(Ordering::Relaxed)
        {
            std::thread::sleep(sleep.min(STOP_CHECK));
        }
        while !left().is_zero() && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }

    /// The start, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn epoch_ns(self) -> u64 {
        self.epoch_ns
    }
}
