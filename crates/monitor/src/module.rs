//! Server Module group: counters that servers keep of their own requests (as in WebMonitor: Almeida, Almeida & Yates
//! 1997, §3.2). A module inside the server (`server-module/`) writes counters into a file of shared memory, and the
//! monitor reads this file.
//!
//! The file belongs to another program. It is read by `pread` into a buffer and never mapped, so a truncated file
//! causes an error and no signal. At worst its contents can make metrics wrong. Writers do not stop for a reader: if
//! the counters of a worker (a slot of the file) changed while they were read, they are read again (`slots.rs`). On
//! today's machines the kernel copies a 64-bit word atomically.
//!
//! A *sample* contains each server's counters, summed over its workers. The counters of one file only grow; files are
//! identified by device, inode and creation time. If a counter fell between two samples, the server has no metrics for
//! that period.

mod buckets;
mod containers;
mod figures;
mod file;
mod find;
mod io;
pub mod layout;
mod maps;
mod slots;

pub use buckets::start_ns;
pub use containers::{ContainerServer, servers_in_containers};
pub(crate) use figures::elapsed_between;
pub use file::{ModuleFile, ModuleFileError};

use crate::MonitorError;
use crate::group::{Group, PeriodMetrics, WatchContext};
use brimful_core::Nanos;
use brimful_core::server::{Module, ModuleClass, Server, ServerInterval};
use find::ModuleWatch;
use layout::{CPU_PHASES, PHASES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The counters of all servers with the Server Module at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleSample {
    /// The servers, in the order in which they were found. If a sample is copied, both samples share the servers in
    /// memory.
    pub servers: Vec<Arc<ServerSample>>,
}

/// The counters of one server at one moment. They are totals since the server's file was created, summed over all
/// workers that ever existed; fields marked *now* are instantaneous.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSample {
    /// Device, inode and creation time of the file. Together they identify it.
    pub identity: [u64; 3],
    /// The time at which the file was read, by `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// Name of the server, as its module wrote it.
    pub name: String,
    /// The file's path.
    pub file: String,
    /// Whether requests are recorded now.
    pub enabled: bool,
    /// CPU time is measured for one in `cpu_one_in` requests on average; 0 if CPU time is not measured.
    pub cpu_one_in: u32,
    /// Maximum number of requests or connections that the server handles at a time; 0 for no limit.
    pub workers_most: u32,
    /// Number of workers that found no free slot in the file. Their requests are not recorded.
    pub lost: u32,
    /// Number of workers now.
    pub workers: u64,
    /// Number of requests in progress now.
    pub in_progress: u64,
    /// Number of connections accepted.
    pub connections: u64,
    /// Time for which workers were busy, summed over the workers.
    pub busy: Nanos,
    /// CPU time of the workers' threads, as each worker last read it.
    pub cpu: Nanos,
    /// I/O and CPU time of the server's processes, if the kernel provides them.
    pub io: Option<IoSample>,
    /// The classes of requests.
    pub classes: Vec<ClassSample>,
}

/// I/O and CPU time of a server's processes, as of their latest reading. They are not read for every sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoSample {
    /// Number of read calls since monitoring began.
    pub reads: u64,
    /// Number of bytes read from disks since monitoring began.
    pub read_bytes: u64,
    /// CPU time in user mode since monitoring began. The kernel counts whole clock ticks, by the mode in which the CPU
    /// runs at each tick. So the split into user mode and kernel is meaningful only after many ticks.
    pub user: Nanos,
    /// CPU time in the kernel since monitoring began.
    pub system: Nanos,
    /// Length of a clock tick, the resolution of the kernel's CPU times of a process.
    pub tick: Nanos,
    /// Number of the server's processes when they were last read.
    pub processes: u64,
    /// Number of requests of all classes that the server had recorded when its processes were last read.
    pub requests: u64,
}

