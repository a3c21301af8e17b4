//! Connections group: the server's ports, each with its listening sockets and its connections by state.

use crate::counter::{Over, growth};
use crate::listener::{ListenerSample, ListenerWatch};
use brimful_core::Nanos;
use brimful_core::server::{Connections, Listener, Port, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The server's ports at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionsSample {
    /// In the order in which they were named.
    pub ports: Vec<PortSample>,
    /// Established since boot because the other side asked, in the whole network namespace.
    pub passive_opens: Option<u64>,
}

/// One port at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortSample {
    /// Which.
    pub port: u16,
    /// Its listening sockets; `None` while nothing listens.
    pub listener: Option<ListenerSample>,
    /// Established on this port since the watch began, where the source counts that.
    pub accepted: Option<u64>,
    /// Its connections, of those states that the source can tell; `None` where they were not counted this time.
    pub connections: Option<BTreeMap<State, u64>>,
}

/// Reads them again and again.
#[derive(Debug)]
pub(crate) struct ConnectionsWatch {
    listeners: Vec<ListenerWatch>,
}

impl ConnectionsWatch {
    /// To be called by a thread that is in the network namespace of the ports; `net` is the directory that is /proc/net
    /// there. What is opened now stays in that namespace; what were opened later would be in the monitor's.
    pub fn open(net: &Path, ports: &[u16]) -> ConnectionsWatch {
        ConnectionsWatch { listeners: ports.iter().map(|&port| ListenerWatch::open(net, port)).collect() }
    }

    pub fn read(&mut self, _buffer: &mut Vec<u8>) -> ConnectionsSample {
        let mut passive_opens = None;
        let ports = (self.listeners.iter_mut())
            .map(|watch| {
                let listener = watch.read();
                passive_opens = passive_opens.max(watch.passive_opens());
                PortSample { port: watch.port, listener, accepted: None, connections: None }
            })
            .collect();
        ConnectionsSample { ports, passive_opens }
    }

    /// Where its figures come from, or why there are none.
    pub fn sources(&self, sources: &mut BTreeMap<String, String>) {
        let listener = match self.listeners.as_slice() {
            [] => "none: no port was named".to_owned(),
            listeners => listeners.iter().map(ListenerWatch::source).collect::<Vec<_>>().join("; "),
        };
        sources.insert("listener".to_owned(), listener);
    }
}

impl ConnectionsSample {
    /// What happened since an earlier sample, `over` a time.
    pub(crate) fn since(&self, earlier: &ConnectionsSample, over: Nanos) -> Connections {
        let over = Over(over);
        let ports: Vec<Port> = (self.ports.iter())
            .map(|now| {
                let before = earlier.ports.iter().find(|before| before.port == now.port);
                let accepted = before.and_then(|before| over.per_s_of(before.accepted, now.accepted));
                let listener = before.and_then(|before| before.listener.zip(now.listener));
                Port {
                    port: now.port,
                    listener: listener.map(|(before, now)| listener_since(&before, &now, accepted, over)),
                    connections: now.connections.clone(),
                }
            })
            .collect();
        let all_ports = over.per_s_of(earlier.passive_opens, self.passive_opens);
        Connections { listener: together(&ports, all_ports), connections: states_together(&ports), ports }
    }
}

fn listener_since(before: &ListenerSample, now: &ListenerSample, accepted: Option<f64>, over: Over) -> Listener {
    let dropped = over.per_s(0, growth(before.drops, now.drops).unwrap_or(now.drops)).unwrap_or_default();
    Listener {
        syn_per_s: accepted.map(|accepted| accepted + dropped),
        accepted_per_s: accepted,
        dropped_per_s: dropped,
        accept_queue: now.accept_queue,
        accept_queue_max: now.accept_queue_max,
        backlog: now.backlog,
        sockets: now.sockets,
    }
}

/// The listeners of all ports as one. Where no port knows its own connections, those of the whole namespace stand in.
fn together(ports: &[Port], all_ports: Option<f64>) -> Option<Listener> {
    let mut sum: Option<Listener> = None;
    for listener in ports.iter().filter_map(|port| port.listener) {
        let so_far = sum.unwrap_or(Listener { accepted_per_s: Some(0.0), ..Listener::default() });
        sum = Some(Listener {
            accepted_per_s: so_far.accepted_per_s.zip(listener.accepted_per_s).map(|(a, b)| a + b),
            dropped_per_s: so_far.dropped_per_s + listener.dropped_per_s,
            accept_queue: so_far.accept_queue + listener.accept_queue,
            accept_queue_max: so_far.accept_queue_max + listener.accept_queue_max,
            backlog: so_far.backlog + listener.backlog,
            sockets: so_far.sockets + listener.sockets,
            syn_per_s: None,
        });
    }
    let mut sum = sum?;
    sum.accepted_per_s = sum.accepted_per_s.or(all_ports);
    sum.syn_per_s = sum.accepted_per_s.map(|accepted| accepted + sum.dropped_per_s);
    Some(sum)
}

fn states_together(ports: &[Port]) -> Option<BTreeMap<State, u64>> {
    let mut counted = ports.iter().filter_map(|port| port.connections.as_ref()).peekable();
    counted.peek()?;
    let mut sum = BTreeMap::new();
    for (&state, &count) in counted.flatten() {
        *sum.entry(state).or_default() += count;
    }
    Some(sum)
}
