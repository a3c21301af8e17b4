//! The clocks. Source: clock_gettime(2).

use brimful_core::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, by which a Record's instants are.
#[inline]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// How long the machine has been suspended since boot.
pub fn suspended() -> Nanos {
    let (monotonic, boot) = (now(), read(ClockId::Boottime));
    // The two are read one after the other: what lies between is not suspension.
    Nanos::from_millis((boot - monotonic).0 / 1_000_000)
}

/// CPU time of the calling thread.
#[inline]
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of this process, its exited threads included.
pub fn process_cpu() -> Nanos {
    read(ClockId::ProcessCPUTime)
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    // None of these clocks is ever negative.
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_used_no_less_than_its_thread() {
        let (before, thread, process) = (now(), thread_cpu(), process_cpu());
        assert!(thread <= process && before <= now(), "{thread} of {process}");
    }
}
