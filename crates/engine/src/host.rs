//! What the engine asks of the host: descriptors, a CPU, a fine timer, and what its thread has used.

use crate::EngineError;
use brimful_core::Nanos;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;

/// Raises the soft descriptor limit to the hard one. What is still too little shows as client-limited calls.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Makes the calling thread wake on time: on one CPU if asked, and without the kernel's 50 µs of timer slack.
pub fn settle_thread(cpu: Option<usize>) -> Result<(), EngineError> {
    // A kernel that refuses leaves the default slack, which shows as lateness.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let Some(cpu) = cpu else { return Ok(()) };
    let failed = |source| EngineError::Cpu { cpu, source };
    if cpu >= CpuSet::MAX_CPU {
        return Err(failed(std::io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|errno| failed(errno.into()))
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Nanos {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// CPU time of the calling thread, (user, system). The sum is exact; the split is as fine as the kernel's ticks.
pub fn thread_cpu() -> (Nanos, Nanos) {
    let Nanos(total) = thread_cpu_time();
    let share = std::fs::read_to_string("/proc/thread-self/stat").ok().and_then(|stat| user_share(&stat));
    let user = (total as f64 * share.unwrap_or(0.0)).round() as u64;
    (Nanos(user), Nanos(total - user.min(total)))
}

/// utime ÷ (utime + stime) of a `/proc/PID/stat` line.
fn user_share(stat: &str) -> Option<f64> {
    // The name in parentheses may hold anything, parentheses too; utime and stime are the 12th and 13th fields after it.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let utime: f64 = fields.next()?.parse().ok()?;
    let stime: f64 = fields.next()?.parse().ok()?;
    (utime + stime > 0.0).then(|| utime / (utime + stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_share_survives_any_thread_name() {
        let stat = "7 (a) b (c)) S 1 1 1 0 -1 4194560 1 0 0 0 30 10 0 0 20 0 1 0 5";
        assert_eq!(user_share(stat), Some(0.75));
        assert_eq!(user_share("7 (a) S 1"), None);
        assert_eq!(user_share(""), None);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_that_says_where_to_look() {
        let message = settle_thread(Some(1 << 20)).unwrap_err().to_string();
        assert!(message.contains("CPU 1048576") && message.contains("nproc"), "{message}");
    }
}
