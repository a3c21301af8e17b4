//! Kernel group: the metrics of the whole machine.
//!
//! Every file stays open. If a file is missing, its metrics are `None`, and each sample tries again to open the file.
//! Rates are per second of `CLOCK_MONOTONIC`. Like the counters, this clock stops while the machine is suspended. So a
//! night of suspension does not count as idle time. A late sample lengthens the period instead of raising the rate.

mod cpu;
mod disk;
mod memory;
mod pressure;
pub(crate) mod stat;
mod threads;

pub use disk::DiskSample;
pub use memory::PagingSample;
pub use pressure::{PressureSample, StallSample};
pub use stat::{CpuTicks, SoftirqSample};
pub use threads::ThreadGroupSample;

use crate::MonitorError;
use crate::counter::TimeSpan;
use crate::group::{Group, PeriodMetrics, WatchContext};
use crate::procfs::{ProcFile, ReopenedFile};
use brimful_core::Nanos;
use brimful_core::cpus::CpuList;
use brimful_core::server::{Interrupts, Kernel, Memory, Server, ServerInterval};
use disk::DiskWatch;
use pressure::PressureWatch;
use serde::{Deserialize, Serialize};
use stat::SystemStat;
use std::collections::BTreeMap;
use std::path::Path;
use threads::{ThreadGroups, ThreadsWatch};

/// The whole machine at one moment. Counters start at boot. A field is `None` if the kernel does not provide it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelSample {
    /// CPU time of each watched CPU that is online, by CPU number.
    pub cpus: BTreeMap<usize, CpuTicks>,
    /// Number of threads that run or wait for a CPU, without this monitor's thread.
    pub runnable: Option<u64>,
    /// Number of threads that wait for a disk.
    pub blocked: Option<u64>,
    /// Number of context switches.
    pub context_switches: Option<u64>,
    /// Number of processes and threads started.
    pub forks: Option<u64>,
    /// Number of interrupts from all devices.
    pub interrupts: Option<u64>,
    /// Number of softirqs.
    pub softirqs: Option<SoftirqSample>,
    /// Traffic between memory and disks.
    pub paging: Option<PagingSample>,
    /// Total memory and available memory.
    pub memory: Option<Memory>,
    /// The counters of each whole disk, by name.
    pub disks: Option<BTreeMap<String, DiskSample>>,
    /// Time in which threads waited for CPUs, memory or disks (pressure stall information).
    pub pressure: PressureSample,
    /// CPU time of the kernel's own threads, by group of threads, such as `ksoftirqd`.
    pub threads: Option<ThreadGroups>,
}

/// The group of metrics `kernel`, which are about the whole machine.
pub enum KernelGroup {}

/// Reads samples of the machine.
#[derive(Debug)]
pub struct KernelWatch {
    /// The CPUs to watch; all CPUs if empty.
    cpus: Vec<usize>,
    /// Whether any of the watched CPUs was online at the last reading.
    online: bool,
    softirqs: bool,
    available: bool,
    stat: ReopenedFile,
    vmstat: ReopenedFile,
    meminfo: ReopenedFile,
    disks: DiskWatch,
    pressure: PressureWatch,
    threads: ThreadsWatch,
}

impl Group for KernelGroup {
    type Watch = KernelWatch;
    type Sample = KernelSample;
    type Metrics = Kernel;

    fn open(site: &mut WatchContext<'_>) -> Result<Option<KernelWatch>, MonitorError> {
        KernelWatch::open(site.root, site.cpus).map(Some)
    }

    fn read(watch: &mut KernelWatch, buffer: &mut Vec<u8>) -> KernelSample {
        watch.read(buffer)
    }

    fn sources(watch: &KernelWatch, sources: &mut BTreeMap<String, String>) {
        watch.sources(sources);
    }

    fn since(earlier: &KernelSample, later: &KernelSample, over: Nanos) -> Kernel {
        later.since(earlier, over)
    }

    fn put(period: PeriodMetrics<Kernel>, _: &[&KernelSample], _: Nanos, server: &mut Server) {
        server.kernel = period.metrics;
    }

    fn put_interval(
        PeriodMetrics { metrics, .. }: &PeriodMetrics<Kernel>,
        _: &KernelSample,
        interval: &mut ServerInterval,
    ) {
        interval.cpu = metrics.cpu;
        interval.context_switches_per_s = metrics.context_switches_per_s;
        interval.disk_utilization = metrics.disk.map(|disk| disk.utilization);
    }
}

impl KernelWatch {
    /// Opens the files. `root` contains /proc and /sys. `cpus` are the CPUs whose shares are averaged; all CPUs if
    /// empty.
    pub fn open(root: &Path, cpus: &[usize]) -> Result<KernelWatch, MonitorError> {
        let proc = root.join("proc");
        // Without this file, the machine cannot be watched.
        ProcFile::open(&proc.join("stat"))?;
        Ok(KernelWatch {
            cpus: cpus.to_vec(),
            online: false,
            softirqs: false,
            available: false,
            stat: ReopenedFile::new(proc.join("stat")),
            vmstat: ReopenedFile::new(proc.join("vmstat")),
            meminfo: ReopenedFile::new(proc.join("meminfo")),
            disks: DiskWatch::new(root),
            pressure: PressureWatch::new(&proc),
            threads: ThreadsWatch::new(&proc),
        })
    }

