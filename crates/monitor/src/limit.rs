//! Limits the CPU time of a server while it is measured. The server's processes are moved into a new control group with
//! a quota, below their current group. Afterwards they are moved back.
//!
//! If this process is killed while it holds a [`LimitGuard`], it cannot move the server's processes back. It therefore
//! announces the [`FormerCgroups`] before it changes anything. Another process can keep this record and move the
//! server's processes back instead. Source: cgroups(7); cgroup-v2.rst and sched-bwc.rst of the kernel's documentation.

use crate::procfs::{self, process_table, with_descendants};
use crate::{MonitorError, ProcessTree};
use brimful_os::cgroup::cpu_groups;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, read_to_string};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// The period of a quota, in microseconds. It is a tenth of the default, so that the server behaves nearly like a
/// server on a slower machine. The kernel enforces the quota only at its next tick, and subtracts the excess from later
/// periods.
const PERIOD_US: f64 = 10_000.0;
/// The shortest quota that Linux accepts, in microseconds.
const MIN_QUOTA_US: f64 = 1_000.0;
/// The beginning of the new group's name; the pid of this process is appended.
const GROUP_PREFIX: &str = "brimful-what-if-";
/// Maximum number of attempts to move all processes out of the control group. One attempt may not suffice, because the
/// server may start a process in the group at the same time.
const MAX_TRIES: usize = 50;

/// Guard of a CPU quota. Dropping it moves every process back and removes the group.
#[derive(Debug)]
#[must_use = "the quota is removed as soon as this is dropped"]
pub struct LimitGuard(FormerCgroups);

/// The control groups of processes before they got a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerCgroups {
    /// The group that was created for the processes.
    group: PathBuf,
    /// For each process by pid: its start time, which distinguishes it from a later process with the same pid, and its
    /// former group.
    processes: BTreeMap<u32, (u64, PathBuf)>,
}

/// The period to set with a quota of `cpus` CPUs, in seconds. A small quota needs a longer period, because the kernel
/// refuses a quota of less than 1 ms of CPU time per period.
pub fn quota_period_s(cpus: f64) -> f64 {
    PERIOD_US.max(MIN_QUOTA_US / cpus).ceil() / 1e6
}

/// Limits the processes of the process tree to `cpus` CPUs in total until the guard is dropped. Children that these
/// processes start meanwhile are included. `announce` is called before processes are moved. Its argument is a record
/// from which these and all earlier moved processes can be moved back.
///
/// # Errors
/// [`MonitorError::OtherUser`]; [`MonitorError::Quota`] where a quota is not allowed; [`MonitorError::Announce`] with
/// the error of `announce`.
pub fn limit_tree(
    tree: &ProcessTree,
    cpus: f64,
    mut announce: impl FnMut(&FormerCgroups) -> io::Result<()>,
) -> Result<LimitGuard, MonitorError> {
    tree.require_movable()?;
    let root = Path::new("/");
    let roots = tree.pids();
    let mut guard = LimitGuard(FormerCgroups::default());
    let first = guard.0.add(root, &roots);
    let parent = parent_for(&guard.0)?;
    guard.0.group = parent.join(format!("{GROUP_PREFIX}{}", std::process::id()));
    let group = guard.0.group.clone();
    announce(&guard.0).map_err(MonitorError::Announce)?;
    let refused = |path: PathBuf| move |source| MonitorError::Quota { path, source };
    fs::create_dir(&group).map_err(refused(group.clone()))?;
    for (file, text) in quota_files(&group, cpus) {
        fs::write(&file, text).map_err(refused(file))?;
    }
    let mut unmoved = first;
    // A process may start a child after the listing and before it is moved. Children that a process starts after it was
    // moved are in the group from the start.
    while !unmoved.is_empty() {
        for pid in unmoved {
            enter(&group, pid).map_err(refused(group.join("cgroup.procs")))?;
        }
        unmoved = guard.0.add(root, &roots);
        announce(&guard.0).map_err(MonitorError::Announce)?;
    }
    Ok(guard)
}

