//! Connections of one port, counted by state.

use brimful_core::server::State;
use std::collections::BTreeMap;

/// Number of TCP states: one more than the highest state number (include/net/tcp_states.h).
pub(super) const STATES: usize = 13;
const ESTABLISHED: usize = 1;
const FIN_WAIT_1: usize = 4;
const FIN_WAIT_2: usize = 5;
const CLOSE_WAIT: usize = 8;
const LAST_ACK: usize = 9;
const CLOSING: usize = 11;

/// The possible states of a connection, each with the kernel's number for it.
const ALL: [(usize, State); 9] = [
    (ESTABLISHED, State::Established),
    (2, State::SynSent),
    (3, State::SynReceived),
    (FIN_WAIT_1, State::FinWait1),
    (FIN_WAIT_2, State::FinWait2),
    (6, State::TimeWait),
    (CLOSE_WAIT, State::CloseWait),
    (LAST_ACK, State::LastAck),
    (CLOSING, State::Closing),
];
/// Numbers of the states that the eBPF program can count (see `ebpf/connections.rs`).
pub(super) const GAUGED: [usize; 6] = [ESTABLISHED, FIN_WAIT_1, FIN_WAIT_2, CLOSE_WAIT, LAST_ACK, CLOSING];

/// Number of connections of one port in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Number of connections in each state. The index is the kernel's number of the state.
    states: [u64; STATES],
    /// Number of connections in FIN_WAIT2 that no process has open any more. The kernel keeps only a small record of
    /// each.
    records: u64,
}

impl Tally {
    /// Counts a connection. `record` says whether the kernel keeps only a small record of the connection, because no
    /// process has it open any more.
    pub fn add(&mut self, state: u8, record: bool) {
        let state = usize::from(state);
        if let Some(count) = self.states.get_mut(state) {
            *count += 1;
        }
        self.records += u64::from(record && state == FIN_WAIT_2);
    }

    /// Number of connections in each state.
    pub fn by_state(&self) -> BTreeMap<State, u64> {
        ALL.into_iter().map(|(number, state)| (state, self.states[number])).collect()
    }

    /// Adds the connections that the eBPF program cannot count: those in SYN_SENT, SYN_RECV and TIME_WAIT, and those in
    /// FIN_WAIT2 that no process has open.
    pub fn add_ungauged(&self, states: &mut BTreeMap<State, u64>) {
        for (number, state) in ALL {
            let ungauged =
                if GAUGED.contains(&number) { self.states[number] - self.gauge(number) } else { self.states[number] };
            *states.entry(state).or_default() += ungauged;
        }
    }

    /// Number of connections in this state that the eBPF program would count: without the records of closed sockets.
    pub fn gauge(&self, state: usize) -> u64 {
        self.states[state] - if state == FIN_WAIT_2 { self.records } else { 0 }
    }
}

/// Calls `count` for each state that the eBPF program can count, and returns the results by state.
pub(super) fn gauged_by_state(mut count: impl FnMut(usize) -> u64) -> BTreeMap<State, u64> {
    let gauged = ALL.into_iter().filter(|(number, _)| GAUGED.contains(number));
    gauged.map(|(number, state)| (state, count(number))).collect()
}
