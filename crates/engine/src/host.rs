//! What the engine asks of the host: descriptors, a CPU, a fine timer, and what its thread has used.

use crate::EngineError;
use crate::io::table_size;
use brimful_core::Nanos;
use brimful_os::{clock, cpus};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::ops::AddAssign;

/// Raises the soft descriptor limit to the hard one. What is still too little shows as client-limited calls.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Whether this process may have so many connections at once, over so many shards. Rings have a table of descriptors
/// each, beside the process's own.
///
/// # Errors
/// [`EngineError::Descriptors`] where they cannot fit, whatever the server does.
pub fn check_descriptors(needed: u64, shards: u64, uring: bool) -> Result<(), EngineError> {
    let Some(limit) = getrlimit(Resource::Nofile).current.filter(|_| needed > 0) else { return Ok(()) };
    let shards = shards.max(1);
    let available = if uring {
        u64::from(table_size(Some(limit))).saturating_mul(shards)
    } else {
        limit.saturating_sub(descriptors_in_use() + shards)
    };
    if needed <= available {
        return Ok(());
    }
    // In whole hundreds, with some to spare for files.
    let raise_to = needed.saturating_add(descriptors_in_use() + shards + 16).div_ceil(100).saturating_mul(100);
    Err(EngineError::Descriptors { needed, available, raise_to })
}

/// Descriptors that this process has open.
fn descriptors_in_use() -> u64 {
    // One of them is that of the directory itself.
    std::fs::read_dir("/proc/self/fd").map_or(3, |entries| entries.count().saturating_sub(1) as u64)
}

/// Makes the calling thread wake on time: on one CPU if asked, and without the kernel's 50 µs of timer slack.
pub fn settle_thread(cpu: Option<usize>) -> Result<(), EngineError> {
    // A kernel that refuses leaves the default slack, which shows as lateness.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let Some(cpu) = cpu else { return Ok(()) };
    cpus::pin_this_thread(cpu).map_err(|source| EngineError::Cpu { cpu, source })
}

/// CPU time of threads. The total is exact; which mode it was spent in the kernel knows from looking at its ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In both modes.
    pub total: Nanos,
    /// Ticks' worth of user mode.
    user: Nanos,
    /// Ticks' worth of the kernel.
    system: Nanos,
}

impl CpuTime {
    /// User mode and kernel; `None` when too few ticks have met these threads to tell. No thread is without one of them:
    /// where none of the ticks has met it, that is chance.
    pub fn split(self) -> Option<(Nanos, Nanos)> {
        /// Worth 10 ticks of the slowest kernel, 100 a second.
        const ENOUGH: Nanos = Nanos::from_millis(100);
        let (user, system) = (self.user.0 as f64, self.system.0 as f64);
        if self.total < ENOUGH || user == 0.0 || system == 0.0 {
            return None;
        }
        let user = Nanos((self.total.0 as f64 * user / (user + system)).round() as u64);
        Some((user, self.total - user))
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: CpuTime) {
        self.total += other.total;
        self.user += other.user;
        self.system += other.system;
    }
}

/// CPU time of the calling thread so far.
pub fn thread_cpu() -> CpuTime {
    // SAFETY: all zero is a valid value of this struct of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to `usage` alone, which is of the size it expects. It cannot fail; if it did, nothing would
    // be known, as of all zero.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let time = |t: libc::timeval| Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000);
    CpuTime { total: clock::thread_cpu(), user: time(usage.ru_utime), system: time(usage.ru_stime) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_that_no_tick_has_seen_is_not_told() {
        let ms = Nanos::from_millis;
        let split = |total, user, system| CpuTime { total: ms(total), user: ms(user), system: ms(system) }.split();
        assert_eq!(split(1180, 0, 1180), None, "a thread does something in user mode");
        assert_eq!(split(1180, 1180, 0), None);
        assert_eq!(split(99, 50, 49), None, "too few ticks");
        assert_eq!(split(1000, 30, 90), Some((ms(250), ms(750))), "as the ticks say, of the exact total");
        let mut sum = CpuTime::default();
        (0..4).for_each(|nth| sum += CpuTime { total: ms(50), user: ms(10 * nth), system: ms(10) });
        assert_eq!(sum.split(), Some((ms(120), ms(80))), "several threads together say more");
    }

    #[test]
    fn a_thread_has_used_what_its_clock_says() {
        let (before, cpu, after) = (clock::thread_cpu(), thread_cpu(), clock::thread_cpu());
        assert!(before <= cpu.total && cpu.total <= after);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_that_says_where_to_look() {
        let message = settle_thread(Some(1 << 20)).unwrap_err().to_string();
        assert!(message.contains("CPU 1048576") && message.contains("nproc"), "{message}");
    }
}
