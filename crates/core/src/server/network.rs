//! Network group: interfaces and TCP of the server's network namespace. Rates are means over the interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Network group: metrics of one network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// Traffic of all interfaces together, including loopback. A packet that passes through two interfaces, like a
    /// bridge and its port, counts twice.
    #[serde(flatten)]
    pub all: Option<NetworkTraffic>,
    /// Traffic of each interface, by name. Interfaces that appeared, disappeared or reset their counters during the
    /// interval are left out.
    pub interfaces: BTreeMap<String, NetworkTraffic>,
    /// Packets per second that the kernel dropped because a CPU's receive queue was full, in the whole machine.
    pub queue_overflows_per_s: Option<f64>,
    /// Metrics of TCP in this namespace.
    pub tcp: Option<Tcp>,
}

/// Traffic of network interfaces, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkTraffic {
    /// Packets received per second.
    pub rx_packets_per_s: f64,
    /// Packets sent per second.
    pub tx_packets_per_s: f64,
    /// Bytes received per second.
    pub rx_bytes_per_s: f64,
    /// Bytes sent per second.
    pub tx_bytes_per_s: f64,
    /// Packets per second that were received with errors.
    pub rx_errors_per_s: f64,
    /// Packets per second that could not be sent.
    pub tx_errors_per_s: f64,
    /// Packets per second that were received but dropped, because memory was short or no protocol accepted them.
    pub rx_dropped_per_s: f64,
    /// Packets per second that were dropped instead of being sent.
    pub tx_dropped_per_s: f64,
    /// Collisions per second on a shared wire, which modern networks do not have.
    pub collisions_per_s: f64,
}

/// Metrics of TCP in a network namespace, for all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tcp {
    /// Segments received per second.
    pub segments_in_per_s: Option<f64>,
    /// Segments sent per second, excluding retransmissions.
    pub segments_out_per_s: Option<f64>,
    /// Segments retransmitted per second.
    pub retransmitted_per_s: Option<f64>,
    /// Resets sent per second.
    pub resets_out_per_s: Option<f64>,
    /// Connections per second that this side initiated.
    pub active_opens_per_s: Option<f64>,
    /// Connections per second that peers initiated and that were established.
    pub passive_opens_per_s: Option<f64>,
    /// Packets per second that arrived while a listener's accept queue was full.
    pub listen_overflows_per_s: Option<f64>,
    /// Packets per second dropped at a listener for any reason, including overflows.
    pub listen_drops_per_s: Option<f64>,
    /// SYN cookies sent per second, because the queue of half-open connections was full.
    pub syn_cookies_per_s: Option<f64>,
    /// Segments per second dropped because a socket's backlog was full.
    pub backlog_drops_per_s: Option<f64>,
    /// Number of sockets in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Number of sockets in use.
    pub in_use: Option<u64>,
    /// Number of sockets that no process has open any more, in the whole machine.
    pub orphans: Option<u64>,
    /// Memory of all socket buffers in the whole machine, in bytes.
    pub memory_bytes: Option<u64>,
}
