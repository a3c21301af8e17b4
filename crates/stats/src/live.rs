//! Publishes summaries of a run's statistics during the run, for displays.
//!
//! The statistics of a shard are 4.6 MB, and copying them ten times a second would delay due calls by a millisecond
//! each time. So a shard publishes a summary: its counts, and the intervals that have changed since the previous
//! summary (10 kB each). The shard never waits for a reader: if the summary is locked, it publishes at the next
//! opportunity.

use crate::account::Account;
use crate::series::Series;
use crate::tally::add;
use brimful_core::Nanos;
use brimful_core::counts::Counts;
use brimful_core::panics::lock;
use brimful_core::record::Interval;
use std::sync::{Arc, Mutex};

/// The summaries that the shards of a run publish for a display.
#[derive(Debug, Default)]
pub struct LiveProgress {
    shards: Mutex<Vec<SharedSummary>>,
}

/// The summary of one shard, which the shard writes and the display reads.
pub(crate) type SharedSummary = Arc<Mutex<LiveSummary>>;

/// A summary of the calls of a run so far: counts by class, and counts and times by interval.
#[derive(Clone, Debug, Default)]
pub struct LiveSummary {
    /// Time of the latest summary of any shard, since the start of the run.
    pub at: Nanos,
    /// Counts of the calls of each class, indexed by [`ClassId`](brimful_core::ClassId).
    pub classes: Vec<Counts>,
    series: Series,
}

impl LiveProgress {
    /// Removes the summaries of an earlier run.
    pub fn restart(&self) {
        lock(&self.shards).clear();
    }

    /// Adds one more shard. Returns the summary that the shard must update.
    pub(crate) fn register(&self) -> SharedSummary {
        let summary = SharedSummary::default();
        lock(&self.shards).push(Arc::clone(&summary));
        summary
    }

    /// The sum of all shards' summaries. It is at most a tenth of a second old if the shards keep up with their calls.
    pub fn summary(&self) -> LiveSummary {
        let shards = lock(&self.shards).clone();
        shards.iter().fold(LiveSummary::default(), |mut sum, shard| {
            sum.merge(&lock(shard));
            sum
        })
    }
}

impl LiveSummary {
    /// Number of calls of all classes together, by outcome.
    pub fn counts(&self) -> Counts {
        self.classes.iter().fold(Counts::default(), |mut sum, counts| {
            add(&mut sum, counts);
            sum
        })
    }

    /// The counts and response times of the run so far, by interval.
    pub fn intervals(&self) -> Vec<Interval> {
        self.series.intervals(self.at)
    }

    fn merge(&mut self, other: &LiveSummary) {
        self.at = self.at.max(other.at);
        self.classes.resize(self.classes.len().max(other.classes.len()), Counts::default());
        self.classes.iter_mut().zip(&other.classes).for_each(|(sum, counts)| add(sum, counts));
        self.series.merge(&other.series);
    }
}

/// Publishes a summary of these statistics at the time `now`. Does nothing if a reader has locked the summary.
pub(crate) fn publish(account: &Account, now: Nanos, summary: &Mutex<LiveSummary>) {
    if let Ok(mut summary) = summary.try_lock() {
        summary.at = now;
        summary.classes.clear();
        summary.classes.extend(account.classes.iter().map(|tally| tally.counts));
        summary.series.copy_changes(&account.series);
    }
}
