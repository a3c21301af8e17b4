//! The result backup collects the observations of a run during the run, in case the process is killed. An Account is
//! 4.6 MB, and copying it would delay due calls by a millisecond. So it is not copied: when the backup requests it, a
//! shard hands over its filled Account and continues with an empty one, which only swaps two pointers. The backup adds
//! up the Accounts. Merging is exact: this sum plus the remaining Account of each shard equals the Account of a run
//! without a backup.

use crate::account::Account;
use crate::error::MergeMismatch;
use brimful_core::Nanos;
use brimful_core::counts::Counts;
use brimful_core::panics::lock;
use std::mem;
use std::sync::{Arc, Mutex};

/// Collects the Accounts of the shards of a run.
#[derive(Debug, Default)]
pub struct ResultBackup {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    shards: Vec<SharedExchange>,
    sum: Option<Account>,
    /// Time at which the latest Account in the sum was handed over.
    at: Nanos,
}

/// One shard's exchange of Accounts with the backup.
pub(crate) type SharedExchange = Arc<Mutex<Exchange>>;

/// The Accounts that a shard and the backup exchange.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// The backup's request: an empty Account for the shard to continue with.
    empty: Option<Account>,
    /// The shard's answer: its filled Account, and the time at which the shard handed it over.
    filled: Option<(Account, Nanos)>,
}

impl ResultBackup {
    /// Registers one more shard; `empty` is an Account like the shard's first one.
    pub(crate) fn register(&self, empty: Account) -> SharedExchange {
        let exchange = Arc::new(Mutex::new(Exchange { empty: Some(empty), ..Exchange::default() }));
        lock(&self.kept).shards.push(Arc::clone(&exchange));
        exchange
    }

    /// Adds up the Accounts that the shards have handed over since the last call, and requests the next ones. Shards
    /// that keep up with their calls hand them over within a tenth of a second.
    ///
    /// # Errors
    /// [`MergeMismatch`] if the Accounts do not belong to one run.
    pub fn collect(&self) -> Result<(), MergeMismatch> {
        let mut kept = lock(&self.kept);
        let Kept { shards, sum, at } = &mut *kept;
        for exchange in shards {
            // The exchange is not locked while the Account is added up, so that the shard can lock it meanwhile.
            let Some((mut filled, until)) = lock(exchange).filled.take() else { continue };
            *at = until.max(*at);
            match sum {
                Some(sum) => sum.merge_from(&filled)?,
                None => *sum = Some(filled.clone()),
            }
            filled.clear();
            lock(exchange).empty = Some(filled);
        }
        Ok(())
    }

    /// Calls `look` with the collected observations and the time until which they were collected, as if the run had
    /// ended then. Returns `None` if nothing was collected yet.
    pub fn read_partial<T>(&self, look: impl FnOnce(&Account, Nanos) -> T) -> Option<T> {
        let mut kept = lock(&self.kept);
        let at = kept.at;
        let sum = kept.sum.as_mut()?;
        // The counts are changed and then restored. Copying the Account each second would double the cost of
        // collecting.
        let counts: Vec<Counts> = sum.classes.iter().map(|tally| tally.counts).collect();
        sum.settle();
        let seen = look(sum, at);
        sum.classes.iter_mut().zip(counts).for_each(|(tally, counts)| tally.counts = counts);
        Some(seen)
    }

    /// The complete observations: the collected observations and `rest`, which the shards had not handed over.
    ///
    /// # Errors
    /// If the Accounts do not belong to one run.
    pub fn complete(&self, rest: Account) -> Result<Account, MergeMismatch> {
        self.collect()?;
        let mut kept = lock(&self.kept);
        kept.shards.clear();
        match kept.sum.take() {
            Some(sum) => sum.merge(rest),
            None => Ok(rest),
        }
    }
}

