//! Connections of each port by state. The best available source is used: an eBPF program that counts every change of a
//! state (`gauges.rs`), otherwise counts of all sockets (`count.rs`).
//!
//! A count takes kernel time for each socket, so not every sample has a count. The eBPF program cannot count
//! connections in some states (`tally.rs`). The number of these connections is always that of the last count.

use super::count::Counter;
use super::gauges::GaugeWatch;
use super::tally::Tally;
use crate::search::SearchLimiter;
use crate::sock_diag::SockDiag;
use brimful_core::server::State;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Reads the connections of the watched ports by state.
#[derive(Debug)]
pub(super) struct StatesWatch {
    counter: Counter,
    /// The counts of the eBPF program, or the reason why the program cannot be used.
    gauges: Result<GaugeWatch, String>,
    /// The last count of all sockets, for the states that the eBPF program cannot count; `None` if the program is not
    /// used.
    counted: Option<Vec<Tally>>,
    search: SearchLimiter,
    ports: usize,
}

/// The connections of one port.
#[derive(Clone, Debug, Default)]
pub(super) struct PortStates {
    /// The connections by state; `None` if they were not counted for this sample.
    pub connections: Option<BTreeMap<State, u64>>,
    /// Number of connections accepted since monitoring began, if known.
    pub accepted: Option<u64>,
}

impl StatesWatch {
    /// Opens the best available source. `net` is the directory where the kernel lists sockets. If `ebpf` is false, the
    /// eBPF program is not used.
    pub fn open(net: &Path, ports: &[u16], ebpf: bool, diag: &mut io::Result<SockDiag>) -> StatesWatch {
        let mut counter = Counter::open(net, ports);
        let gauges = match ebpf {
            true => GaugeWatch::open(ports, &mut counter, diag),
            false => Err("it is turned off".to_owned()),
        };
        StatesWatch { counter, gauges, counted: None, search: SearchLimiter::default(), ports: ports.len() }
    }

    /// Reads the connections of each port, in the order of the ports.
    pub fn read(&mut self, diag: &mut io::Result<SockDiag>) -> Vec<PortStates> {
        let count = self.search.is_due();
        let begun = count.then(SearchLimiter::begin);
        let ports = match &mut self.gauges {
            Ok(gauges) => {
                if count {
                    self.counted = gauges.count(&mut self.counter, diag).or(self.counted.take());
                }
                let counted = self.counted.as_ref();
                let port = |(index, (mut connections, accepted)): (usize, (Option<BTreeMap<State, u64>>, u64))| {
                    if let Some((states, tallies)) = connections.as_mut().zip(counted) {
                        tallies[index].add_ungauged(states);
                    }
                    PortStates { connections, accepted: Some(accepted) }
                };
                gauges.read().into_iter().enumerate().map(port).collect()
            }
            Err(_) => match count.then(|| self.counter.count(diag)).flatten() {
                Some(tallies) => {
                    let port = |connections| PortStates { connections: Some(connections), accepted: None };
                    tallies.iter().map(|tally| port(tally.by_state())).collect()
                }
                None => vec![PortStates::default(); self.ports],
            },
        };
        if let Some(begun) = begun {
            self.search.end(begun);
        }
        ports
    }

    /// Makes the next reading count all sockets, even if they were counted recently.
    pub fn force_count(&mut self) {
        self.search = SearchLimiter::default();
    }

    /// Whether accepted connections are counted separately for each port.
    pub fn counts_accepted(&self) -> bool {
        self.gauges.is_ok()
    }

    /// Name of the source of the numbers of connections. If there is no source, the text is `none: `, the reason and a
    /// remedy.
    pub fn source(&self) -> String {
        let counter = self.counter.source();
        match &self.gauges {
            Ok(gauges) => match gauges.uncertainty() {
                None => counter,
                Some(moved) => {
                    let rest = self.search.interval().to_rounded_string();
                    let uncertain = match moved {
                        0 => String::new(),
                        moved => format!(", within {moved} connections, which moved during that count"),
                    };
                    format!(
                        "eBPF: gauges kept at every change of state, on top of a first count by {counter}{uncertain}; \
                         time_wait, syn_received, syn_sent, and fin_wait2 of connections that no process holds, are counted \
                         every {rest} at most. With --no-ebpf, all states are counted in this way"
                    )
                }
            },
            Err(_) if counter.starts_with("none") => counter,
            Err(why) => {
                let (took, rest) =
                    (self.counter.duration().to_rounded_string(), self.search.interval().to_rounded_string());
                format!("{counter}: a count took {took}, so there is one every {rest} at most; no eBPF: {why}")
            }
        }
    }
}
