//! Which CPUs there are, and threads kept on some of them. Source: sched_setaffinity(2), sysfs-devices-system-cpu.

use brimful_core::cpus::CpuList;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// The CPUs that are online, in order.
pub fn online() -> Vec<usize> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    listed.and_then(|text| text.parse().ok()).map_or_else(
        // Without /sys: as many as this process may use.
        || (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
        |CpuList(cpus)| cpus,
    )
}

/// The CPUs that this thread may use, in order.
pub fn usable() -> Vec<usize> {
    in_set(&sched_getaffinity(None).unwrap_or_default()).0
}

/// CPUs as the kernel takes them; `None` if one is beyond what fits.
pub fn set_of(cpus: &[usize]) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return None;
        }
        set.set(cpu);
    }
    Some(set)
}

/// The CPUs of a set, in order.
pub fn in_set(set: &CpuSet) -> CpuList {
    CpuList((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Keeps the calling thread on one CPU.
///
/// # Errors
/// The kernel's: `EINVAL` for a CPU that this thread cannot have.
pub fn pin_this_thread(cpu: usize) -> io::Result<()> {
    let set = set_of(&[cpu]).ok_or(Errno::INVAL)?;
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_is_kept() {
        let last = *online().last().unwrap();
        std::thread::spawn(move || {
            let cpu = *usable().last().unwrap();
            assert!(cpu <= last, "{cpu} is not online");
            pin_this_thread(cpu).unwrap();
            assert_eq!(usable(), [cpu]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_cannot_be_is_refused_and_not_dropped() {
        for cpu in [CpuSet::MAX_CPU, 1 << 20] {
            assert_eq!(pin_this_thread(cpu).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            assert!(set_of(&[0, cpu]).is_none());
        }
    }
}
