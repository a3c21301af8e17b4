//! The values from which on a resource counts as near its limit or at its limit.
//!
//! Waiting times grow faster than the load: at 80 % utilization the mean wait in the simplest queue is four times the
//! service time, at 95 % nineteen times (M/M/1: ρ/(1 − ρ)).

use super::{Finding, Severity};

/// Thresholds for the utilization of a CPU or a disk, and for the filled share of a queue.
pub const BUSY_SHARE: Thresholds = Thresholds { near: 0.80, at: 0.95 };
/// Thresholds for the share of a CPU's time that the hypervisor takes (steal), from which it limits the server. A few
/// percent are usual on shared hosts. At 30 %, the provider has sold more CPU time than the physical host has.
pub const STEAL: Thresholds = Thresholds { near: 0.10, at: 0.30 };
/// Share of a CPU's time that the hypervisor takes (steal), above which the host is unsuitable for measurements. It is
/// lower than [`STEAL`], because results depend on the load of other virtual machines long before steal limits a server.
pub const UNSUITABLE_HOST_STEAL: f64 = 0.02;
/// Thresholds for the share of a program's time in which it was ready to run but waited for a CPU. At `near`, it waited
/// half as long as it ran. At `at`, it waited as long as it ran.
pub const CPU_WAIT_SHARE: Thresholds = Thresholds { near: 0.33, at: 0.50 };
/// Minimum time that a program waits for a CPU, in seconds per second. Below it, [`CPU_WAIT_SHARE`] is not reported.
pub const MIN_CPU_WAIT: f64 = 0.05;
/// Thresholds for the share of time in which a CPU quota throttled a program. A call that arrives meanwhile waits until
/// the quota's next period.
pub const THROTTLED_TIME_SHARE: Thresholds = Thresholds { near: 0.01, at: 0.10 };
/// Thresholds for the share of time in which some task waited for memory. Even a small share means that the working set
/// does not fit into memory.
pub const MEMORY_STALL: Thresholds = Thresholds { near: 0.02, at: 0.20 };
/// Thresholds for the share of time in which some task waited for a disk.
pub const IO_STALL: Thresholds = Thresholds { near: 0.20, at: 0.60 };
/// Thresholds for the share of time in which some task waited for a CPU although no CPU was busy, for example because
/// of a cgroup's quota.
pub const CPU_STALL: Thresholds = Thresholds { near: 0.30, at: 0.80 };
/// Thresholds for the share of memory in use.
pub const USED_MEMORY_SHARE: Thresholds = Thresholds { near: 0.95, at: 0.98 };
/// Thresholds for the number of pages per second that are read from or written to swap. A few pages per second are
/// normal.
pub const SWAP_PAGES_PER_S: Thresholds = Thresholds { near: 10.0, at: 1000.0 };
/// Thresholds for the number of a program's page faults per second that wait for a disk. With a fast disk (0.1 ms per
/// fault), these waits take 1 % of the time at `near`, and 10 % at `at`.
pub const MAJOR_FAULTS_PER_S: Thresholds = Thresholds { near: 100.0, at: 1000.0 };
/// Thresholds for the share of TCP segments that were retransmitted. A loss of 1 % means a bad network path. At 5 %,
/// connections are very slow.
pub const RETRANSMITTED_SHARE: Thresholds = Thresholds { near: 0.01, at: 0.05 };
/// Minimum number of retransmitted segments per second. Below it, [`RETRANSMITTED_SHARE`] is not reported.
pub const MIN_RETRANSMITTED_PER_S: f64 = 1.0;
/// Thresholds for the number of packets, segments or connections lost per second.
pub const LOSSES_PER_S: Thresholds = Thresholds { near: 0.5, at: 100.0 };
/// Minimum number of dropped connections per second that is reported. A client whose connection is dropped waits a
/// second or more before it retries.
pub const MIN_DROPPED_PER_S: f64 = 0.01;

/// The thresholds of one metric of a resource. From `near` on, the resource is near its limit. From `at` on, it is at
/// its limit.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    near: f64,
    at: f64,
}

impl Thresholds {
    /// The severity of a value of the metric; `None` if the value is below both thresholds.
    pub fn severity_of(self, value: f64) -> Option<Severity> {
        match value {
            value if value >= self.at => Some(Severity::Limit),
            value if value >= self.near => Some(Severity::Near),
            _ => None,
        }
    }

    /// Adds a finding with the text `sentence()` to `findings`, if the value reaches one of the thresholds.
    pub(super) fn report(self, value: f64, findings: &mut Vec<Finding>, sentence: impl FnOnce() -> String) {
        findings.extend(self.severity_of(value).map(|severity| Finding { severity, sentence: sentence() }));
    }
}
