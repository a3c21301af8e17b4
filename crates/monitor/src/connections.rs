//! The group of metrics `connections`: for each of the server's ports, the listening sockets, and the number of
//! connections in each state.

mod count;
mod gauges;
mod states;
mod tables;
mod tally;

use crate::counter::{TimeSpan, growth};
use crate::group::{Group, PeriodMetrics, WatchContext};
use crate::listener::{ListenerSample, ListenerWatch};
use crate::network::columns::Columns;
use crate::procfs::ProcFile;
use crate::sock_diag::SockDiag;
use crate::{MonitorError, NetNamespace};
use brimful_core::Nanos;
use brimful_core::server::{AcceptQueue, Connections, Listener, Port, Server, ServerInterval, State};
use serde::{Deserialize, Serialize};
use states::{PortStates, StatesWatch};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Listening sockets and connections of the server's ports at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionsSample {
    /// The ports, in the order of the configuration.
    pub ports: Vec<PortSample>,
    /// Number of connections accepted in the whole network namespace since boot. It is read only if accepted
    /// connections cannot be counted for each port.
    pub passive_opens: Option<u64>,
}

/// Listening sockets and connections of one port at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortSample {
    /// Number of the TCP port on which the server listens.
    pub port: u16,
    /// The port's listening sockets; `None` while no socket listens.
    pub listener: Option<ListenerSample>,
    /// Number of SYNs that the port's listening sockets dropped since monitoring began; `None` if unknown. Sockets that
    /// were closed meanwhile are included.
    pub drops: Option<u64>,
    /// Number of connections accepted on this port since monitoring began; `None` if accepted connections are not
    /// counted for each port.
    pub accepted: Option<u64>,
    /// Number of the port's connections in each state that can be counted; `None` if connections were not counted for
    /// this sample.
    pub connections: Option<BTreeMap<State, u64>>,
}

/// The group of metrics `connections`, which are about the server's ports.
pub enum ConnectionsGroup {}

/// Reads the listening sockets and connections of the server's ports.
#[derive(Debug)]
pub struct ConnectionsWatch {
    /// Reads the configured ports; `None` if no port is configured.
    ports: Option<PortsWatch>,
}

#[derive(Debug)]
struct PortsWatch {
    numbers: Vec<u16>,
    diag: io::Result<SockDiag>,
    listeners: ListenerWatch,
    states: StatesWatch,
    snmp: Option<ProcFile>,
    opens: Columns<1>,
}

impl Group for ConnectionsGroup {
    type Watch = ConnectionsWatch;
    type Sample = ConnectionsSample;
    type Metrics = Connections;

    const IS_PER_NETNS: bool = true;

