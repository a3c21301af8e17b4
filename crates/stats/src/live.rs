//! What a run has seen so far, for those who look on while it lasts.
//!
//! A whole Account is 4.6 MB: to copy it ten times a second would hold up calls that are due for a millisecond each time.
//! So a shard shows a summary, its counts and the course of the run, of which it copies only the intervals that have
//! changed (10 kB each). It never waits for who looks on: what cannot be shown now is shown the next time.

use crate::account::Account;
use crate::series::Series;
use crate::tally::add;
use brimful_core::Nanos;
use brimful_core::counts::Counts;
use brimful_core::record::Interval;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the shards of a run show what they have seen.
#[derive(Debug, Default)]
pub struct Live {
    shards: Mutex<Vec<Place>>,
}

/// Where one of them does.
pub(crate) type Place = Arc<Mutex<SoFar>>;

/// What was seen up to an instant.
#[derive(Clone, Debug, Default)]
pub struct SoFar {
    /// The latest that any shard has shown something.
    pub at: Nanos,
    /// What became of the calls, by [`ClassId`](brimful_core::ClassId).
    pub classes: Vec<Counts>,
    series: Series,
}

impl Live {
    /// Forgets what an earlier run has shown.
    pub fn restart(&self) {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A place for one more shard.
    pub(crate) fn place(&self) -> Place {
        let place = Place::default();
        self.shards.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&place));
        place
    }

    /// What all shards together have shown, a tenth of a second ago at most if they keep up with their calls.
    pub fn so_far(&self) -> SoFar {
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner).clone();
        shards.iter().fold(SoFar::default(), |mut sum, place| {
            sum.take_in(&place.lock().unwrap_or_else(PoisonError::into_inner));
            sum
        })
    }
}

impl SoFar {
    /// All classes together.
    pub fn counts(&self) -> Counts {
        self.classes.iter().fold(Counts::default(), |mut sum, counts| {
            add(&mut sum, counts);
            sum
        })
    }

    /// The course of the run.
    pub fn intervals(&self) -> Vec<Interval> {
        self.series.intervals(self.at)
    }

    fn take_in(&mut self, other: &SoFar) {
        self.at = self.at.max(other.at);
        self.classes.resize(self.classes.len().max(other.classes.len()), Counts::default());
        self.classes.iter_mut().zip(&other.classes).for_each(|(sum, counts)| add(sum, counts));
        self.series.merge(&other.series);
    }
}

/// Shows what the Account has seen until `now`, unless somebody is looking this very moment.
pub(crate) fn show(account: &Account, now: Nanos, place: &Mutex<SoFar>) {
    if let Ok(mut shown) = place.try_lock() {
        shown.at = now;
        shown.classes.clear();
        shown.classes.extend(account.classes.iter().map(|tally| tally.counts));
        shown.series.catch_up(&account.series);
    }
}
