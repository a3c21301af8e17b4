//! Metrics of successive intervals, for charts and logs.

use super::CpuShares;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The main metrics of the interval between two samples of the monitor, for charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerInterval {
    /// Start of the interval, in seconds after the start of the load.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub length_s: f64,
    /// Shares of the time of the watched CPUs.
    pub cpu: Option<CpuShares>,
    /// CPU time of all watched processes, in cores: 0.5 is half of one core.
    pub process_cores: Option<f64>,
    /// CPU time of all watched processes in user mode, in cores.
    pub process_cores_user: Option<f64>,
    /// Time that threads of watched processes waited for a CPU, in seconds per second, summed over threads.
    pub run_queue_wait: Option<f64>,
    /// Context switches per second of the whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Bytes received and sent per second over all interfaces.
    pub network_bytes_per_s: Option<f64>,
    /// TCP segments retransmitted per second.
    pub retransmitted_per_s: Option<f64>,
    /// Utilization of the busiest disk.
    pub disk_utilization: Option<f64>,
    /// Established connections at the end of the interval.
    pub established: Option<u64>,
    /// Length of the accept queue at the end of the interval.
    pub accept_queue: Option<u64>,
    /// SYNs dropped per second by the listening sockets.
    pub dropped_per_s: Option<f64>,
    /// Connections established, per second.
    pub accepted_per_s: Option<f64>,
    /// Requests per second, as counted by the Server Module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    /// Mean number of busy workers, as reported by the Server Module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_busy: Option<f64>,
}

/// One line of `brimful watch --log`: one group's metrics of the interval that ends at `at`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine<T> {
    /// End of the interval by the wall clock, RFC 3339 in UTC with milliseconds. The wall clock may step, so lengths
    /// and rates use `CLOCK_MONOTONIC`.
    pub at: String,
    /// End of the interval by `CLOCK_MONOTONIC`: seconds since boot, excluding time for which the machine was
    /// suspended.
    pub t_s: f64,
    /// Length of the interval in seconds, by `CLOCK_MONOTONIC`.
    pub length_s: f64,
    /// Time for which the machine was suspended during the interval, in seconds. `length_s` excludes this time.
    pub suspended_s: f64,
    /// The group's metrics.
    #[serde(flatten)]
    pub figures: T,
}
