//! The engine's use of the host: file descriptors, pinned threads, precise timers, and the CPU time of its threads.

use crate::EngineError;
use crate::io::table_size;
use brimful_core::Nanos;
use brimful_os::{clock, cpus};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::ops::AddAssign;

/// Raises the soft limit on file descriptors to the hard limit. If even the hard limit is too low, some calls fail and
/// count as limited by the client.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Checks that this process may have `needed` connections open at once, over all shards. With io_uring, each shard's
/// ring has its own table of descriptors.
///
/// # Errors
/// [`EngineError::Descriptors`] if the limit on descriptors leaves fewer than `needed` for connections.
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
    // The limit that the error message suggests: one descriptor per connection and per shard, those in use now, and 16
    // spare, rounded up to a multiple of 100.
    let raise_to = needed.saturating_add(descriptors_in_use() + shards + 16).div_ceil(100).saturating_mul(100);
    Err(EngineError::Descriptors { needed, available, raise_to })
}

/// Number of file descriptors that this process has open.
fn descriptors_in_use() -> u64 {
    // Subtracts the descriptor of the opened directory itself. If `/proc` cannot be read, assumes standard input,
    // output and error.
    std::fs::read_dir("/proc/self/fd").map_or(3, |entries| entries.count().saturating_sub(1) as u64)
}

/// Prepares the calling thread for precise timers. Pins the thread to `cpu`, if given, and reduces its timer slack from
/// the default of 50 µs to 1 ns.
pub fn prepare_thread(cpu: Option<usize>) -> Result<(), EngineError> {
    // If the kernel refuses this, the default slack remains, and wake-ups are up to 50 µs late. The reported lateness
    // contains this delay.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let Some(cpu) = cpu else { return Ok(()) };
    cpus::pin_this_thread(cpu).map_err(|source| EngineError::Cpu { cpu, source })
}

/// CPU time of a thread. The total is exact. The kernel estimates the split into user and kernel mode by sampling at
/// each timer tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in user and kernel mode together.
    pub total: Nanos,
    /// Estimated time in user mode.
    user: Nanos,
    /// Estimated time in kernel mode.
    system: Nanos,
}

impl CpuTime {
    /// Time in user mode and in kernel mode; `None` if the thread ran for too few timer ticks to estimate the split.
    /// Every thread spends time in both modes, so a time of zero in either mode also means too few ticks.
    pub fn user_and_system(self) -> Option<(Nanos, Nanos)> {
        /// The time of 10 timer ticks at the kernel's lowest tick rate, 100 per second.
        const MIN_TOTAL: Nanos = Nanos::from_millis(100);
        let user = self.user.0 as f64;
        let system = self.system.0 as f64;
        if self.total < MIN_TOTAL || user == 0.0 || system == 0.0 {
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

/// CPU time that the calling thread has used so far.
pub fn thread_cpu() -> CpuTime {
    // SAFETY: `rusage` is a struct of integers, for which all zero bytes are a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes only to `usage`, which has the size that it expects. The call cannot fail with these
    // arguments; if it did, `usage` would stay zero.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let time = |t: libc::timeval| Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000);
    CpuTime { total: clock::thread_cpu(), user: time(usage.ru_utime), system: time(usage.ru_stime) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_needs_ticks_in_both_modes() {
        let ms = Nanos::from_millis;
        let split =
            |total, user, system| CpuTime { total: ms(total), user: ms(user), system: ms(system) }.user_and_system();
        assert_eq!(split(1180, 0, 1180), None, "every thread spends some time in user mode");
        assert_eq!(split(1180, 1180, 0), None);
        assert_eq!(split(99, 50, 49), None, "too few ticks");
        assert_eq!(split(1000, 30, 90), Some((ms(250), ms(750))), "the exact total is split in the ratio of the ticks");
        let mut sum = CpuTime::default();
        (0..4).for_each(|nth| sum += CpuTime { total: ms(50), user: ms(10 * nth), system: ms(10) });
        assert_eq!(sum.user_and_system(), Some((ms(120), ms(80))), "several threads together have enough ticks");
    }

    #[test]
    fn the_total_is_the_time_of_the_threads_clock() {
        let (before, cpu, after) = (clock::thread_cpu(), thread_cpu(), clock::thread_cpu());
        assert!(before <= cpu.total && cpu.total <= after);
    }

    #[test]
    fn a_missing_cpu_is_an_error_that_says_what_to_do() {
        let message = prepare_thread(Some(1 << 20)).unwrap_err().to_string();
        assert!(message.contains("CPU 1048576") && message.contains("nproc"), "{message}");
    }
}
