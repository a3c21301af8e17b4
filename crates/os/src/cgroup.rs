//! Reads the CPU quotas of control groups. In version 1 of control groups, each controller has its own hierarchy;
//! version 2 has a single hierarchy. Sources: cgroups(7); cgroup-v2.rst and sched-bwc.rst in the kernel's
//! documentation.

use brimful_core::Nanos;
use std::path::{Path, PathBuf};

/// Mount point of the control group file systems, relative to the root directory.
const MOUNT: &str = "sys/fs/cgroup";

/// A CPU quota: the control group may use the CPU time `time` in each `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// CPU time per period, summed over all CPUs.
    pub time: Nanos,
    /// Length of a period in wall-clock time.
    pub period: Nanos,
}

/// Counters of the throttling of a control group by its CPU quota, since the group was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Number of quota periods in which the group had work.
    pub periods: u64,
    /// Number of periods in which the group was throttled.
    pub throttled_periods: u64,
    /// Time for which the group was throttled, summed over all CPUs.
    pub throttled: Nanos,
}

/// Returns the directories, below `root`, of the control group of a process and of the group's ancestors, nearest
/// first. Each of these groups may have a CPU quota. `cgroup` is the content of `/proc/PID/cgroup`. Some of the
/// directories might be absent: in a container, the container's own group is the top of the hierarchy.
pub fn cpu_groups(root: &Path, cgroup: &str) -> Vec<PathBuf> {
    let mut groups = Vec::new();
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() || controllers.split(',').any(|controller| controller == "cpu") {
            let top = root.join(MOUNT).join(controllers);
            groups.extend(Path::new(path.trim_start_matches('/')).ancestors().map(|group| top.join(group)));
        }
    }
    groups
}

impl Quota {
    /// Reads the quota of the control group in the directory `group`. Returns `None` if the group has no quota. `read`
    /// must return the content of a file, or `None` if the file cannot be read.
    pub fn read(group: &Path, read: impl Fn(&Path) -> Option<String>) -> Option<Quota> {
        let parse_micros = |text: &str| text.trim().parse().ok().map(Nanos::from_micros);
        if let Some(max) = read(&group.join("cpu.max")) {
            let (time, period) = max.split_once(' ')?;
            return Some(Quota { time: parse_micros(time)?, period: parse_micros(period)? });
        }
        // The file contains −1 if there is no quota. Then parsing fails, because the type is unsigned.
        let time = parse_micros(&read(&group.join("cpu.cfs_quota_us"))?)?;
        let period = parse_micros(&read(&group.join("cpu.cfs_period_us"))?)?;
        Some(Quota { time, period })
    }

    /// The quota as a number of CPUs: 0.5 is half of one CPU.
    pub fn cpus(self) -> f64 {
        self.time.0 as f64 / self.period.0 as f64
    }
}

impl Throttling {
    /// Reads the throttling counters of the control group in the directory `group`. Returns `None` if the group cannot
    /// have a quota, such as the root group. `read` must return the content of a file, or `None` if the file cannot be
    /// read.
    pub fn read(group: &Path, read: impl Fn(&Path) -> Option<String>) -> Option<Throttling> {
        let stat = read(&group.join("cpu.stat"))?;
        let value = |key: &str| stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        Some(Throttling {
            periods: value("nr_periods ").unwrap_or(0),
            throttled_periods: value("nr_throttled ").unwrap_or(0),
            throttled: value("throttled_usec ")
                .map(Nanos::from_micros)
                .or_else(|| value("throttled_time ").map(Nanos))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn groups(cgroup: &str) -> Vec<String> {
        cpu_groups(Path::new("/"), cgroup).iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_groups_above_count_and_other_controllers_do_not() {
        let v2 = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"];
        assert_eq!(groups("0::/a/b\n"), v2);
        let v1 = ["/sys/fs/cgroup/cpu,cpuacct/x", "/sys/fs/cgroup/cpu,cpuacct/"];
        assert_eq!(groups("9:memory:/x\n4:cpuset:/x\n3:cpu,cpuacct:/x\n"), v1);
        assert_eq!(groups("no such line"), [""; 0]);
    }

    #[test]
    fn quotas_and_throttling_of_either_version() {
        let files = BTreeMap::from([
            ("/v2/cpu.max", "50000 100000\n"),
            ("/v2/cpu.stat", "usage_usec 9\nnr_periods 20\nnr_throttled 5\nthrottled_usec 7\n"),
            ("/free/cpu.max", "max 100000\n"),
            ("/free/cpu.stat", "usage_usec 9\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"),
            ("/top/cpu.stat", "usage_usec 9\nuser_usec 5\n"),
            ("/v1/cpu.cfs_quota_us", "25000\n"),
            ("/v1/cpu.cfs_period_us", "10000\n"),
            ("/v1/cpu.stat", "nr_periods 20\nnr_throttled 5\nthrottled_time 7000\n"),
            ("/free1/cpu.cfs_quota_us", "-1\n"),
            ("/free1/cpu.cfs_period_us", "100000\n"),
        ]);
        let read = |path: &Path| files.get(path.to_str()?).map(|text| (*text).to_owned());
        let quota = |group: &str| Quota::read(Path::new(group), read).map(Quota::cpus);
        assert_eq!(["/v2", "/free", "/v1", "/free1", "/top"].map(quota), [Some(0.5), None, Some(2.5), None, None]);
        let throttling = |group: &str| Throttling::read(Path::new(group), read);
        let both = Throttling { periods: 20, throttled_periods: 5, throttled: Nanos::from_micros(7) };
        assert_eq!([throttling("/v2"), throttling("/v1")], [Some(both); 2]);
        assert_eq!([throttling("/free"), throttling("/top")], [Some(Throttling::default()), None]);
    }
}
