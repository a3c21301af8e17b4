//! A closed workload whose clients pipeline their calls. Clients form groups, and each group sends bursts of calls on
//! its own connection.
//!
//! All calls of a burst are due at the same instant. The next burst is due one think time after the last answer, as
//! with wrk's scripts and httperf's bursts. A burst is sent with one write, and wakes the server up only once. So calls
//! in bursts need less CPU time than single calls, both of the server and of the generator.
//!
//! A client whose call is answered early waits until the other calls of its group are answered; then the think time
//! begins. This wait is not part of any response time, because the next call is due only after the think time. A group
//! that cannot connect waits before its next burst (see `back_off.rs`).

use crate::back_off::BackOff;
use crate::{Mix, Shard, WorkloadLimits};
use brimful_core::{CallSpec, Nanos, NextCall, Outcome, SessionId, Workload};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One shard (part of the load) of a closed workload whose clients send bursts of calls.
#[derive(Clone, Debug)]
pub struct ClosedBursts<C = Mix> {
    groups: Vec<Group>,
    /// For each group whose think time is over or in progress: the due time of its next burst, and its index in
    /// `groups`.
    ready: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The burst whose calls are being passed to the engine; `None` between bursts.
    burst: Option<Burst>,
    back_off: BackOff,
    chooser: C,
    think: Nanos,
    shard: Shard,
    window: Nanos,
    calls_left: u64,
}

/// A group of clients that share a connection.
#[derive(Clone, Copy, Debug)]
struct Group {
    clients: u32,
    /// Number of calls of the group's latest burst that have not been answered. This includes calls that were not
    /// passed to the engine yet.
    unanswered: u32,
    /// Number of bursts in a row whose calls failed.
    failures: u8,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    due: Nanos,
    session: SessionId,
    /// Number of the burst's calls that have not been passed to the engine yet; at least 1.
    left: u32,
}

impl<C: Iterator<Item = CallSpec>> ClosedBursts<C> {
    /// Creates the groups of `clients` that belong to this shard. A group has `size` clients; the last group may be
    /// smaller. Between the last answer of a burst and the next burst, a group thinks for `think`. The first bursts are
    /// spread evenly over one think time.
    pub fn new(
        clients: u64,
        size: u32,
        think: Nanos,
        chooser: C,
        limits: WorkloadLimits,
        shard: Shard,
    ) -> ClosedBursts<C> {
        let size = u64::from(size.max(1));
        let count = clients.div_ceil(size);
        let own_groups = || (0..count).filter(|group| group % shard.count == shard.index);
        let group_size = |group: u64| size.min(clients - group * size) as u32;
        let first_due = |group: u64| Nanos((u128::from(think.0) * u128::from(group) / u128::from(count)) as u64);
        ClosedBursts {
            groups: own_groups()
                .map(|group| Group { clients: group_size(group), unanswered: 0, failures: 0 })
                .collect(),
            ready: own_groups().zip(0..).map(|(group, place)| Reverse((first_due(group), place))).collect(),
            burst: None,
            back_off: BackOff::new(0, shard),
            chooser,
            think,
            shard,
            window: limits.window,
            calls_left: shard.item_count(limits.calls),
        }
    }

    /// Sets the seed from which the waits of groups that cannot connect are drawn.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> ClosedBursts<C> {
        ClosedBursts { back_off: BackOff::new(seed, self.shard), ..self }
    }

    /// Returns the session ID of the calls of a group: the number of the group in the whole load. `place` is the index
    /// of the group in `groups`.
    fn session(&self, place: u32) -> SessionId {
        SessionId((u64::from(place) * self.shard.count + self.shard.index) as u32)
    }

    fn place(&self, session: SessionId) -> u32 {
        // A single shard does not need the division, which takes longer than all other work for an outcome.
        if self.shard.count == 1 { session.0 } else { (u64::from(session.0) / self.shard.count) as u32 }
    }

    /// Returns the burst whose calls are being passed to the engine. If there is none, returns the next burst that is
    /// due.
    fn burst(&mut self, now: Nanos) -> Option<Burst> {
        if self.burst.is_some() {
            return self.burst;
        }
        let &Reverse((due, place)) = self.ready.peek().filter(|Reverse((due, _))| *due <= now)?;
        self.ready.pop();
        let session = self.session(place);
        let group = self.groups.get_mut(place as usize)?;
        group.unanswered = group.clients;
        Some(Burst { due, session, left: group.clients })
    }
}

