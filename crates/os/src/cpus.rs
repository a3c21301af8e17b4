//! Lists the CPUs of this host, and pins threads to CPUs. Sources: sched_setaffinity(2); sysfs-devices-system-cpu in
//! the kernel's documentation.

use brimful_core::cpus::CpuList;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Returns the numbers of the CPUs that are online, in increasing order.
pub fn online() -> Vec<usize> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    listed.and_then(|text| text.parse().ok()).map_or_else(
        // If /sys cannot be read, assume that the CPUs that this process may use are numbered from 0.
        || (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
        |CpuList(cpus)| cpus,
    )
}

/// Returns the numbers of the CPUs that this thread may use, in increasing order.
pub fn usable() -> Vec<usize> {
    cpus_in_set(&sched_getaffinity(None).unwrap_or_default()).0
}

/// Converts CPU numbers to the bit set of sched_setaffinity(2). Returns `None` if a number is too large for the set.
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

/// Converts a bit set of sched_getaffinity(2) to CPU numbers, in increasing order.
pub fn cpus_in_set(set: &CpuSet) -> CpuList {
    CpuList((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// Returns the error of the kernel, such as `EINVAL` if this thread may not use the CPU.
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