    /// Reads a sample. `buffer` is scratch space for the contents of files.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> KernelSample {
        let wanted = |cpu: &usize| self.cpus.is_empty() || self.cpus.contains(cpu);
        let stat = self.stat.read(buffer, |text| {
            Some((SystemStat::parse(text), stat::cores(text).filter(|(cpu, _)| wanted(cpu)).collect()))
        });
        let (stat, cpus): (SystemStat, BTreeMap<_, _>) = stat.unwrap_or_default();
        let page_bytes = rustix::param::page_size() as u64;
        let memory = self.meminfo.read(buffer, memory::memory);
        self.online = !cpus.is_empty();
        self.softirqs = stat.softirqs.is_some();
        self.available = memory.is_some_and(|memory| memory.available_bytes.is_some());
        KernelSample {
            cpus,
            runnable: stat.running.map(|running| running.saturating_sub(1)),
            blocked: stat.blocked,
            context_switches: stat.context_switches,
            forks: stat.forks,
            interrupts: stat.interrupts,
            softirqs: stat.softirqs,
            paging: self.vmstat.read(buffer, |text| PagingSample::parse(text, page_bytes)),
            memory,
            disks: self.disks.read(buffer),
            pressure: self.pressure.read(buffer),
            threads: self.threads.read(buffer),
        }
    }

    /// Adds to `sources`, for each kind of metrics, its source or the reason why the metrics are absent.
    pub fn sources(&self, sources: &mut BTreeMap<String, String>) {
        let unreadable = |file| format!("none: {file} cannot be read: mount /proc, or leave the sandbox that hides it");
        let cpus = CpuList::from(self.cpus.as_slice());
        let cpu = match (self.stat.was_parsed(), self.online, self.cpus.first()) {
            (false, ..) => unreadable("/proc/stat"),
            (_, true, None) => "/proc/stat, all CPUs".to_owned(),
            (_, true, Some(_)) => format!("/proc/stat, CPUs {cpus}"),
            (_, false, None) => "none: /proc/stat lists no CPU: run outside the sandbox that writes it".to_owned(),
            (_, false, Some(cpu)) => {
                format!("none: CPUs {cpus} are offline: echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online")
            }
        };
        let interrupts = match (self.stat.was_parsed(), self.softirqs) {
            (false, _) => unreadable("/proc/stat"),
            (_, true) => "/proc/stat: intr; network and disk: softirqs".to_owned(),
            (_, false) => "/proc/stat: intr; network and disk: none: this kernel does not count softirqs".to_owned(),
        };
        let paging = match self.vmstat.was_parsed() {
            true => "/proc/vmstat".to_owned(),
            false => {
                "none: /proc/vmstat has no events: it takes a kernel built with CONFIG_VM_EVENT_COUNTERS".to_owned()
            }
        };
        let memory = match (self.meminfo.was_parsed(), self.available) {
            (false, _) => unreadable("/proc/meminfo"),
            (_, true) => "/proc/meminfo".to_owned(),
            (_, false) => "/proc/meminfo; available: none: it takes Linux 3.14 or later".to_owned(),
        };
        let all = [
            ("cpu", cpu),
            ("interrupts", interrupts),
            ("paging", paging),
            ("memory", memory),
            ("disk", self.disks.source()),
            ("pressure", self.pressure.source().to_owned()),
            ("kernel threads", self.threads.source().to_owned()),
        ];
        sources.extend(all.map(|(kind, source)| (kind.to_owned(), source)));
    }
}

impl KernelSample {
    /// Computes the metrics of the period since an earlier sample; `over` is the length of this period.
    pub(crate) fn since(&self, earlier: &KernelSample, over: Nanos) -> Kernel {
        let over = TimeSpan(over);
        let (cpus, cpu, cores) = cpu::since(&earlier.cpus, &self.cpus);
        let disks = earlier.disks.as_ref().zip(self.disks.as_ref());
        let threads = earlier.threads.as_ref().zip(self.threads.as_ref());
        let (disk, disks) = disks.map(|(from, to)| disk::since(from, to, over)).unwrap_or_default();
        Kernel {
            cpu,
            cpus,
            cores,
            runnable: self.runnable,
            blocked: self.blocked,
            context_switches_per_s: over.optional_per_s(earlier.context_switches, self.context_switches),
            forks_per_s: over.optional_per_s(earlier.forks, self.forks),
            interrupts: self.interrupts(earlier, over),
            paging: earlier.paging.zip(self.paging).map(|(from, to)| to.since(&from, over)),
            memory: self.memory,
            disk,
            disks,
            pressure: self.pressure.since(&earlier.pressure, over),
            kernel_threads: threads.map(|(from, to)| threads::since(from, to, over)),
        }
    }

    fn interrupts(&self, earlier: &KernelSample, over: TimeSpan) -> Option<Interrupts> {
        let softirqs = earlier.softirqs.zip(self.softirqs);
        let interrupts = Interrupts {
            all_per_s: over.optional_per_s(earlier.interrupts, self.interrupts),
            network_per_s: softirqs.and_then(|(from, to)| over.per_s(from.network, to.network)),
            disk_per_s: softirqs.and_then(|(from, to)| over.per_s(from.disk, to.disk)),
        };
        (interrupts != Interrupts::default()).then_some(interrupts)
    }
}

#[cfg(test)]
mod tests;
