//! Metrics of requests to any server, observed on the server's sockets by tracepoints.

use super::module::Elapsed;
use crate::JsonSchema;
use serde::{Deserialize, Serialize};

/// Metrics of requests on the sockets of the watched ports. They are observed by kernel tracepoints, which are attached
/// only during short periods of time, called slices.
///
/// Only requests whose first bytes arrive in the first part of a slice are counted; they are observed until the slice
/// ends. Times describe only requests that were answered by the end of the slice. `open_share` is the share of the
/// requests without a complete response at that time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketRequests {
    /// The fraction of time for which the tracepoints were attached.
    pub duty: f64,
    /// Length of a slice (a period in which the tracepoints are attached) in seconds, at the end of the interval;
    /// `null` if the tracepoints were attached permanently.
    pub slice_s: Option<f64>,
    /// Number of slices (periods in which the tracepoints are attached) that ended in the interval.
    pub slices: u64,
    /// Metrics of the requests of each watched port.
    pub ports: Vec<SocketPort>,
    /// Metrics of the requests of each port, grouped by the size of the response.
    pub classes: Vec<SocketClass>,
    /// Limitations of these metrics, as text for the user.
    pub limits: Vec<String>,
}

/// Metrics of the requests of one port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketPort {
    /// The number of the TCP port.
    pub port: u16,
    /// Number of requests that were counted in the interval.
    pub requests: u64,
    /// Requests per second; `null` if the tracepoints were not attached.
    pub requests_per_s: Option<f64>,
    /// Bytes of requests per second, including heads and TLS.
    pub received_bytes_per_s: Option<f64>,
    /// Bytes of responses per second, including heads and TLS.
    pub sent_bytes_per_s: Option<f64>,
    /// Mean number of requests in the server, waiting or in service. Requests that were unanswered at the end of their
    /// slice (the period of observation) are excluded.
    pub under_way: Option<f64>,
    /// Share of the requests that had no complete response at the end of their slice (the period of observation).
    pub open_share: Option<f64>,
    /// Share of the requests without any byte of a response, because the server closed or lost the connection.
    pub unanswered_share: Option<f64>,
    /// Queueing time in the server: from when the first bytes of a request could be read from the socket to when the
    /// server read them. In microseconds.
    pub wait_us: Option<Elapsed>,
    /// Service time: from when the server read the request to when it had written the last byte of the response to the
    /// socket. In microseconds.
    pub service_us: Option<Elapsed>,
}

/// Metrics of the requests of one port that have responses of similar sizes, including heads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketClass {
    /// Name of the class, in the same notation as the classes of the Server Module.
    pub name: String,
    /// The number of the TCP port.
    pub port: u16,
    /// Number of requests that were answered by the end of their slice (the period of observation).
    pub requests: u64,
    /// Requests per second that were answered by the end of their slice (the period of observation).
    pub requests_per_s: Option<f64>,
    /// Bytes of responses per second, including heads and TLS.
    pub sent_bytes_per_s: Option<f64>,
    /// Queueing time in the server, as in [`SocketPort::wait_us`].
    pub wait_us: Option<Elapsed>,
    /// Service time of the requests, as in [`SocketPort::service_us`].
    pub service_us: Option<Elapsed>,
}
