//! The values at which a resource counts as near its limit or at its limit.
//!
//! Beyond these values, waiting grows faster than the load: at 80 % utilization the mean wait in the simplest queue is
//! four times the service time, at 95 % nineteen times (M/M/1: ρ/(1 − ρ)).

use super::{Finding, Severity};

/// Utilization of a CPU or a disk, or the filled share of a queue.
pub const BUSY_SHARE: Level = Level { near: 0.80, at: 0.95 };
/// Share of a CPU's time taken by the hypervisor. A tenth is more than the hypervisor's own timekeeping; at a third,
/// the host is oversold.
pub const STEAL: Level = Level { near: 0.10, at: 0.30 };
/// Share of steal above which every figure also depends on the load of neighbours, so that the host is unsuitable for
/// measurements.
pub const MIN_STEAL: f64 = 0.02;
/// Share of a program's time in which it was ready to run but waited for a CPU. At `near` it waited half as long as it
/// ran. At the limit it waited as long as it ran.
pub const CPU_WAIT_SHARE: Level = Level { near: 0.33, at: 0.50 };
/// Waiting per second, in seconds, below which a program does not count as delayed, whatever the share of waiting is.
pub const MIN_WAIT: f64 = 0.05;
/// Share of time in which a CPU quota throttled a program. A call that arrives while it is throttled waits for the next
/// period.
pub const THROTTLED_TIME_SHARE: Level = Level { near: 0.01, at: 0.10 };
/// Share of time in which some task waited for memory. Even a little means that the working set does not fit.
pub const MEMORY_STALL: Level = Level { near: 0.02, at: 0.20 };
/// Share of time in which some task waited for a disk.
pub const IO_STALL: Level = Level { near: 0.20, at: 0.60 };
/// Share of time in which some task waited for a CPU although no CPU was busy, for example because of a cgroup's quota.
pub const CPU_STALL: Level = Level { near: 0.30, at: 0.80 };
/// Share of memory in use.
pub const USED_MEMORY_SHARE: Level = Level { near: 0.95, at: 0.98 };
/// Number of pages per second that are read from or written to swap. A few pages are normal.
pub const SWAP_PAGES_PER_S: Level = Level { near: 10.0, at: 1000.0 };
/// Page faults of a program per second that waited for a disk. With a fast disk (0.1 ms), these levels are 1 % and 10 %
/// of the time.
pub const MAJOR_FAULTS: Level = Level { near: 100.0, at: 1000.0 };
/// Share of TCP segments that were retransmitted. A bad path loses 1 %; at 5 %, connections are very slow.
pub const RETRANSMITTED_SHARE: Level = Level { near: 0.01, at: 0.05 };
/// Number of retransmitted segments per second below which [`RETRANSMITTED_SHARE`] is not reported.
pub const MIN_RETRANSMITTED: f64 = 1.0;
/// Number of packets, segments or connections lost per second.
pub const LOSSES_PER_S: Level = Level { near: 0.5, at: 100.0 };
/// Number of dropped connections per second below which drops are not reported. Each dropped client waits a second or
/// more before it retries.
pub const MIN_DROPPED_PER_S: f64 = 0.01;

/// The values at or above which a resource is near its limit and at its limit.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    near: f64,
    at: f64,
}

impl Level {
    /// The severity of a value; `None` if the value is below both levels.
    pub fn severity_of(self, value: f64) -> Option<Severity> {
        match value {
            value if value >= self.at => Some(Severity::Limit),
            value if value >= self.near => Some(Severity::Near),
            _ => None,
        }
    }

    pub(super) fn report(self, value: f64, findings: &mut Vec<Finding>, sentence: impl FnOnce() -> String) {
        findings.extend(self.severity_of(value).map(|severity| Finding { severity, sentence: sentence() }));
    }
}