/// The control group in which a child group with a quota can be created for the processes.
fn parent_for(moved: &FormerCgroups) -> Result<PathBuf, MonitorError> {
    let mut groups = moved.processes.values().map(|(_, group)| group);
    let none = || MonitorError::NoQuota("its processes are in no control group of the CPU controller".to_owned());
    let first = groups.next().ok_or_else(none)?.clone();
    let common = groups.fold(first, |common, group| {
        common.ancestors().find(|above| group.starts_with(above)).unwrap_or(Path::new("/")).to_owned()
    });
    if common.join("cpu.cfs_quota_us").exists() || common.join("cpu.shares").exists() {
        return Ok(common);
    }
    // In version 2 of control groups, a new group can have a quota only if its parent delegates the CPU controller.
    // Such a parent has no processes of its own.
    let delegates_cpu = |group: &&Path| {
        let controllers = read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        controllers.split_ascii_whitespace().any(|controller| controller == "cpu")
    };
    common.ancestors().find(delegates_cpu).map(Path::to_owned).ok_or_else(|| {
        MonitorError::NoQuota(format!(
            "no group above {} delegates the CPU controller: echo +cpu | sudo tee /sys/fs/cgroup/cgroup.subtree_control",
            common.display()
        ))
    })
}

/// The files that give the control group `group` a quota of `cpus` CPUs, and their contents, in the order of writing.
fn quota_files(group: &Path, cpus: f64) -> Vec<(PathBuf, String)> {
    let period_us = quota_period_s(cpus) * 1e6;
    let quota_us = (cpus * period_us).round();
    if group.join("cpu.cfs_quota_us").exists() {
        let files = [("cpu.cfs_period_us", period_us), ("cpu.cfs_quota_us", quota_us)];
        files.map(|(file, us)| (group.join(file), format!("{us:.0}"))).to_vec()
    } else {
        vec![(group.join("cpu.max"), format!("{quota_us:.0} {period_us:.0}"))]
    }
}

/// Moves a process into the group. It is not an error if the process has ended.
fn enter(group: &Path, pid: u32) -> io::Result<()> {
    match fs::write(group.join("cgroup.procs"), pid.to_string()) {
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
        result => result,
    }
}

impl FormerCgroups {
    /// Moves every process back, and removes the group. Processes started meanwhile move to the former group of the
    /// process that they descend from. Processes that have ended are ignored.
    pub fn restore_former_state(&self) {
        if !self.group.is_dir() {
            return;
        }
        for _ in 0..MAX_TRIES {
            let here = members(&self.group);
            let same = |pid: u32| (started(pid)? == self.processes.get(&pid)?.0).then_some(pid);
            let table = process_table(Path::new("/proc"), |pid, _| same(pid));
            let known: BTreeMap<u32, u32> = with_descendants(&table).into_iter().collect();
            for pid in &here {
                let group = known.get(pid).and_then(|known| self.processes.get(known));
                let Some((_, group)) = group.or_else(|| self.processes.values().next()) else { continue };
                // A process that could not be moved stays in the group, and the next attempt moves it.
                let _ = enter(group, *pid);
            }
            if here.is_empty() && fs::remove_dir(&self.group).is_ok() {
                return;
            }
            if !here.is_empty() {
                continue;
            }
            // The group cannot be removed as long as the kernel is still cleaning up processes that ended in it.
            sleep(Duration::from_millis(10));
        }
    }

    /// Records the processes `roots` and their descendants, except processes that are already recorded or already in
    /// the group. Returns the processes that it has added.
    fn add(&mut self, root: &Path, roots: &[u32]) -> Vec<u32> {
        let table = process_table(&root.join("proc"), |pid, _| roots.contains(&pid).then_some(()));
        let mut added = Vec::new();
        for (pid, ()) in with_descendants(&table) {
            if self.processes.contains_key(&pid) {
                continue;
            }
            let cgroup = read_to_string(root.join(format!("proc/{pid}/cgroup"))).unwrap_or_default();
            let group = cpu_groups(root, &cgroup).into_iter().find(|group| group.join("cgroup.procs").exists());
            let (Some(group), Some(started)) = (group, started(pid)) else { continue };
            if group != self.group {
                self.processes.insert(pid, (started, group));
                added.push(pid);
            }
        }
        added
    }
}

impl Drop for LimitGuard {
    fn drop(&mut self) {
        self.0.restore_former_state();
    }
}

