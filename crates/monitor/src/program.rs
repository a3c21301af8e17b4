//! The counters of a program (the processes of a server or of another service), and the metrics between two readings of
//! these counters.

use crate::counter::TimeSpan;
use crate::quota::QuotaSample;
use brimful_core::Nanos;
use brimful_core::server::{CpuQuota, Program, ProgramMeans};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The counters of one program at one moment. They are totals since monitoring began; fields marked *now* are
/// instantaneous. A field is `None` if the source does not provide it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramSample {
    /// Name of the program.
    pub name: Arc<str>,
    /// Whether this sample contains the metrics of the program's processes.
    pub membership: Membership,
    /// Pids of the program's processes now. Consecutive samples share the list while it does not change.
    pub pids: Arc<[u32]>,
    /// Number of the program's threads now.
    pub threads: u64,
    /// Number of the program's threads that run or wait for a CPU now.
    pub running: u64,
    /// Number of processes that started since monitoring began.
    pub started: u64,
    /// Number of processes that ended since monitoring began.
    pub ended: u64,
    /// CPU time of all processes of the program, including processes that ended.
    pub cpu: CpuTime,
    /// Time for which threads were ready to run but waited for a CPU.
    pub run_queue_wait: Option<Nanos>,
    /// Resident memory now, in bytes. A page that several processes share counts once for each process.
    pub rss_bytes: u64,
    /// Memory of the machine, in bytes.
    pub memory_bytes: Option<u64>,
    /// Number of page faults that waited for a disk.
    pub major_faults: u64,
    /// Number of context switches, voluntary and involuntary.
    pub context_switches: Option<u64>,
    /// Quotas of the control groups that the processes are in.
    pub quotas: Vec<QuotaSample>,
}

/// Whether a sample contains the metrics of a program's processes, and if not, the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Membership {
    /// The sample contains the metrics of this program's processes.
    #[default]
    Own,
    /// Another watched program has the same processes, for example because one server listens on two ports. Only the
    /// sample of that other program contains the metrics.
    Shared,
    /// The sample contains no metrics, because the program has processes that this user may not inspect.
    Hidden,
}

/// CPU time. Only differences between two values are meaningful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Time in user mode and in the kernel together.
    pub total: Nanos,
    /// Time in user mode.
    pub user: Nanos,
}

impl ProgramSample {
    /// Computes the metrics of the period since an earlier sample; `over` is the length of this period.
    pub(crate) fn since(&self, earlier: &ProgramSample, over: Nanos) -> Program {
        let used = self.cpu.minus(earlier.cpu);
        let switches = |now: u64, before: u64| now.saturating_sub(before);
        Program {
            name: self.name.to_string(),
            pids: self.pids.to_vec(),
            processes: self.pids.len() as u64,
            running: Some(self.running),
            threads: Some(self.threads),
            started: self.started.saturating_sub(earlier.started),
            ended: self.ended.saturating_sub(earlier.ended),
            cpu_s: used.total.as_secs_f64(),
            cpu_s_user: used.user.as_secs_f64(),
            cpu_s_system: (used.total - used.user).as_secs_f64(),
            cores: TimeSpan(over).share(Nanos::ZERO, used.total).unwrap_or_default(),
            run_queue_wait_s: self
                .run_queue_wait
                .zip(earlier.run_queue_wait)
                .map(|(now, was)| (now - was).as_secs_f64()),
            rss_bytes: self.rss_bytes,
            memory_share: self.memory_bytes.filter(|&all| all > 0).map(|all| self.rss_bytes as f64 / all as f64),
            major_faults: Some(self.major_faults.saturating_sub(earlier.major_faults)),
            context_switches: self.context_switches.zip(earlier.context_switches).map(|(now, was)| switches(now, was)),
            quota: self.quota_since(earlier),
            mean: means([earlier, self].into_iter()),
        }
    }

    /// The quota that throttled the program for the longest time. If no quota throttled it, the smallest quota.
    fn quota_since(&self, earlier: &ProgramSample) -> Option<CpuQuota> {
        let quota = |now: &QuotaSample| {
            // A quota that is new since the earlier sample has no earlier counters, so its throttling is not counted
            // yet.
            let was = earlier.quotas.iter().find(|was| was.group == now.group).unwrap_or(now);
            let periods = now.periods.saturating_sub(was.periods);
            let throttled = now.throttled_periods.saturating_sub(was.throttled_periods);
            CpuQuota {
                group: now.group.to_string(),
                cpus: now.quota.0 as f64 / now.period.0 as f64,
                throttled_periods: if periods > 0 { throttled as f64 / periods as f64 } else { 0.0 },
                throttled_s: (now.throttled - was.throttled).as_secs_f64(),
            }
        };
        let worse =
            |a: &CpuQuota, b: &CpuQuota| a.throttled_s.total_cmp(&b.throttled_s).then(b.cpus.total_cmp(&a.cpus));
        self.quotas.iter().filter(|quota| quota.period > Nanos::ZERO).map(quota).max_by(worse)
    }
}

/// Means over a run's samples, which were taken at constant intervals; `None` without samples.
pub(crate) fn means<'s>(samples: impl Iterator<Item = &'s ProgramSample>) -> Option<ProgramMeans> {
    let samples: Vec<&ProgramSample> = samples.collect();
    let memory_bytes = samples.last()?.memory_bytes.filter(|&all| all > 0);
    let mean = |figure: fn(&ProgramSample) -> u64| {
        samples.iter().map(|sample| figure(sample) as f64).sum::<f64>() / samples.len() as f64
    };
    let rss_bytes = mean(|sample| sample.rss_bytes);
    Some(ProgramMeans {
        processes: mean(|sample| sample.pids.len() as u64),
        running: mean(|sample| sample.running),
        threads: mean(|sample| sample.threads),
        rss_bytes,
        memory_share: memory_bytes.map(|all| rss_bytes / all as f64),
    })
}

