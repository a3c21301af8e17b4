//! The true cost of each class: its CPU time, measured by the clocks of the worker threads.
//!
//! A worker reads its thread's CPU clock once per turn, at the end of the turn. The time since the previous reading is
//! the CPU time of the turn. So all CPU time of a worker is booked exactly once, under a class or under "other", and by
//! construction the accounts add up to the workers' CPU time.

use crate::service::{Distribution, ServiceClass};
use brimful_core::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The CPU time that the server has used since it started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceCpuTimes {
    /// Number of worker threads, which are the servers of the queue.
    pub workers: usize,
    /// How demands are distributed around their means.
    pub distribution: Distribution,
    /// The classes, by name.
    pub classes: BTreeMap<String, ClassCpuTimes>,
    /// CPU seconds that belong to no class: requests for `/__truth`, failed requests and connections without a request.
    pub other_cpu_s: f64,
    /// CPU seconds that the workers have used since they began to serve: the sum over all classes and `other_cpu_s`.
    pub total_cpu_s: f64,
    /// The use of the pool, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolUsage>,
}

/// How the pool was used.
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
    /// CPU seconds of these requests, for their steps and for handling them and their connections.
    pub cpu_s: f64,
    /// CPU seconds per request; zero if there were no requests.
    pub mean_cpu_s: f64,
    /// The configured mean CPU demand, in seconds: the sum of the steps that use CPU time.
    pub nominal_s: f64,
}

/// The account under which a turn's CPU time is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// The turn served a request of this class.
    Served(usize),
    /// The turn did work for this class after its request: it wrote the rest of a response, or ended a connection.
    Class(usize),
    /// The turn worked on a request whose class is not known yet.
    Pending,
    /// The turn did work for no class.
    Other,
}

/// The accounts of one worker, in nanoseconds. The accounts are signed: one worker may book pending time, and another
/// worker may later move the time from its own account to a class. The sum over all workers is right.
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
    pub(crate) fn new(classes: usize) -> Ledger {
        Ledger { classes: vec![Account::default(); classes], other: 0, total: 0 }
    }

    /// Books the CPU time of a turn. Pending time is booked under "other" and added to `carried`, from which it is
    /// moved to the class of the request later.
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

    /// Adds up the workers' accounts.
    pub(crate) fn truth(ledgers: &[Ledger], classes: &[ServiceClass], distribution: Distribution) -> ReferenceCpuTimes {
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
        let truth = Ledger::truth(&ledgers, &classes, Distribution::Deterministic);
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
            let truth = Ledger::truth(&ledgers, &classes, Distribution::Exponential);
            let sum = truth.classes.values().map(|c| c.cpu_s).sum::<f64>() + truth.other_cpu_s;
            prop_assert!((sum - truth.total_cpu_s).abs() < 1e-9);
        }
    }
}
