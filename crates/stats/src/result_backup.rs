//! The result backup collects the observations of a run during the run, in case the process is killed. The observations
//! of a shard (its Account) take 4.6 MB, and copying them would delay due calls by a millisecond. So nothing is copied:
//! when the backup requests it, a shard passes its filled Account to the backup and continues with an empty one. This
//! only swaps two pointers. The backup adds up the Accounts that it receives. Merging is exact: the sum, plus the
//! remaining Account of each shard, equals the Account of a run without a backup.

use crate::account::Account;
use crate::error::MergeMismatch;
use brimful_core::Nanos;
use brimful_core::counts::Counts;
use brimful_core::panics::lock;
use std::mem;
use std::sync::{Arc, Mutex};

/// Collects the counts and times of all shards of a run during the run.
#[derive(Debug, Default)]
pub struct ResultBackup {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    shards: Vec<SharedExchange>,
    sum: Option<Account>,
    /// The time until which the collected observations extend.
    at: Nanos,
}

/// The exchange of Accounts (counts and times) between one shard and the backup.
pub(crate) type SharedExchange = Arc<Mutex<Exchange>>;

/// The Accounts (counts and times) that a shard and the backup exchange.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// An empty Account with which the shard continues. The backup provides it to request the shard's Account.
    empty: Option<Account>,
    /// The shard's filled Account, with the time at which the shard provided it.
    filled: Option<(Account, Nanos)>,
}

impl ResultBackup {
    /// Adds one more shard. `empty` is an empty Account with the same classes as the shard's own.
    pub(crate) fn register(&self, empty: Account) -> SharedExchange {
        let exchange = Arc::new(Mutex::new(Exchange { empty: Some(empty), ..Exchange::default() }));
        lock(&self.kept).shards.push(Arc::clone(&exchange));
        exchange
    }

    /// Adds up the observations that the shards have provided since the previous call, and requests their next ones. A
    /// shard that keeps up with its calls provides them within a tenth of a second.
    ///
    /// # Errors
    /// [`MergeMismatch`] if the observations do not belong to one run.
    pub fn collect(&self) -> Result<(), MergeMismatch> {
        let mut kept = lock(&self.kept);
        let Kept { shards, sum, at } = &mut *kept;
        for exchange in shards {
            // The exchange is locked only while an Account is moved, not while the counts are added up.
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

    /// Calls `look` with the observations collected so far, and the time until which they were collected. Calls in
    /// progress appear as if the run had ended at that time. Returns `None` if nothing was collected yet.
    pub fn read_partial<T>(&self, look: impl FnOnce(&Account, Nanos) -> T) -> Option<T> {
        let mut kept = lock(&self.kept);
        let at = kept.at;
        let sum = kept.sum.as_mut()?;
        // The counts are changed for `look` and then restored. Copying all statistics each second instead would double
        // the cost of the backup.
        let counts: Vec<Counts> = sum.classes.iter().map(|tally| tally.counts).collect();
        sum.settle();
        let seen = look(sum, at);
        sum.classes.iter_mut().zip(counts).for_each(|(tally, counts)| tally.counts = counts);
        Some(seen)
    }

    /// The complete observations of the run: those collected, and `rest`, which the shards have not provided yet.
    ///
    /// # Errors
    /// If the observations do not belong to one run.
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

/// If the backup has requested the Account, passes it to the backup and replaces it by an empty one. This never blocks.
pub(crate) fn hand_over(account: &mut Account, now: Nanos, exchange: &Mutex<Exchange>) {
    if let Ok(mut exchange) = exchange.try_lock()
        && let Some(empty) = exchange.empty.take()
    {
        exchange.filled = Some((mem::replace(account, empty), now));
    }
}

impl Account {
    /// Counts the calls that have not ended as in flight or unsent, as at the end of a run.
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
        // The run must last long enough that the lengths of intervals and batches double during the run.
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
            // Only the first publication passes an Account to the backup, because the backup does not request another
            // one.
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
        // The call that was in flight at the time of the backup has ended since then.
        let counts = result_backup.complete(collector.into_account()).unwrap().counts();
        assert_eq!((counts.completed, counts.in_flight_at_end, counts.unsent_at_end), (1, 0, 0));
    }
}
