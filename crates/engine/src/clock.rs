//! The run's clock: `CLOCK_MONOTONIC` since the start of the run.

use brimful_core::Nanos;
use brimful_os::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The run's clock. It reads zero until the run starts.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: u64,
}

impl Clock {
    /// Creates a clock that starts `delay` from now.
    pub fn starting_in(delay: Nanos) -> Clock {
        Clock { epoch_ns: clock::now().0 + delay.0 }
    }

    /// Creates a clock that starts at the time `epoch` of `CLOCK_MONOTONIC`, or `delay` from now if that is later.
    pub(crate) fn starting_at(epoch: Nanos, delay: Nanos) -> Clock {
        Clock { epoch_ns: epoch.0.max(clock::now().0 + delay.0) }
    }

    /// Time since the start of the run; zero before the start.
    #[inline]
    pub fn now(self) -> Nanos {
        Nanos(clock::now().0.saturating_sub(self.epoch_ns))
    }

    /// Sleeps until 200 µs before the start, then spins for precision. Returns early once `stop` is set.
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

    /// The time of the start, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn epoch_ns(self) -> u64 {
        self.epoch_ns
    }
}
