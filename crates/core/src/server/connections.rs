//! Connections group: the server's ports, with their listening sockets and the states of their connections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Connections group: the server's ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connections {
    /// The listening sockets of all watched ports together.
    pub listener: Option<Listener>,
    /// Number of connections of all watched ports together, by TCP state.
    pub connections: Option<BTreeMap<State, u64>>,
    /// Metrics of each watched port.
    pub ports: Vec<Port>,
}

/// Metrics of one port of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Port {
    /// The port number.
    pub port: u16,
    /// The port's listening sockets together, at the end of the interval; `null` if no socket listened.
    pub listener: Option<Listener>,
    /// Number of the port's connections by TCP state. States that the source does not report are left out; all other
    /// states are present even if 0.
    pub connections: Option<BTreeMap<State, u64>>,
}

/// Metrics of listening sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listener {
    /// SYNs received per second, both accepted and dropped.
    pub syn_per_s: Option<f64>,
    /// Connections established per second; `sources` says whether this includes connections of other ports.
    pub accepted_per_s: Option<f64>,
    /// SYNs and connections per second that these sockets dropped because the accept queue was full or memory was
    /// short.
    pub dropped_per_s: f64,
    /// Length of the accept queue at the end of the interval.
    pub accept_queue: u64,
    /// Length of the longest accept queue in any sample.
    pub accept_queue_max: u64,
    /// Limit of the accept queue, summed over all sockets.
    pub backlog: u64,
    /// Number of sockets: one each for IPv4 and IPv6, or one for each worker (SO_REUSEPORT).
    pub sockets: u64,
    /// The socket whose accept queue was closest to its limit. A full socket drops connections even if other sockets
    /// have room.
    pub fullest: AcceptQueue,
}

/// The accept queue of one listening socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcceptQueue {
    /// Highest number of connections that waited to be accepted, over all samples.
    pub length: u64,
    /// Number of connections that may wait to be accepted; Linux admits one more.
    pub limit: u64,
}

impl AcceptQueue {
    /// Length of the queue as a share of its limit, from 0 to 1.
    pub fn fullness(self) -> f64 {
        (self.length as f64 / self.limit.max(1) as f64).min(1.0)
    }

    /// Returns the fuller of two queues.
    pub fn fuller(self, other: AcceptQueue) -> AcceptQueue {
        if self.fullness().total_cmp(&other.fullness()).is_lt() { other } else { self }
    }
}

/// TCP states of connections (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Both sides may send.
    Established,
    /// This side has sent a SYN.
    SynSent,
    /// The peer has sent a SYN and has not acknowledged this side's SYN yet.
    SynReceived,
    /// This side has closed, and the peer has not acknowledged the FIN yet.
    FinWait1,
    /// This side has closed, and the peer has not closed yet.
    FinWait2,
    /// Both sides have closed, and this side waits until no stray segments can arrive any more.
    TimeWait,
    /// The peer has closed, and this side has not closed yet.
    CloseWait,
    /// The peer closed first, then this side; the peer has not acknowledged the FIN yet.
    LastAck,
    /// Both sides have closed at the same time.
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

    /// The name of the state in documents.
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
