//! Restricts a server to some of the CPUs while it is measured.
//!
//! A process that is killed while it has a [`PinGuard`] cannot restore the server. The former CPUs of all threads, a
//! [`FormerAffinity`], are therefore announced before any thread is moved. Another process can store this record and
//! restore the threads.

use crate::procfs::{self, process_table, with_descendants};
use crate::{MonitorError, ProcessTree};
use brimful_core::cpus::CpuList;
use brimful_os::cpus::{self, cpus_in_set};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A guard that restores the former CPUs of every pinned thread when it is dropped.
#[derive(Debug)]
#[must_use = "the threads are restored as soon as this is dropped"]
pub struct PinGuard(FormerAffinity);

/// The CPUs on which threads of a server were allowed to run before they were pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerAffinity {
    /// Start times of processes by pid, in clock ticks since boot. If a process has another start time when the threads
    /// are restored, its pid was reused.
    processes: BTreeMap<u32, u64>,
    /// The former CPUs of threads, by thread id.
    threads: BTreeMap<u32, FormerCpus>,
    /// The CPUs that the threads are pinned to, as a list of ranges.
    pinned: String,
}

/// The former CPUs of one thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FormerCpus {
    /// Start time of the thread, in clock ticks since boot.
    started: u64,
    /// The thread's former CPUs, as a list of ranges.
    cpus: String,
}

/// Restricts every thread of the process tree `tree` to the CPUs `cpus` until the guard is dropped. New threads and
/// child processes inherit the restriction. A thread that ends meanwhile is not an error. Before any thread is moved,
/// `announce` is called with the record that is needed to restore all threads.
///
/// Errors: [`MonitorError::OtherUser`]; [`MonitorError::NoSuchCpu`]; [`MonitorError::Affinity`] if the kernel refuses;
/// [`MonitorError::Announce`] with the error of `announce`.
pub fn pin_tree(
    tree: &ProcessTree,
    cpus: &[usize],
    mut announce: impl FnMut(&FormerAffinity) -> io::Result<()>,
) -> Result<PinGuard, MonitorError> {
    tree.require_movable()?;
    let set = cpu_set(cpus)?;
    let mut guard = PinGuard(FormerAffinity { pinned: CpuList::from(cpus).to_string(), ..FormerAffinity::default() });
    let roots = tree.pids();
    // The threads are listed again until no new thread appears. A thread may start another thread after the listing,
    // before it is pinned. Threads that a pinned thread starts inherit its CPUs.
    loop {
        let unpinned = guard.0.add(&roots, &set);
        if unpinned.is_empty() {
            return Ok(guard);
        }
        announce(&guard.0).map_err(MonitorError::Announce)?;
        for tid in unpinned {
            match to_pid(tid).map_or(Ok(()), |pid| sched_setaffinity(Some(pid), &set)) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => return Err(refused(tid, cpus, errno.into())),
            }
        }
    }
}

/// Pins the calling thread to one CPU.
pub(crate) fn pin_this_thread(cpu: usize) -> Result<(), MonitorError> {
    cpu_set(&[cpu])?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    cpus::pin_this_thread(cpu).map_err(|error| refused(tid, &[cpu], error))
}

impl FormerAffinity {
    /// Restores every thread that still has the CPUs it was pinned to. A thread that started after the pinning has
    /// inherited these CPUs. Such a thread gets the former CPUs of its process, or of the process's pinned ancestor.
    /// Threads that have ended are ignored, even if their ids were reused.
    pub fn restore_former_state(&self) {
        let Some(pinned) = to_cpu_set(&self.pinned) else { return };
        let same = |pid: u32| (started(&format!("{pid}"))? == *self.processes.get(&pid)?).then_some(pid);
        let table = process_table(Path::new("/proc"), |pid, _| same(pid));
        for (pid, known) in with_descendants(&table) {
            for tid in threads(pid) {
                let own = self.threads.get(&tid).filter(|former| started_in(pid, tid) == Some(former.started));
                let former = own.or_else(|| self.threads.get(&known)).and_then(|former| to_cpu_set(&former.cpus));
                let (Some(former), Some(thread)) = (former, to_pid(tid)) else { continue };
                // A thread that has other CPUs now was moved again after the pinning, so it is not restored.
                if sched_getaffinity(Some(thread)).is_ok_and(|now| is_within(&now, &pinned)) {
                    // The thread may have ended by now. The error is ignored then.
                    let _ = sched_setaffinity(Some(thread), &former);
                }
            }
        }
    }

    /// Adds the threads of the processes `roots` and of all their descendants, except threads that are already pinned
    /// to `set`. Returns the ids of the added threads.
    fn add(&mut self, roots: &[u32], set: &CpuSet) -> Vec<u32> {
        let first = self.threads.is_empty();
        let table = process_table(Path::new("/proc"), |pid, _| roots.contains(&pid).then_some(()));
        let mut added = Vec::new();
        for (pid, ()) in with_descendants(&table) {
            for tid in threads(pid) {
                if self.threads.contains_key(&tid) {
                    continue;
                }
                let now = to_pid(tid).and_then(|thread| sched_getaffinity(Some(thread)).ok());
                let (Some(now), Some(started)) = (now, started_in(pid, tid)) else { continue };
                // After the first listing, a thread that is already restricted to `set` has inherited this restriction
                // from its parent.
                if !first && is_within(&now, set) {
                    continue;
                }
                self.threads.insert(tid, FormerCpus { started, cpus: cpus_in_set(&now).to_string() });
                if tid == pid {
                    self.processes.insert(pid, started);
                }
                added.push(tid);
            }
        }
        added
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        self.0.restore_former_state();
    }
}

