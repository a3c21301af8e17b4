//! The open workload: only the arrival process determines when calls are due. The server's answers have no influence.

use crate::{Arrivals, Chooser, Mix, Shard, WorkloadLimits};
use brimful_core::{CallSpec, Nanos, NextCall, Workload};

/// One shard (part of the load) of an open workload.
#[derive(Clone, Debug)]
pub struct OpenWorkload<C = Mix> {
    arrivals: Arrivals,
    chooser: C,
    shard: Shard,
    limits: WorkloadLimits,
    /// Index, in the schedule of all shards, of the call that this shard makes after `head`.
    index: u64,
    /// This shard's next call and its due time; `None` after the last call.
    head: Option<(Nanos, CallSpec)>,
}

impl<C: Chooser> OpenWorkload<C> {
    /// Creates shard `shard` of a schedule. `arrivals`, `chooser` and `limits` must be the same for all shards of the
    /// schedule.
    pub fn new(arrivals: Arrivals, chooser: C, limits: WorkloadLimits, shard: Shard) -> OpenWorkload<C> {
        let mut open = OpenWorkload { arrivals, chooser, shard, limits, index: shard.index, head: None };
        open.head = open.next_after(shard.index);
        open
    }

    /// Whether this shard has no further calls.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.head.is_none()
    }

    /// This shard's next call. Before it, `others` calls of other shards are skipped.
    fn next_after(&mut self, others: u64) -> Option<(Nanos, CallSpec)> {
        if self.index >= self.limits.calls {
            return None;
        }
        self.arrivals.skip_calls(others);
        self.chooser.skip_calls(others);
        let head = self.arrivals.next().filter(|due| *due < self.limits.window).zip(self.chooser.next());
        self.index = if head.is_some() { self.index.saturating_add(self.shard.count) } else { self.limits.calls };
        head
    }
}

impl<C: Chooser> Workload for OpenWorkload<C> {
    fn next(&mut self, now: Nanos, _in_flight: usize) -> NextCall {
        match self.head {
            None => NextCall::Done,
            Some((due, _)) if due > now => NextCall::NotBefore(due),
            Some((due, call)) => {
                self.head = self.next_after(self.shard.count - 1);
                NextCall::Due { due, call }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalProcess, Trace};
    use brimful_core::Rate;
    use brimful_core::workload::Stage;
    use proptest::prelude::*;

    fn open(arrivals: &Arrivals, seed: u64, limits: WorkloadLimits, shard: Shard) -> OpenWorkload {
        OpenWorkload::new(arrivals.clone(), Mix::new(&[1.0, 2.0], seed).unwrap(), limits, shard)
    }

    /// Arrivals of the process number `kind`, at about `rate` calls per second.
    fn arrivals(kind: usize, rate: f64, seed: u64) -> Arrivals {
        const PROCESSES: [&str; 6] =
            ["constant", "poisson", "onoff:4,10%,20ms", "mmpp:4,10%,2ms", "selfsimilar:0.8", "selfsimilar:0.8,pareto"];
        let ramp = [Stage { length_s: 0.08, rate }];
        match PROCESSES.get(kind) {
            Some(process) => Arrivals::new(process.parse().unwrap(), Rate(rate), seed).unwrap(),
            None if kind == 6 => Arrivals::stages(ArrivalProcess::Constant, Rate(0.0), &ramp, seed).unwrap(),
            None if kind == 7 => Arrivals::stages(ArrivalProcess::Poisson, Rate(0.0), &ramp, seed).unwrap(),
            None => Arrivals::trace(Trace::parse(b"0\n0.01\n0.01\n0.03\n0.2").unwrap(), "2x".parse().unwrap()),
        }
    }

    fn drain(mut workload: OpenWorkload) -> Vec<(Nanos, u16)> {
        let mut calls = Vec::new();
        while let NextCall::Due { due, call } = workload.next(Nanos::MAX, 0) {
            calls.push((due, call.class.0));
        }
        calls
    }

    /// The shards of a schedule that is split among processes, and then among the threads of each process. `threads`
    /// has the number of threads of each process.
    fn shards(threads: &[u64]) -> impl Iterator<Item = Shard> {
        Shard::WHOLE.split(threads.len() as u64).zip(threads).flat_map(|(shard, threads)| shard.split(*threads))
    }

    proptest! {
        #[test]
        fn a_split_schedule_is_the_same_schedule(
            kind in 0usize..9, seed: u64, threads in prop::collection::vec(1u64..4, 1..4), rate in 1f64..1e5, calls in 0u64..500,
        ) {
            let arrivals = arrivals(kind, rate, seed);
            let limits = WorkloadLimits { window: Nanos::from_millis(100), calls };
            let whole = drain(open(&arrivals, seed, limits, Shard::WHOLE));
            let mut parts: Vec<_> =
                shards(&threads).flat_map(|shard| drain(open(&arrivals, seed, limits, shard))).collect();
            parts.sort_unstable();
            let mut sorted = whole.clone();
            sorted.sort_unstable();
            prop_assert_eq!(parts, sorted);
            prop_assert!(whole.is_sorted_by_key(|(due, _)| *due) && whole.len() as u64 <= calls);
            prop_assert!(whole.iter().all(|(due, _)| *due < limits.window));
        }
    }

    /// Expects that a shard skips the calls of other shards in one step. Of 10¹² calls, the shard makes ten: visiting
    /// the other calls one by one would never finish.
    #[test]
    fn a_shard_skips_the_calls_of_other_shards_in_one_step() {
        let limits = WorkloadLimits { window: Nanos::from_secs(1_000_000), calls: u64::MAX };
        let shard = Shard { index: 7, count: 100_000_000_000 };
        for process in ["constant", "onoff:4,10%,20ms"] {
            let arrivals = Arrivals::new(process.parse().unwrap(), Rate(1e6), 0).unwrap();
            let due: Vec<Nanos> = drain(open(&arrivals, 1, limits, shard)).into_iter().map(|(due, _)| due).collect();
            assert_eq!(due.len(), 10);
            assert!(due[9] >= Nanos::from_secs(900_000), "{due:?}");
        }
        let calls = (0..10).map(|i| i * shard.count + shard.index).map(|calls| {
            let mut mix = Mix::new(&[1.0, 2.0], 1).unwrap();
            mix.skip_calls(calls);
            mix.next().unwrap().class.0
        });
        let arrivals = Arrivals::new(ArrivalProcess::Constant, Rate(1e6), 0).unwrap();
        let classes: Vec<u16> = drain(open(&arrivals, 1, limits, shard)).into_iter().map(|(_, class)| class).collect();
        assert_eq!(classes, calls.collect::<Vec<_>>());
    }

    #[test]
    fn no_call_is_returned_before_it_is_due() {
        let limits = WorkloadLimits { window: Nanos::from_secs(1), calls: 10 };
        let mix = Mix::new(&[1.0], 0).unwrap();
        let mut workload = OpenWorkload::new(
            Arrivals::new(ArrivalProcess::Constant, Rate(100.0), 0).unwrap(),
            mix,
            limits,
            Shard::WHOLE,
        );
        assert!(matches!(workload.next(Nanos::ZERO, 0), NextCall::Due { due: Nanos::ZERO, .. }));
        assert_eq!(workload.next(Nanos(1), 1), NextCall::NotBefore(Nanos::from_millis(10)));
        // A call that is made late must keep its due time.
        let NextCall::Due { due, .. } = workload.next(Nanos::from_millis(35), 1) else { panic!("a call is overdue") };
        assert_eq!(due, Nanos::from_millis(10));
    }
}
