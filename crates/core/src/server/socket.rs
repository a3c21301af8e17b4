//! Requests to any server, as observed on the server's sockets.

use super::module::Elapsed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests observed on the sockets of the watched ports, by tracepoints that are attached during short slices of time.
///
/// A request is counted if its first bytes arrive in the first part of a slice, and is followed until the slice ends.
/// Rates count only requests that arrive in the first part, regardless of how long these requests take. Times describe
/// requests that were answered before the slice ended. `open_share` is the share of requests without a complete answer
/// at the end of the slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketRequests {
    /// The share of time in which the tracepoints were attached.
    pub duty: f64,
    /// Length of a slice in seconds, at the end of the interval; `null` if the tracepoints are attached all the time.
    pub slice_s: Option<f64>,
    /// Number of slices that ended in the interval.
    pub slices: u64,
    /// Metrics of each port.
    pub ports: Vec<SocketPort>,
    /// Requests of each port by the size of their answers.
    pub classes: Vec<SocketClass>,
    /// Limitations of these metrics, as text for people.
    pub limits: Vec<String>,
}

/// The requests of one port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketPort {
    /// The port number.
    pub port: u16,
    /// Number of requests that were counted.
    pub requests: u64,
    /// Requests per second; `null` if no tracepoint was attached.
    pub requests_per_s: Option<f64>,
    /// Bytes of requests per second, including heads and TLS.
    pub received_bytes_per_s: Option<f64>,
    /// Bytes of answers per second, including heads and TLS.
    pub sent_bytes_per_s: Option<f64>,
    /// Mean number of requests that waited or were being served. Excludes requests that were unanswered when their
    /// slice ended.
    pub under_way: Option<f64>,
    /// Share of the requests that had no complete answer when their slice ended.
    pub open_share: Option<f64>,
    /// Share of the requests whose connection the server closed or lost without sending a byte of an answer.
    pub unanswered_share: Option<f64>,
    /// Time from when the first bytes of a request were readable until the server read them: the queueing time in the
    /// server.
    pub wait_us: Option<Elapsed>,
    /// Time from when the server read the request until the last bytes of the answer were handed to the kernel.
    pub service_us: Option<Elapsed>,
}

/// Requests of one port whose answers have similar sizes, including heads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketClass {
    /// Name of the class, in the notation of the Server Module's classes.
    pub name: String,
    /// The port number.
    pub port: u16,
    /// Number of requests that were answered before their slice ended.
    pub requests: u64,
    /// Number of requests per second that were answered before their slice ended.
    pub requests_per_s: Option<f64>,
    /// Bytes of answers per second.
    pub sent_bytes_per_s: Option<f64>,
    /// Time from when the first bytes of a request were readable until the server read them, as in
    /// [`SocketPort::wait_us`].
    pub wait_us: Option<Elapsed>,
    /// Time from when the server read the request until its answer was sent, as in [`SocketPort::service_us`].
    pub service_us: Option<Elapsed>,
}
