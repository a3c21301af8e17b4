//! The kernel group of metrics: CPUs, memory and disks of the whole machine.

use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kernel group of metrics: CPUs, memory and disks of the whole machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Kernel {
    /// Shares of time of all watched CPUs together, by kind of work. All CPUs are watched unless the user selects some.
    pub cpu: Option<CpuShares>,
    /// Numbers of the CPUs that the monitor watches.
    pub cpus: Vec<usize>,
    /// Metrics of each watched CPU that was online for the whole interval.
    pub cores: Vec<Core>,
    /// Number of threads on the whole machine that ran or waited for a CPU, excluding the monitor's own threads.
    pub runnable: Option<u64>,
    /// Number of threads on the whole machine that waited for disk I/O.
    pub blocked: Option<u64>,
    /// Context switches per second on the whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Processes and threads started per second on the whole machine.
    pub forks_per_s: Option<f64>,
    /// Interrupts per second on the whole machine.
    pub interrupts: Option<Interrupts>,
    /// Pages moved between memory and disks.
    pub paging: Option<Paging>,
    /// Memory of the whole machine.
    pub memory: Option<Memory>,
    /// Traffic of all disks together. Partitions are not counted in addition to their disks.
    pub disk: Option<Disk>,
    /// Traffic of each disk, by name. Only disks that were present for the whole interval are included.
    pub disks: BTreeMap<String, Disk>,
    /// Pressure stall information (PSI): the share of time for which threads waited for a resource.
    pub pressure: Option<Pressure>,
    /// Kernel threads that used CPU time, by group, like `ksoftirqd`, `kswapd`, `jbd2` and `kworker`. They also work
    /// for the server, but their CPU time is not included in that of the server's programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_threads: Option<BTreeMap<String, KernelThreads>>,
}

/// Number and CPU time of a group of kernel threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KernelThreads {
    /// Number of threads at the end of the interval.
    pub threads: u64,
    /// CPU time per second: 1 is one whole CPU.
    pub cores: f64,
}

/// Shares of CPU time by kind of work; the sum of `user`, `system`, `idle` and `steal` is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuShares {
    /// Share of time in user mode, including threads with low priority (nice) and guests of virtual machines.
    pub user: f64,
    /// Share of time in the kernel, including interrupts.
    pub system: f64,
    /// Share of time in which the CPUs were idle, including idle time during disk I/O.
    pub idle: f64,
    /// Share of time for which the hypervisor ran other guests (steal time).
    pub steal: f64,
    /// Part of `system`: share of time in interrupts and softirqs, which do most of the receive work of TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<f64>,
    /// Part of `idle`: share of time in which the CPU was idle while a thread waited for disk I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_wait: Option<f64>,
}

/// Metrics of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Core {
    /// Number of the CPU, from 0.
    pub cpu: usize,
    /// Shares of this CPU's time, by kind of work.
    #[serde(flatten)]
    pub shares: CpuShares,
}

/// Limit of the share of the watched CPUs' time that may be used by work other than the server's processes. Above this
/// limit, other programs are probably running, and measurements of the server are doubtful. Interrupts and kernel
/// threads alone can use 10 % of a loaded CPU, so the limit is higher.
pub const MAX_OTHER_WORK: f64 = 0.15;

/// Interrupts and softirqs per second on the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interrupts {
    /// Interrupts of all devices, including timers.
    pub all_per_s: Option<f64>,
    /// Softirqs of the network (NET_RX and NET_TX), which process the packets after a device interrupt or a poll.
    pub network_per_s: Option<f64>,
    /// Softirqs of block devices (BLOCK), which complete disk operations.
    pub disk_per_s: Option<f64>,
}

/// Pages moved between memory and disks, per second, on the whole machine. A page is usually 4 KiB; its size depends on
/// the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Paging {
    /// Pages read from disks per second: file contents and swapped memory.
    pub page_ins_per_s: Option<f64>,
    /// Pages written to disks per second: file contents and swapped memory.
    pub page_outs_per_s: Option<f64>,
    /// Pages read from swap per second.
    pub swap_ins_per_s: Option<f64>,
    /// Pages written to swap per second.
    pub swap_outs_per_s: Option<f64>,
    /// Major page faults per second, which had to wait for a disk.
    pub major_faults_per_s: Option<f64>,
}

/// Memory of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Total physical memory, in bytes.
    pub total_bytes: u64,
    /// Memory that programs could still allocate without swapping, in bytes.
    pub available_bytes: Option<u64>,
}

/// Traffic of a disk. A block is 512 bytes, regardless of the disk's own block size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disk {
    /// Number of read operations that the disk completes per second.
    pub reads_per_s: f64,
    /// Blocks of 512 bytes read from the disk per second.
    pub blocks_read_per_s: f64,
    /// Number of write operations that the disk completes per second.
    pub writes_per_s: f64,
    /// Blocks of 512 bytes written to the disk per second.
    pub blocks_written_per_s: f64,
    /// Share of time in which an operation was in progress. For several disks together, the share of the busiest disk.
    pub utilization: f64,
    /// Mean number of operations in progress or waiting.
    pub queue_length: f64,
}

/// Size in bytes of a block in Linux's disk statistics, regardless of the disk's own block size.
pub const DISK_BLOCK_BYTES: u64 = 512;

/// Pressure stall information (PSI) of CPUs, memory and disks.
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

/// Shares of time in which threads waited for a resource, from the totals of Linux's pressure stall information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// Share of time in which at least one thread was waiting for the resource.
    pub some: f64,
    /// Share of time in which all threads that had work were waiting for the resource. Absent for CPUs, because some
    /// thread is always running.
    pub full: Option<f64>,
}