fn members(group: &Path) -> Vec<u32> {
    let text = read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn started(pid: u32) -> Option<u64> {
    Some(procfs::pid_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)?.started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProcessSelector;
    use std::process::{Child, Command, Stdio};

    /// Idle processes that are killed when this value is dropped.
    struct Sleepers(Child);

    impl Drop for Sleepers {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn moved(groups: &[&Path]) -> FormerCgroups {
        let process = |(pid, group): (usize, &&Path)| (pid as u32, (1, group.to_path_buf()));
        FormerCgroups { group: PathBuf::new(), processes: groups.iter().enumerate().map(process).collect() }
    }

    #[test]
    fn the_group_is_made_where_it_can_have_a_quota() {
        let root = tempfile::tempdir().unwrap();
        let group = |path: &str, files: &[(&str, &str)]| {
            let directory = root.path().join(path);
            fs::create_dir_all(&directory).unwrap();
            files.iter().for_each(|(file, text)| fs::write(directory.join(file), text).unwrap());
            directory
        };
        let v2 = group("v2", &[("cgroup.subtree_control", "cpuset cpu memory\n")]);
        group("v2/web", &[("cgroup.subtree_control", "memory\n")]);
        let [one, two] = ["v2/web/one", "v2/web/two"].map(|path| group(path, &[("cgroup.subtree_control", "\n")]));
        assert_eq!(parent_for(&moved(&[&one, &two])).unwrap(), v2);
        let made = v2.join("new");
        assert_eq!(quota_files(&made, 0.5), [(made.join("cpu.max"), "5000 10000".to_owned())]);
        assert_eq!(quota_files(&made, 0.02), [(made.join("cpu.max"), "1000 50000".to_owned())]);

        let without = group("other/web", &[("cgroup.subtree_control", "memory\n")]);
        let error = parent_for(&moved(&[&without])).unwrap_err().to_string();
        assert!(error.contains("other/web delegates the CPU controller: echo +cpu"), "{error}");
        assert!(parent_for(&moved(&[])).is_err());

        let quota = [("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")];
        let v1 = group("cpu", &quota);
        let [a, ab] = ["cpu/a", "cpu/a/b"].map(|path| group(path, &quota));
        assert_eq!(parent_for(&moved(&[&ab, &a])).unwrap(), a);
        assert_eq!(parent_for(&moved(&[&ab, &v1])).unwrap(), v1);
        let files = quota_files(&a, 1.5);
        assert_eq!(
            files,
            [(a.join("cpu.cfs_period_us"), "10000".into()), (a.join("cpu.cfs_quota_us"), "15000".into())]
        );
    }

    /// The control group of a process if it was created for a quota, and `None` otherwise.
    fn limited(pid: u32) -> Option<PathBuf> {
        let cgroup = read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        cpu_groups(Path::new("/"), &cgroup).into_iter().find(|group| group.to_string_lossy().contains(GROUP_PREFIX))
    }

    #[test]
    fn processes_get_a_quota_and_are_moved_back_with_new_children() {
        // The first child exists before the quota is set. The second child starts while the quota applies.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & read line; sleep 600 & wait"]);
        let mut sleepers = Sleepers(command.stdin(Stdio::piped()).spawn().unwrap());
        let parent = sleepers.0.id();
        let family = || {
            let table = process_table(Path::new("/proc"), |pid, _| (pid == parent).then_some(()));
            with_descendants(&table).into_iter().map(|(pid, ())| pid).collect::<Vec<u32>>()
        };
        crate::fixture::wait_for("a child", || (family().len() == 2).then_some(()));
        let tree = ProcessTree::open(&[ProcessSelector::Pid(parent)], &[]).unwrap();
        let mut announced = Vec::new();
        let guard = match limit_tree(&tree, 0.25, |moved| {
            announced.push((limited(parent), moved.clone()));
            Ok(())
        }) {
            Ok(guard) => guard,
            Err(error @ (MonitorError::Quota { .. } | MonitorError::NoQuota(_))) => {
                eprintln!("LEFT OUT: no control group can be made here: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(announced[0].0, None, "the process was announced before it was moved");
        let group = limited(parent).unwrap();
        let quota = brimful_os::cgroup::Quota::read(&group, |path| read_to_string(path).ok()).unwrap();
        assert_eq!(quota.cpus(), 0.25);
        drop(sleepers.0.stdin.take());
        crate::fixture::wait_for("another child", || (family().len() == 3).then_some(()));
        assert!(family().iter().all(|&pid| limited(pid).as_ref() == Some(&group)));
        // Simulates a kill: the guard is never dropped, and another process restores the server.
        std::mem::forget(guard);
        let text = serde_json::to_string(&announced.last().unwrap().1).unwrap();
        serde_json::from_str::<FormerCgroups>(&text).unwrap().restore_former_state();
        assert!(!group.exists() && family().iter().all(|&pid| limited(pid).is_none()));
        for pid in family().into_iter().filter(|&pid| pid != parent) {
            Command::new("kill").arg(pid.to_string()).status().unwrap();
        }
    }
}
