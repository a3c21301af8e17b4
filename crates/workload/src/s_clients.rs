//! S-Clients (Banga & Druschel 1997, §4.2): D connection attempts are always in progress. When an attempt succeeds, its
//! call continues independently and a new attempt begins at once. A new attempt also begins when an attempt is
//! abandoned after the timeout T. So the rate of attempts is at least D/T whatever the server does, while a closed
//! workload would adapt to the server.

use crate::{Mix, Shard, WorkloadLimits};
use brimful_core::{CallSpec, End, Nanos, NextCall, Outcome, Workload};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One shard of S-Clients. Each call is one attempt: the engine must open a connection for every call.
#[derive(Clone, Debug)]
pub struct SClients<C = Mix> {
    /// The time at which each attempt that is not in progress begins.
    ready: BinaryHeap<Reverse<Nanos>>,
    chooser: C,
    timeout: Nanos,
    window: Nanos,
    calls_left: u64,
}

impl<C: Iterator<Item = CallSpec>> SClients<C> {
    /// Creates this shard's share of `attempts` (D). The engine abandons each attempt after `timeout` (T). The first
    /// attempts are spread evenly over `timeout`.
    pub fn new(attempts: u64, timeout: Nanos, chooser: C, extent: WorkloadLimits, shard: Shard) -> SClients<C> {
        let first_due =
            |attempt: u64| (u128::from(timeout.0) * u128::from(attempt) / u128::from(attempts.max(1))) as u64;
        let own_attempts = (0..attempts).filter(|attempt| attempt % shard.count == shard.index);
        SClients {
            ready: own_attempts.map(|attempt| Reverse(Nanos(first_due(attempt)))).collect(),
            chooser,
            timeout,
            window: extent.window,
            calls_left: shard.share(extent.calls),
        }
    }
}

impl<C: Iterator<Item = CallSpec>> Workload for SClients<C> {
    fn next(&mut self, now: Nanos, _in_flight: usize) -> NextCall {
        if self.calls_left == 0 || now >= self.window {
            return NextCall::Done;
        }
        match self.ready.peek() {
            Some(&Reverse(due)) if due <= now => {
                let Some(call) = self.chooser.next() else { return NextCall::Done };
                self.ready.pop();
                self.calls_left -= 1;
                NextCall::Due { due, call }
            }
            Some(&Reverse(due)) => NextCall::NotBefore(due.min(self.window)),
            None => NextCall::NotBefore(self.window),
        }
    }

    fn on_established(&mut self, at: Nanos) {
        self.ready.push(Reverse(at));
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        match outcome.end {
            End::Abandoned => self.ready.push(Reverse(outcome.at)),
            // The server refuses connections, or the host has no free port, without delay. If the next attempt began at
            // once, D attempts would run in a busy loop. So the next attempt begins when this attempt would have been
            // abandoned.
            End::Refused | End::ClientLimited(_) => self.ready.push(Reverse(outcome.at + self.timeout)),
            // The attempt succeeded earlier, and the next attempt began then.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::ClassId;

    const T: Nanos = Nanos::from_millis(100);

    fn s_clients(attempts: u64, calls: u64, shard: Shard) -> SClients {
        let extent = WorkloadLimits { window: Nanos::from_secs(1), calls };
        SClients::new(attempts, T, Mix::new(&[1.0], 0).unwrap(), extent, shard)
    }

    fn ended(at: Nanos, end: End) -> Outcome {
        Outcome { call: CallSpec::for_class(ClassId(0)), due: Nanos::ZERO, at, end, bytes_sent: 0, bytes_received: 0 }
    }

    /// The attempts that are due by `now`.
    fn due(workload: &mut SClients, now: Nanos) -> Vec<Nanos> {
        let mut due_times = Vec::new();
        while let NextCall::Due { due, .. } = workload.next(now, 0) {
            due_times.push(due);
        }
        due_times
    }

    #[test]
    fn the_first_attempts_are_spaced_over_the_timeout() {
        let mut workload = s_clients(4, u64::MAX, Shard::WHOLE);
        assert_eq!(due(&mut workload, T), [0, 25, 50, 75].map(Nanos::from_millis));
        assert_eq!(workload.next(T, 4), NextCall::NotBefore(Nanos::from_secs(1)), "all D attempts are in progress");
    }

    #[test]
    fn an_attempt_that_is_over_makes_room_for_the_next_and_an_answer_for_none() {
        let mut workload = s_clients(4, u64::MAX, Shard::WHOLE);
        due(&mut workload, T);
        workload.on_established(Nanos::from_millis(101));
        workload.on_outcome(&ended(Nanos::from_millis(102), End::Abandoned));
        workload.on_outcome(&ended(Nanos::from_millis(103), End::Completed { status: 200 }));
        workload.on_outcome(&ended(Nanos::from_millis(104), End::TimedOut));
        workload.on_outcome(&ended(Nanos::from_millis(105), End::Refused));
        let later = due(&mut workload, Nanos::from_millis(900));
        assert_eq!(later, [101, 102, 205].map(Nanos::from_millis));
    }

    #[test]
    fn shards_share_attempts_and_calls() {
        let per_shard: Vec<_> = Shard::WHOLE.split(3).map(|s| due(&mut s_clients(8, 7, s), T).len()).collect();
        assert_eq!(per_shard, [3, 2, 2]);
        let mut all: Vec<_> = Shard::WHOLE.split(3).flat_map(|s| due(&mut s_clients(8, 99, s), T)).collect();
        all.sort_unstable();
        assert_eq!(all, due(&mut s_clients(8, 99, Shard::WHOLE), T));
    }
}
