//! The open workload: calls come when the arrival process says, whatever the server does.

use crate::{Arrivals, Extent, Mix, Shard};
use brimful_core::{CallSpec, Nanos, Next, Workload};

/// One shard of an open workload.
#[derive(Clone, Debug)]
pub struct Open {
    arrivals: Arrivals,
    mix: Mix,
    shard: Shard,
    extent: Extent,
    /// Index of the next call of the whole schedule.
    index: u64,
    /// This shard's next call.
    head: Option<(Nanos, CallSpec)>,
}

impl Open {
    /// Shard `shard` of the schedule that `arrivals`, `mix` and `extent` describe; give every shard the same three.
    pub fn new(arrivals: Arrivals, mix: Mix, extent: Extent, shard: Shard) -> Open {
        let mut open = Open { arrivals, mix, shard, extent, index: 0, head: None };
        open.advance();
        open
    }

    fn advance(&mut self) {
        self.head = None;
        while self.head.is_none() && self.index < self.extent.calls {
            let (Some(due), Some(call)) = (self.arrivals.next(), self.mix.next()) else {
                return;
            };
            if due >= self.extent.window {
                self.index = self.extent.calls;
                return;
            }
            if self.index % self.shard.count == self.shard.index {
                self.head = Some((due, call));
            }
            self.index += 1;
        }
    }
}

impl Workload for Open {
    fn next(&mut self, now: Nanos, _in_flight: usize) -> Next {
        match self.head {
            None => Next::Done,
            Some((due, _)) if due > now => Next::NotBefore(due),
            Some((due, call)) => {
                self.advance();
                Next::Due { due, call }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Process, Stage, Trace};
    use brimful_core::Rate;
    use proptest::prelude::*;

    fn open(arrivals: &Arrivals, seed: u64, extent: Extent, shard: Shard) -> Open {
        Open::new(arrivals.clone(), Mix::new(&[1.0, 2.0], seed).unwrap(), extent, shard)
    }

    /// One of every kind, at about `rate` calls per second.
    fn arrivals(kind: usize, rate: f64, seed: u64) -> Arrivals {
        const PROCESSES: [&str; 6] =
            ["constant", "poisson", "onoff:4,10%,20ms", "mmpp:4,10%,2ms", "selfsimilar:0.8", "selfsimilar:0.8,pareto"];
        let ramp = [Stage { length: Nanos::from_millis(80), rate: Rate(rate) }];
        match PROCESSES.get(kind) {
            Some(process) => Arrivals::new(process.parse().unwrap(), Rate(rate), seed),
            None if kind == 6 => Arrivals::stages(Process::Constant, Rate(0.0), &ramp, seed).unwrap(),
            None if kind == 7 => Arrivals::stages(Process::Poisson, Rate(0.0), &ramp, seed).unwrap(),
            None => Arrivals::trace(Trace::parse(b"0\n0.01\n0.01\n0.03\n0.2").unwrap(), "2x".parse().unwrap()),
        }
    }

    fn drain(mut workload: Open) -> Vec<(Nanos, u16)> {
        let mut calls = Vec::new();
        while let Next::Due { due, call } = workload.next(Nanos::MAX, 0) {
            calls.push((due, call.class.0));
        }
        calls
    }

    proptest! {
        #[test]
        fn a_split_schedule_is_the_same_schedule(
            kind in 0usize..9, seed: u64, shards in 1u64..6, rate in 1f64..1e5, calls in 0u64..500,
        ) {
            let arrivals = arrivals(kind, rate, seed);
            let extent = Extent { window: Nanos::from_millis(100), calls };
            let whole = drain(open(&arrivals, seed, extent, Shard::WHOLE));
            let mut parts: Vec<_> =
                Shard::split(shards).flat_map(|shard| drain(open(&arrivals, seed, extent, shard))).collect();
            parts.sort_unstable();
            let mut sorted = whole.clone();
            sorted.sort_unstable();
            prop_assert_eq!(parts, sorted);
            prop_assert!(whole.is_sorted_by_key(|(due, _)| *due) && whole.len() as u64 <= calls);
            prop_assert!(whole.iter().all(|(due, _)| *due < extent.window));
        }
    }

    #[test]
    fn nothing_is_handed_out_before_it_is_due() {
        let extent = Extent { window: Nanos::from_secs(1), calls: 10 };
        let mix = Mix::new(&[1.0], 0).unwrap();
        let mut workload = Open::new(Arrivals::new(Process::Constant, Rate(100.0), 0), mix, extent, Shard::WHOLE);
        assert!(matches!(workload.next(Nanos::ZERO, 0), Next::Due { due: Nanos::ZERO, .. }));
        assert_eq!(workload.next(Nanos(1), 1), Next::NotBefore(Nanos::from_millis(10)));
        // Late, the call still carries its own due time.
        let Next::Due { due, .. } = workload.next(Nanos::from_millis(35), 1) else { panic!("a call is overdue") };
        assert_eq!(due, Nanos::from_millis(10));
    }
}
