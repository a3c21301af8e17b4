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
    /// Which CPUs those are.
    pub cpus: Vec<usize>,
    /// Each of them that was online all the time.
    pub cores: Vec<Core>,
    /// Threads that ran or waited for a CPU, whole machine, the monitor's own left out.
    pub runnable: Option<u64>,
    /// Threads that waited for a disk, whole machine.
    pub blocked: Option<u64>,
    /// Whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Processes and threads started, whole machine.
    pub forks_per_s: Option<f64>,
    /// Work that devices asked for.
    pub interrupts: Option<Interrupts>,
    /// Traffic between memory and disks.
    pub paging: Option<Paging>,
    /// Memory.
    pub memory: Option<Memory>,
    /// Whole disks together.
    pub disk: Option<Disk>,
    /// Each whole disk by name, if it was there all the time.
    pub disks: BTreeMap<String, Disk>,
    /// Pressure stall information: the share of time in which work waited for want of something.
    pub pressure: Option<Pressure>,
}

/// Shares of CPU time; `user`, `system`, `idle` and `steal` are together 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuShares {
    /// User mode, niced and guests included.
    pub user: f64,
    /// Kernel, interrupts included.
    pub system: f64,
    /// Idle, waiting for disks included.
    pub idle: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Part of `system`: interrupts and what they leave to do, like most of TCP's receiving side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<f64>,
    /// Part of `idle`: while a thread waited for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_wait: Option<f64>,
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Core {
    /// Its number.
    pub cpu: usize,
    /// Where its time went.
    #[serde(flatten)]
    pub shares: CpuShares,
}

/// From this share of the watched CPUs on, work that is not the server's is somebody else's: what the server then does with
/// the rest says little about it. Interrupts and the kernel's own threads alone can take a tenth of a loaded CPU.
pub const OTHER_WORK: f64 = 0.15;

/// Interrupts per second, whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interrupts {
    /// From all devices, timers included.
    pub all_per_s: Option<f64>,
    /// For the network: its softirqs (NET_RX and NET_TX), which one device interrupt or one poll may cause.
    pub network_per_s: Option<f64>,
    /// For disks: the softirq BLOCK.
    pub disk_per_s: Option<f64>,
}

/// Paging per second, whole machine. A page is the machine's (4 KiB on most).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Paging {
    /// Pages read from disks, file contents and swap.
    pub page_ins_per_s: Option<f64>,
    /// Pages written to disks, file contents and swap.
    pub page_outs_per_s: Option<f64>,
    /// Of them, from swap.
    pub swap_ins_per_s: Option<f64>,
    /// Of them, to swap.
    pub swap_outs_per_s: Option<f64>,
    /// Page faults that had to wait for a disk.
    pub major_faults_per_s: Option<f64>,
}

/// Memory, whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// All there is.
    pub total_bytes: u64,
    /// What programs could still get without swapping.
    pub available_bytes: Option<u64>,
}

/// Traffic of a disk. A block is 512 bytes, whatever the disk's own are.
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
    /// Share of time in which an operation was under way; of several disks, the busiest one's.
    pub utilization: f64,
    /// Mean number of operations under way.
    pub queue_length: f64,
}

/// Bytes of a block: Linux counts those of this size, whatever the disk's own are.
pub const BLOCK_BYTES: u64 = 512;

/// Pressure of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pressure {
    /// Of the CPUs.
    pub cpu: Option<Stall>,
    /// Of memory.
    pub memory: Option<Stall>,
    /// Of disks.
    pub io: Option<Stall>,
}

/// Shares of time (Linux's PSI, from its totals in microseconds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// Some threads waited.
    pub some: f64,
    /// All threads that had anything to do waited. Of CPUs there is no such thing, because some thread runs on them.
    pub full: Option<f64>,
}
