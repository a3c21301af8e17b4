//! Where a limit begins.
//!
//! It is where waiting grows faster than work: at 80 % use one waits in the simplest queue four times as long as one is
//! served, at 95 % nineteen times (M/M/1: ρ/(1 − ρ)).

use super::{Finding, Severity};

/// Use of a CPU or a disk, or filling of a queue, from which it is near its limit, and from which it is at it.
pub const BUSY: Level = Level { near: 0.80, at: 0.95 };
/// Share of a CPU's time taken by the hypervisor: a tenth is more than timekeeping, a third means that the host is sold
/// twice.
pub const STEAL: Level = Level { near: 0.10, at: 0.30 };
/// The same from which every figure is one of the neighbours' load as well, so that the host is no place to measure.
pub const MIN_STEAL: f64 = 0.02;
/// Share of a program's time spent waiting for a CPU that it was ready to use: half as much as it ran, and as much.
pub const WAITS: Level = Level { near: 0.33, at: 0.50 };
/// A program that waits less than this many seconds per second is not held up whatever its share.
pub const MIN_WAIT: f64 = 0.05;
/// Share of time in which a CPU quota stopped a program: every call that comes then waits for the next period.
pub const THROTTLED: Level = Level { near: 0.01, at: 0.10 };
/// Share of time in which something waited for memory: even little means that the working set does not fit.
pub const MEMORY_STALL: Level = Level { near: 0.02, at: 0.20 };
/// Share of time in which something waited for a disk.
pub const IO_STALL: Level = Level { near: 0.20, at: 0.60 };
/// Share of time in which something waited for a CPU though none was busy: a quota of a cgroup does that.
pub const CPU_STALL: Level = Level { near: 0.30, at: 0.80 };
/// Share of memory in use.
pub const MEMORY: Level = Level { near: 0.95, at: 0.98 };
/// Pages per second to and from swap: some always trickle.
pub const SWAP: Level = Level { near: 10.0, at: 1000.0 };
/// A program's page faults per second that waited for a disk: of a fast disk's 0.1 ms each, 1 % and 10 % of the time.
pub const MAJOR_FAULTS: Level = Level { near: 100.0, at: 1000.0 };
/// Share of TCP segments sent again: 1 % is what a bad path loses, at 5 % connections crawl.
pub const RETRANSMITTED: Level = Level { near: 0.01, at: 0.05 };
/// Fewer segments sent again per second are no finding whatever their share.
pub const MIN_RETRANSMITTED: f64 = 1.0;
/// Losses per second that are worth a word.
pub const LOST: Level = Level { near: 0.5, at: 100.0 };
/// Drops of connections per second: each is a client that waits a second or more until it tries again.
pub const DROPPED: f64 = 0.01;

/// From where something is near its limit, and from where it is at it.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    near: f64,
    at: f64,
}

impl Level {
    /// How serious a value is, if it is.
    pub fn of(self, value: f64) -> Option<Severity> {
        match value {
            value if value >= self.at => Some(Severity::Limit),
            value if value >= self.near => Some(Severity::Near),
            _ => None,
        }
    }

    pub(super) fn report(self, value: f64, findings: &mut Vec<Finding>, sentence: impl FnOnce() -> String) {
        findings.extend(self.of(value).map(|severity| Finding { severity, sentence: sentence() }));
    }
}