impl CpuTime {
    /// The sum of two CPU times.
    pub(crate) fn plus(self, other: CpuTime) -> CpuTime {
        CpuTime { total: self.total + other.total, user: self.user + other.user }
    }

    /// CPU time between an earlier reading and this reading. It is never negative, and the time in user mode never
    /// exceeds the total.
    pub fn minus(self, earlier: CpuTime) -> CpuTime {
        let total = self.total - earlier.total;
        CpuTime { total, user: (self.user - earlier.user).min(total) }
    }

    /// The larger of two values, separately for the total and for user mode.
    pub(crate) fn max(self, other: CpuTime) -> CpuTime {
        CpuTime { total: self.total.max(other.total), user: self.user.max(other.user) }
    }

    /// Splits a total into user mode and kernel, in the proportion of the kernel's two counters. These may be coarse.
    /// If both counters are still zero, the total counts as user mode.
    pub(crate) fn split(total: Nanos, user: Nanos, system: Nanos) -> CpuTime {
        let share = match (user + system).0 {
            0 => 1.0,
            sum => user.0 as f64 / sum as f64,
        };
        CpuTime { total, user: Nanos((total.0 as f64 * share) as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Group;
    use crate::process::ProcessGroup;

    #[test]
    fn figures_are_what_happened_between_two_samples() {
        let used = |ms| CpuTime { total: Nanos::from_millis(ms), user: Nanos::from_millis(ms) };
        let mut before = ProgramSample {
            pids: [1].into(),
            cpu: used(100),
            run_queue_wait: Some(Nanos::from_millis(40)),
            context_switches: Some(7),
            major_faults: 9,
            ..ProgramSample::default()
        };
        let mut now = ProgramSample {
            pids: [1, 2].into(),
            threads: 4,
            running: 2,
            started: 1,
            cpu: used(600),
            run_queue_wait: Some(Nanos::from_millis(540)),
            context_switches: Some(507),
            major_faults: 509,
            rss_bytes: 6,
            memory_bytes: Some(60),
            ..before.clone()
        };
        let process = now.since(&before, Nanos::from_secs(1));
        assert_eq!((process.processes, process.started, process.ended), (2, 1, 0));
        assert_eq!((process.threads, process.running, process.memory_share), (Some(4), Some(2), Some(0.1)));
        assert!((process.cpu_s - 0.5).abs() < 1e-9 && (process.cores - 0.5).abs() < 1e-9, "{process:?}");
        assert_eq!((process.run_queue_wait_s, process.major_faults), (Some(0.5), Some(500)));
        assert_eq!(process.context_switches, Some(500));
        (before.run_queue_wait, now.context_switches, now.memory_bytes) = (None, None, None);
        let process = now.since(&before, Nanos::from_secs(1));
        assert_eq!((process.run_queue_wait_s, process.context_switches, process.memory_share), (None, None, None));
    }

    #[test]
    fn processes_and_memory_are_the_mean_over_the_interval() {
        let sample = |processes: u32| ProgramSample {
            pids: (0..processes).collect(),
            threads: u64::from(2 * processes),
            running: u64::from(processes / 2),
            rss_bytes: 100 * u64::from(processes),
            memory_bytes: Some(10_000),
            ..ProgramSample::default()
        };
        let samples: Vec<Vec<ProgramSample>> = [1, 1, 1, 33, 33, 33].map(|processes| vec![sample(processes)]).into();
        let samples: Vec<&Vec<ProgramSample>> = samples.iter().collect();
        let figures = <ProcessGroup as Group>::over(&samples, Nanos::from_secs(5));
        let mean = figures.process[0].mean.unwrap();
        assert_eq!((mean.processes, mean.threads, mean.running), (17.0, 34.0, 8.0));
        assert_eq!((mean.rss_bytes, mean.memory_share), (1_700.0, Some(0.17)));
        assert_eq!(figures.process[0].processes, 33);
    }

    #[test]
    fn of_several_quotas_the_one_counts_that_stopped_the_program_for_longest() {
        let quota = |group: &str, cpus: u64, periods, throttled_periods, ms| QuotaSample {
            group: group.into(),
            quota: Nanos::from_millis(10 * cpus),
            period: Nanos::from_millis(10),
            periods,
            throttled_periods,
            throttled: Nanos::from_millis(ms),
        };
        let sample = |quotas: &[QuotaSample]| ProgramSample { quotas: quotas.to_vec(), ..ProgramSample::default() };
        let before = sample(&[quota("wide", 4, 100, 10, 50), quota("tight", 1, 100, 10, 900)]);
        let since = |quotas: &[QuotaSample]| sample(quotas).since(&before, Nanos::from_secs(1)).quota;
        let stopped = since(&[quota("wide", 4, 200, 35, 300), quota("tight", 1, 200, 10, 900)]).unwrap();
        assert_eq!((&*stopped.group, stopped.cpus, stopped.throttled_periods), ("wide", 4.0, 0.25));
        assert!((stopped.throttled_s - 0.25).abs() < 1e-9);
        let none_did = since(&[quota("wide", 4, 200, 10, 50), quota("tight", 1, 200, 10, 900)]).unwrap();
        assert_eq!((&*none_did.group, none_did.throttled_s), ("tight", 0.0));
        assert_eq!(
            since(&[quota("new", 2, 50, 40, 70)]).unwrap().throttled_s,
            0.0,
            "a group's counters from before it had a quota do not count"
        );
        assert_eq!(since(&[]), None);
    }
}
