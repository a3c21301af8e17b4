//! Server Module group: requests as measured inside the servers (WebMonitor, Almeida, Almeida & Yates 1997, §3.2).
//!
//! Times are in microseconds and describe the requests that ended in the interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Server Module group: requests as measured inside the servers (WebMonitor, §3.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// The servers, one for each file that a module writes. A server that replaced its file during the interval appears
    /// twice, once for each part of the interval.
    pub servers: Vec<ModuleServer>,
    /// Metrics of each class of request of each server.
    pub classes: Vec<ModuleClass>,
}

/// A server that has the module loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleServer {
    /// Name and version of the server's software, like `nginx/1.22.1`.
    pub name: String,
    /// Path of the file that the server's module writes.
    pub file: String,
    /// Whether the module records new requests. Recording can be turned off.
    pub recording: bool,
    /// Requests of all classes per second.
    pub requests_per_s: f64,
    /// Connections accepted per second.
    pub connections_per_s: Option<f64>,
    /// Number of requests in progress at the end of the interval.
    pub requests_in_progress: u64,
    /// Number of workers at the end of the interval: processes, or threads if threads serve requests.
    pub workers: u64,
    /// Mean number of busy workers.
    pub workers_busy: Option<f64>,
    /// Highest number of requests or connections that the server handles at a time, if the server has such a limit.
    pub workers_most: Option<u64>,
    /// Number of workers for which the file had no room. All other metrics exclude the requests of these workers.
    pub workers_lost: u64,
    /// CPU time of the server's workers per second: 1.5 is one and a half CPUs.
    pub cores: Option<f64>,
    /// CPU time is measured for one of every `cpu_one_in` requests, and for fewer at high request rates. 0 if CPU time
    /// is not measured.
    pub cpu_one_in: u64,
    /// CPU time of the server's processes in user mode, per request. Linux samples user and system time at clock ticks,
    /// every few milliseconds. Therefore this time is known only for many requests together, not by class.
    pub cpu_user_us: Option<f64>,
    /// CPU time of the server's processes in the kernel, per request.
    pub cpu_system_us: Option<f64>,
    /// CPU time of the server's workers per request that is not part of the measured phases: accepting and closing
    /// connections, waiting for events. It is negative if it is smaller than the overhead of measuring a request.
    pub unexplained_cpu_us: Option<f64>,
    /// Half width of the 95 % confidence interval of `unexplained_cpu_us`.
    pub unexplained_cpu_ci95_half_width_us: Option<f64>,
    /// Read calls of the server's processes per request, as counted by the kernel (`syscr` of proc(5)). Reads of files
    /// always count; reads of sockets count if the server uses `read`.
    pub reads_per_request: Option<f64>,
    /// Blocks of 512 bytes that the server's processes read from disks, per request. Classes have their own.
    pub blocks_read_per_request: Option<f64>,
}

/// Unexplained CPU time above this value, in microseconds, may be negative because measuring a request costs CPU time.
const MEASURING_COST_US: f64 = -3.0;

impl ModuleServer {
    /// A warning if the sampled requests used more CPU time than all processes of the server together.
    pub fn cpu_contradiction(&self) -> Option<String> {
        let us = self.unexplained_cpu_us?;
        let bound = us + self.unexplained_cpu_ci95_half_width_us?;
        (bound < MEASURING_COST_US).then(|| {
            format!(
                "the sampled requests of {} used {:.1} µs of CPU time more per request than all its processes together; \
                 the CPU time of processes that ended is missing, so do not use its CPU times per request",
                self.name, -us
            )
        })
    }
}

