//! What a simulation has seen, in slices of equal time whose number stays within bounds: when there are too many, every
//! two become one. So a run may be of any length, and what of it is warm-up is decided when it is over.

use super::histogram::{Buckets, Histogram};
use super::layout::Layout;
use super::world::{Completed, Visits, World};

/// The most slices that are kept; afterwards there are half as many.
const MOST: usize = 512;
/// A slice begins as the time in which this many requests would come if no one ever waited.
const REQUESTS: f64 = 40.0;

/// Slices of equal time, without gaps.
pub(super) struct Record {
    pub(super) slices: Vec<Slice>,
    /// Length of each.
    pub(super) slice_s: f64,
}

/// What happened in a stretch of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Slice {
    /// By class.
    pub(super) completed: Vec<Completed>,
    /// By class: how often which response time.
    pub(super) times: Vec<Buckets>,
    /// Stations × classes.
    pub(super) visits: Vec<Visits>,
}

impl Record {
    pub(super) fn new(layout: &Layout, time_s: Option<f64>) -> Record {
        let enough = REQUESTS / layout.rate;
        // A run of a given time that is too short for that still gets its slices.
        let slice_s = time_s.map_or(enough, |time| enough.min(2.0 * time / MOST as f64));
        Record { slices: Vec::with_capacity(MOST), slice_s }
    }

    /// When the next slice ends.
    pub(super) fn next_end(&self) -> f64 {
        self.slice_s * (self.slices.len() + 1) as f64
    }

    /// Ends a slice at that instant.
    pub(super) fn close(&mut self, world: &mut World<'_>) {
        world.integrate();
        let slice = Slice {
            completed: world.completed.iter_mut().map(std::mem::take).collect(),
            times: world.histograms.iter_mut().map(Histogram::take).collect(),
            visits: world.presence.iter_mut().map(|presence| std::mem::take(&mut presence.visits)).collect(),
        };
        self.slices.push(slice);
        if self.slices.len() == MOST {
            self.halve();
        }
    }

    /// Whether it has grown by a third or half since this was last so, so that looking is worth the while.
    pub(super) fn is_worth_a_look(&self) -> bool {
        self.slices.len() >= MOST / 2 && self.slices.len().is_multiple_of(MOST / 4)
    }

    fn halve(&mut self) {
        let mut slices = std::mem::take(&mut self.slices).into_iter();
        while let Some(mut slice) = slices.next() {
            if let Some(other) = slices.next() {
                slice.add(&other);
                for (buckets, other) in slice.times.iter_mut().zip(&other.times) {
                    *buckets = merged(buckets, other);
                }
            }
            self.slices.push(slice);
        }
        self.slice_s *= 2.0;
    }
}

impl Slice {
    /// Adds what can be added number by number: all but the histograms.
    pub(super) fn add(&mut self, other: &Slice) {
        for (mine, theirs) in self.completed.iter_mut().zip(&other.completed) {
            mine.count += theirs.count;
            mine.seconds += theirs.seconds;
        }
        for (mine, theirs) in self.visits.iter_mut().zip(&other.visits) {
            mine.ended += theirs.ended;
            mine.seconds += theirs.seconds;
            mine.area += theirs.area;
            mine.work += theirs.work;
        }
    }
}

/// Both in one, in rising order.
fn merged(a: &Buckets, b: &Buckets) -> Buckets {
    let mut all = [&a[..], &b[..]].concat();
    all.sort_unstable_by_key(|(bucket, _)| *bucket);
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_merge_in_order() {
        let (a, b) = (vec![(1, 1), (4, 2), (9, 1)], vec![(0, 5), (4, 3)]);
        assert_eq!(merged(&a, &b), [(0, 5), (1, 1), (4, 5), (9, 1)]);
        assert_eq!(merged(&b, &a), merged(&a, &b));
    }
}