impl<C: Iterator<Item = CallSpec>> Workload for ClosedBursts<C> {
    fn next(&mut self, now: Nanos, in_flight: usize) -> NextCall {
        if self.calls_left == 0 || now >= self.window {
            return NextCall::Done;
        }
        let Some(burst) = self.burst(now) else {
            return match self.ready.peek() {
                Some(&Reverse((due, _))) if due < self.window => NextCall::NotBefore(due),
                _ if in_flight == 0 => NextCall::Done,
                _ => NextCall::WaitForOutcome,
            };
        };
        let Some(call) = self.chooser.next() else {
            return NextCall::Done;
        };
        self.calls_left -= 1;
        self.burst = (burst.left > 1).then_some(Burst { left: burst.left - 1, ..burst });
        NextCall::Due { due: burst.due, call: CallSpec { session: Some(burst.session), ..call } }
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        let Some(place) = outcome.call.session.map(|session| self.place(session)) else { return };
        let Some(group) = self.groups.get_mut(place as usize) else { return };
        group.unanswered = group.unanswered.saturating_sub(1);
        // The calls of a burst share a connection, so all their failures count as one failure.
        let (wait, failures) = self.back_off.wait_after(outcome, group.failures);
        if group.unanswered == 0 {
            group.failures = failures;
            self.ready.push(Reverse((outcome.at + self.think.max(wait), place)));
        } else if failures == 0 {
            group.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::End;

    const FOREVER: WorkloadLimits = WorkloadLimits { window: Nanos::from_secs(3600), calls: u64::MAX };

    fn bursts(clients: u64, size: u32, think: Nanos, limits: WorkloadLimits, shard: Shard) -> ClosedBursts {
        ClosedBursts::new(clients, size, think, Mix::new(&[1.0], 0).unwrap(), limits, shard)
    }

    fn ended(call: CallSpec, at: Nanos) -> Outcome {
        let end = End::Completed { status: 200 };
        Outcome { call, due: Nanos::ZERO, at, end, bytes_sent: 1, bytes_received: 1 }
    }

    /// Takes the calls that are due at `now` from the workload. Returns the session, the due time and the request of
    /// each.
    fn due(workload: &mut ClosedBursts, now: Nanos) -> Vec<(u32, Nanos, CallSpec)> {
        let mut calls = Vec::new();
        while let NextCall::Due { due, call } = workload.next(now, calls.len()) {
            calls.push((call.session.unwrap().0, due, call));
        }
        calls
    }

    #[test]
    fn the_next_burst_is_due_one_think_time_after_the_last_answer() {
        let ms = Nanos::from_millis;
        let mut workload = bursts(5, 3, ms(10), FOREVER, Shard::WHOLE);
        let first = due(&mut workload, ms(5));
        let sessions = |calls: &[(u32, Nanos, CallSpec)]| calls.iter().map(|call| (call.0, call.1)).collect::<Vec<_>>();
        assert_eq!(sessions(&first), [(0, ms(0)), (0, ms(0)), (0, ms(0)), (1, ms(5)), (1, ms(5))]);
        assert_eq!(workload.next(ms(5), 5), NextCall::WaitForOutcome);
        // The answers arrive in another order than the calls. The burst ends with the last answer.
        for (nth, at) in [(2, ms(6)), (0, ms(7)), (3, ms(8))] {
            workload.on_outcome(&ended(first[nth].2, at));
        }
        assert_eq!(workload.next(ms(8), 2), NextCall::WaitForOutcome, "no burst may be due before the last answer");
        workload.on_outcome(&ended(first[1].2, ms(9)));
        assert_eq!(workload.next(ms(9), 1), NextCall::NotBefore(ms(19)));
        assert_eq!(sessions(&due(&mut workload, ms(21))), [(0, ms(19)); 3]);
        workload.on_outcome(&ended(first[4].2, ms(22)));
        assert_eq!(workload.next(ms(22), 3), NextCall::NotBefore(ms(32)));
    }

    /// Expects that bursts have all their calls even if each call ends before the next one is passed to the engine.
    /// This happens if calls fail immediately.
    #[test]
    fn a_burst_is_whole_whenever_its_calls_end() {
        let mut workload = bursts(4, 4, Nanos::ZERO, FOREVER, Shard::WHOLE);
        for n in 0..40u64 {
            let NextCall::Due { due, call } = workload.next(Nanos(n), 0) else { panic!("call {n} is not due") };
            assert_eq!(
                due.0,
                n / 4 * 4,
                "the calls of a burst must be due when the last call of the previous burst has ended"
            );
            workload.on_outcome(&ended(call, Nanos(n + 1)));
        }
    }

    #[test]
    fn shards_share_groups_and_calls() {
        let limits = WorkloadLimits { calls: 103, ..FOREVER };
        let mut sessions = Vec::new();
        let mut calls = 0;
        for shard in Shard::WHOLE.split(3) {
            let mut workload = bursts(50, 8, Nanos::ZERO, limits, shard);
            let (mut now, mut first) = (Nanos::ZERO, true);
            loop {
                let burst = due(&mut workload, now);
                if burst.is_empty() {
                    break;
                }
                calls += burst.len();
                sessions.extend(burst.iter().filter(|_| first).map(|call| call.0));
                now += Nanos(1);
                burst.iter().for_each(|(_, _, call)| workload.on_outcome(&ended(*call, now)));
                first = false;
            }
        }
        sessions.sort_unstable();
        let expected: Vec<u32> = (0..50).map(|client| client / 8).collect();
        assert_eq!((sessions, calls), (expected, 103));
    }

    #[test]
    fn it_ends_with_the_window() {
        let mut workload = bursts(
            2,
            2,
            Nanos::from_millis(9),
            WorkloadLimits { window: Nanos::from_millis(10), ..FOREVER },
            Shard::WHOLE,
        );
        let first = due(&mut workload, Nanos::ZERO);
        for (_, _, call) in &first {
            workload.on_outcome(&ended(*call, Nanos::from_millis(1)));
        }
        assert_eq!((first.len(), workload.next(Nanos::from_millis(9), 0)), (2, NextCall::Done));
        assert_eq!(workload.next(Nanos::from_millis(10), 1), NextCall::Done);
    }

    #[test]
    fn a_group_that_cannot_connect_waits_once_for_all_its_calls() {
        let mut workload = bursts(4, 4, Nanos::ZERO, FOREVER, Shard::WHOLE);
        let mut now = Nanos::ZERO;
        for longest_ms in [10, 20, 40] {
            let burst = due(&mut workload, now);
            assert_eq!(burst.len(), 4);
            for (_, _, call) in burst {
                workload.on_outcome(&Outcome { end: End::Refused, ..ended(call, now) });
            }
            let NextCall::NotBefore(next) = workload.next(now, 0) else { panic!("the group does not wait") };
            let longest = Nanos::from_millis(longest_ms);
            assert!(next <= now + longest && next >= now + Nanos(longest.0 / 2), "{next} after {now}");
            now = next;
        }
    }
}
