//! The closed workload: each of N clients makes a call, reads the answer, thinks, and calls again. This is the "simple
//! scheme" of Banga & Druschel (1997, §3): the clients adapt to the speed of the server and cannot overload it. A
//! client that cannot connect waits before it tries again (see `back_off.rs`).

use crate::back_off::BackOff;
use crate::{Mix, Shard, WorkloadLimits};
use brimful_core::{CallSpec, Nanos, NextCall, Outcome, Workload};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// One shard (part of the load) of a closed workload.
#[derive(Clone, Debug)]
pub struct ClosedWorkload<C = Mix> {
    /// The times at which thinking clients will make their next calls.
    ready: BinaryHeap<Reverse<Nanos>>,
    /// Number of failures in a row of each client whose last call failed. The key is the due time of the client's next
    /// call.
    failing: BTreeMap<Nanos, u8>,
    back_off: BackOff,
    chooser: C,
    think: Nanos,
    window: Nanos,
    calls_left: u64,
}

impl<C: Iterator<Item = CallSpec>> ClosedWorkload<C> {
    /// Creates the clients that belong to this shard. All shards together have `clients` clients. Each client thinks
    /// for `think` between an answer and its next call. The first calls are spread evenly over one think time, so that
    /// the clients do not all call at the same time.
    pub fn new(clients: u64, think: Nanos, chooser: C, limits: WorkloadLimits, shard: Shard) -> ClosedWorkload<C> {
        let first_due = |client: u64| (u128::from(think.0) * u128::from(client) / u128::from(clients.max(1))) as u64;
        let own_clients = (0..clients).filter(|client| client % shard.count == shard.index);
        ClosedWorkload {
            ready: own_clients.map(|client| Reverse(Nanos(first_due(client)))).collect(),
            failing: BTreeMap::new(),
            back_off: BackOff::new(0, shard),
            chooser,
            think,
            window: limits.window,
            calls_left: shard.item_count(limits.calls),
        }
    }

    /// Sets the seed from which the waits of clients that cannot connect are drawn.
    #[must_use]
    pub fn with_seed(self, seed: u64, shard: Shard) -> ClosedWorkload<C> {
        ClosedWorkload { back_off: BackOff::new(seed, shard), ..self }
    }
}

