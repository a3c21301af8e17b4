//! Reads the kernel's clocks, and converts instants between them. Source: clock_gettime(2).

use brimful_core::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

/// Reads `CLOCK_MONOTONIC`, the clock of all instants in a Record.
#[inline]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Converts an instant of the wall clock to `CLOCK_MONOTONIC`. The result is wrong if the wall clock is set between the
/// instant and this call. Returns zero for instants before the machine booted.
pub fn monotonic_at(instant: SystemTime) -> Nanos {
    let ClockAnchor { monotonic, wall } = ClockAnchor::now();
    match instant.duration_since(wall) {
        Ok(later) => monotonic + Nanos::from(later),
        Err(error) => Nanos(monotonic.0.saturating_sub(Nanos::from(error.duration()).0)),
    }
}

/// One instant on both clocks: `CLOCK_MONOTONIC` and the wall clock. With this pair, other instants of
/// `CLOCK_MONOTONIC` can be converted to wall-clock time, even if the wall clock is set later.
#[derive(Clone, Copy, Debug)]
pub struct ClockAnchor {
    monotonic: Nanos,
    wall: SystemTime,
}

impl ClockAnchor {
    /// Reads both clocks. The thread may lose its CPU between the two readings, so the closest of several pairs is
    /// used.
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

    /// Wall-clock time at an instant of `CLOCK_MONOTONIC`.
    pub fn wall_time(self, monotonic: Nanos) -> SystemTime {
        let later = Duration::from_nanos(monotonic.0.saturating_sub(self.monotonic.0));
        self.wall + later - Duration::from_nanos(self.monotonic.0.saturating_sub(monotonic.0))
    }
}

/// Time for which the machine has been suspended since it booted.
pub fn suspended_time() -> Nanos {
    let monotonic = now();
    let boot = read(ClockId::Boottime);
    // The difference includes the time between the two readings. Cutting off fractions of a millisecond removes it.
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
    // The times of these clocks are never negative.
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
