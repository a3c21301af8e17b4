//! Server Module group: requests as measured inside the servers (WebMonitor, Almeida, Almeida & Yates 1997, §3.2).
//!
//! Times are microseconds, of requests that ended in the interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Server Module group: requests as measured inside the servers (WebMonitor, §3.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// The servers, one for each file that a module writes. A server that replaced its file during the interval appears
    /// twice, each time with its part of the interval.
    pub servers: Vec<ModuleServer>,
    /// Each class of request of each server.
    pub classes: Vec<ModuleClass>,
}

/// A server that has the module loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleServer {
    /// Name and version of the server's software, like `nginx/1.22.1`.
    pub name: String,
    /// The file that its module writes.
    pub file: String,
    /// Whether the module records new requests; recording can be turned off.
    pub recording: bool,
    /// Requests of all classes.
    pub requests_per_s: f64,
    /// Connections accepted.
    pub connections_per_s: Option<f64>,
    /// Requests in progress at the end of the interval.
    pub requests_in_progress: u64,
    /// Workers at the end of the interval: processes, or threads if threads serve requests.
    pub workers: u64,
    /// Mean number of busy workers.
    pub workers_busy: Option<f64>,
    /// Highest number of requests or connections that the server handles at a time, if it has such a limit.
    pub workers_most: Option<u64>,
    /// Workers for which the file had no room. The figures do not include their requests.
    pub workers_lost: u64,
    /// CPU time of its workers per second: 1.5 is one and a half CPUs.
    pub cores: Option<f64>,
    /// One in this many requests has its CPU time measured, or fewer at high request rates; 0 if none has.
    pub cpu_one_in: u64,
    /// CPU time of its processes in user mode, per request. Linux splits CPU time by sampling at clock ticks, every few
    /// milliseconds, so this is known only for many requests together, not by class.
    pub cpu_user_us: Option<f64>,
    /// CPU time of its processes in the kernel, per request.
    pub cpu_system_us: Option<f64>,
    /// CPU time of its workers per request beyond that measured in the phases of requests: accepting and closing
    /// connections, waiting for events. Negative if that is less than the overhead of measuring a request.
    pub unexplained_cpu_us: Option<f64>,
    /// Read calls of its processes per request, as the kernel counts them (`syscr` of proc(5)): those on files, and on
    /// sockets if the server reads them by `read`.
    pub reads_per_request: Option<f64>,
    /// Blocks of 512 bytes that its processes read from disks, per request.
    pub blocks_read_per_request: Option<f64>,
}

/// One class of request, from inside the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleClass {
    /// Name of the class. A class of the Record with the same name has the same requests.
    pub name: String,
    /// Index of its server in `servers`, from 0.
    pub server: u64,
    /// Requests served: all that have a line in the access log.
    pub requests: u64,
    /// Requests served per second.
    pub requests_per_s: f64,
    /// Bytes of bodies sent.
    pub bytes_per_s: f64,
    /// Requests of `requests` that were answered with 5xx.
    pub failed: u64,
    /// Requests of `requests` whose client disconnected before it had the answer.
    pub aborted: u64,
    /// How often a worker resumed each request on average: once, and again each time that it had set it aside to wait
    /// for the client or for an upstream server. A worker that blocks while it waits, as most of Apache's do, counts
    /// once.
    pub turns: Option<f64>,
    /// Elapsed time by phase.
    pub phases_us: Phases,
    /// CPU time of one request, user and system, on the thread that served it. Reading that clock is expensive, so only
    /// few requests are sampled.
    pub cpu_us: Option<Sampled>,
    /// Half width of the 95 % confidence interval of the mean of `cpu_us`.
    pub cpu_ci95_half_width_us: Option<f64>,
    /// The mean of `cpu_us` by phase.
    pub cpu_parts_us: Option<CpuParts>,
    /// Share of the sampled requests whose thread served other requests in between, so that their CPU time is not
    /// known.
    pub cpu_mixed: Option<f64>,
    /// CPU demand of a request, including its part of the unexplained CPU time.
    pub demand_us: Option<CpuDemand>,
}

/// Elapsed time of a request by phase: WebMonitor's three phases (parse, process, log), separate from the time that the
/// client took (head, send) and that other servers took (upstream). Their sum is the time from the first byte of the
/// request to its log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Phases {
    /// Time from the first byte of the request to the last of its head, which depends on the client.
    pub head: Option<Elapsed>,
    /// Reading and parsing the head.
    pub parse: Option<Elapsed>,
    /// Generating the answer and handing it to the kernel, without `upstream` and `send`.
    pub process: Option<Elapsed>,
    /// Waiting for an upstream server.
    pub upstream: Option<Elapsed>,
    /// Waiting until the client has read enough for the rest of the answer to be sent, which depends on the client.
    pub send: Option<Elapsed>,
    /// Writing the log.
    pub log: Option<Elapsed>,
}

impl Phases {
    /// Names of the phases, in the order of a request's life.
    pub const NAMES: [&str; 6] = ["head", "parse", "process", "upstream", "send", "log"];

    /// All phases, in the order of [`Phases::NAMES`].
    pub fn all(&self) -> [Option<Elapsed>; 6] {
        [self.head, self.parse, self.process, self.upstream, self.send, self.log]
    }
}

/// Elapsed times, in microseconds. Percentiles are interpolated in buckets, four to an octave: their error is at most
/// 25 %, and a few percent if many times are spread over several buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elapsed {
    /// Number of requests that had this phase.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Mean CPU time of a request by phase, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuParts {
    /// Reading and parsing the head.
    pub parse: f64,
    /// Generating the answer and handing it to the kernel.
    pub process: f64,
    /// Writing the log line.
    pub log: f64,
}

/// CPU demand of one request of a class, in microseconds: the mean m of its sampled CPU time plus its part of the
/// unexplained CPU time,
///
/// ```text
/// D = m + (C − Σ mⱼ nⱼ) / N
/// ```
///
/// where C is the CPU time of the server's processes in the interval (of its workers, if the kernel does not provide
/// that), nⱼ the requests of class j and N all requests. The demands of all requests thus add up to C, whatever the
/// sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDemand {
    /// The mean demand D.
    pub mean: f64,
    /// Half width of the 95 % confidence interval of D. It covers the sampling error and the error of C at the ends of
    /// the interval, as C is known only in clock ticks or at sampled requests.
    pub ci95_half_width: f64,
    /// Standard deviation of the sampled CPU time.
    pub stddev: f64,
}

/// Times of a sample of the requests, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// Number of sampled requests.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
}
