//! Network group: interfaces and TCP of the server's network namespace. Rates are means over the stretch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Network group: the network of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// All interfaces together, loopback included. What passes through two interfaces, like a bridge and its port,
    /// counts twice.
    #[serde(flatten)]
    pub all: Option<NetworkTraffic>,
    /// Each interface by name; without those that came, went or began to count anew.
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
    /// Packets that came damaged.
    pub rx_errors_per_s: f64,
    /// Packets that could not be sent.
    pub tx_errors_per_s: f64,
    /// Packets received and thrown away, for want of memory or of a taker.
    pub rx_dropped_per_s: f64,
    /// Packets to be sent and thrown away.
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
    /// Segments sent, without those sent again.
    pub segments_out_per_s: Option<f64>,
    /// Segments sent again.
    pub retransmitted_per_s: Option<f64>,
    /// Resets sent.
    pub resets_out_per_s: Option<f64>,
    /// Connections that this side began.
    pub active_opens_per_s: Option<f64>,
    /// Connections that the other side began and that were established.
    pub passive_opens_per_s: Option<f64>,
    /// Packets that found a listener's accept queue full.
    pub listen_overflows_per_s: Option<f64>,
    /// Packets dropped at a listener for any reason, overflows included.
    pub listen_drops_per_s: Option<f64>,
    /// SYN cookies sent, because the queue of half-open connections was full.
    pub syn_cookies_per_s: Option<f64>,
    /// Segments dropped because a socket's backlog was full.
    pub backlog_drops_per_s: Option<f64>,
    /// Sockets in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Sockets in use.
    pub in_use: Option<u64>,
    /// Sockets that no process holds any more, whole machine.
    pub orphans: Option<u64>,
    /// Memory of all sockets' buffers, whole machine.
    pub memory_bytes: Option<u64>,
}