/// Hands the Account over if the backup has requested it, and puts an empty one in its place. Never blocks.
pub(crate) fn hand_over(account: &mut Account, now: Nanos, exchange: &Mutex<Exchange>) {
    if let Ok(mut exchange) = exchange.try_lock()
        && let Some(empty) = exchange.empty.take()
    {
        exchange.filled = Some((mem::replace(account, empty), now));
    }
}

impl Account {
    /// Counts the calls that have not ended as in flight or unsent, as if the run ended now.
    fn settle(&mut self) {
        let open = |calls: i64| u64::try_from(calls).unwrap_or(0);
        let followed = self.redirects.iter_mut().map(|redirects| &mut redirects.followed);
        for tally in self.classes.iter_mut().chain(followed) {
            let (unsent, in_flight) = tally.counts.imbalance();
            tally.counts.unsent_at_end += open(unsent);
            tally.counts.in_flight_at_end += open(in_flight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collector, PerCall};
    use brimful_core::{CallSpec, ClassId, End, Event, Observer, Outcome};

    fn account() -> Account {
        Account::new(&["all".to_owned()], Nanos::from_secs(1_000))
    }

    /// Records the events of a call that takes 30 ms, and calls `between` after each event.
    fn call(collector: &mut Collector, due: Nanos, mut between: impl FnMut(&mut Collector)) {
        let mut memory = PerCall::default();
        let at = due + Nanos::from_millis(30);
        let end = End::Completed { status: 200 };
        let ended = Outcome { call: CallSpec::for_class(ClassId(0)), due, at, end, bytes_sent: 1, bytes_received: 2 };
        for event in [
            Event::Scheduled { class: ClassId(0), due },
            Event::Begun { at: due },
            Event::Sent { at: due },
            Event::FirstByte { at },
            Event::Ended(ended),
        ] {
            collector.on(&mut memory, &event);
            between(collector);
        }
    }

    #[test]
    fn what_is_handed_over_and_what_is_left_are_the_account_of_all() {
        let result_backup = ResultBackup::default();
        let mut shards = [0; 2].map(|_| Collector::with_result_backup(account(), &result_backup, account()));
        let mut alone = Collector::new(account());
        // The run lasts long enough for intervals and batches to become longer during the run.
        for i in 0..700 {
            let due = Nanos::from_secs(i);
            call(&mut alone, due, |_| ());
            let mut step = 0;
            call(&mut shards[(i % 2) as usize], due, |collector| {
                step += 1;
                if i % 7 == step {
                    collector.publish(due);
                    result_backup.collect().unwrap();
                }
            });
        }
        let [mut a, b] = shards;
        a.merge(b);
        assert_eq!(result_backup.complete(a.into_account()), Ok(alone.into_account()));
    }

    #[test]
    fn calls_under_way_are_counted_as_such() {
        let result_backup = ResultBackup::default();
        let mut collector = Collector::with_result_backup(account(), &result_backup, account());
        let so_far = || result_backup.read_partial(|account, at| (account.counts(), at));
        assert_eq!(so_far(), None);
        let mut step = 0;
        call(&mut collector, Nanos::from_secs(5), |collector| {
            step += 1;
            // Only the first publication hands an Account over, because the backup requests no further one.
            collector.publish(Nanos::from_secs(5 + step));
            if step == 3 {
                result_backup.collect().unwrap();
            }
        });
        let (counts, at) = so_far().unwrap();
        assert_eq!((counts.scheduled, counts.sent, counts.unsent_at_end, at), (1, 0, 1, Nanos::from_secs(6)));
        result_backup.collect().unwrap();
        let (counts, at) = so_far().unwrap();
        assert_eq!((counts.sent, counts.in_flight_at_end, counts.imbalance()), (1, 1, (0, 0)));
        assert_eq!(at, Nanos::from_secs(9));
        // The call that was in progress has ended since.
        let counts = result_backup.complete(collector.into_account()).unwrap().counts();
        assert_eq!((counts.completed, counts.in_flight_at_end, counts.unsent_at_end), (1, 0, 0));
    }
}