    /// Opens the sources of the metrics. If the server's network namespace was found automatically and cannot be
    /// entered, the function returns `None`. If the user named a namespace that cannot be entered, the function returns
    /// an error.
    fn open(site: &mut WatchContext<'_>) -> Result<Option<ConnectionsWatch>, MonitorError> {
        let proc = site.root.join("proc");
        let ports = site.ports;
        let ebpf = site.ebpf;
        // Entering a network namespace needs a privilege, so it is entered only if there are ports to watch.
        let opened = match ports.is_empty() {
            true => site.chosen_netns.namespace.read_within(&proc, |net| ConnectionsWatch::open(net, ports, ebpf)),
            false => site.chosen_netns.namespace.within(&proc, |net| ConnectionsWatch::open(net, ports, ebpf)),
        };
        match opened {
            Ok(watch) => Ok(Some(watch)),
            Err(refused) if *site.netns == NetNamespace::Server => {
                site.mark_absent("listener", &refused);
                site.mark_absent("connections", &refused);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn read(watch: &mut ConnectionsWatch, buffer: &mut Vec<u8>) -> ConnectionsSample {
        watch.ports.as_mut().map(|ports| ports.read(buffer)).unwrap_or_default()
    }

    fn sources(watch: &ConnectionsWatch, sources: &mut BTreeMap<String, String>) {
        let none = || "none: no port was named".to_owned();
        let ports = watch.ports.as_ref();
        sources.insert("listener".to_owned(), ports.map_or_else(none, PortsWatch::listener_source));
        sources.insert("connections".to_owned(), ports.map_or_else(none, |ports| ports.states.source()));
    }

    fn since(earlier: &ConnectionsSample, later: &ConnectionsSample, over: Nanos) -> Connections {
        later.since(earlier, over)
    }

    fn over(samples: &[&ConnectionsSample], over: Nanos) -> Connections {
        samples[samples.len() - 1].with_last_listeners(samples).since(samples[0], over)
    }

    fn merge(kept: &mut ConnectionsSample, dropped: &ConnectionsSample) {
        for (kept, dropped) in kept.ports.iter_mut().zip(&dropped.ports) {
            if let (Some(kept), Some(dropped)) = (&mut kept.listener, &dropped.listener) {
                kept.accept_queue_max = kept.accept_queue_max.max(dropped.accept_queue_max);
                kept.fullest = kept.fullest.fuller(dropped.fullest);
            }
        }
    }

    fn put(period: PeriodMetrics<Connections>, samples: &[&ConnectionsSample], _: Nanos, server: &mut Server) {
        server.connections = with_longest_queues(period.metrics, samples);
    }

    fn put_interval(period: &PeriodMetrics<Connections>, last: &ConnectionsSample, interval: &mut ServerInterval) {
        let Connections { listener, connections, .. } = &period.metrics;
        interval.established = connections.as_ref().and_then(|states| states.get(&State::Established).copied());
        let mut queues = last.ports.iter().filter_map(|port| Some(port.listener?.accept_queue)).peekable();
        interval.accept_queue = queues.peek().is_some().then(|| queues.sum());
        interval.dropped_per_s = listener.map(|listener| listener.dropped_per_s);
        interval.accepted_per_s = listener.and_then(|listener| listener.accepted_per_s);
    }
}

impl ConnectionsWatch {
    /// Opens all sources of metrics. Must be called by a thread in the network namespace of the ports; the sources keep
    /// reading this namespace. `net` is the path of /proc/net in this namespace. If `ebpf` is false, eBPF is not used.
    pub fn open(net: &Path, ports: &[u16], ebpf: bool) -> ConnectionsWatch {
        ConnectionsWatch { ports: (!ports.is_empty()).then(|| PortsWatch::open(net, ports, ebpf)) }
    }

    /// Makes the next reading count the connections, even if they were counted recently.
    pub fn force_count(&mut self) {
        self.ports.iter_mut().for_each(|ports| ports.states.force_count());
    }
}

impl PortsWatch {
    fn open(net: &Path, ports: &[u16], ebpf: bool) -> PortsWatch {
        let mut diag = SockDiag::open(ports);
        PortsWatch {
            numbers: ports.to_vec(),
            listeners: ListenerWatch::open(net, ports, &mut diag),
            states: StatesWatch::open(net, ports, ebpf, &mut diag),
            snmp: ProcFile::open(&net.join("snmp")).ok(),
            opens: Columns::new("Tcp:", ["PassiveOpens"]),
            diag,
        }
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> ConnectionsSample {
        let listeners = self.listeners.read(&mut self.diag, buffer);
        let states = self.states.read(&mut self.diag);
        let port = |((&port, (listener, drops)), states): ((&u16, _), PortStates)| PortSample {
            port,
            listener,
            drops,
            accepted: states.accepted,
            connections: states.connections,
        };
        ConnectionsSample {
            ports: self.numbers.iter().zip(listeners).zip(states).map(port).collect(),
            passive_opens: if self.states.counts_accepted() { None } else { self.passive_opens(buffer) },
        }
    }

    fn passive_opens(&mut self, buffer: &mut Vec<u8>) -> Option<u64> {
        let [opens] = self.opens.read(self.snmp.as_ref()?.read(buffer).ok()?);
        opens
    }

    fn listener_source(&self) -> String {
        let listeners = self.listeners.source(&self.diag);
        let accepted = match &self.snmp {
            _ if self.states.counts_accepted() => "eBPF, each port's own",
            Some(_) => "/proc/net/snmp PassiveOpens, all ports",
            None => "none, there is no /proc/net/snmp",
        };
        match listeners.starts_with("none") {
            true => listeners,
            false => format!("{listeners}; connections: {accepted}"),
        }
    }
}

impl ConnectionsSample {
    /// A copy of this sample for the end of a run, when the server may have ended. A port without listening sockets
    /// gets the last listening sockets that `samples` contains for it.
    fn with_last_listeners(&self, samples: &[&ConnectionsSample]) -> ConnectionsSample {
        let mut all = self.clone();
        for port in all.ports.iter_mut().filter(|port| port.listener.is_none()) {
            port.listener = samples.iter().rev().find_map(|seen| seen.port(port.port)?.listener);
        }
        all
    }

    /// The sample of the port with this number.
    fn port(&self, number: u16) -> Option<&PortSample> {
        self.ports.iter().find(|port| port.port == number)
    }

    /// The metrics from an earlier sample to this sample. `over` is the time between the two samples.
    fn since(&self, earlier: &ConnectionsSample, over: Nanos) -> Connections {
        let over = TimeSpan(over);
        let ports: Vec<Port> = (self.ports.iter())
            .map(|now| {
                let before = earlier.port(now.port);
                let accepted = before.and_then(|before| over.optional_per_s(before.accepted, now.accepted));
                let dropped = before.and_then(|before| before.drops.zip(now.drops));
                let listener = now.listener.zip(dropped).map(|(listener, (before, now))| {
                    let dropped = over.per_s(0, growth(before, now).unwrap_or(now)).unwrap_or_default();
                    listener_at(&listener, accepted, dropped)
                });
                Port { port: now.port, listener, connections: now.connections.clone() }
            })
            .collect();
        let all_ports = over.optional_per_s(earlier.passive_opens, self.passive_opens);
        Connections { listener: together(&ports, all_ports), connections: states_together(&ports), ports }
    }
}

/// Sets the metrics that cannot be derived from the first and the last sample: the longest accept queues, and the
/// latest count of connections, because the last sample may not contain a count.
fn with_longest_queues(mut figures: Connections, samples: &[&ConnectionsSample]) -> Connections {
    let fullest_of =
        |queues: &mut dyn Iterator<Item = AcceptQueue>| queues.reduce(AcceptQueue::fuller).unwrap_or_default();
    for port in &mut figures.ports {
        let seen = samples.iter().filter_map(|sample| sample.port(port.port));
        if let Some(listener) = &mut port.listener {
            let queues = seen.clone().filter_map(|seen| Some(seen.listener?.accept_queue_max));
            listener.accept_queue_max = queues.max().unwrap_or_default();
            listener.fullest = fullest_of(&mut seen.clone().filter_map(|seen| Some(seen.listener?.fullest)));
        }
        port.connections = seen.rev().find_map(|seen| seen.connections.clone());
    }
    figures.connections = states_together(&figures.ports);
    if let Some(listener) = &mut figures.listener {
        let together = |sample: &&ConnectionsSample| -> u64 {
            sample.ports.iter().filter_map(|port| Some(port.listener?.accept_queue_max)).sum()
        };
        listener.accept_queue_max = samples.iter().map(together).max().unwrap_or_default();
        listener.fullest = fullest_of(&mut figures.ports.iter().filter_map(|port| Some(port.listener?.fullest)));
    }
    figures
}

fn listener_at(now: &ListenerSample, accepted: Option<f64>, dropped: f64) -> Listener {
    Listener {
        syn_per_s: accepted.map(|accepted| accepted + dropped),
        accepted_per_s: accepted,
        dropped_per_s: dropped,
        accept_queue: now.accept_queue,
        accept_queue_max: now.accept_queue_max,
        backlog: now.backlog,
        sockets: now.sockets,
        fullest: now.fullest,
    }
}

/// The metrics of the listening sockets of all ports together. If accepted connections are not counted for each port,
/// the rate of the whole network namespace (`all_ports`) is used.
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
            fullest: so_far.fullest.fuller(listener.fullest),
            syn_per_s: None,
        });
    }
    let mut sum = sum?;
    sum.accepted_per_s = sum.accepted_per_s.or(all_ports);
    sum.syn_per_s = sum.accepted_per_s.map(|accepted| accepted + sum.dropped_per_s);
    Some(sum)
}