/// One class of request, as measured inside the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleClass {
    /// Name of the class. A class of the Record with the same name has the same requests.
    pub name: String,
    /// Index of the class's server in `servers`, from 0.
    pub server: u64,
    /// Number of requests served, which are all requests with a line in the access log.
    pub requests: u64,
    /// Requests served per second.
    pub requests_per_s: f64,
    /// Bytes of response bodies sent per second.
    pub bytes_per_s: f64,
    /// Part of `requests`: requests that were answered with 5xx.
    pub failed: u64,
    /// Part of `requests`: requests whose client disconnected before the client had received the whole answer.
    pub aborted: u64,
    /// Mean number of times that a worker started or resumed a request: one, plus one for each time that a worker had
    /// set the request aside to wait for the client or for an upstream server. It is one for workers that block while
    /// they wait, like most of Apache's.
    pub turns: Option<f64>,
    /// Elapsed time by phase.
    pub phases_us: Phases,
    /// CPU time of one request, user and system, on the thread that served it. Reading the thread's CPU clock is
    /// expensive, so only a few requests are sampled.
    pub cpu_us: Option<Sampled>,
    /// Half width of the 95 % confidence interval of the mean of `cpu_us`.
    pub cpu_ci95_half_width_us: Option<f64>,
    /// Mean CPU time of the sampled requests, by phase.
    pub cpu_parts_us: Option<CpuParts>,
    /// Share of the sampled requests whose thread served other requests meanwhile. The CPU time of these requests is
    /// unknown.
    pub cpu_mixed: Option<f64>,
    /// Blocks of 512 bytes that the thread of a request read from disks, on average over the sampled requests. The kernel
    /// counts them by thread, with the reading ahead that a request causes. Blocks that other threads or processes read
    /// for the request are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_read_per_request: Option<f64>,
    /// Blocks of 512 bytes that the thread of a request wrote into the page cache, such as the access log, on average over
    /// the sampled requests. A block counts when it first changes after it was written to its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_written_per_request: Option<f64>,
    /// CPU demand of a request, including its share of the unexplained CPU time.
    pub demand_us: Option<CpuDemand>,
}

/// Elapsed time of a request by phase. WebMonitor's three phases (parse, process, log) are separate from the time spent
/// waiting for the client (head, send) and for other servers (upstream). The sum of all phases is the time from the
/// first byte of the request to its log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Phases {
    /// Time from the first to the last byte of the request's head, which depends on the client.
    pub head: Option<Elapsed>,
    /// Time to read and parse the head.
    pub parse: Option<Elapsed>,
    /// Time to generate the answer and to hand it to the kernel, excluding `upstream` and `send`.
    pub process: Option<Elapsed>,
    /// Time spent waiting for an upstream server.
    pub upstream: Option<Elapsed>,
    /// Time spent waiting for the client to read, so that the rest of the answer could be sent.
    pub send: Option<Elapsed>,
    /// Time to write the log line.
    pub log: Option<Elapsed>,
}

impl Phases {
    /// Names of the phases, in the order in which a request passes through them.
    pub const NAMES: [&str; 6] = ["head", "parse", "process", "upstream", "send", "log"];

    /// All phases, in the order of [`Phases::NAMES`].
    pub fn all(&self) -> [Option<Elapsed>; 6] {
        [self.head, self.parse, self.process, self.upstream, self.send, self.log]
    }
}

/// Elapsed times, in microseconds. Percentiles are interpolated in a histogram with four buckets for each doubling of
/// the time. The error of a percentile is at most 25 %. It is a few percent if many times spread over several buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elapsed {
    /// Number of requests that had this phase.
    pub count: u64,
    /// Mean time.
    pub mean: f64,
    /// Standard deviation of the times.
    pub stddev: f64,
    /// Median time.
    pub p50: f64,
    /// 90th percentile of the times.
    pub p90: f64,
    /// 99th percentile of the times.
    pub p99: f64,
}

/// Mean CPU time of a request by phase, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuParts {
    /// CPU time to read and parse the head.
    pub parse: f64,
    /// CPU time to generate the answer and to hand it to the kernel.
    pub process: f64,
    /// CPU time to write the log line.
    pub log: f64,
}

/// CPU demand of one request of a class, in microseconds: the mean m of the class's sampled CPU time plus the request's
/// share of the unexplained CPU time:
///
/// ```text
/// D = m + (C − Σ mⱼ nⱼ) / N
/// ```
///
/// Here C is the CPU time of the server's processes in the interval. If the kernel does not provide C, the CPU time of
/// the server's workers replaces it. mⱼ is the mean m of class j, nⱼ the number of requests of class j, and N the
/// number of all requests. So the demands of all requests add up to C for every sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDemand {
    /// The mean demand D.
    pub mean: f64,
    /// Half width of the 95 % confidence interval of D. The interval covers the sampling error and the error of C,
    /// because C is known only at clock ticks or at sampled requests.
    pub ci95_half_width: f64,
    /// Standard deviation of the sampled CPU time.
    pub stddev: f64,
}

/// Times of sampled requests, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// Number of sampled requests.
    pub count: u64,
    /// Mean of the sampled times.
    pub mean: f64,
    /// Standard deviation of the sampled times.
    pub stddev: f64,
}
