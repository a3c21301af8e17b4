//! S-Clients (Banga & Druschel 1997, §4): D clients make connection attempts, each client one at a time. When an
//! attempt succeeds, its call continues independently of the client, which is then free for its next attempt. An
//! attempt is abandoned after the timeout T. So the rate of attempts does not depend on how fast the server handles
//! requests, unlike the rate of a closed workload.
//!
//! A client's next attempt begins according to one of two rules (§4.2 and §4.4):
//! - A think time after its connection was established, or immediately after an abandoned attempt. Without think time,
//!   and if the server refuses none, D attempts are always in progress, and their rate is at least D/T.
//! - When the next attempt of an arrival process is due. If all D clients have attempts in progress at that time, the
//!   attempt waits for the first free client. If D is at least T times the highest rate, a client is always free.
//!   Attempts that still wait at the end of the window are not made.
//!
//! After a refused attempt, the client waits for T.

use crate::{Arrivals, Chooser, Mix, OpenWorkload, Shard, WorkloadLimits};
use brimful_core::{End, Nanos, NextCall, Outcome, Workload};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Clients that make connection attempts at a rate that does not depend on the server (S-Clients, Banga & Druschel
/// 1997): one shard (part of the load). Each call is one attempt: the engine must open a connection for every call.
#[derive(Clone, Debug)]
pub struct SClients<C = Mix> {
    /// For each client without an attempt in progress, the time from which it may begin its next attempt.
    free: BinaryHeap<Reverse<Nanos>>,
    attempts: Attempts<C>,
    timeout: Nanos,
    window: Nanos,
}

/// How a load's connection attempts are scheduled.
#[derive(Clone, Debug)]
enum Attempts<C> {
    /// Each client makes its next attempt `think` after its last connection was established.
    Repeated { think: Nanos, chooser: C, calls_left: u64 },
    /// The attempts follow the schedule of an open workload. A free client makes each attempt.
    Scheduled(Box<OpenWorkload<C>>),
}

impl<C: Chooser> SClients<C> {
    /// Creates the clients that belong to this shard. All shards together have `clients` (D) clients. The engine
    /// abandons each attempt after `timeout` (T). The first attempts are spread evenly over `timeout`.
    pub fn new(clients: u64, timeout: Nanos, chooser: C, limits: WorkloadLimits, shard: Shard) -> SClients<C> {
        SClients::thinking(clients, timeout, Nanos::ZERO, chooser, limits, shard)
    }

    /// Like [`SClients::new`], but each client thinks for `think` after its connection was established, before its next
    /// attempt. The first attempts are spread evenly over the longer of `timeout` and `think`.
    pub fn thinking(
        clients: u64,
        timeout: Nanos,
        think: Nanos,
        chooser: C,
        limits: WorkloadLimits,
        shard: Shard,
    ) -> SClients<C> {
        let spread = u128::from(timeout.max(think).0);
        let first_due = |client: u64| Nanos((spread * u128::from(client) / u128::from(clients.max(1))) as u64);
        SClients {
            free: own_clients(clients, shard).map(|client| Reverse(first_due(client))).collect(),
            attempts: Attempts::Repeated { think, chooser, calls_left: shard.item_count(limits.calls) },
            timeout,
            window: limits.window,
        }
    }

    /// Creates the clients that belong to this shard. All shards together have `clients` clients. They make the
    /// attempts of `arrivals`. `arrivals` and `chooser` must be the same for all shards, as with [`OpenWorkload::new`].
    pub fn scheduled(
        clients: u64,
        timeout: Nanos,
        arrivals: Arrivals,
        chooser: C,
        limits: WorkloadLimits,
        shard: Shard,
    ) -> SClients<C> {
        SClients {
            free: own_clients(clients, shard).map(|_| Reverse(Nanos::ZERO)).collect(),
            attempts: Attempts::Scheduled(Box::new(OpenWorkload::new(arrivals, chooser, limits, shard))),
            timeout,
            window: limits.window,
        }
    }
}

/// The numbers of the clients that belong to a shard.
fn own_clients(clients: u64, shard: Shard) -> impl Iterator<Item = u64> {
    (0..clients).filter(move |client| client % shard.count == shard.index)
}

impl<C: Chooser> Attempts<C> {
    fn is_exhausted(&self) -> bool {
        match self {
            Attempts::Repeated { calls_left, .. } => *calls_left == 0,
            Attempts::Scheduled(schedule) => schedule.is_exhausted(),
        }
    }

    /// Returns the next attempt. The client that makes it has been free since `free`.
    fn next(&mut self, free: Nanos, now: Nanos, in_flight: usize) -> NextCall {
        match self {
            Attempts::Repeated { chooser, calls_left, .. } => match chooser.next() {
                Some(call) => {
                    *calls_left -= 1;
                    NextCall::Due { due: free, call }
                }
                None => NextCall::Done,
            },
            Attempts::Scheduled(schedule) => match schedule.next(now, in_flight) {
                NextCall::Due { due, call } if free > due => NextCall::Delayed { due, ready: free, call },
                next => next,
            },
        }
    }

    /// Time that a client waits between an established connection and its next attempt.
    fn think(&self) -> Nanos {
        match self {
            Attempts::Repeated { think, .. } => *think,
            Attempts::Scheduled(_) => Nanos::ZERO,
        }
    }
}

impl<C: Chooser> Workload for SClients<C> {
    fn next(&mut self, now: Nanos, in_flight: usize) -> NextCall {
        if self.attempts.is_exhausted() || now >= self.window {
            return NextCall::Done;
        }
        match self.free.peek() {
            Some(&Reverse(free)) if free <= now => {
                let next = self.attempts.next(free, now, in_flight);
                if matches!(next, NextCall::Due { .. } | NextCall::Delayed { .. }) {
                    self.free.pop();
                }
                next
            }
            Some(&Reverse(free)) => NextCall::NotBefore(free.min(self.window)),
            None => NextCall::NotBefore(self.window),
        }
    }

    fn on_established(&mut self, at: Nanos) {
        self.free.push(Reverse(at + self.attempts.think()));
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        match outcome.end {
            End::Abandoned => self.free.push(Reverse(outcome.at)),
            // A refusal, or an error because the host has no free port, takes almost no time. If the client made its
            // next attempt immediately, it would cause a busy loop. So the client waits for `timeout`.
            End::Refused | End::ClientLimited(_) => self.free.push(Reverse(outcome.at + self.timeout)),
            // The client of this call has been free since its connection was established.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{CallSpec, ClassId, Rate};

    const T: Nanos = Nanos::from_millis(100);

    fn s_clients(attempts: u64, calls: u64, shard: Shard) -> SClients {
        let limits = WorkloadLimits { window: Nanos::from_secs(1), calls };
        SClients::new(attempts, T, Mix::new(&[1.0], 0).unwrap(), limits, shard)
    }

    fn ended(at: Nanos, end: End) -> Outcome {
        Outcome { call: CallSpec::for_class(ClassId(0)), due: Nanos::ZERO, at, end, bytes_sent: 0, bytes_received: 0 }
    }

    /// Makes all attempts that are due by `now`, and returns their due times.
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
    fn a_client_thinks_after_a_connection_and_not_after_an_abandoned_attempt() {
        let think = Nanos::from_millis(300);
        let limits = WorkloadLimits { window: Nanos::from_secs(1), calls: u64::MAX };
        let mix = Mix::new(&[1.0], 0).unwrap();
        let mut workload = SClients::thinking(3, T, think, mix, limits, Shard::WHOLE);
        assert_eq!(due(&mut workload, think), [0, 100, 200].map(Nanos::from_millis), "spread over the think time");
        workload.on_established(Nanos::from_millis(201));
        workload.on_outcome(&ended(Nanos::from_millis(202), End::Completed { status: 200 }));
        workload.on_outcome(&ended(Nanos::from_millis(203), End::Abandoned));
        assert_eq!(due(&mut workload, Nanos::from_millis(900)), [203, 501].map(Nanos::from_millis));
    }

    fn scheduled(clients: u64, process: &str, rate: f64, shard: Shard) -> SClients {
        let arrivals = Arrivals::new(process.parse().unwrap(), Rate(rate), 3).unwrap();
        let limits = WorkloadLimits { window: Nanos::from_secs(1), calls: u64::MAX };
        SClients::scheduled(clients, T, arrivals, Mix::new(&[1.0], 0).unwrap(), limits, shard)
    }

    /// Runs the workload, in simulated time, with a server that never accepts a connection. Returns the due time and
    /// the start of each attempt.
    fn run_at_dead_server(mut workload: SClients) -> Vec<(Nanos, Nanos)> {
        let (mut now, mut attempts) = (Nanos::ZERO, Vec::new());
        let mut pending: std::collections::VecDeque<Nanos> = std::collections::VecDeque::new();
        loop {
            let next_abandoned = pending.front().map(|began| *began + T);
            now = match workload.next(now, pending.len()) {
                NextCall::Due { due, .. } => {
                    attempts.push((due, now));
                    pending.push_back(now);
                    now
                }
                NextCall::Delayed { due, ready, .. } => {
                    assert!(due < ready && ready <= now);
                    attempts.push((due, now));
                    pending.push_back(now);
                    now
                }
                NextCall::NotBefore(at) if next_abandoned.is_none_or(|abandoned| at < abandoned) => at,
                NextCall::NotBefore(_) | NextCall::WaitForOutcome => {
                    let at = next_abandoned.unwrap();
                    pending.pop_front();
                    workload.on_outcome(&ended(at, End::Abandoned));
                    at
                }
                NextCall::Done => return attempts,
            };
        }
    }

    #[test]
    fn attempts_follow_their_arrival_process_whatever_the_server_does() {
        // In a burst, 6 · 50 attempts per second are due. Each of them lasts for the timeout of 0.1 s, so at most 30
        // are in progress.
        let process = "onoff:6,10%,500ms";
        let expected: Vec<Nanos> = Arrivals::new(process.parse().unwrap(), Rate(50.0), 3)
            .unwrap()
            .take_while(|due| *due < Nanos::from_secs(1))
            .collect();
        let attempts = run_at_dead_server(scheduled(31, process, 50.0, Shard::WHOLE));
        assert!(attempts.iter().all(|(due, began)| due == began));
        assert_eq!(attempts.iter().map(|(due, _)| *due).collect::<Vec<_>>(), expected);
        let mut parts: Vec<Nanos> = Shard::WHOLE
            .split(3)
            .flat_map(|shard| run_at_dead_server(scheduled(93, process, 50.0, shard)))
            .map(|(due, _)| due)
            .collect();
        parts.sort_unstable();
        assert_eq!(parts, expected, "shards make the same attempts");
    }

    #[test]
    fn attempts_wait_while_all_clients_have_one_pending() {
        // 40 attempts per second are due. If none is accepted, two clients with a timeout of 0.1 s can make only 20 per
        // second.
        let attempts = run_at_dead_server(scheduled(2, "constant", 40.0, Shard::WHOLE));
        assert_eq!(attempts.len(), 20);
        for (nth, (due, began)) in attempts.into_iter().enumerate() {
            let nth = nth as u64;
            assert_eq!(due, Nanos::from_millis(25 * nth), "the due time comes from the schedule");
            assert_eq!(began, Nanos::from_millis(nth / 2 * 100 + nth % 2 * 25));
        }
    }

    #[test]
    fn the_load_ends_with_its_schedule() {
        let arrivals = Arrivals::new("constant".parse().unwrap(), Rate(40.0), 3).unwrap();
        let limits = WorkloadLimits { window: Nanos::from_secs(1), calls: 2 };
        let mix = Mix::new(&[1.0], 0).unwrap();
        let mut workload = SClients::scheduled(2, T, arrivals, mix, limits, Shard::WHOLE);
        assert_eq!(due(&mut workload, T), [0, 25].map(Nanos::from_millis));
        assert_eq!(workload.next(T, 2), NextCall::Done, "no client is free, but no attempt is left either");
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
