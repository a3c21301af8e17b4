//! Network group: interfaces and TCP of the server's network namespace. Rates are means over the interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Network group: the network of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// All interfaces together, including loopback. A packet that passes through two interfaces, like a bridge and its
    /// port, counts twice.
    #[serde(flatten)]
    pub all: Option<NetworkTraffic>,
    /// Each interface by name, without those that appeared, disappeared or reset their counters during the interval.
    pub interfaces: BTreeMap<String, NetworkTraffic>,
    /// Packets that the kernel dropped because a CPU's receive queue was full, whole machine.
    pub queue_overflows_per_s: Option<f64>,
    /// TCP of this namespace.
    pub tcp: Option<Tcp>,
}

/// Traffic of network interfaces, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkTraffic {
    /// Packets received.
    pub rx_packets_per_s: f64,
    /// Packets sent.
    pub tx_packets_per_s: f64,
    /// Bytes received.
    pub rx_bytes_per_s: f64,
    /// Bytes sent.
    pub tx_bytes_per_s: f64,
    /// Packets received with errors.
    pub rx_errors_per_s: f64,
    /// Packets that could not be sent.
    pub tx_errors_per_s: f64,
    /// Packets received but dropped, because memory was short or no protocol accepted them.
    pub rx_dropped_per_s: f64,
    /// Packets dropped before they were sent.
    pub tx_dropped_per_s: f64,
    /// Collisions on a shared wire, which modern networks do not have.
    pub collisions_per_s: f64,
}

/// TCP of a network namespace, all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tcp {
    /// Segments received.
    pub segments_in_per_s: Option<f64>,
    /// Segments sent, without retransmissions.
    pub segments_out_per_s: Option<f64>,
    /// Segments retransmitted.
    pub retransmitted_per_s: Option<f64>,
    /// Resets sent.
    pub resets_out_per_s: Option<f64>,
    /// Connections that this side initiated.
    pub active_opens_per_s: Option<f64>,
    /// Connections that peers initiated and that were established.
    pub passive_opens_per_s: Option<f64>,
    /// Packets that found a listener's accept queue full.
    pub listen_overflows_per_s: Option<f64>,
    /// Packets dropped at a listener for any reason, including overflows.
    pub listen_drops_per_s: Option<f64>,
    /// SYN cookies sent, because the queue of half-open connections was full.
    pub syn_cookies_per_s: Option<f64>,
    /// Segments dropped because a socket's backlog was full.
    pub backlog_drops_per_s: Option<f64>,
    /// Sockets in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Sockets in use.
    pub in_use: Option<u64>,
    /// Sockets that no process has open any more, whole machine.
    pub orphans: Option<u64>,
    /// Memory of all socket buffers, whole machine.
    pub memory_bytes: Option<u64>,
}
