//! Reads the kernel's clocks, and converts instants between them. Source: clock_gettime(2).

use brimful_core::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

/// Reads `CLOCK_MONOTONIC`, on which all times of a Record are measured.
#[inline]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Converts a wall-clock time to `CLOCK_MONOTONIC`. The result is wrong if the wall clock was set between that time and
/// this call. Returns zero for times before the machine booted.
pub fn monotonic_at(instant: SystemTime) -> Nanos {
    let ClockAnchor { monotonic, wall } = ClockAnchor::now();
    match instant.duration_since(wall) {
        Ok(later) => monotonic + Nanos::from(later),
        Err(error) => Nanos(monotonic.0.saturating_sub(Nanos::from(error.duration()).0)),
    }
}

/// The same instant on two clocks: `CLOCK_MONOTONIC` and the wall clock. It is used to convert other times of
/// `CLOCK_MONOTONIC` to wall-clock times, even if the wall clock is set later.
#[derive(Clone, Copy, Debug)]
pub struct ClockAnchor {
    monotonic: Nanos,
    wall: SystemTime,
}

impl ClockAnchor {
    /// Reads both clocks. Because the thread can be interrupted between the two readings, the clocks are read several
    /// times, and the pair with the smallest interval between the readings is used.
    pub fn now() -> ClockAnchor {
        const CLOSE_ENOUGH: Nanos = Nanos::from_micros(2);
        const MAX_TRIES: usize = 8;
        let mut closest = ClockAnchor { monotonic: Nanos::ZERO, wall: SystemTime::UNIX_EPOCH };
        let mut smallest_gap = Nanos::MAX;
        for _ in 0..MAX_TRIES {
            let before = now();
            let wall = SystemTime::now();
            let gap = now() - before;
            if gap < smallest_gap {
                smallest_gap = gap;
                closest = ClockAnchor { monotonic: before + Nanos(gap.0 / 2), wall };
            }
            if gap <= CLOSE_ENOUGH {
                break;
            }
        }
        closest
    }

    /// Converts a time on `CLOCK_MONOTONIC` to wall-clock time.
    pub fn wall_time(self, monotonic: Nanos) -> SystemTime {
        let later = Duration::from_nanos(monotonic.0.saturating_sub(self.monotonic.0));
        self.wall + later - Duration::from_nanos(self.monotonic.0.saturating_sub(monotonic.0))
    }
}

/// Total time for which the machine has been suspended since it booted.
pub fn suspended_time() -> Nanos {
    let monotonic = now();
    let boot = read(ClockId::Boottime);
    // The difference also includes the time between the two readings. Rounding down to milliseconds removes this time.
    Nanos::from_millis((boot - monotonic).0 / 1_000_000)
}

/// CPU time of the calling thread.
#[inline]
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of this process, including threads that have exited.
pub fn process_cpu() -> Nanos {
    read(ClockId::ProcessCPUTime)
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    // These clocks never return negative times, so the conversions cannot fail.
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_convert_between_the_clocks_and_back() {
        let (before, at, after) = (now(), SystemTime::now(), now());
        let slack = Nanos::from_millis(1);
        let then = monotonic_at(at);
        assert!(then + slack >= before && then <= after + slack, "{before} {then} {after}");
        for at in [at - Duration::from_secs(1), at + Duration::from_secs(1)] {
            let again = ClockAnchor::now().wall_time(monotonic_at(at));
            let apart = again.duration_since(at).unwrap_or_else(|error| error.duration());
            assert!(apart < Duration::from_millis(1), "{apart:?}");
        }
        assert_eq!(monotonic_at(SystemTime::UNIX_EPOCH), Nanos::ZERO);
    }

    #[test]
    fn an_anchor_does_not_follow_a_clock_that_is_set() {
        let anchor = ClockAnchor { monotonic: Nanos::from_secs(10), wall: SystemTime::UNIX_EPOCH };
        assert_eq!(anchor.wall_time(Nanos::from_secs(13)), SystemTime::UNIX_EPOCH + Duration::from_secs(3));
        assert_eq!(anchor.wall_time(Nanos::from_secs(9)), SystemTime::UNIX_EPOCH - Duration::from_secs(1));
    }

    #[test]
    fn a_process_has_used_no_less_than_its_thread() {
        let (before, thread, process) = (now(), thread_cpu(), process_cpu());
        assert!(thread <= process && before <= now(), "{thread} of {process}");
    }
}
