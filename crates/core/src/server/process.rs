//! Metrics of the server's programs: the group `process` of the monitor's metrics.

use crate::JsonSchema;
use serde::{Deserialize, Serialize};

/// Metrics of the server's programs, as one line of the log of `brimful watch --log`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Programs {
    /// Metrics of each of the server's programs.
    pub process: Vec<Program>,
}

/// Metrics of one program, which is a set of processes and their descendants. Times and numbers of events are totals
/// over the interval. Memory and the numbers of processes and threads are values at the end of the interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// IDs of the program's processes.
    pub pids: Vec<u32>,
    /// Number of the program's processes at the end of the interval.
    pub processes: u64,
    /// Number of the program's threads that run or wait for a CPU, at the end of the interval.
    pub running: Option<u64>,
    /// Number of threads of the program, at the end of the interval.
    pub threads: Option<u64>,
    /// Number of processes that started during the interval. A process that started and ended between two samples is
    /// not counted.
    pub started: u64,
    /// Number of processes that ended during the interval. A process that started and ended between two samples is not
    /// counted.
    pub ended: u64,
    /// CPU time in seconds, with a resolution of a nanosecond. For a process that ended, it is the last value read, or
    /// the complete value if its parent waited for the process. A process that started and ended between two samples is
    /// included only if its parent waited for it.
    pub cpu_s: f64,
    /// Part of `cpu_s` in user mode. The kernel estimates the ratio of user to system time from clock ticks.
    pub cpu_s_user: f64,
    /// Part of `cpu_s` in the kernel. The kernel estimates the ratio of user to system time from clock ticks.
    pub cpu_s_system: f64,
    /// CPU time per second: 1.5 is one and a half CPUs.
    pub cores: f64,
    /// Time for which the program's threads were ready to run but had no CPU, in seconds, summed over threads.
    pub run_queue_wait_s: Option<f64>,
    /// Resident memory in bytes, summed over processes, so that shared pages are counted once per process. The kernel
    /// updates its counters in batches, so up to 96 pages (384 KiB) per process and CPU may be missing.
    pub rss_bytes: u64,
    /// `rss_bytes` divided by the machine's memory. It can exceed 1 if processes share pages.
    pub memory_share: Option<f64>,
    /// Number of major page faults, which had to wait for a disk.
    pub major_faults: Option<u64>,
    /// Number of context switches, voluntary and involuntary.
    pub context_switches: Option<u64>,
    /// The CPU quota of the program's control group or of one of its parent groups. If several quotas apply, it is the
    /// one that throttled the program longest, or the lowest one if none throttled the program. Left out if there is no
    /// quota or none can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuota>,
    /// Means over the samples of the interval. The fields of this structure with the same names are the values at the
    /// end of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<ProgramMeans>,
}

/// Means of a program's numbers of processes and threads and of its memory, over the samples of an interval. They
/// differ from the values at the end of the interval if the server starts and ends workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramMeans {
    /// Mean number of processes (*started processes* in Table 2 of Almeida, Almeida & Yates 1997).
    pub processes: f64,
    /// Mean number of threads that run or wait for a CPU (*running processes* in Table 2 of Almeida, Almeida & Yates
    /// 1997).
    pub running: f64,
    /// Mean number of threads of the program.
    pub threads: f64,
    /// Mean resident memory of the program in bytes.
    pub rss_bytes: f64,
    /// `rss_bytes` divided by the machine's memory (*mem(%)* in Table 2 of Almeida, Almeida & Yates 1997).
    pub memory_share: Option<f64>,
}

/// A CPU quota of a control group, and the throttling that it caused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// Directory of the control group that has the quota.
    pub group: String,
    /// The quota as a number of CPUs: 0.5 is half of one CPU.
    pub cpus: f64,
    /// Fraction of the quota's periods in which the quota was exhausted, so that threads were throttled for the rest of
    /// the period.
    pub throttled_periods: f64,
    /// Time for which threads were throttled, in seconds, summed over CPUs.
    pub throttled_s: f64,
}
