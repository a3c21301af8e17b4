//! Kernel group: the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kernel group: the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Kernel {
    /// The CPUs that were watched (all, or those named), together.
    pub cpu: Option<CpuShares>,
    /// Numbers of the watched CPUs.
    pub cpus: Vec<usize>,
    /// Each watched CPU that was online for the whole interval.
    pub cores: Vec<Core>,
    /// Threads that ran or waited for a CPU, whole machine, without the monitor's own.
    pub runnable: Option<u64>,
    /// Threads that waited for a disk, whole machine.
    pub blocked: Option<u64>,
    /// Context switches, whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Processes and threads started, whole machine.
    pub forks_per_s: Option<f64>,
    /// Interrupts, whole machine.
    pub interrupts: Option<Interrupts>,
    /// Traffic between memory and disks.
    pub paging: Option<Paging>,
    /// Memory.
    pub memory: Option<Memory>,
    /// All disks together; partitions are not counted separately.
    pub disk: Option<Disk>,
    /// Each disk by name, if it was present for the whole interval.
    pub disks: BTreeMap<String, Disk>,
    /// Pressure stall information: the share of time for which work waited for a resource.
    pub pressure: Option<Pressure>,
}

/// Shares of CPU time; the sum of `user`, `system`, `idle` and `steal` is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuShares {
    /// User mode, including niced threads and guests.
    pub user: f64,
    /// Kernel, including interrupts.
    pub system: f64,
    /// Idle, including waiting for disks.
    pub idle: f64,
    /// Time that the hypervisor gave to other guests.
    pub steal: f64,
    /// Part of `system`: interrupts and softirqs, which do most of TCP's receive work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<f64>,
    /// Part of `idle` in which a thread waited for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_wait: Option<f64>,
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Core {
    /// Number of the CPU.
    pub cpu: usize,
    /// How its time was used.
    #[serde(flatten)]
    pub shares: CpuShares,
}

/// Above this share of the watched CPUs, work outside the server is attributed to other programs, and measurements of
/// the server are doubtful. Interrupts and kernel threads alone can take a tenth of a loaded CPU.
pub const OTHER_WORK: f64 = 0.15;

/// Interrupts per second, whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interrupts {
    /// Interrupts of all devices, including timers.
    pub all_per_s: Option<f64>,
    /// Softirqs of the network (NET_RX and NET_TX), each caused by a device interrupt or a poll.
    pub network_per_s: Option<f64>,
    /// Softirqs of disks (BLOCK).
    pub disk_per_s: Option<f64>,
}

/// Paging per second, whole machine. A page is the machine's (4 KiB on most).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Paging {
    /// Pages read from disks, both file contents and swap.
    pub page_ins_per_s: Option<f64>,
    /// Pages written to disks, both file contents and swap.
    pub page_outs_per_s: Option<f64>,
    /// Pages read from swap.
    pub swap_ins_per_s: Option<f64>,
    /// Pages written to swap.
    pub swap_outs_per_s: Option<f64>,
    /// Page faults that had to wait for a disk.
    pub major_faults_per_s: Option<f64>,
}

/// Memory, whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Size of the memory.
    pub total_bytes: u64,
    /// Memory that programs could still allocate without swapping.
    pub available_bytes: Option<u64>,
}

/// Traffic of a disk. A block is 512 bytes, whatever the disk's own block size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disk {
    /// Read operations completed.
    pub reads_per_s: f64,
    /// Blocks read.
    pub blocks_read_per_s: f64,
    /// Write operations completed.
    pub writes_per_s: f64,
    /// Blocks written.
    pub blocks_written_per_s: f64,
    /// Share of time in which an operation was in progress; for several disks, that of the busiest.
    pub utilization: f64,
    /// Mean number of operations in progress.
    pub queue_length: f64,
}

/// Size of a block in Linux's statistics, whatever the disk's own block size.
pub const BLOCK_BYTES: u64 = 512;

/// Pressure on each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pressure {
    /// Waiting for CPUs.
    pub cpu: Option<Stall>,
    /// Waiting for memory.
    pub memory: Option<Stall>,
    /// Waiting for disks.
    pub io: Option<Stall>,
}

/// Shares of time in which threads waited for a resource (Linux's PSI, from its totals in microseconds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// At least one thread waited.
    pub some: f64,
    /// All threads that were not idle waited. Absent for CPUs, because one of the threads is always running.
    pub full: Option<f64>,
}
