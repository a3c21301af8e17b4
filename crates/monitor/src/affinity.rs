//! Which CPUs there are, and keeping a server on some of them while it is measured.
//!
//! A process killed while it holds a [`PinGuard`] leaves the server where it was put; `taskset -ap` puts it back.

use crate::tree::{process_table, with_descendants};
use crate::{MonitorError, ProcessTree, procfs};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::HashMap;
use std::path::Path;

/// Puts every thread back where it was when dropped.
#[derive(Debug)]
#[must_use = "the threads are put back as soon as this is dropped"]
pub struct PinGuard {
    pids: Vec<u32>,
    /// Where each thread was allowed to run before.
    former: HashMap<u32, CpuSet>,
    /// The same of the tree's first process: for threads born meanwhile.
    of_root: Option<CpuSet>,
    /// Where they are now. A thread found elsewhere has moved itself and is left alone.
    pinned: Option<CpuSet>,
}

/// Keeps every thread of the tree on these CPUs until the guard is dropped; threads and children that they start are
/// kept there as well. Threads that vanish meanwhile are no error.
pub fn pin_tree(tree: &ProcessTree, cpus: &[usize]) -> Result<PinGuard, MonitorError> {
    let set = cpu_set(cpus)?;
    let mut guard = PinGuard { pids: tree.pids(), former: HashMap::new(), of_root: None, pinned: None };
    // A thread may start another between the listing and its own turn; what it starts after its turn inherits.
    loop {
        let before = guard.former.len();
        for tid in guard.threads() {
            if !guard.former.contains_key(&tid) {
                guard.pin(tid, &set, cpus)?;
            }
        }
        if guard.former.len() == before {
            return Ok(guard);
        }
    }
}

/// The CPUs that are online, in order.
pub fn online_cpus() -> Vec<usize> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    listed.as_deref().and_then(procfs::cpu_list).unwrap_or_else(|| {
        // Without /sys: as many as this process may use.
        (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
    })
}

/// How many CPUs are online.
pub fn cpu_count() -> usize {
    online_cpus().len()
}

/// Keeps the calling thread on one CPU.
pub(crate) fn pin_this_thread(cpu: usize) -> Result<(), MonitorError> {
    let set = cpu_set(&[cpu])?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    sched_setaffinity(None, &set).map_err(|errno| refused(tid, &[cpu], errno))
}

impl PinGuard {
    fn pin(&mut self, tid: u32, set: &CpuSet, cpus: &[usize]) -> Result<(), MonitorError> {
        let Some(pid) = to_pid(tid) else { return Ok(()) };
        let pinned = sched_getaffinity(Some(pid)).and_then(|former| {
            sched_setaffinity(Some(pid), set)?;
            // What the kernel made of it: a cpuset may leave fewer CPUs than asked for.
            Ok((former, sched_getaffinity(Some(pid))?))
        });
        match pinned {
            Ok((former, pinned)) => {
                self.former.insert(tid, former);
                self.of_root.get_or_insert(former);
                self.pinned.get_or_insert(pinned);
                Ok(())
            }
            Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(refused(tid, cpus, errno)),
        }
    }

    /// Every thread of the tree's processes and of all that descend from them.
    fn threads(&self) -> Vec<u32> {
        let root = Path::new("/proc");
        let table = process_table(root, |pid, _| self.pids.contains(&pid).then_some(()));
        let pids = with_descendants(&table);
        pids.into_iter().flat_map(|(pid, ())| procfs::numeric_entries(&root.join(format!("{pid}/task")))).collect()
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        let (Some(of_root), Some(pinned)) = (self.of_root, self.pinned) else { return };
        for tid in self.threads() {
            let Some(pid) = to_pid(tid) else { continue };
            if sched_getaffinity(Some(pid)).is_ok_and(|now| now == pinned) {
                // It may have vanished by now, and there is nobody to tell.
                let _ = sched_setaffinity(Some(pid), self.former.get(&tid).unwrap_or(&of_root));
            }
        }
    }
}

fn cpu_set(cpus: &[usize]) -> Result<CpuSet, MonitorError> {
    let online = online_cpus();
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if !online.contains(&cpu) || cpu >= CpuSet::MAX_CPU {
            return Err(MonitorError::NoSuchCpu { cpu, online: procfs::show_cpus(&online) });
        }
        set.set(cpu);
    }
    Ok(set)
}

fn to_pid(tid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(tid).ok()?)
}

fn refused(tid: u32, cpus: &[usize], errno: Errno) -> MonitorError {
    MonitorError::Affinity { tid, cpus: procfs::show_cpus(cpus), source: errno.into() }
}
