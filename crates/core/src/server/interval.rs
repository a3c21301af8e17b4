//! Time series of the monitor's metrics, for charts and logs.

use super::CpuShares;
use crate::JsonSchema;
use serde::{Deserialize, Serialize};

/// The main metrics of one sampling interval of the monitor, for charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerInterval {
    /// Start of the interval, in seconds since the start of the load.
    pub t_s: f64,
    /// Length of the sampling interval, in seconds.
    pub length_s: f64,
    /// Shares of the watched CPUs' time, by kind of work.
    pub cpu: Option<CpuShares>,
    /// CPU time of all watched processes per second: 0.5 is half of one CPU.
    pub process_cores: Option<f64>,
    /// CPU time of all watched processes in user mode, per second.
    pub process_cores_user: Option<f64>,
    /// Time for which threads of the watched processes were ready but had no CPU, in seconds per second, summed over
    /// threads.
    pub run_queue_wait: Option<f64>,
    /// Context switches per second of the whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Bytes sent and received per second, summed over all network interfaces.
    pub network_bytes_per_s: Option<f64>,
    /// TCP segments retransmitted per second.
    pub retransmitted_per_s: Option<f64>,
    /// Utilization of the busiest disk: fraction of time with an operation in progress.
    pub disk_utilization: Option<f64>,
    /// Number of established connections at the end of the interval.
    pub established: Option<u64>,
    /// Number of connections in the accept queues at the end of the interval.
    pub accept_queue: Option<u64>,
    /// SYN segments and connections per second that the listening sockets dropped.
    pub dropped_per_s: Option<f64>,
    /// Connections established per second.
    pub accepted_per_s: Option<f64>,
    /// Requests per second, counted by the Server Module (a module inside the server).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    /// Mean number of busy workers, measured by the Server Module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_busy: Option<f64>,
}

/// One line of `brimful watch --log`: the metrics of one group over the interval that ends at `at`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine<T> {
    /// Wall-clock time of the end of the interval, RFC 3339 in UTC with milliseconds. The wall clock can be set during
    /// an interval, so the lengths and rates are measured by `CLOCK_MONOTONIC`.
    pub at: String,
    /// End of the interval on the clock `CLOCK_MONOTONIC`: seconds since boot, excluding time for which the machine was
    /// suspended.
    pub t_s: f64,
    /// Length of the interval on `CLOCK_MONOTONIC`, in seconds.
    pub length_s: f64,
    /// Time for which the machine was suspended during the interval, in seconds. `length_s` excludes this time.
    pub suspended_s: f64,
    /// The metrics of the group, such as CPUs or connections.
    #[serde(flatten)]
    pub figures: T,
}
