//! The connections group of metrics: the server's ports, with their listening sockets and connection states.

use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The metric group `connections`: the TCP connections of each port on which the server listens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connections {
    /// Metrics of the listening sockets, summed over all watched ports.
    pub listener: Option<Listener>,
    /// Number of connections by TCP state, summed over all watched ports.
    pub connections: Option<BTreeMap<State, u64>>,
    /// Metrics of each watched TCP port.
    pub ports: Vec<Port>,
}

/// Metrics of one TCP port of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Port {
    /// The number of the TCP port.
    pub port: u16,
    /// Metrics of the port's listening sockets at the end of the interval; `null` if no socket listened.
    pub listener: Option<Listener>,
    /// Number of the port's connections by TCP state. A state is left out if the kernel interface does not report it; a
    /// reported state without connections is 0.
    pub connections: Option<BTreeMap<State, u64>>,
}

/// Metrics of one or several listening sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listener {
    /// SYN segments received per second, both accepted and dropped.
    pub syn_per_s: Option<f64>,
    /// Connections established per second. [`Server::sources`](super::Server::sources) states whether connections of
    /// other ports are included.
    pub accepted_per_s: Option<f64>,
    /// SYN segments and completed handshakes per second that the listening sockets dropped, because the accept queue
    /// was full or memory was short.
    pub dropped_per_s: f64,
    /// Number of connections in the accept queues at the end of the interval.
    pub accept_queue: u64,
    /// Largest number of connections in the accept queues in any sample.
    pub accept_queue_max: u64,
    /// Maximum length of the accept queues, summed over all sockets.
    pub backlog: u64,
    /// Number of listening sockets: for example, one each for IPv4 and IPv6, or one per worker process (SO_REUSEPORT).
    pub sockets: u64,
    /// The accept queue that was closest to its limit. A full queue drops connections even if the queues of other
    /// sockets are not full.
    pub fullest: AcceptQueue,
}

/// The accept queue of one listening socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcceptQueue {
    /// Maximum number of connections in the queue, over all samples.
    pub length: u64,
    /// Limit of the queue (the backlog of listen(2)). Linux admits one connection more.
    pub limit: u64,
}

impl AcceptQueue {
    /// Length of the queue divided by its limit, from 0 to 1.
    pub fn fullness(self) -> f64 {
        (self.length as f64 / self.limit.max(1) as f64).min(1.0)
    }

    /// Returns the fuller of two queues.
    pub fn fuller(self, other: AcceptQueue) -> AcceptQueue {
        if self.fullness().total_cmp(&other.fullness()).is_lt() { other } else { self }
    }
}

/// TCP connection states (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The connection is open: both hosts can send.
    Established,
    /// This host has sent a SYN, and has received no SYN yet.
    SynSent,
    /// The peer has sent a SYN, and has not acknowledged the SYN of this host yet.
    SynReceived,
    /// This host has sent a FIN that the peer has not acknowledged yet.
    FinWait1,
    /// The peer has acknowledged the FIN of this host, and has not sent a FIN yet.
    FinWait2,
    /// Both hosts have closed. This host waits until no delayed segments of the connection can arrive any more.
    TimeWait,
    /// The peer has sent a FIN, and this host has not closed yet.
    CloseWait,
    /// The peer has closed, then this host has sent a FIN that the peer has not acknowledged yet.
    LastAck,
    /// Both hosts have sent a FIN at the same time, and the peer has not acknowledged the FIN of this host yet.
    Closing,
}

impl State {
    /// All states, in the order of their declaration.
    pub const ALL: [State; 9] = [
        State::Established,
        State::SynSent,
        State::SynReceived,
        State::FinWait1,
        State::FinWait2,
        State::TimeWait,
        State::CloseWait,
        State::LastAck,
        State::Closing,
    ];

    /// The name of the state in documents, like `time_wait`.
    pub fn name(self) -> &'static str {
        match self {
            State::Established => "established",
            State::SynSent => "syn_sent",
            State::SynReceived => "syn_received",
            State::FinWait1 => "fin_wait1",
            State::FinWait2 => "fin_wait2",
            State::TimeWait => "time_wait",
            State::CloseWait => "close_wait",
            State::LastAck => "last_ack",
            State::Closing => "closing",
        }
    }
}
