//! The network group of metrics: interfaces and TCP statistics of the server's network namespace. Rates are means over
//! the interval.

use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The network group of metrics, of one network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// Traffic of all interfaces together, including loopback. A packet that passes through two interfaces, such as a
    /// bridge and one of its ports, is counted twice.
    #[serde(flatten)]
    pub all: Option<NetworkTraffic>,
    /// Traffic of each interface, by name. Interfaces are excluded if they appeared or disappeared, or if their
    /// counters were reset, during the interval.
    pub interfaces: BTreeMap<String, NetworkTraffic>,
    /// Packets per second that the kernel dropped because the receive queue of a CPU was full, on the whole machine.
    pub queue_overflows_per_s: Option<f64>,
    /// TCP statistics of this namespace.
    pub tcp: Option<Tcp>,
}

/// Traffic of one or several network interfaces.
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
    /// Packets per second that were received but dropped, because memory was short or no protocol handled them.
    pub rx_dropped_per_s: f64,
    /// Packets per second that should have been sent but were dropped.
    pub tx_dropped_per_s: f64,
    /// Collisions per second on shared media. Modern networks have no collisions.
    pub collisions_per_s: f64,
}

/// TCP statistics of a network namespace, over all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tcp {
    /// Segments received per second.
    pub segments_in_per_s: Option<f64>,
    /// Segments sent per second, excluding retransmissions.
    pub segments_out_per_s: Option<f64>,
    /// Segments retransmitted per second.
    pub retransmitted_per_s: Option<f64>,
    /// RST segments sent per second.
    pub resets_out_per_s: Option<f64>,
    /// Connections per second that processes in this namespace initiated.
    pub active_opens_per_s: Option<f64>,
    /// Connections per second that peers initiated and that were established.
    pub passive_opens_per_s: Option<f64>,
    /// Segments per second that were dropped because the accept queue of a listening socket was full
    /// (`ListenOverflows`).
    pub listen_overflows_per_s: Option<f64>,
    /// Segments per second that were dropped at a listening socket for any reason, including a full accept queue
    /// (`ListenDrops`).
    pub listen_drops_per_s: Option<f64>,
    /// SYN cookies sent per second. The kernel sends them when the queue of half-open connections is full.
    pub syn_cookies_per_s: Option<f64>,
    /// Segments per second that were dropped because the receive backlog of a socket was full (`TCPBacklogDrop`).
    pub backlog_drops_per_s: Option<f64>,
    /// Number of connections in the TIME-WAIT state.
    pub time_wait: Option<u64>,
    /// Number of TCP sockets in use.
    pub in_use: Option<u64>,
    /// Number of TCP sockets on the whole machine that processes have closed but whose connections have not ended
    /// (orphans).
    pub orphans: Option<u64>,
    /// Memory of all TCP socket buffers on the whole machine, in bytes.
    pub memory_bytes: Option<u64>,
}
