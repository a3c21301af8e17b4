//! The true CPU time of each class, measured by the CPU clocks of the worker threads.
//!
//! Workers process a connection in turns. A worker reads its thread's CPU clock at the end of each turn; the CPU time
//! of the turn is the time since the previous reading. So each nanosecond of a worker's CPU time is added to exactly
//! one account, that of a class or "other", and the accounts add up to the workers' CPU time.

use crate::service::{Distribution, ServiceClass};
use brimful_core::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The CPU time that the server has used since it started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceCpuTimes {
    /// Number of worker threads, which are the servers of the queue.
    pub workers: usize,
    /// The distribution of service demands around their means.
    pub distribution: Distribution,
    /// The classes, by name.
    pub classes: BTreeMap<String, ClassCpuTimes>,
    /// CPU seconds that belong to no class: requests for `/__truth`, rejected requests, and connections without a
    /// request.
    pub other_cpu_s: f64,
    /// CPU seconds that the workers have used since they began to serve: the sum over all classes and `other_cpu_s`.
    pub total_cpu_s: f64,
    /// How many requests the pool served and delayed, if there is a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolUsage>,
}

/// Statistics of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolUsage {
    /// Number of requests that may be served at once.
    pub places: usize,
    /// Maximum number of requests that were served at once.
    pub most_served_at_once: usize,
    /// Number of requests that had to wait for a free slot of the pool.
    pub waited: u64,
}

/// The CPU time of one class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassCpuTimes {
    /// Number of requests served.
    pub requests: u64,
    /// CPU seconds of the class's requests: for their steps, for parsing and responding, and for their connections.
    pub cpu_s: f64,
    /// Mean CPU seconds per request; zero if there were no requests.
    pub mean_cpu_s: f64,
    /// The configured mean CPU demand of a request, in seconds: the sum of the steps that use CPU time.
    pub nominal_s: f64,
}

/// The account to which the CPU time of a turn is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// The class with this index: the turn served a request of this class.
    Served(usize),
    /// The class with this index: the turn wrote the rest of a response of this class, or ended its connection.
    Class(usize),
    /// A class that is not known yet: the worker accepted the connection, or received a part of a request.
    Pending,
    /// No class: for example a request for `/__truth`, or a rejected request.
    Other,
}

/// The accounts of one worker, in nanoseconds. They are signed: one worker may add pending time to "other", and another
/// worker may later subtract the time from its own "other" and add it to a class. Only the sum over all workers has a
/// meaning.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    classes: Vec<Account>,
    other: i64,
    total: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    requests: u64,
    cpu: i64,
}

impl Ledger {
    /// Creates empty accounts for `classes` classes.
    pub(crate) fn new(classes: usize) -> Ledger {
        Ledger { classes: vec![Account::default(); classes], other: 0, total: 0 }
    }

    /// Adds the CPU time `share` of a turn to an account. The time of a class that is not known yet is added to "other"
    /// and to `carried`. When the class of the request is known, this time is moved from "other" to the class.
    pub(crate) fn book(&mut self, charge: Charge, share: Nanos, carried: &mut Nanos) {
        let ns = share.0 as i64;
        self.total += ns;
        match charge {
            Charge::Served(class) | Charge::Class(class) => {
                let claimed = std::mem::take(carried).0 as i64;
                let account = &mut self.classes[class];
                account.requests += u64::from(charge == Charge::Served(class));
                account.cpu += ns + claimed;
                self.other -= claimed;
            }
            Charge::Pending => {
                *carried += share;
                self.other += ns;
            }
            Charge::Other => {
                *carried = Nanos::ZERO;
                self.other += ns;
            }
        }
    }

    /// Adds up the accounts of all workers.
    pub(crate) fn add_up(
        ledgers: &[Ledger],
        classes: &[ServiceClass],
        distribution: Distribution,
    ) -> ReferenceCpuTimes {
        let seconds = |ns: i64| ns as f64 / 1e9;
        let of_class = |(i, class): (usize, &ServiceClass)| {
            let requests: u64 = ledgers.iter().map(|l| l.classes[i].requests).sum();
            let cpu_s = seconds(ledgers.iter().map(|l| l.classes[i].cpu).sum());
            let mean_cpu_s = if requests == 0 { 0.0 } else { cpu_s / requests as f64 };
            (class.name.clone(), ClassCpuTimes { requests, cpu_s, mean_cpu_s, nominal_s: class.demand().as_secs_f64() })
        };
        ReferenceCpuTimes {
            workers: ledgers.len(),
            distribution,
            classes: classes.iter().enumerate().map(of_class).collect(),
            other_cpu_s: seconds(ledgers.iter().map(|l| l.other).sum()),
            total_cpu_s: seconds(ledgers.iter().map(|l| l.total).sum()),
            pool: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_class_claims_what_was_pending_for_its_request() {
        let classes = ServiceClass::parse_list("a=1us,b=2us").unwrap();
        let mut ledgers = [Ledger::new(2), Ledger::new(2)];
        let mut carried = Nanos::ZERO;
        ledgers[0].book(Charge::Pending, Nanos(300), &mut carried);
        ledgers[1].book(Charge::Served(1), Nanos(2_000), &mut carried);
        ledgers[1].book(Charge::Class(1), Nanos(700), &mut carried);
        ledgers[1].book(Charge::Other, Nanos(50), &mut carried);
        let truth = Ledger::add_up(&ledgers, &classes, Distribution::Deterministic);
        let b = ClassCpuTimes { requests: 1, cpu_s: 3e-6, mean_cpu_s: 3e-6, nominal_s: 2e-6 };
        assert_eq!(truth.classes["b"], b);
        assert_eq!((truth.other_cpu_s, truth.total_cpu_s), (5e-8, 3.05e-6));
        assert_eq!(truth.classes["a"].mean_cpu_s, 0.0);
    }

    proptest! {
        #[test]
        fn the_accounts_add_up(turns in prop::collection::vec((0usize..5, 0usize..2, 0u64..1_000_000), 0..100)) {
            let classes = ServiceClass::parse_list("a=1us,b=2us").unwrap();
            let mut ledgers = [Ledger::new(2), Ledger::new(2)];
            let mut carried = Nanos::ZERO;
            for (charge, worker, share) in turns {
                let charges =
                    [Charge::Served(0), Charge::Served(1), Charge::Class(0), Charge::Pending, Charge::Other];
                ledgers[worker].book(charges[charge], Nanos(share), &mut carried);
            }
            let truth = Ledger::add_up(&ledgers, &classes, Distribution::Exponential);
            let sum = truth.classes.values().map(|c| c.cpu_s).sum::<f64>() + truth.other_cpu_s;
            prop_assert!((sum - truth.total_cpu_s).abs() < 1e-9);
        }
    }
}
