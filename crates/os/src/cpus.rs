//! Lists the CPUs of this host, and pins threads to CPUs. Sources: sched_setaffinity(2), sysfs-devices-system-cpu.

use brimful_core::cpus::CpuList;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// The CPUs that are online, in increasing order.
pub fn online() -> Vec<usize> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    listed.and_then(|text| text.parse().ok()).map_or_else(
        // Without /sys, assume that the CPUs are numbered from 0, with as many CPUs as this process may use.
        || (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
        |CpuList(cpus)| cpus,
    )
}

/// The CPUs that this thread may use, in increasing order.
pub fn usable() -> Vec<usize> {
    cpus_in_set(&sched_getaffinity(None).unwrap_or_default()).0
}

/// Converts CPU numbers to the set that the kernel's calls take. `None` if a number is too large for the set.
pub fn to_cpu_set(cpus: &[usize]) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return None;
        }
        set.set(cpu);
    }
    Some(set)
}

/// The CPU numbers in a set of the kernel's calls, in increasing order.
pub fn cpus_in_set(set: &CpuSet) -> CpuList {
    CpuList((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// The kernel's error, such as `EINVAL` for a CPU that this thread may not use.
pub fn pin_this_thread(cpu: usize) -> io::Result<()> {
    let set = to_cpu_set(&[cpu]).ok_or(Errno::INVAL)?;
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_use_one_cpu() {
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
    fn an_impossible_cpu_is_an_error() {
        for cpu in [CpuSet::MAX_CPU, 1 << 20] {
            assert_eq!(pin_this_thread(cpu).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            assert!(to_cpu_set(&[0, cpu]).is_none());
        }
    }
}
