//! The course of the figures: one stretch after the other, for charts and in logs.

use super::CpuShares;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One stretch between two samples of the monitor: the course of the main figures, for charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerInterval {
    /// Its beginning, seconds after the start of the load.
    pub t_s: f64,
    /// Its length.
    pub length_s: f64,
    /// The CPUs that were watched.
    pub cpu: Option<CpuShares>,
    /// CPU time of all watched processes, in cores: 0.5 is half of one core.
    pub process_cores: Option<f64>,
    /// Of it, in user mode.
    pub process_cores_user: Option<f64>,
    /// Time that the threads of watched processes waited for a CPU, per second.
    pub run_queue_wait: Option<f64>,
    /// Context switches per second, whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Bytes received and sent per second, all interfaces.
    pub network_bytes_per_s: Option<f64>,
    /// TCP segments sent again, per second.
    pub retransmitted_per_s: Option<f64>,
    /// Utilization of the busiest disk.
    pub disk_utilization: Option<f64>,
    /// Connections that are established, at its end.
    pub established: Option<u64>,
    /// Length of the accept queue at its end.
    pub accept_queue: Option<u64>,
    /// SYNs dropped by the listener, per second.
    pub dropped_per_s: Option<f64>,
    /// Connections established, per second.
    pub accepted_per_s: Option<f64>,
    /// Requests per second, as the Server Module counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    /// Workers that were busy on average, as the Server Module says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_busy: Option<f64>,
}

/// One line of a group's log (`brimful watch --log`): the figures of the stretch that ends at `at`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine<T> {
    /// The end of the stretch by the wall clock, RFC 3339 in UTC with milliseconds. That clock may step: lengths and rates
    /// are by the other.
    pub at: String,
    /// The same instant by `CLOCK_MONOTONIC`, in seconds since boot without the time the machine was suspended.
    pub t_s: f64,
    /// Length of the stretch by `CLOCK_MONOTONIC`.
    pub length_s: f64,
    /// How long the machine was suspended meanwhile, which is no part of the length.
    pub suspended_s: f64,
    /// The group's figures.
    #[serde(flatten)]
    pub figures: T,
}
