//! Process group: the server's programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Process group, as in its log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Programs {
    /// The server's programs.
    pub process: Vec<Program>,
}

/// Process group: one program, which is a set of processes with their descendants. Totals are over the interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its processes.
    pub pids: Vec<u32>,
    /// Number of its processes: *started processes* in Table 2.
    pub processes: u64,
    /// Its threads that run or wait for a CPU: *running processes* in Table 2.
    pub running: Option<u64>,
    /// Threads of all its processes.
    pub threads: Option<u64>,
    /// Processes that samples showed to have started.
    pub started: u64,
    /// Processes that samples showed to have ended.
    pub ended: u64,
    /// CPU time, by a clock of nanoseconds. For a process that ended, it is the last value read, which is complete if
    /// its parent waited for it. A process that started and ended between two samples and that no parent waited for is
    /// missing.
    pub cpu_s: f64,
    /// Part of `cpu_s` in user mode, by the kernel's ratio of user to system time.
    pub cpu_s_user: f64,
    /// Part of `cpu_s` in the kernel.
    pub cpu_s_system: f64,
    /// CPU time per second: 1.5 is one and a half CPUs.
    pub cores: f64,
    /// Time for which its threads were ready and waited for a CPU.
    pub run_queue_wait_s: Option<f64>,
    /// Resident memory; shared pages count once per process. The kernel updates this total in batches, so up to 96
    /// pages (384 KiB) per process and CPU may be missing.
    pub rss_bytes: u64,
    /// `rss_bytes` as a share of the machine's memory; more than 1 is possible where pages are shared.
    pub memory_share: Option<f64>,
    /// Page faults that had to wait for a disk.
    pub major_faults: Option<u64>,
    /// Context switches, voluntary and not.
    pub context_switches: Option<u64>,
    /// The CPU quota of its control group or of one above it. Of several quotas, it is the one that throttled it
    /// longest, or else the lowest. Left out if there is none, or if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuota>,
}

/// A CPU quota of a control group, and how often it was exhausted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// The directory of the group.
    pub group: String,
    /// The quota in CPUs: 0.5 is half of one CPU.
    pub cpus: f64,
    /// Share of the quota's periods in which it was exhausted, so that threads were throttled until the next period.
    pub throttled_periods: f64,
    /// Time for which threads were throttled, summed over CPUs.
    pub throttled_s: f64,
}
