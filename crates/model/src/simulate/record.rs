//! Recorded sums of a simulation, in slices (periods of equal simulated time). If the number of slices reaches its
//! limit, neighbouring slices are merged in pairs. So memory is limited for runs of any length. The warm-up is
//! determined when the run is over.

use super::histogram::{Buckets, Histogram};
use super::layout::Layout;
use super::world::{Completed, Visits, World};

/// When a record has this number of slices (periods of simulated time), neighbouring slices are merged in pairs.
const MAX_SLICES: usize = 512;
/// Number of requests that would be completed during the first slices if no request had to wait. It determines the
/// initial length of a slice.
const REQUESTS_PER_SLICE: f64 = 40.0;

/// The sums of consecutive periods (slices) of equal length.
pub(super) struct Record {
    pub(super) slices: Vec<Slice>,
    /// Length of each slice in seconds.
    pub(super) slice_s: f64,
}

/// The sums of one slice, which is a period of simulated time.
#[derive(Clone, Debug, Default)]
pub(super) struct Slice {
    /// The completed requests of each class.
    pub(super) completed: Vec<Completed>,
    /// Histogram of the response times of each class.
    pub(super) times: Vec<Buckets>,
    /// The visits of each class to each station, stations × classes.
    pub(super) visits: Vec<Visits>,
}

impl Record {
    pub(super) fn new(layout: &Layout, time_s: Option<f64>) -> Record {
        let preferred = REQUESTS_PER_SLICE / layout.rate;
        // If the limit of time is short, the slices are shorter too, so that there are at least half of [`MAX_SLICES`].
        let slice_s = time_s.map_or(preferred, |time| preferred.min(2.0 * time / MAX_SLICES as f64));
        Record { slices: Vec::with_capacity(MAX_SLICES), slice_s }
    }

    /// The simulated time at which the next slice ends, in seconds.
    pub(super) fn next_end(&self) -> f64 {
        self.slice_s * (self.slices.len() + 1) as f64
    }

    /// Ends the current slice at [`Record::next_end`].
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

    /// Whether the precision should be checked now: the record is a third to a half longer than at the previous check.
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
    /// Adds all sums of another slice to this slice, except the histograms.
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

/// Merges two histograms. The buckets of the result are in ascending order.
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
