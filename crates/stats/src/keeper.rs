//! What a run has seen so far, whole, for those who keep it in case its process is lost.
//!
//! A whole Account is 4.6 MB. To copy it would hold up calls that are due for a millisecond; so nothing is copied. When
//! the keeper asks, a shard hands over the Account that it has been filling and goes on with an empty one, which is an
//! exchange of two pointers, and the keeper adds up what it is given. Merging is exact, so the sum and what the shard
//! still holds in the end are the Account that it would have had alone.
//!
//! Memory: three Accounts for each shard, whatever the length of the run.

use crate::account::Account;
use crate::error::Unlike;
use brimful_core::Nanos;
use brimful_core::counts::Counts;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the shards of a run hand over what they have seen.
#[derive(Debug, Default)]
pub struct Keeper {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    shards: Vec<Counter>,
    sum: Option<Account>,
    /// Until when the sum goes.
    at: Nanos,
}

/// Over which one shard does.
pub(crate) type Counter = Arc<Mutex<Exchange>>;

/// What lies there.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// Put there to ask for what was seen.
    empty: Option<Account>,
    /// What was given for it, and when.
    filled: Option<(Account, Nanos)>,
}

impl Keeper {
    /// A counter for one more shard, which begins with an Account like this one.
    pub(crate) fn counter(&self, empty: Account) -> Counter {
        let exchange = Exchange { empty: Some(empty), ..Exchange::default() };
        let counter = Arc::new(Mutex::new(exchange));
        lock(&self.kept).shards.push(Arc::clone(&counter));
        counter
    }

    /// Takes what the shards have handed over since the last time, and asks them for more. They hand it over within a
    /// tenth of a second if they keep up with their calls.
    ///
    /// # Errors
    /// When the Accounts are not of one run.
    pub fn collect(&self) -> Result<(), Unlike> {
        let mut kept = lock(&self.kept);
        let Kept { shards, sum, at } = &mut *kept;
        for counter in shards {
            // Out of the shard's way while it is added up.
            let Some((mut filled, until)) = lock(counter).filled.take() else { continue };
            *at = until.max(*at);
            match sum {
                Some(sum) => sum.take_in(&filled)?,
                None => *sum = Some(filled.clone()),
            }
            filled.clear();
            lock(counter).empty = Some(filled);
        }
        Ok(())
    }

    /// Shows what has been collected, and until when it goes, of the shards whose last is the latest: calls that were
    /// under way then are counted as under way at the end. `None` before there is anything.
    pub fn so_far<T>(&self, look: impl FnOnce(&Account, Nanos) -> T) -> Option<T> {
        let mut kept = lock(&self.kept);
        let at = kept.at;
        let sum = kept.sum.as_mut()?;
        // Not on a copy: to make one each second would cost as much as all else that is done with it.
        let counts: Vec<Counts> = sum.classes.iter().map(|tally| tally.counts).collect();
        sum.settle();
        let seen = look(sum, at);
        sum.classes.iter_mut().zip(counts).for_each(|(tally, counts)| tally.counts = counts);
        Some(seen)
    }

    /// All that was seen, of which this is what the shards had not handed over.
    ///
    /// # Errors
    /// When the Accounts are not of one run.
    pub fn complete(&self, rest: Account) -> Result<Account, Unlike> {
        self.collect()?;
        let mut kept = lock(&self.kept);
        kept.shards.clear();
        match kept.sum.take() {
            Some(sum) => sum.merge(rest),
            None => Ok(rest),
        }
    }
}

/// Hands the Account over if that was asked for, and leaves an empty one in its place; never waits.
pub(crate) fn hand_over(account: &mut Account, now: Nanos, counter: &Mutex<Exchange>) {
    if let Ok(mut exchange) = counter.try_lock()
        && let Some(empty) = exchange.empty.take()
    {
        exchange.filled = Some((mem::replace(account, empty), now));
    }
}

impl Account {
    /// Counts the calls whose end was not seen as under way, as if the run had ended here.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collector, PerCall};
    use brimful_core::{CallSpec, ClassId, End, Event, Observer, Outcome};

    fn account() -> Account {
        Account::new(&["all".to_owned()], Nanos::from_secs(1_000))
    }

    /// Every call takes 30 ms, so that some are under way whenever something is handed over.
    fn call(collector: &mut Collector, due: Nanos, mut between: impl FnMut(&mut Collector)) {
        let mut memory = PerCall::default();
        let at = due + Nanos::from_millis(30);
        let end = End::Completed { status: 200 };
        let ended = Outcome { call: CallSpec::of_class(ClassId(0)), due, at, end, bytes_sent: 1, bytes_received: 2 };
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
        let keeper = Keeper::default();
        let mut shards = [0; 2].map(|_| Collector::kept(account(), &keeper, account()));
        let mut alone = Collector::new(account());
        // Long enough for intervals and batches to become longer on the way.
        for i in 0..700 {
            let due = Nanos::from_secs(i);
            call(&mut alone, due, |_| ());
            let mut step = 0;
            call(&mut shards[(i % 2) as usize], due, |collector| {
                step += 1;
                if i % 7 == step {
                    collector.publish(due);
                    keeper.collect().unwrap();
                }
            });
        }
        let [mut a, b] = shards;
        a.merge(b);
        assert_eq!(keeper.complete(a.into_account()), Ok(alone.into_account()));
    }

    #[test]
    fn calls_under_way_are_counted_as_such() {
        let keeper = Keeper::default();
        let mut collector = Collector::kept(account(), &keeper, account());
        let so_far = || keeper.so_far(|account, at| (account.counts(), at));
        assert_eq!(so_far(), None);
        let mut step = 0;
        call(&mut collector, Nanos::from_secs(5), |collector| {
            step += 1;
            // Nothing was asked for after the first time.
            collector.publish(Nanos::from_secs(5 + step));
            if step == 3 {
                keeper.collect().unwrap();
            }
        });
        let (counts, at) = so_far().unwrap();
        assert_eq!((counts.scheduled, counts.sent, counts.unsent_at_end, at), (1, 0, 1, Nanos::from_secs(6)));
        keeper.collect().unwrap();
        let (counts, at) = so_far().unwrap();
        assert_eq!((counts.sent, counts.in_flight_at_end, counts.imbalance()), (1, 1, (0, 0)));
        assert_eq!(at, Nanos::from_secs(9));
        // What was only called under way has ended since.
        let counts = keeper.complete(collector.into_account()).unwrap().counts();
        assert_eq!((counts.completed, counts.in_flight_at_end, counts.unsent_at_end), (1, 0, 0));
    }
}
