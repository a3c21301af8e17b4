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
    /// Connections of all watched ports together, by TCP state.
    pub connections: Option<BTreeMap<State, u64>>,
    /// Each watched port.
    pub ports: Vec<Port>,
}

/// One port of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Port {
    /// Which.
    pub port: u16,
    /// Its listening sockets together, as they were last; `null` if nothing listened.
    pub listener: Option<Listener>,
    /// Its connections by TCP state. A state that the source cannot tell is left out; one that it tells is there, be it 0.
    pub connections: Option<BTreeMap<State, u64>>,
}

/// Listening sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listener {
    /// SYNs that asked for a connection: accepted and dropped.
    pub syn_per_s: Option<f64>,
    /// Connections established; `sources` says whether those of other ports are among them.
    pub accepted_per_s: Option<f64>,
    /// Dropped by these sockets, because the accept queue was full or for want of memory.
    pub dropped_per_s: f64,
    /// Length of the accept queue at the end.
    pub accept_queue: u64,
    /// The longest accept queue that a sample saw.
    pub accept_queue_max: u64,
    /// The queues' limit, that of all sockets together.
    pub backlog: u64,
    /// How many sockets these are: IPv4 and IPv6, or one for each worker (SO_REUSEPORT).
    pub sockets: u64,
    /// The socket that was nearest to its limit: one that is full drops, whatever room the others have.
    pub fullest: AcceptQueue,
}

/// The accept queue of one listening socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcceptQueue {
    /// Connections that waited to be accepted, the most that a sample saw.
    pub length: u64,
    /// How many may wait; Linux lets one more.
    pub limit: u64,
}

impl AcceptQueue {
    /// How full it was, from 0 to 1.
    pub fn fullness(self) -> f64 {
        (self.length as f64 / self.limit.max(1) as f64).min(1.0)
    }

    /// The fuller of two.
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
    /// This side has asked for a connection.
    SynSent,
    /// The other side has asked, and has not answered the answer yet.
    SynReceived,
    /// This side has closed, and the other has not acknowledged that.
    FinWait1,
    /// This side has closed, and the other has not.
    FinWait2,
    /// Waiting for stray segments to die out.
    TimeWait,
    /// The other side has closed, and this has not.
    CloseWait,
    /// Both have closed, and the other has not acknowledged ours.
    LastAck,
    /// Both have closed at the same time.
    Closing,
}

impl State {
    /// All of them.
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

    /// As in documents.
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
