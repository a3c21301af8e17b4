//! Requests as the server's sockets show them, whatever server it is.

use super::module::Elapsed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests seen on the sockets of the watched ports, by tracepoints that are attached for slices of time.
///
/// A request is counted if its first bytes arrive in the first part of a slice, and followed until the slice ends. So
/// rates are of that first part, however long requests take; and times are of those that had their answer before the
/// end, with the share of those that did not beside them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketRequests {
    /// The share of time in which the tracepoints were attached.
    pub duty: f64,
    /// How long a slice is at the end of the stretch; `null` if they are attached all the time.
    pub slice_s: Option<f64>,
    /// Slices that ended in the stretch.
    pub slices: u64,
    /// Each port.
    pub ports: Vec<SocketPort>,
    /// Requests of each port by the size of their answers.
    pub classes: Vec<SocketClass>,
    /// What these figures do not tell, in words.
    pub limits: Vec<String>,
}

/// The requests of one port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketPort {
    /// Which.
    pub port: u16,
    /// Requests that were counted.
    pub requests: u64,
    /// Requests per second; `null` if nothing was attached.
    pub requests_per_s: Option<f64>,
    /// Bytes of requests per second, with their heads and whatever encrypts them.
    pub received_bytes_per_s: Option<f64>,
    /// Bytes of answers per second, likewise.
    pub sent_bytes_per_s: Option<f64>,
    /// Requests that waited or were being served, on average; those without an answer at their slice's end are missing.
    pub under_way: Option<f64>,
    /// Of the requests, the share that had no answer, or not all of it, at their slice's end.
    pub open_share: Option<f64>,
    /// Of the requests, the share whose connection the server closed, or lost, without a byte of an answer.
    pub unanswered_share: Option<f64>,
    /// From when the first bytes of a request could be read until the server read them: its own queueing.
    pub wait_us: Option<Elapsed>,
    /// From there until the last bytes of the answer were handed to the kernel.
    pub service_us: Option<Elapsed>,
}

/// Requests of one port whose answers have similar sizes, heads included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketClass {
    /// Its name, as of the Server Module's own classes.
    pub name: String,
    /// Which port.
    pub port: u16,
    /// Requests that had their answer before their slice's end.
    pub requests: u64,
    /// The same per second.
    pub requests_per_s: Option<f64>,
    /// Bytes of answers per second.
    pub sent_bytes_per_s: Option<f64>,
    /// As of the port.
    pub wait_us: Option<Elapsed>,
    /// As of the port.
    pub service_us: Option<Elapsed>,
}
