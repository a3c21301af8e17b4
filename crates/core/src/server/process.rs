//! Process group: metrics of the server's programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Metrics of the process group, as in one line of the group's log (`brimful watch --log`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Programs {
    /// Metrics of each of the server's programs.
    pub process: Vec<Program>,
}

/// Process group: metrics of one program, which is a set of processes with their descendants. Totals are over the
/// interval.
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
    /// Number of threads of all the program's processes.
    pub threads: Option<u64>,
    /// Number of processes that were observed to start between two samples.
    pub started: u64,
    /// Number of processes that were observed to end between two samples.
    pub ended: u64,
    /// CPU time in seconds, measured to the nanosecond. For a process that ended, this is the last value read, which is
    /// complete if its parent waited for it. The CPU time of a process is missing if it started and ended between two
    /// samples and no parent waited for it.
    pub cpu_s: f64,
    /// Part of `cpu_s` in user mode, split by the kernel's ratio of user to system time.
    pub cpu_s_user: f64,
    /// Part of `cpu_s` in the kernel, split by the kernel's ratio of user to system time.
    pub cpu_s_system: f64,
    /// CPU time per second: 1.5 is one and a half CPUs.
    pub cores: f64,
    /// Time for which the program's threads were ready and waited for a CPU, in seconds, summed over threads.
    pub run_queue_wait_s: Option<f64>,
    /// Resident memory in bytes; shared pages count once per process. The kernel updates this total in batches, so up
    /// to 96 pages (384 KiB) per process and CPU may be missing.
    pub rss_bytes: u64,
    /// `rss_bytes` as a share of the machine's memory; it may exceed 1 if processes share pages.
    pub memory_share: Option<f64>,
    /// Number of page faults that had to wait for a disk.
    pub major_faults: Option<u64>,
    /// Number of context switches, voluntary and involuntary.
    pub context_switches: Option<u64>,
    /// The CPU quota that limits the program: the quota of the program's control group or of a parent group. Of several
    /// quotas, this is the quota that throttled the program longest, or the lowest quota if none throttled the program.
    /// Left out if no quota exists or none can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuota>,
    /// Means over the interval. The members `processes`, `running`, `threads`, `rss_bytes` and `memory_share` are the
    /// values at the end of the interval.
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
    /// Mean number of threads that run or wait for a CPU (*running processes* in the same Table 2).
    pub running: f64,
    /// Mean number of threads.
    pub threads: f64,
    /// Mean resident memory in bytes.
    pub rss_bytes: f64,
    /// `rss_bytes` as a share of the machine's memory (*mem(%)* in the same Table 2).
    pub memory_share: Option<f64>,
}

/// A CPU quota of a control group, with the time for which the quota throttled the group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// Directory of the control group.
    pub group: String,
    /// The quota as a number of CPUs: 0.5 is half of one CPU.
    pub cpus: f64,
    /// Share of the periods in which the quota was exhausted, so that threads were throttled until the next period.
    pub throttled_periods: f64,
    /// Time for which threads were throttled, in seconds, summed over CPUs.
    pub throttled_s: f64,
}
