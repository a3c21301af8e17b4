//! The Server Module group of metrics: requests as measured inside the server by a loaded module, like the Server
//! Module of WebMonitor (Almeida, Almeida & Yates 1997, §3.2).
//!
//! Times are in microseconds and describe the requests that ended in the interval.

use crate::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Server Module group of metrics: requests as measured inside the server by a loaded module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// One element for each file that a Server Module writes. If a server replaced its file during the interval, it
    /// appears twice: once for the time before the replacement, and once for the time after it.
    pub servers: Vec<ModuleServer>,
    /// Metrics of each request class of each server.
    pub classes: Vec<ModuleClass>,
}

/// Metrics of one server that has loaded the Server Module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleServer {
    /// Name and version of the server's software, like `nginx/1.22.1`.
    pub name: String,
    /// Path of the file into which the module writes its measurements.
    pub file: String,
    /// Whether the module recorded new requests; recording can be switched off.
    pub recording: bool,
    /// Requests per second, over all classes.
    pub requests_per_s: f64,
    /// Connections accepted per second.
    pub connections_per_s: Option<f64>,
    /// Number of requests that had begun and not ended at the end of the interval.
    pub requests_in_progress: u64,
    /// Number of workers at the end of the interval. A worker is a process, or a thread if threads serve the requests.
    pub workers: u64,
    /// Mean number of workers that were serving a request.
    pub workers_busy: Option<f64>,
    /// Limit of the number of requests or connections that the server serves at the same time, if it has such a limit.
    #[serde(rename = "workers_most")]
    pub max_workers: Option<u64>,
    /// Number of workers that could not record requests because the module's file was full. All other metrics exclude
    /// the requests of these workers.
    pub workers_lost: u64,
    /// CPU time of the server's workers per second: 1.5 is one and a half CPUs.
    pub cores: Option<f64>,
    /// Sampling ratio of the CPU time: the CPU time of one in `cpu_one_in` requests is measured, or of fewer requests
    /// at high request rates. 0 if it is not measured.
    pub cpu_one_in: u64,
    /// Mean CPU time of the server's processes in user mode, per request, in microseconds. Linux estimates the division
    /// into user and system time from clock ticks, which are a few milliseconds apart. Therefore, this time is known
    /// only as a mean over many requests, and not for each class.
    pub cpu_user_us: Option<f64>,
    /// Mean CPU time of the server's processes in the kernel, per request, in microseconds.
    pub cpu_system_us: Option<f64>,
    /// CPU time of the server's workers outside the measured phases, per request, in microseconds: for example,
    /// accepting and closing connections, and waiting for events. It can be slightly negative, because measuring a
    /// request itself costs CPU time.
    pub unexplained_cpu_us: Option<f64>,
    /// Half-width of the 95 % confidence interval of `unexplained_cpu_us`.
    pub unexplained_cpu_ci95_half_width_us: Option<f64>,
    /// Number of read system calls of the server's processes per request (`syscr` in `/proc/PID/io`). Reads of files
    /// are always counted; reads of sockets are counted only if the server calls read(2).
    pub reads_per_request: Option<f64>,
    /// Blocks of 512 bytes that the server's processes read from disks, per request. [`ModuleClass`] has the value of
    /// each class.
    pub blocks_read_per_request: Option<f64>,
}

/// The lowest plausible value of `unexplained_cpu_us`. Slightly negative values are plausible, because the measurement
/// adds a few microseconds to the CPU time of the sampled requests.
const MIN_UNEXPLAINED_CPU_US: f64 = -3.0;

impl ModuleServer {
    /// Returns a warning if the sampled requests used significantly more CPU time than all processes of the server
    /// together.
    pub fn cpu_contradiction(&self) -> Option<String> {
        let us = self.unexplained_cpu_us?;
        let bound = us + self.unexplained_cpu_ci95_half_width_us?;
        (bound < MIN_UNEXPLAINED_CPU_US).then(|| {
            format!(
                "the sampled requests of {} used {:.1} µs of CPU time more per request than all its processes together; \
                 the CPU time of processes that ended is missing, so do not use its CPU times per request",
                self.name, -us
            )
        })
    }
}