/// The sum of the connections of several ports; `None` if no connections were counted.
fn states_together(ports: &[Port]) -> Option<BTreeMap<State, u64>> {
    let mut counted = ports.iter().filter_map(|port| port.connections.as_ref()).peekable();
    counted.peek()?;
    let mut sum = BTreeMap::new();
    for (&state, &count) in counted.flatten() {
        *sum.entry(state).or_default() += count;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(port: u16, accepted: Option<u64>, drops: u64, established: Option<u64>) -> PortSample {
        PortSample {
            port,
            listener: Some(ListenerSample {
                accept_queue: 2,
                accept_queue_max: 3,
                backlog: 8,
                sockets: 1,
                fullest: AcceptQueue { length: 3, limit: u64::from(port) },
            }),
            drops: Some(drops),
            accepted,
            connections: established.map(|count| [(State::Established, count)].into()),
        }
    }

    fn sample(ports: Vec<PortSample>, passive_opens: Option<u64>) -> ConnectionsSample {
        ConnectionsSample { ports, passive_opens }
    }

    #[test]
    fn ports_have_figures_of_their_own_and_a_sum() {
        let before = sample(vec![port(80, Some(10), 1, Some(7)), port(443, Some(100), 5, Some(9))], None);
        let now = sample(vec![port(80, Some(30), 5, Some(4)), port(443, Some(200), 5, None)], None);
        let figures = now.since(&before, Nanos::from_secs(2));
        let [http, https] = [0, 1].map(|port| figures.ports[port].listener.unwrap());
        assert_eq!((http.syn_per_s, http.accepted_per_s, http.dropped_per_s), (Some(12.0), Some(10.0), 2.0));
        assert_eq!((https.syn_per_s, https.accepted_per_s, https.dropped_per_s), (Some(50.0), Some(50.0), 0.0));
        let all = figures.listener.unwrap();
        assert_eq!((all.syn_per_s, all.accepted_per_s, all.dropped_per_s), (Some(62.0), Some(60.0), 2.0));
        assert_eq!((all.accept_queue, all.accept_queue_max, all.backlog, all.sockets), (4, 6, 16, 2));
        assert_eq!(all.fullest, AcceptQueue { length: 3, limit: 80 });
        assert_eq!(figures.ports[1].connections, None, "connections were not counted for this sample");
        assert_eq!(figures.connections, Some([(State::Established, 4)].into()));
    }

    #[test]
    fn the_namespace_stands_in_for_ports_that_do_not_know_their_own() {
        let before = sample(vec![port(80, None, 1, None), port(443, None, 1, None)], Some(1000));
        let now = sample(vec![port(80, None, 3, None), port(443, None, 1, None)], Some(1040));
        let figures = now.since(&before, Nanos::from_secs(1));
        assert_eq!(figures.ports[0].listener.unwrap().syn_per_s, None);
        let all = figures.listener.unwrap();
        assert_eq!((all.syn_per_s, all.accepted_per_s, all.dropped_per_s), (Some(42.0), Some(40.0), 2.0));
        assert_eq!(figures.connections, None);
    }

    #[test]
    fn a_listener_that_came_meanwhile_has_figures_and_loses_no_drops() {
        let before = sample(vec![PortSample { listener: None, ..port(80, Some(5), 0, None) }], None);
        let now = sample(vec![port(80, Some(25), 8, None)], None);
        let all = now.since(&before, Nanos::from_secs(2)).listener.unwrap();
        assert_eq!((all.syn_per_s, all.accepted_per_s, all.dropped_per_s), (Some(14.0), Some(10.0), 4.0));
        let unknown = sample(vec![PortSample { drops: None, ..port(80, Some(25), 0, None) }], None);
        assert_eq!(unknown.since(&before, Nanos::from_secs(2)).listener, None);
    }

    #[test]
    fn a_port_without_listener_has_no_figures_of_one() {
        let silent = PortSample { listener: None, ..port(80, Some(5), 0, Some(0)) };
        let figures = sample(vec![silent.clone()], None).since(&sample(vec![silent], None), Nanos::from_secs(1));
        assert_eq!((figures.listener, figures.ports[0].listener), (None, None));
        assert_eq!(figures.connections, Some([(State::Established, 0)].into()));
    }
}
