//! Recorded figures of a simulation, in slices of equal time. When there are too many slices, pairs of them are merged,
//! so a run may have any length. The warm-up is determined when the run is over.

use super::histogram::{Buckets, Histogram};
use super::layout::Layout;
use super::world::{Completed, Visits, World};

/// Number of slices at which pairs of them are merged.
const MAX_SLICES: usize = 512;
/// Requests in an initial slice, if none of them waited.
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
        let preferred = REQUESTS / layout.rate;
        // A run with a time limit gets shorter slices if there would be too few.
        let slice_s = time_s.map_or(preferred, |time| preferred.min(2.0 * time / MAX_SLICES as f64));
        Record { slices: Vec::with_capacity(MAX_SLICES), slice_s }
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
        if self.slices.len() == MAX_SLICES {
            self.halve();
        }
    }

    /// Whether the precision should be checked: the record has grown by a third or half since the last check.
    pub(super) fn is_due_for_check(&self) -> bool {
        self.slices.len() >= MAX_SLICES / 2 && self.slices.len().is_multiple_of(MAX_SLICES / 4)
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
    /// Adds all figures except the histograms.
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

/// The sum of two histograms, in rising order.
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