impl<C: Iterator<Item = CallSpec>> Workload for ClosedWorkload<C> {
    fn next(&mut self, now: Nanos, in_flight: usize) -> NextCall {
        if self.calls_left == 0 || now >= self.window {
            return NextCall::Done;
        }
        let Some(&Reverse(due)) = self.ready.peek() else {
            return if in_flight == 0 { NextCall::Done } else { NextCall::WaitForOutcome };
        };
        if due >= self.window {
            return if in_flight == 0 { NextCall::Done } else { NextCall::WaitForOutcome };
        }
        if due > now {
            return NextCall::NotBefore(due);
        }
        let Some(call) = self.chooser.next() else {
            return NextCall::Done;
        };
        self.ready.pop();
        self.calls_left -= 1;
        NextCall::Due { due, call }
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        let failures = if self.failing.is_empty() { 0 } else { self.failing.remove(&outcome.due).unwrap_or(0) };
        let (wait, failures) = self.back_off.wait_after(outcome, failures);
        let due = outcome.at + self.think.max(wait);
        if failures > 0 {
            self.failing.insert(due, failures);
        }
        self.ready.push(Reverse(due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{ClassId, End};

    const FOREVER: WorkloadLimits = WorkloadLimits { window: Nanos::from_secs(3600), calls: u64::MAX };

    fn closed(clients: u64, think: Nanos, limits: WorkloadLimits, shard: Shard) -> ClosedWorkload {
        ClosedWorkload::new(clients, think, Mix::new(&[1.0], 0).unwrap(), limits, shard)
    }

    fn ended(at: Nanos) -> Outcome {
        let end = End::Completed { status: 200 };
        Outcome { call: CallSpec::for_class(ClassId(0)), due: Nanos::ZERO, at, end, bytes_sent: 1, bytes_received: 1 }
    }

    /// Runs the workload with a server that answers every call after `service`. Returns the due times of the calls.
    fn run(mut workload: ClosedWorkload, service: Nanos, calls: usize) -> Vec<Nanos> {
        let (mut now, mut due_times, mut in_service) = (Nanos::ZERO, Vec::new(), BinaryHeap::new());
        while due_times.len() < calls {
            match workload.next(now, in_service.len()) {
                NextCall::Due { due, .. } | NextCall::Delayed { due, .. } => {
                    due_times.push(due);
                    in_service.push(Reverse(now + service));
                    continue;
                }
                NextCall::Done => break,
                NextCall::NotBefore(at) if in_service.peek().is_none_or(|Reverse(end)| at < *end) => {
                    now = at;
                    continue;
                }
                NextCall::NotBefore(_) | NextCall::WaitForOutcome => {}
            }
            let Reverse(end) = in_service.pop().unwrap();
            now = end;
            workload.on_outcome(&ended(end));
        }
        due_times
    }

    #[test]
    fn a_client_calls_again_one_think_time_after_its_answer() {
        let due = run(closed(1, Nanos::from_millis(9), FOREVER, Shard::WHOLE), Nanos::from_millis(1), 4);
        assert_eq!(due, [0, 10, 20, 30].map(Nanos::from_millis));
    }

    #[test]
    fn clients_keep_the_interactive_response_time_law() {
        // N = 20 clients with the response time R = 1 ms and the think time Z = 9 ms have a throughput of N / (R + Z) =
        // 2,000 calls per second.
        let due = run(closed(20, Nanos::from_millis(9), FOREVER, Shard::WHOLE), Nanos::from_millis(1), 2001);
        assert_eq!(due[2000], Nanos::from_secs(1));
    }

    #[test]
    fn shards_share_clients_and_calls() {
        let limits = WorkloadLimits { calls: 103, ..FOREVER };
        let per_shard = Shard::WHOLE.split(4).map(|s| run(closed(10, Nanos::ZERO, limits, s), Nanos(1), 1000).len());
        assert_eq!(per_shard.collect::<Vec<_>>(), [26, 26, 26, 25]);
    }

    #[test]
    fn it_ends_with_the_window() {
        let limits = WorkloadLimits { window: Nanos::from_millis(25), calls: u64::MAX };
        let due = run(closed(1, Nanos::from_millis(9), limits, Shard::WHOLE), Nanos::from_millis(1), 100);
        assert_eq!(due.len(), 3);
    }

    /// The number of calls that the clients make to a server that refuses all of them for one second.
    fn refusals(clients: u64) -> usize {
        let mut workload = closed(clients, Nanos::ZERO, FOREVER, Shard::WHOLE);
        let (mut now, mut refusals) = (Nanos::ZERO, 0);
        while now < Nanos::from_secs(1) {
            match workload.next(now, 0) {
                NextCall::Due { due, .. } | NextCall::Delayed { due, .. } => {
                    refusals += 1;
                    let at = now + Nanos::from_micros(20);
                    workload.on_outcome(&Outcome { due, end: End::Refused, ..ended(at) });
                }
                NextCall::NotBefore(at) => now = at,
                NextCall::Done | NextCall::WaitForOutcome => panic!("the clients must continue to call"),
            }
        }
        refusals
    }

    #[test]
    fn clients_that_cannot_connect_wait_longer_each_time() {
        for clients in [1, 5, 100] {
            let each = refusals(clients) as u64 / clients;
            assert!((6..=9).contains(&each), "{clients} clients: {each} refusals each");
        }
    }

    #[test]
    fn a_client_that_is_refused_does_not_hold_up_the_others() {
        let mut workload = closed(2, Nanos::ZERO, FOREVER, Shard::WHOLE);
        let at = Nanos::from_millis;
        for _ in 0..2 {
            workload.next(Nanos::ZERO, 0);
        }
        workload.on_outcome(&Outcome { end: End::Refused, ..ended(at(1)) });
        workload.on_outcome(&ended(at(2)));
        assert!(matches!(workload.next(at(2), 0), NextCall::Due { due, .. } if due == at(2)));
        assert!(matches!(workload.next(at(2), 1), NextCall::NotBefore(due) if due >= at(6) && due <= at(11)));
    }
}
