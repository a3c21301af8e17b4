//! Server Module group: what servers say of their own requests (WebMonitor, Almeida, Almeida & Yates 1997, §3.2). A
//! module inside the server (`server-module/`) writes counters into a file of shared memory, and this reads them.
//!
//! The file is somebody else's: it is read by `pread` into a buffer of our own and never mapped, so that one that is
//! cut short is an error and no signal. Whatever is in it makes figures wrong at worst. Its writers do not stop for a
//! reader: a slot that changed while it was read is read again (`slots`). A word of 64 bits is copied whole by the kernels
//! of today's machines.
//!
//! A *sample* holds each server's counters, summed over its workers. Counters only grow as long as the file is the
//! same; files are told apart by device, inode and the time at which they were made. Those of which a counter fell have
//! no figures for that stretch.

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
use crate::group::{Group, Stretch, WatchContext};
use brimful_core::Nanos;
use brimful_core::server::{Module, ModuleClass, Server, ServerInterval};
use find::ModuleWatch;
use layout::{CPUS, PHASES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All servers that have the module at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleSample {
    /// In the order in which they were found. Samples share what they have in common with their copies.
    pub servers: Vec<Arc<ServerSample>>,
}

/// One server at one moment: counters since its file was made, summed over all who ever worked for it, except where it
/// says *now*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSample {
    /// Device, inode and the time at which the file was made: tell it from others.
    pub identity: [u64; 3],
    /// `CLOCK_MONOTONIC` when it was read.
    pub at: Nanos,
    /// What the server calls itself.
    pub name: String,
    /// The file.
    pub file: String,
    /// Whether requests are recorded now.
    pub enabled: bool,
    /// CPU time is measured of one request in so many; 0 of none.
    pub cpu_one_in: u32,
    /// How many requests or connections it works on at a time at most; 0 without such a limit.
    pub workers_most: u32,
    /// Workers that found no place in the file.
    pub lost: u32,
    /// Workers now.
    pub workers: u64,
    /// Requests now.
    pub in_progress: u64,
    /// Connections accepted.
    pub connections: u64,
    /// How long workers were busy, together.
    pub busy: Nanos,
    /// CPU time of the workers' threads, as last read by each.
    pub cpu: Nanos,
    /// What its processes read and used, if the kernel tells.
    pub io: Option<IoSample>,
    /// Each class.
    pub classes: Vec<ClassSample>,
}

/// What a server's processes had read and used when that was looked at last, which is not at every sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoSample {
    /// Read calls since the watch began.
    pub reads: u64,
    /// Bytes read from disks since the watch began.
    pub read_bytes: u64,
    /// CPU time since the watch began, outside the kernel. How it is split the kernel knows by what it finds running when
    /// its clock ticks, so that a split is of many ticks or of none.
    pub user: Nanos,
    /// The same in the kernel.
    pub system: Nanos,
    /// How finely a process's CPU time is told.
    pub tick: Nanos,
    /// Its processes at that moment.
    pub processes: u64,
    /// The server's requests of all classes at that moment.
    pub requests: u64,
}

/// The requests of one class; times in nanoseconds, their squares in square microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassSample {
    /// Its name.
    pub name: String,
    /// All requests.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Answered with 5xx.
    pub failed: u64,
    /// Given up by the client.
    pub aborted: u64,
    /// How often a worker took one of them up again that it had left to wait for its client or a server behind this one.
    pub resumed: u64,
    /// Requests whose CPU time was measured.
    pub cpu_count: u64,
    /// Their CPU time: parse, process, log.
    pub cpu_ns: [u64; CPUS],
    /// Of the squares of each one's CPU time.
    pub cpu_sum_us2: u64,
    /// Requests chosen to be measured whose thread worked on others in between.
    pub cpu_mixed: u64,
    /// Elapsed times: head, parse, process, upstream, send, log.
    pub times: [TimesSample; PHASES],
}

/// The times of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimesSample {
    /// Requests that had it.
    pub count: u64,
    /// Of their times.
    pub sum_ns: u64,
    /// Of the squares.
    pub sum_us2: u64,
    /// Buckets with something in them, and how much: see [`start_ns`].
    pub buckets: Vec<(u8, u64)>,
}

impl ServerSample {
    /// Requests of all classes.
    pub fn requests(&self) -> u64 {
        self.classes.iter().fold(0, |sum, class| sum.saturating_add(class.requests))
    }
}

/// The group.
pub enum ModuleGroup {}

impl Group for ModuleGroup {
    type Watch = ModuleWatch;
    type Sample = ModuleSample;
    type Figures = Module;

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

    fn put(stretch: Stretch<Module>, _: &[&ModuleSample], length: Nanos, server: &mut Server) {
        let (seen, wanted) = (stretch.length().as_secs_f64(), length.as_secs_f64());
        let factor = if seen > 0.0 { wanted / seen } else { 1.0 };
        let Module { servers, classes } = stretch.figures;
        let classes = classes.into_iter().map(|class| scaled(class, factor)).collect();
        server.module = Some(Module { servers, classes });
    }

    fn put_interval(stretch: &Stretch<Module>, _: &ModuleSample, interval: &mut ServerInterval) {
        let servers = &stretch.figures.servers;
        if !servers.is_empty() {
            interval.requests_per_s = Some(servers.iter().map(|server| server.requests_per_s).sum());
            interval.workers_busy = servers.iter().map(|server| server.workers_busy).sum();
        }
    }
}

/// With totals of another time. How many times were sampled stays: means are of those.
fn scaled(class: ModuleClass, factor: f64) -> ModuleClass {
    let count = |n: u64| (n as f64 * factor).round() as u64;
    ModuleClass { requests: count(class.requests), failed: count(class.failed), aborted: count(class.aborted), ..class }
}
