//! Process group: the server's programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Process group, as its log has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Programs {
    /// The server's programs.
    pub process: Vec<Program>,
}

/// Process group: one program, that is processes with their descendants. Totals are over the stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its processes.
    pub pids: Vec<u32>,
    /// How many copies of it there are: Table 2's *started processes*.
    pub processes: u64,
    /// Its threads that run or wait for a CPU: Table 2's *running processes*.
    pub running: Option<u64>,
    /// Threads of all its processes.
    pub threads: Option<u64>,
    /// Processes that were found to have started.
    pub started: u64,
    /// Processes that were found to have ended.
    pub ended: u64,
    /// CPU time, nanosecond clock. Of processes that ended there is what was read last, which for those that their parent has
    /// waited for is all; what lived shorter than from one sample to the next and was never waited for is missing.
    pub cpu_s: f64,
    /// Of it, in user mode (the split is the kernel's, the sum is `cpu_s`).
    pub cpu_s_user: f64,
    /// Of it, in the kernel.
    pub cpu_s_system: f64,
    /// CPU time per time: 1.5 is one CPU and a half.
    pub cores: f64,
    /// Time that its threads were ready and waited for a CPU.
    pub run_queue_wait_s: Option<f64>,
    /// Resident memory; pages that processes share count once for each. The kernel adds up its counters of each CPU now and
    /// then: of each process up to 96 pages for each CPU (384 KiB) may be missing.
    pub rss_bytes: u64,
    /// `rss_bytes` as a share of the machine's memory; more than 1 is possible where pages are shared.
    pub memory_share: Option<f64>,
    /// Page faults that had to wait for a disk.
    pub major_faults: Option<u64>,
    /// Context switches, voluntary and not.
    pub context_switches: Option<u64>,
    /// The limit on its CPU time, of its control group or of one above it: of several, the one that stopped it for longest,
    /// or else the tightest. Left out where there is none, or none can be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuota>,
}

/// A limit on the CPU time of a control group, and how often it was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// The directory of the group.
    pub group: String,
    /// CPUs that it may have: 0.5 is half of one.
    pub cpus: f64,
    /// Share of the quota's periods in which it was used up, so that threads were stopped until the next.
    pub throttled_periods: f64,
    /// For how long; of several CPUs together.
    pub throttled_s: f64,
}
