//! Kernel group: metrics of the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kernel group: metrics of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Kernel {
    /// Shares of the time of all watched CPUs together. All CPUs are watched unless the user names CPUs.
    pub cpu: Option<CpuShares>,
    /// Numbers of the watched CPUs.
    pub cpus: Vec<usize>,
    /// Metrics of each watched CPU that was online for the whole interval.
    pub cores: Vec<Core>,
    /// Number of threads in the whole machine that ran or waited for a CPU, excluding the monitor's own.
    pub runnable: Option<u64>,
    /// Number of threads in the whole machine that waited for a disk.
    pub blocked: Option<u64>,
    /// Context switches per second of the whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Processes and threads started per second in the whole machine.
    pub forks_per_s: Option<f64>,
    /// Interrupts of the whole machine.
    pub interrupts: Option<Interrupts>,
    /// Traffic between memory and disks.
    pub paging: Option<Paging>,
    /// Memory of the whole machine.
    pub memory: Option<Memory>,
    /// Traffic of all disks together; partitions are not counted separately.
    pub disk: Option<Disk>,
    /// Traffic of each disk, by name, if the disk was present for the whole interval.
    pub disks: BTreeMap<String, Disk>,
    /// Pressure stall information: the share of time for which work waited for a resource.
    pub pressure: Option<Pressure>,
    /// The kernel's own threads that used CPU time, by group, like `ksoftirqd`, `kswapd`, `jbd2` and `kworker`: what the
    /// kernel did outside of all processes. Their work for the server is in no program's CPU time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_threads: Option<BTreeMap<String, KernelThreads>>,
}

/// A group of the kernel's own threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KernelThreads {
    /// Number of threads at the end of the interval.
    pub threads: u64,
    /// CPU time per second of the interval: 1 is one whole CPU.
    pub cores: f64,
}

/// Shares of CPU time; the sum of `user`, `system`, `idle` and `steal` is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuShares {
    /// Share of time in user mode, including niced threads and guests.
    pub user: f64,
    /// Share of time in the kernel, including interrupts.
    pub system: f64,
    /// Share of time in which the CPUs were idle, including waiting for disks.
    pub idle: f64,
    /// Share of time that the hypervisor gave to other guests.
    pub steal: f64,
    /// Part of `system`: share of time in interrupts and softirqs, which do most of TCP's receive work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<f64>,
    /// Part of `idle`: share of time in which a thread waited for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_wait: Option<f64>,
}

/// Metrics of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Core {
    /// Number of the CPU.
    pub cpu: usize,
    /// Shares of the CPU's time.
    #[serde(flatten)]
    pub shares: CpuShares,
}

/// Largest share of the watched CPUs that work outside the server may use. Above this share, other programs are assumed
/// to run, and measurements of the server are doubtful. Interrupts and kernel threads alone can use a tenth of a loaded
/// CPU.
pub const MAX_OTHER_WORK: f64 = 0.15;

/// Interrupts per second of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interrupts {
    /// Interrupts of all devices, including timers.
    pub all_per_s: Option<f64>,
    /// Softirqs of the network (NET_RX and NET_TX), each caused by a device interrupt or a poll.
    pub network_per_s: Option<f64>,
    /// Softirqs of block devices (BLOCK).
    pub disk_per_s: Option<f64>,
}

/// Paging per second of the whole machine. The size of a page depends on the machine (usually 4 KiB).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Paging {
    /// Pages read from disks per second, both file contents and swap.
    pub page_ins_per_s: Option<f64>,
    /// Pages written to disks per second, both file contents and swap.
    pub page_outs_per_s: Option<f64>,
    /// Pages read from swap per second.
    pub swap_ins_per_s: Option<f64>,
    /// Pages written to swap per second.
    pub swap_outs_per_s: Option<f64>,
    /// Page faults per second that had to wait for a disk.
    pub major_faults_per_s: Option<f64>,
}

/// Memory of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Size of the memory, in bytes.
    pub total_bytes: u64,
    /// Memory that programs could still allocate without swapping, in bytes.
    pub available_bytes: Option<u64>,
}

/// Traffic of a disk. A block is 512 bytes, regardless of the disk's own block size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disk {
    /// Read operations completed per second.
    pub reads_per_s: f64,
    /// Blocks read per second.
    pub blocks_read_per_s: f64,
    /// Write operations completed per second.
    pub writes_per_s: f64,
    /// Blocks written per second.
    pub blocks_written_per_s: f64,
    /// Share of time in which an operation was in progress; for several disks, the share of the busiest one.
    pub utilization: f64,
    /// Mean number of operations in progress.
    pub queue_length: f64,
}

/// Size of a block in Linux's statistics, regardless of the disk's own block size.
pub const DISK_BLOCK_BYTES: u64 = 512;

/// Pressure stall information of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pressure {
    /// Shares of time spent waiting for CPUs.
    pub cpu: Option<Stall>,
    /// Shares of time spent waiting for memory.
    pub memory: Option<Stall>,
    /// Shares of time spent waiting for disks.
    pub io: Option<Stall>,
}

/// Shares of time in which threads waited for a resource (Linux's PSI, from its totals in microseconds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// Share of time in which at least one thread waited.
    pub some: f64,
    /// Share of time in which all non-idle threads waited. Absent for CPUs, because one of the threads is always
    /// running.
    pub full: Option<f64>,
}
