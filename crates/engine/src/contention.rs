//! CPU time that the load generator did not get because the host ran other programs, enforced a quota, or lost the time
//! to the hypervisor.
//!
//! The kernel's counters are read before and after the run. A counter that the kernel does not report is unknown, never
//! zero. Sources: `/proc/stat` (proc_stat(5)), the second field of `schedstat` (sched-stats.rst of the kernel's
//! documentation), and the quotas of control groups ([`brimful_os::cgroup`]).

use brimful_core::Nanos;
use brimful_core::record::HostContention;
use brimful_os::cgroup::{Throttling, cpu_groups};
use std::fs::read_to_string;
use std::path::Path;

/// The kernel's counters of lost CPU time, as read at the beginning of the run.
#[derive(Debug)]
pub struct ContentionWatch {
    /// The CPUs that the load generator's threads are pinned to; empty if they are not pinned.
    cpus: Vec<usize>,
    ticks: Option<Ticks>,
    throttled: Option<Nanos>,
}

/// CPU time of the generator's CPUs since boot, in the kernel's clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    stolen: u64,
    all: u64,
}

impl ContentionWatch {
    /// Reads the counters before the run.
    pub fn start(cpus: &[usize]) -> ContentionWatch {
        ContentionWatch { cpus: cpus.to_vec(), ticks: read_ticks(cpus), throttled: read_throttled() }
    }

    /// Reads the counters again after the run, and returns the differences. `cpu_wait` is the longest time for which
    /// any thread of the generator waited for a CPU.
    pub fn finish(self, cpu_wait: Option<Nanos>) -> HostContention {
        let steal = self.ticks.zip(read_ticks(&self.cpus)).and_then(|(before, after)| after.share_stolen_since(before));
        let throttled = self.throttled.zip(read_throttled()).map(|(before, after)| after.0.saturating_sub(before.0));
        HostContention {
            cpu_wait_s: cpu_wait.map(Nanos::as_secs_f64),
            throttled_s: throttled.map(|ns| Nanos(ns).as_secs_f64()),
            steal,
        }
    }
}

impl Ticks {
    /// Share of the clock ticks since `before` in which the hypervisor gave the CPU to another guest (steal time);
    /// `None` if no tick has passed.
    fn share_stolen_since(self, before: Ticks) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|ticks| *ticks > 0)?;
        Some(self.stolen.saturating_sub(before.stolen) as f64 / all as f64)
    }
}

/// Time for which the calling thread was ready to run but waited for a CPU; `None` if the kernel does not report it.
pub fn thread_cpu_wait() -> Option<Nanos> {
    parse_wait(&read_to_string("/proc/thread-self/schedstat").ok()?)
}

fn parse_wait(schedstat: &str) -> Option<Nanos> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanos)
}

fn read_ticks(cpus: &[usize]) -> Option<Ticks> {
    parse_ticks(&read_to_string("/proc/stat").ok()?, cpus)
}

/// The sum of the clock ticks of these CPUs, or of all CPUs if the list is empty. `stat` is the text of `/proc/stat`.
fn parse_ticks(stat: &str, cpus: &[usize]) -> Option<Ticks> {
    let is_counted = |name: &str| match name.strip_prefix("cpu") {
        Some("") => cpus.is_empty(),
        Some(index) => index.parse().is_ok_and(|index| cpus.contains(&index)),
        None => false,
    };
    let mut sum = None;
    for line in stat.lines() {
        let mut fields = line.split_ascii_whitespace();
        if fields.next().is_some_and(is_counted) {
            // The fields are user, nice, system, idle, iowait, irq, softirq and steal. The guest times that follow are
            // included in user and nice.
            let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
            let stolen = *ticks.get(7)?;
            let Ticks { stolen: before, all } = sum.unwrap_or(Ticks { stolen: 0, all: 0 });
            sum = Some(Ticks { stolen: before + stolen, all: all + ticks.iter().sum::<u64>() });
        }
    }
    sum
}

fn read_throttled() -> Option<Nanos> {
    sum_throttled(&read_to_string("/proc/self/cgroup").ok()?, |path| read_to_string(path).ok())
}

/// The total time for which quotas stopped this process. Adds the times of its control groups, which `cgroup` (the text
/// of `/proc/self/cgroup`) names, and of their ancestors.
fn sum_throttled(cgroup: &str, read: impl Fn(&Path) -> Option<String>) -> Option<Nanos> {
    let groups = cpu_groups(Path::new("/"), cgroup);
    let all = groups.iter().filter_map(|group| Throttling::read(group, &read));
    all.map(|throttling| throttling.throttled).reduce(|a, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const STAT: &str =
        "cpu  40 0 20 100 0 0 0 40 9 9\ncpu0 30 0 10 50 0 0 0 10 9 9\ncpu1 10 0 10 50 0 0 0 30 0 0\nintr 5\n";

    #[test]
    fn stolen_time_is_counted_on_the_generators_cpus() {
        let share =
            |cpus: &[usize]| parse_ticks(STAT, cpus).unwrap().share_stolen_since(Ticks { stolen: 0, all: 0 }).unwrap();
        assert_eq!([share(&[]), share(&[0]), share(&[1]), share(&[0, 1])], [0.2, 0.1, 0.3, 0.2]);
        let before = Ticks { stolen: 38, all: 190 };
        assert_eq!(parse_ticks(STAT, &[]).unwrap().share_stolen_since(before), Some(0.2));
        assert_eq!(before.share_stolen_since(before), None, "no tick has passed");
    }

    #[test]
    fn unreported_counters_are_unknown() {
        assert_eq!(parse_ticks("cpu  40 0 20 100\n", &[]), None, "a kernel without steal");
        assert_eq!(parse_ticks(STAT, &[7]), None, "CPU 7 is missing");
        assert_eq!((parse_wait("12 345 6"), parse_wait("12"), parse_wait("")), (Some(Nanos(345)), None, None));
    }

    #[test]
    fn quotas_of_ancestors_and_of_both_versions_count() {
        let files = BTreeMap::from([
            ("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n"),
            ("/sys/fs/cgroup/a/cpu.stat", "nr_periods 2\nnr_throttled 1\nthrottled_usec 7\n"),
            ("/sys/fs/cgroup/a/b/cpu.stat", "throttled_usec 30\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/x/cpu.stat", "nr_throttled 1\nthrottled_time 5000\n"),
            ("/sys/fs/cgroup/memory/x/cpu.stat", "throttled_time 1\n"),
        ]);
        let read = |path: &Path| files.get(path.to_str()?).map(|text| (*text).to_owned());
        assert_eq!(sum_throttled("0::/a/b\n", read), Some(Nanos::from_micros(37)));
        assert_eq!(sum_throttled("9:memory:/x\n3:cpu,cpuacct:/x\n0::/\n", read), Some(Nanos::from_micros(5)));
        assert_eq!(sum_throttled("0::/elsewhere\n", read), None);
        assert_eq!(sum_throttled("", read), None);
    }

    #[test]
    fn this_host_can_be_watched() {
        let contention = ContentionWatch::start(&[]).finish(thread_cpu_wait());
        assert!(contention.steal.is_none_or(|share| (0.0..=1.0).contains(&share)), "{contention:?}");
        assert!(contention.throttled_s.is_none_or(|seconds| seconds >= 0.0), "{contention:?}");
    }
}
