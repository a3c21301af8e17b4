//! The clocks. Source: clock_gettime(2).

use brimful_core::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

/// `CLOCK_MONOTONIC`, by which a Record's instants are.
#[inline]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// `CLOCK_MONOTONIC` at an instant of the wall clock, if nobody sets that in between; zero before the machine's boot.
pub fn of_wall(at: SystemTime) -> Nanos {
    let (monotonic, wall) = both();
    match at.duration_since(wall) {
        Ok(later) => monotonic + Nanos::from(later),
        Err(error) => Nanos(monotonic.0.saturating_sub(Nanos::from(error.duration()).0)),
    }
}

/// The reverse.
pub fn on_wall(at: Nanos) -> SystemTime {
    Anchor::now().wall(at)
}

/// One instant by both clocks: what the wall clock said of others is known by it, though it be set since.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    monotonic: Nanos,
    wall: SystemTime,
}

impl Anchor {
    /// This instant.
    pub fn now() -> Anchor {
        let (monotonic, wall) = both();
        Anchor { monotonic, wall }
    }

    /// The wall clock's time at an instant of `CLOCK_MONOTONIC`.
    pub fn wall(self, at: Nanos) -> SystemTime {
        let later = Duration::from_nanos(at.0.saturating_sub(self.monotonic.0));
        self.wall + later - Duration::from_nanos(self.monotonic.0.saturating_sub(at.0))
    }
}

/// The same instant by both clocks. A thread may lose its CPU between two readings, so the closest of a few counts.
fn both() -> (Nanos, SystemTime) {
    const CLOSE: Nanos = Nanos::from_micros(2);
    const TRIES: usize = 8;
    let mut best = (Nanos::MAX, Nanos::ZERO, SystemTime::UNIX_EPOCH);
    for _ in 0..TRIES {
        let (before, wall, after) = (now(), SystemTime::now(), now());
        let apart = after - before;
        if apart < best.0 {
            best = (apart, before + Nanos(apart.0 / 2), wall);
        }
        if apart <= CLOSE {
            break;
        }
    }
    (best.1, best.2)
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
    fn an_instant_by_one_clock_is_one_by_the_other() {
        let (before, at, after) = (now(), SystemTime::now(), now());
        // As closely as the two can be read at all.
        let slack = Nanos::from_millis(1);
        let then = of_wall(at);
        assert!(then + slack >= before && then <= after + slack, "{before} {then} {after}");
        for at in [at - Duration::from_secs(1), at + Duration::from_secs(1)] {
            let again = on_wall(of_wall(at));
            let apart = again.duration_since(at).unwrap_or_else(|error| error.duration());
            assert!(apart < Duration::from_millis(1), "{apart:?}");
        }
        assert_eq!(of_wall(SystemTime::UNIX_EPOCH), Nanos::ZERO);
    }

    #[test]
    fn an_anchor_does_not_follow_a_clock_that_is_set() {
        let anchor = Anchor { monotonic: Nanos::from_secs(10), wall: SystemTime::UNIX_EPOCH };
        assert_eq!(anchor.wall(Nanos::from_secs(13)), SystemTime::UNIX_EPOCH + Duration::from_secs(3));
        assert_eq!(anchor.wall(Nanos::from_secs(9)), SystemTime::UNIX_EPOCH - Duration::from_secs(1));
    }

    #[test]
    fn a_process_has_used_no_less_than_its_thread() {
        let (before, thread, process) = (now(), thread_cpu(), process_cpu());
        assert!(thread <= process && before <= now(), "{thread} of {process}");
    }
}