/// Metrics of one request class, as measured inside the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleClass {
    /// Name of the class. If a class of the Record has the same name, it describes the same requests.
    pub name: String,
    /// Index of the server in [`Module::servers`], from 0.
    pub server: u64,
    /// Number of served requests: all requests that are written to the access log.
    pub requests: u64,
    /// Requests of the class served per second.
    pub requests_per_s: f64,
    /// Bytes of response bodies sent per second.
    pub bytes_per_s: f64,
    /// Part of `requests`: requests that were answered with status 5xx.
    pub failed: u64,
    /// Part of `requests`: requests whose client disconnected before it had received the whole response.
    pub aborted: u64,
    /// Mean number of times that a worker started or resumed the processing of a request. A worker with an event loop
    /// resumes a request after each wait for the client or for an upstream server. For a worker that blocks while it
    /// waits, as in most Apache configurations, the number is 1.
    pub turns: Option<f64>,
    /// Elapsed time of the requests by phase, in microseconds.
    pub phases_us: Phases,
    /// CPU time (user and system) of one request, on the thread that served it, in microseconds. Reading the thread's
    /// CPU clock is expensive, so only some requests are sampled.
    pub cpu_us: Option<Sampled>,
    /// Half-width of the 95 % confidence interval of the mean of `cpu_us`.
    pub cpu_ci95_half_width_us: Option<f64>,
    /// Mean CPU time of the sampled requests by phase, in microseconds.
    pub cpu_parts_us: Option<CpuParts>,
    /// Share of the sampled requests whose CPU time is unknown, because their thread also worked on other requests
    /// between the start and the end of the sampled request.
    pub cpu_mixed: Option<f64>,
    /// Blocks of 512 bytes that the thread of a request read from disks: the mean over the sampled requests. The kernel
    /// counts blocks per thread, including readahead. Blocks that other threads or processes read for the request are
    /// not included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_read_per_request: Option<f64>,
    /// Blocks of 512 bytes that the thread of a request wrote into the page cache, for example for the access log: the
    /// mean over the sampled requests. A block is counted when it is first changed after it was last written to disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_written_per_request: Option<f64>,
    /// CPU demand of a request, including its share of the unexplained CPU time, in microseconds.
    pub demand_us: Option<CpuDemand>,
}

/// Elapsed time of a request by phase. WebMonitor's three phases (parse, process, log) exclude the time spent waiting
/// for the client (head, send) and for other servers (upstream). The sum of all phases is the time from the first byte
/// of the request to the end of its logging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Phases {
    /// Time from the first to the last byte of the request's head. It depends on the client and the network.
    pub head: Option<Elapsed>,
    /// Time to read and parse the request's head.
    pub parse: Option<Elapsed>,
    /// Time to generate the response and to write it to the socket, excluding the phases `upstream` and `send`.
    pub process: Option<Elapsed>,
    /// Time spent waiting for an upstream server.
    pub upstream: Option<Elapsed>,
    /// Time spent waiting until the client had received enough data for the socket to accept the rest of the response.
    pub send: Option<Elapsed>,
    /// Time to write the line of the access log.
    pub log: Option<Elapsed>,
}

impl Phases {
    /// Names of the phases, in the order in which a request passes through them.
    pub const NAMES: [&str; 6] = ["head", "parse", "process", "upstream", "send", "log"];

    /// Returns the times of all phases, in the order of [`Phases::NAMES`].
    pub fn all(&self) -> [Option<Elapsed>; 6] {
        [self.head, self.parse, self.process, self.upstream, self.send, self.log]
    }
}

/// Statistics of elapsed times, in microseconds. Percentiles are interpolated in a histogram with four buckets per
/// factor of two. The error of a percentile is at most 25 %, and a few percent if the times are spread over many
/// buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elapsed {
    /// Number of requests whose time was measured.
    pub count: u64,
    /// Mean of the elapsed times, in microseconds.
    pub mean: f64,
    /// Standard deviation of the elapsed times, in microseconds.
    pub stddev: f64,
    /// Median of the elapsed times, in microseconds.
    pub p50: f64,
    /// 90th percentile of the elapsed times, in microseconds.
    pub p90: f64,
    /// 99th percentile of the elapsed times, in microseconds.
    pub p99: f64,
}

/// Mean CPU time of the sampled requests by phase, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuParts {
    /// CPU time to read and parse the request's head.
    pub parse: f64,
    /// CPU time to generate the response and to write it to the socket.
    pub process: f64,
    /// CPU time to write the line of the access log.
    pub log: f64,
}

/// CPU demand D of one request of a class, in microseconds. It is the mean m of the class's sampled CPU times plus an
/// equal share of the unexplained CPU time:
///
/// ```text
/// D = m + (C − Σ mⱼ nⱼ) / N
/// ```
///
/// Here, C is the CPU time of the server's processes in the interval. If the kernel does not provide C, the CPU time of
/// the server's workers is used instead. mⱼ is the mean m of class j, nⱼ is the number of requests of class j, and N is
/// the number of all requests. Therefore, the sum of the demands of all requests is C, whichever requests were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDemand {
    /// The CPU demand D of one request, in microseconds.
    pub mean: f64,
    /// Half-width of the 95 % confidence interval of D. It includes the sampling error of the means, and the error of
    /// C, the CPU time of the server: the kernel measures C only at clock ticks, or the module measures it only at
    /// sampled requests.
    pub ci95_half_width: f64,
    /// Standard deviation of the sampled CPU times.
    pub stddev: f64,
}

/// Statistics of the CPU times of sampled requests, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// Number of requests whose CPU time was sampled.
    pub count: u64,
    /// Mean of the sampled CPU times, in microseconds.
    pub mean: f64,
    /// Standard deviation of the sampled CPU times, in microseconds.
    pub stddev: f64,
}
