//! Connections by state, from the eBPF program that counts every change of a state ([`ebpf`](crate::ebpf)).
//!
//! The program's numbers are called gauges: for each state, the number of connections that entered the state since the
//! program was attached, minus the number that left it. The connections that existed before are counted once, and this
//! count (the baseline) is added to the gauges.
//!
//! The gauges are read before and after the count. If both readings are equal, no connection changed its state during
//! the count, and from then on the sums are exact. Two changes cannot cancel out: new connections are counted
//! separately, and connections pass from state to state in one direction only. If the readings differ, the uncertainty
//! of the sums is the number of connections that changed their state. Later counts may reduce this uncertainty.

use super::count::Counter;
use super::tally::{GAUGED, STATES, Tally, gauged_by_state};
use crate::ebpf::{Gauges, PortGauges, own_network_namespace};
use crate::sock_diag::SockDiag;
use brimful_core::server::State;
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// Counts the connections of the watched ports by state: an eBPF program counts the changes (gauges), and the counts at
/// its start (the baseline) are added.
pub(super) struct GaugeWatch {
    gauges: Gauges,
    ports: usize,
    baseline: Option<Baseline>,
}

/// For each port, the number of connections in each state that must be added to the eBPF program's counts of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Baseline {
    states: Vec<[i64; STATES]>,
    /// Maximum number of connections that may have changed their state during the count.
    moved: u64,
}

/// Maximum number of counts when the eBPF program is attached. Counting stops earlier if a count is exact.
const MAX_COUNTS: usize = 5;

impl GaugeWatch {
    /// Attaches the eBPF program in the network namespace of the calling thread. `diag` and `counter` must have been
    /// opened in the same namespace.
    pub fn open(ports: &[u16], counter: &mut Counter, diag: &mut io::Result<SockDiag>) -> Result<GaugeWatch, String> {
        let namespace = own_network_namespace().map_err(|error| error.to_string())?;
        let gauges = Gauges::attach(ports, namespace).map_err(|error| error.to_string())?;
        let mut watch = GaugeWatch { gauges, ports: ports.len(), baseline: None };
        for _ in 0..MAX_COUNTS {
            watch.count(counter, diag);
            if watch.is_exact() {
                break;
            }
        }
        Ok(watch)
    }

    /// Counts the connections of each port. If this count is more certain than the baseline (the last accepted count),
    /// it becomes the new baseline.
    pub fn count(&mut self, counter: &mut Counter, diag: &mut io::Result<SockDiag>) -> Option<Vec<Tally>> {
        let before = self.read_gauges();
        let tallies = counter.count(diag);
        let after = self.read_gauges();
        let baseline = tallies.as_ref().map(|tallies| Baseline::from_count(&before, tallies, &after));
        if baseline.as_ref().is_some_and(|new| self.baseline.as_ref().is_none_or(|old| new.moved < old.moved)) {
            self.baseline = baseline;
        }
        tallies
    }

    /// Whether the numbers of connections are exact, so that another count cannot improve them.
    pub fn is_exact(&self) -> bool {
        self.uncertainty() == Some(0)
    }

    /// The largest possible error of the number of connections; `None` if there was no count.
    pub fn uncertainty(&self) -> Option<u64> {
        self.baseline.as_ref().map(|baseline| baseline.moved)
    }

    /// For each port, the number of connections in each state, and the number of connections accepted since the eBPF
    /// program was attached.
    pub fn read(&mut self) -> Vec<(Option<BTreeMap<State, u64>>, u64)> {
        let gauges = self.read_gauges();
        let mut baseline = self.baseline.as_mut();
        let port = |(index, gauges): (usize, &PortGauges)| {
            let states = baseline.as_mut().map(|baseline| counts_by_state(&mut baseline.states[index], gauges));
            (states, gauges.accepted)
        };
        gauges.iter().enumerate().map(port).collect()
    }

    fn read_gauges(&self) -> Vec<PortGauges> {
        (0..self.ports).map(|port| self.gauges.read(port)).collect()
    }
}

impl fmt::Debug for GaugeWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GaugeWatch").field("baseline", &self.baseline).finish_non_exhaustive()
    }
}

impl Baseline {
    fn from_count(before: &[PortGauges], tallies: &[Tally], after: &[PortGauges]) -> Baseline {
        let states = tallies.iter().zip(after).map(|(tally, after)| {
            std::array::from_fn(|state| tally.gauge(state).cast_signed().saturating_sub(after.states[state]))
        });
        let moved = before.iter().zip(after).map(|(before, after)| {
            let between = |state: usize| before.states[state].abs_diff(after.states[state]);
            after.accepted.abs_diff(before.accepted) + GAUGED.into_iter().map(between).sum::<u64>()
        });
        Baseline { states: states.collect(), moved: moved.sum() }
    }
}

/// The number of connections of a port in each state: the baseline (an earlier count) plus the changes since then
/// (gauges). A negative sum shows that the baseline is too low, so the baseline is raised.
fn counts_by_state(baseline: &mut [i64; STATES], gauges: &PortGauges) -> BTreeMap<State, u64> {
    gauged_by_state(|state| {
        let gauge = gauges.states[state];
        baseline[state] = baseline[state].max(gauge.saturating_neg());
        baseline[state].saturating_add(gauge).max(0).cast_unsigned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::server::State::{CloseWait, Established, FinWait2};

    const ESTABLISHED: u8 = 1;
    const FIN_WAIT_2: u8 = 5;

    fn tally(established: usize, fin_wait_2: usize, of_them_records: usize) -> Tally {
        let mut tally = Tally::default();
        (0..established).for_each(|_| tally.add(ESTABLISHED, false));
        (0..fin_wait_2).for_each(|n| tally.add(FIN_WAIT_2, n < of_them_records));
        tally.add(6, true);
        tally
    }

    fn gauges(established: i64, fin_wait_2: i64, accepted: u64) -> PortGauges {
        let mut states = [0; STATES];
        (states[usize::from(ESTABLISHED)], states[usize::from(FIN_WAIT_2)]) = (established, fin_wait_2);
        PortGauges { states, accepted }
    }

    #[test]
    fn what_was_counted_once_is_carried_on_by_the_gauges() {
        let quiet = gauges(3, 0, 9);
        let mut baseline = Baseline::from_count(&[quiet], &[tally(10, 5, 2)], &[quiet]);
        assert_eq!(baseline.moved, 0);
        let now = counts_by_state(&mut baseline.states[0], &gauges(-4, 1, 20));
        assert_eq!(
            (now[&Established], now[&FinWait2], now[&CloseWait]),
            (3, 4, 0),
            "gauges exclude the records of closed sockets"
        );
        assert_eq!(now.len(), GAUGED.len());
    }

    #[test]
    fn whatever_moves_during_a_count_is_noticed() {
        let before = gauges(3, 0, 9);
        for (after, moved) in [
            (gauges(4, 0, 10), 2),
            (gauges(3, 0, 10), 1), // one connection was opened and another was closed
            (gauges(2, 1, 9), 2),
            (gauges(2, 0, 9), 1),
        ] {
            assert_eq!(Baseline::from_count(&[before, before], &[tally(3, 0, 0); 2], &[before, after]).moved, moved);
        }
    }

    #[test]
    fn a_base_that_proves_too_low_is_raised_for_good() {
        let mut baseline = [0; STATES];
        baseline[usize::from(ESTABLISHED)] = 5;
        let mut established = |gauge| counts_by_state(&mut baseline, &gauges(gauge, 0, 0))[&Established];
        assert_eq!([established(0), established(-7), established(-6), established(i64::MIN)], [5, 0, 1, 0]);
    }
}
