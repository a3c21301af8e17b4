//! Server Module group: what servers say of their own requests (WebMonitor, Almeida, Almeida & Yates 1997, §3.2).
//!
//! Times are microseconds, of requests that ended in the stretch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Server Module: requests as the servers themselves see them (WebMonitor, §3.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// The servers, one for each file that a module writes. What replaced its file in the stretch is there twice, each
    /// with its part of the time.
    pub servers: Vec<ModuleServer>,
    /// Each class of request of each server.
    pub classes: Vec<ModuleClass>,
}

/// A server that has the module loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleServer {
    /// What it calls itself, like `nginx/1.22.1`.
    pub name: String,
    /// The file that its module writes.
    pub file: String,
    /// Whether it records the requests that begin; it may be turned off.
    pub recording: bool,
    /// Requests of all classes.
    pub requests_per_s: f64,
    /// Connections accepted.
    pub connections_per_s: Option<f64>,
    /// Requests at this moment.
    pub requests_in_progress: u64,
    /// Worker processes, or threads where these serve, at this moment.
    pub workers: u64,
    /// How many of them were busy, on average.
    pub workers_busy: Option<f64>,
    /// How many requests or connections the server works on at a time at most, where it has such a limit.
    pub workers_most: Option<u64>,
    /// Workers that found no place in the file: what they serve is missing here.
    pub workers_lost: u64,
    /// CPU time of its workers per time: 1.5 is one CPU and a half.
    pub cores: Option<f64>,
    /// CPU time is measured of one request in so many, or of fewer where they come densely; 0 of none.
    pub cpu_one_in: u64,
    /// CPU time of its processes per request, outside the kernel. Linux splits CPU time by what it finds running when its
    /// clock ticks, every few milliseconds: so this is known of many requests together, and not by class.
    pub cpu_user_us: Option<f64>,
    /// The same in the kernel.
    pub cpu_system_us: Option<f64>,
    /// CPU time of its workers per request, less what was measured in the phases of requests: accepting and closing
    /// connections, waiting for events. Below zero where that is less than what the measuring of a request costs it.
    pub unexplained_cpu_us: Option<f64>,
    /// Read calls of its processes per request, as the kernel counts them (`syscr` of proc(5)): of files, and of
    /// sockets where the server reads them like files.
    pub reads_per_request: Option<f64>,
    /// Blocks of 512 bytes that its processes had read from disks, per request.
    pub blocks_read_per_request: Option<f64>,
}

/// One class of request, from inside the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleClass {
    /// Its name. Those of a Record's class that is called the same are the same requests.
    pub name: String,
    /// Which of `servers` it is of, from 0.
    pub server: u64,
    /// Requests served, all of them: those that have a line in the access log.
    pub requests: u64,
    /// The same per second.
    pub requests_per_s: f64,
    /// Bytes of bodies sent.
    pub bytes_per_s: f64,
    /// Of the requests, those answered with 5xx.
    pub failed: u64,
    /// Of the requests, those whose client went away before it had the answer.
    pub aborted: u64,
    /// Per request: how often a worker took it up, once and again each time that it had left it to wait for its client or
    /// a server behind this one. A worker that waits itself, as most of Apache's do, does not leave it.
    pub turns: Option<f64>,
    /// Elapsed time by phase.
    pub phases_us: Phases,
    /// CPU time of one request, user and system, on the thread that served it. Reading that clock is costly, so few requests are
    /// sampled.
    pub cpu_us: Option<Sampled>,
    /// The mean of `cpu_us` is within this of the truth, at 95 % confidence.
    pub cpu_ci95_half_width_us: Option<f64>,
    /// What the mean of `cpu_us` is made of.
    pub cpu_parts_us: Option<CpuParts>,
    /// Of the requests chosen to be sampled, the share whose thread worked on others in between: their CPU time is not
    /// known.
    pub cpu_mixed: Option<f64>,
    /// What a request costs the server's CPUs, its part of the unexplained CPU time included.
    pub demand_us: Option<CpuDemand>,
}

/// Elapsed time of a request by what the server did: WebMonitor's three phases (parse, process, log), with what is the
/// client's own (head, send) and what other servers took (upstream) apart from them. Together they are the time from
/// the first byte of the request to its log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Phases {
    /// From the first byte of the request to the last of its head: the client's own.
    pub head: Option<Elapsed>,
    /// The head is read and understood.
    pub parse: Option<Elapsed>,
    /// The answer is made and handed to the kernel, but for the next two.
    pub process: Option<Elapsed>,
    /// Waiting for a server behind this one.
    pub upstream: Option<Elapsed>,
    /// Waiting until the client has read enough for the rest to be handed over: the client's own.
    pub send: Option<Elapsed>,
    /// Writing the log.
    pub log: Option<Elapsed>,
}

impl Phases {
    /// Their names, in the order of a request's life.
    pub const NAMES: [&str; 6] = ["head", "parse", "process", "upstream", "send", "log"];

    /// All of them, in the order of the names.
    pub fn all(&self) -> [Option<Elapsed>; 6] {
        [self.head, self.parse, self.process, self.upstream, self.send, self.log]
    }
}

/// Elapsed times, in microseconds. Percentiles are interpolated in buckets, four to an octave: they are within 25 % of
/// the truth, and within a few percent where many times are spread over several buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elapsed {
    /// How many requests had this phase.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub stddev: f64,
    /// Their median.
    pub p50: f64,
    /// Nine of ten are no longer.
    pub p90: f64,
    /// 99 of 100 are no longer.
    pub p99: f64,
}

/// Parts of the CPU time of a mean request, in microseconds: by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuParts {
    /// The head was read and understood.
    pub parse: f64,
    /// The answer was made and handed to the kernel.
    pub process: f64,
    /// The log line was written.
    pub log: f64,
}

/// What one request of a class costs the server's CPUs, in microseconds: the mean m of its sampled CPU time and its
/// part of the unexplained CPU time,
///
/// ```text
/// D = m + (C − Σ mⱼ nⱼ) / N
/// ```
///
/// where C is the CPU time of the server's processes in the stretch, or where the kernel does not tell it of its workers,
/// nⱼ the requests of each class and N all of them. So the demands of all requests add up to C, whatever was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDemand {
    /// Its mean, D.
    pub mean: f64,
    /// The mean is within this of the truth, at 95 % confidence: D as a sum of means of independent samples, and what C
    /// lacks at the ends of the stretch, as it is told in ticks of the kernel's clock, or was read at sampled requests.
    pub ci95_half_width: f64,
    /// Standard deviation of the sampled CPU time.
    pub stddev: f64,
}

/// Times of a sample of the requests, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// How many were sampled.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub stddev: f64,
}