fn threads(pid: u32) -> Vec<u32> {
    procfs::numeric_entries(Path::new(&format!("/proc/{pid}/task")))
}

fn started_in(pid: u32, tid: u32) -> Option<u64> {
    started(&format!("{pid}/task/{tid}"))
}

/// Start time of a process or thread, in clock ticks since boot. `directory` is its directory, relative to /proc.
fn started(directory: &str) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{directory}/stat")).ok()?;
    Some(procfs::pid_stat(&stat)?.started)
}

fn is_within(set: &CpuSet, other: &CpuSet) -> bool {
    (0..CpuSet::MAX_CPU).all(|cpu| !set.is_set(cpu) || other.is_set(cpu))
}

fn to_cpu_set(list: &str) -> Option<CpuSet> {
    cpus::to_cpu_set(&list.parse::<CpuList>().ok()?.0)
}

/// Returns an error if a CPU in `wanted` is not online.
pub(crate) fn require_online(wanted: &[usize]) -> Result<(), MonitorError> {
    let online = cpus::online();
    match wanted.iter().find(|cpu| !online.contains(cpu)) {
        Some(&cpu) => Err(MonitorError::NoSuchCpu { cpu, online: CpuList(online).to_string() }),
        None => Ok(()),
    }
}

fn cpu_set(wanted: &[usize]) -> Result<CpuSet, MonitorError> {
    require_online(wanted)?;
    cpus::to_cpu_set(wanted).ok_or_else(|| refused(std::process::id(), wanted, Errno::INVAL.into()))
}

fn to_pid(tid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(tid).ok()?)
}

fn refused(tid: u32, cpus: &[usize], source: io::Error) -> MonitorError {
    MonitorError::Affinity { tid, cpus: CpuList::from(cpus).to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// An idle process that is killed when this value is dropped.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Sleeper {
            Sleeper(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap())
        }

        fn pid(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn now(pid: u32) -> String {
        cpus_in_set(&sched_getaffinity(to_pid(pid)).unwrap()).to_string()
    }

    /// Starts an idle process that may run on any CPU. Returns the process, its list of CPUs, and the last CPU of the
    /// list.
    fn sleeper() -> (Sleeper, String, usize) {
        let sleeper = Sleeper::start();
        let anywhere = now(sleeper.pid());
        let last = anywhere.parse::<CpuList>().unwrap().0.pop().unwrap();
        assert_ne!(anywhere, last.to_string(), "this test needs two CPUs");
        (sleeper, anywhere, last)
    }

    fn tree(pid: u32) -> ProcessTree {
        ProcessTree::open(&[crate::ProcessSelector::Pid(pid)], &[]).unwrap()
    }

    #[test]
    fn another_process_can_put_back_what_was_announced_before_anything_moved() {
        let (sleeper, anywhere, cpu) = sleeper();
        let mut announced = Vec::new();
        let guard = pin_tree(&tree(sleeper.pid()), &[cpu], |former| {
            announced.push((now(sleeper.pid()), serde_json::to_string(former)?));
            Ok(())
        })
        .unwrap();
        assert_eq!((now(sleeper.pid()), announced.len()), (cpu.to_string(), 1));
        assert_eq!(announced[0].0, anywhere, "the thread must be announced before it is moved");
        // Simulates that this process is killed: the guard is never dropped.
        std::mem::forget(guard);
        serde_json::from_str::<FormerAffinity>(&announced[0].1).unwrap().restore_former_state();
        assert_eq!(now(sleeper.pid()), anywhere);
    }

    #[test]
    fn a_number_that_is_another_process_now_is_left_alone() {
        let (sleeper, anywhere, cpu) = sleeper();
        let mut guard = pin_tree(&tree(sleeper.pid()), &[cpu], |_| Ok(())).unwrap();
        let honest = guard.0.clone();
        // Simulates a reused pid: the recorded start times are made earlier than the start of the present process.
        for started in guard.0.processes.values_mut() {
            *started -= 1;
        }
        drop(guard);
        assert_eq!(now(sleeper.pid()), cpu.to_string());
        honest.restore_former_state();
        assert_eq!(now(sleeper.pid()), anywhere);
    }

    #[test]
    fn nothing_is_moved_that_cannot_be_announced() {
        let (sleeper, anywhere, cpu) = sleeper();
        let deaf = |_: &FormerAffinity| Err(io::ErrorKind::BrokenPipe.into());
        let error = pin_tree(&tree(sleeper.pid()), &[cpu], deaf).unwrap_err();
        assert!(matches!(error, MonitorError::Announce(_)), "{error}");
        assert_eq!(now(sleeper.pid()), anywhere);
    }

    #[test]
    fn threads_born_while_others_are_pinned_have_inherited_it() {
        let (sleeper, anywhere, cpu) = sleeper();
        let set = cpu_set(&[cpu]).unwrap();
        let mut former = FormerAffinity { pinned: cpu.to_string(), ..FormerAffinity::default() };
        assert_eq!(former.add(&[sleeper.pid()], &set), [sleeper.pid()]);
        // Simulates a child that inherited the CPUs of a pinned parent: the second listing must not add it.
        let process_started_during_watch = Sleeper::start();
        sched_setaffinity(to_pid(process_started_during_watch.pid()), &set).unwrap();
        assert!(former.add(&[sleeper.pid(), process_started_during_watch.pid()], &set).is_empty(), "{former:?}");
        assert!(!former.threads.contains_key(&process_started_during_watch.pid()));
        sched_setaffinity(to_pid(sleeper.pid()), &set).unwrap();
        former.restore_former_state();
        assert_eq!(now(sleeper.pid()), anywhere);
    }
}