/// The requests of one class since the server's file was created. Times are in nanoseconds, squares of times in square
/// microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassSample {
    /// Name of the class.
    pub name: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of bytes of response bodies.
    pub bytes: u64,
    /// Number of requests with a 5xx response.
    pub failed: u64,
    /// Number of requests that the client abandoned.
    pub aborted: u64,
    /// Number of times that a worker resumed a request that had waited for its client or an upstream server.
    pub resumed: u64,
    /// Number of requests whose CPU time was measured (sampled requests).
    pub cpu_count: u64,
    /// CPU time of the sampled requests in each phase (parse, process, log), in nanoseconds.
    pub cpu_ns: [u64; CPU_PHASES],
    /// Sum over the sampled requests of the square of each request's CPU time, in square microseconds.
    pub cpu_sum_us2: u64,
    /// Number of sampled requests whose thread also worked on other requests, so that their CPU times are mixed.
    pub cpu_mixed: u64,
    /// Number of sampled requests for which disk blocks were counted.
    pub blocks_count: u64,
    /// Blocks of 512 bytes that threads read from disks during the requests in `blocks_count`.
    pub blocks_read: u64,
    /// Blocks of 512 bytes that threads wrote into the page cache during the requests in `blocks_count`.
    pub blocks_written: u64,
    /// Times that requests took in each phase: head, parse, process, upstream, send, log.
    pub times: [TimesSample; PHASES],
}

/// The times that requests took in one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimesSample {
    /// Number of requests that went through the phase.
    pub count: u64,
    /// Sum of the times that requests spent in the phase, in nanoseconds.
    pub sum_ns: u64,
    /// Sum of the squares of the times that requests spent in the phase, in square microseconds.
    pub sum_us2: u64,
    /// Histogram of the times: index and count of each bucket that is not empty. See [`start_ns`] for the bounds.
    pub buckets: Vec<(u8, u64)>,
}

impl ServerSample {
    /// The number of requests of all classes.
    pub fn requests(&self) -> u64 {
        self.classes.iter().fold(0, |sum, class| sum.saturating_add(class.requests))
    }
}

/// The group of metrics `module`, from the Server Module of the watched servers.
pub enum ModuleGroup {}

impl Group for ModuleGroup {
    type Watch = ModuleWatch;
    type Sample = ModuleSample;
    type Metrics = Module;

    fn open(site: &mut WatchContext<'_>) -> Result<Option<ModuleWatch>, MonitorError> {
        let why = match (site.processes.is_empty(), site.finds_processes) {
            (true, _) => Some("no process was named"),
            (false, false) => Some(
                "it is the group `process` that finds the server's processes: add it to --groups, or name the file with \
                 --module",
            ),
            (false, true) => None,
        };
        if let Some(why) = why.filter(|_| site.modules.is_empty()) {
            site.mark_absent("module", why);
            return Ok(None);
        }
        ModuleWatch::open(site.root, site.modules).map(Some)
    }

    fn read(watch: &mut ModuleWatch, buffer: &mut Vec<u8>) -> ModuleSample {
        watch.read(buffer)
    }

    fn sources(watch: &ModuleWatch, sources: &mut BTreeMap<String, String>) {
        sources.insert("module".to_owned(), watch.source());
    }

    fn since(earlier: &ModuleSample, later: &ModuleSample, _: Nanos) -> Module {
        figures::over(&[earlier, later])
    }

    fn over(samples: &[&ModuleSample], _: Nanos) -> Module {
        figures::over(samples)
    }

    fn put(period: PeriodMetrics<Module>, _: &[&ModuleSample], length: Nanos, server: &mut Server) {
        let seen = period.length().as_secs_f64();
        let factor = if seen > 0.0 { length.as_secs_f64() / seen } else { 1.0 };
        let Module { servers, classes } = period.metrics;
        let classes = classes.into_iter().map(|class| scaled(class, factor)).collect();
        server.module = Some(Module { servers, classes });
    }

    fn put_interval(period: &PeriodMetrics<Module>, _: &ModuleSample, interval: &mut ServerInterval) {
        let servers = &period.metrics.servers;
        if !servers.is_empty() {
            interval.requests_per_s = Some(servers.iter().map(|server| server.requests_per_s).sum());
            interval.workers_busy = servers.iter().map(|server| server.workers_busy).sum();
        }
    }
}

/// Scales the totals of a period to a period of another length. The number of sampled requests is not scaled, because
/// means and their uncertainty are computed from it.
fn scaled(class: ModuleClass, factor: f64) -> ModuleClass {
    let count = |n: u64| (n as f64 * factor).round() as u64;
    ModuleClass { requests: count(class.requests), failed: count(class.failed), aborted: count(class.aborted), ..class }
}
