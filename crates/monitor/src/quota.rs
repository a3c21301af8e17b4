//! The CPU quotas of the control groups that a program's processes are in, and how often the quotas throttled the
//! program. The group of a process is looked up when the process joins the program, and again every few seconds.
//! Between look-ups, groups without a quota cost nothing.

use crate::sys;
use brimful_core::Nanos;
use brimful_os::cgroup::{Quota, Throttling, cpu_groups};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Interval at which the groups of all processes, and the quotas of all groups, are looked up again.
const REFRESH: Nanos = Nanos::from_secs(2);

/// A control group that has a quota now, and its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuotaSample {
    /// The directory of the control group.
    pub group: Arc<str>,
    /// CPU time that the group may use in each period.
    pub quota: Nanos,
    /// The length of a period of the quota.
    pub period: Nanos,
    /// Number of periods in which the group ran.
    pub periods: u64,
    /// Number of periods in which the group was throttled.
    pub throttled_periods: u64,
    /// Time for which the group was throttled, summed over CPUs.
    pub throttled: Nanos,
}

/// Reads the quotas of the control groups of all programs.
#[derive(Debug)]
pub(crate) struct QuotaWatch {
    root: PathBuf,
    programs: Vec<ProgramGroups>,
}

#[derive(Debug, Default)]
struct ProgramGroups {
    pids: Arc<[u32]>,
    /// The contents of `/proc/PID/cgroup` by pid.
    cgroups: BTreeMap<u32, Arc<str>>,
    /// The groups that have a quota.
    limited: Vec<(PathBuf, Arc<str>)>,
    look_at: Nanos,
}

impl QuotaWatch {
    /// Creates a reader of the quotas of `programs` programs. `root` is the directory that contains /proc and /sys.
    pub fn new(root: &Path, programs: usize) -> QuotaWatch {
        let programs = (0..programs).map(|_| ProgramGroups::default()).collect();
        QuotaWatch { root: root.to_owned(), programs }
    }

    /// The quotas of a program whose current processes are `pids`.
    pub fn read(&mut self, program: usize, pids: &Arc<[u32]>) -> Vec<QuotaSample> {
        let Some(program) = self.programs.get_mut(program) else { return Vec::new() };
        let now = sys::now();
        if program.pids != *pids || now >= program.look_at {
            if now >= program.look_at {
                program.cgroups.clear();
                program.look_at = now + REFRESH;
            }
            program.look(&self.root, pids);
        }
        program.limited.iter().filter_map(|(directory, name)| sample(directory, name)).collect()
    }
}

impl ProgramGroups {
    fn look(&mut self, root: &Path, pids: &Arc<[u32]>) {
        self.pids = Arc::clone(pids);
        self.cgroups.retain(|pid, _| pids.contains(pid));
        for &pid in pids.iter() {
            let read = || read_to_string(root.join(format!("proc/{pid}/cgroup"))).unwrap_or_default().into();
            self.cgroups.entry(pid).or_insert_with(read);
        }
        let texts: BTreeSet<&str> = self.cgroups.values().map(|text| &**text).collect();
        let groups: BTreeSet<PathBuf> = texts.into_iter().flat_map(|text| cpu_groups(root, text)).collect();
        let limited = groups.into_iter().filter(|group| Quota::read(group, read).is_some());
        self.limited = limited.map(|group| (group.clone(), group.to_string_lossy().into())).collect();
    }
}

fn sample(directory: &Path, name: &Arc<str>) -> Option<QuotaSample> {
    let quota = Quota::read(directory, read)?;
    let throttling = Throttling::read(directory, read)?;
    Some(QuotaSample {
        group: Arc::clone(name),
        quota: quota.time,
        period: quota.period,
        periods: throttling.periods,
        throttled_periods: throttling.throttled_periods,
        throttled: throttling.throttled,
    })
}

fn read(path: &Path) -> Option<String> {
    read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, PID_OFFSET};
    use std::fs;

    #[test]
    fn the_quotas_of_a_programs_groups_and_of_those_above_are_found() {
        let fixture = Fixture::new();
        let group = |path: &str, files: &[(&str, &str)]| {
            let directory = fixture.system_root().join("sys/fs/cgroup").join(path);
            fs::create_dir_all(&directory).unwrap();
            files.iter().for_each(|(file, text)| fs::write(directory.join(file), text).unwrap());
        };
        group(
            "web",
            &[("cpu.max", "150000 100000\n"), ("cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_usec 30\n")],
        );
        group("web/one", &[("cpu.max", "max 100000\n"), ("cpu.stat", "throttled_usec 0\n")]);
        let v1 = [
            ("cpu.cfs_quota_us", "20000\n"),
            ("cpu.cfs_period_us", "10000\n"),
            ("cpu.stat", "nr_periods 8\nnr_throttled 4\nthrottled_time 5000\n"),
        ];
        group("cpu,cpuacct/old", &v1);
        for (pid, text) in
            [(PID_OFFSET + 1, "0::/web/one\n"), (PID_OFFSET + 2, "4:cpu,cpuacct:/old\n"), (PID_OFFSET + 3, "0::/\n")]
        {
            fixture.process(pid, 1, "web", [0; 4]);
            fs::write(fixture.proc_root().join(format!("{pid}/cgroup")), text).unwrap();
        }
        let mut watch = QuotaWatch::new(fixture.system_root(), 1);
        assert_eq!(watch.read(0, &[PID_OFFSET + 3].into()), []);
        let [new] = &watch.read(0, &[PID_OFFSET + 1, PID_OFFSET + 3].into())[..] else { panic!("{watch:?}") };
        assert!(new.group.ends_with("/sys/fs/cgroup/web"), "{new:?}");
        assert_eq!((new.periods, new.throttled_periods, new.throttled), (9, 2, Nanos::from_micros(30)));
        let both = watch.read(0, &[PID_OFFSET + 1, PID_OFFSET + 2].into());
        let quotas: Vec<[u64; 2]> = both.iter().map(|s| [s.quota, s.period].map(|time| time.0 / 1_000_000)).collect();
        assert_eq!(quotas, [[20, 10], [150, 100]]);
    }
}
