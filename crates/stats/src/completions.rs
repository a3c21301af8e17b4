//! Counts completed calls in many short parts of the window (the time in which load is offered). Parts without any
//! completed call show pauses of the server that are too short to be visible in the intervals of a
//! [`Series`](crate::series::Series).
//!
//! All parts of a window have the same length, so the counts of several shards can be added.

use crate::error::StatsError;
use crate::histogram::MAX_COUNT;
use brimful_core::Nanos;
use brimful_core::account::WINDOW_PARTS;

/// Number of completed calls in each of [`WINDOW_PARTS`] equal parts of the window, the time in which load is offered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Completions {
    window: Nanos,
    parts: Vec<u32>,
}

impl Completions {
    /// Creates counters for a window of the length `window`. All memory (16 KB) is allocated and written to here.
    pub fn new(window: Nanos) -> Completions {
        // Collecting the iterator writes to the memory. `vec![0; n]` would only reserve zero pages, and the run would
        // cause page faults.
        Completions { window, parts: (0..WINDOW_PARTS).map(|_| std::hint::black_box(0)).collect() }
    }

    /// Counts a call that was completed at `at`. Calls that were completed after the window are ignored.
    #[inline]
    pub fn record(&mut self, at: Nanos) {
        let part = u128::from(at.0) * WINDOW_PARTS as u128 / u128::from(self.window.0.max(1));
        if let Some(count) = self.parts.get_mut(part as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds the counts of `other`, which must have the same window.
    pub fn merge(&mut self, other: &Completions) {
        for (count, theirs) in self.parts.iter_mut().zip(&other.parts) {
            *count = count.saturating_add(*theirs);
        }
    }

    /// Clears all counts.
    pub fn clear(&mut self) {
        self.parts.fill(0);
    }

    /// The serialised form: the counts up to the last part with a completed call.
    pub fn pack(&self) -> Vec<u32> {
        let used = self.parts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        self.parts[..used].to_vec()
    }

    /// Restores the counters from the output of [`Completions::pack`].
    ///
    /// # Errors
    /// [`StatsError`] if `counts` is not output of `pack`.
    pub fn unpack(window: Nanos, counts: &[u32]) -> Result<Completions, StatsError> {
        let mut completions = Completions::new(window);
        match completions.parts.get_mut(..counts.len()) {
            Some(parts) if counts.iter().all(|count| u64::from(*count) <= MAX_COUNT) => parts.copy_from_slice(counts),
            _ => return Err(StatsError::Damaged("completed calls outside the window".to_owned())),
        }
        Ok(completions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_counted_by_part_and_merged() {
        let window = Nanos::from_secs(4);
        let mut all = Completions::new(window);
        let mut shards = [Completions::new(window), Completions::new(window)];
        for (index, at) in [0, 1, 999_999, 500_000_000, 3_999_999_999].into_iter().enumerate() {
            all.record(Nanos(at));
            shards[index % 2].record(Nanos(at));
        }
        all.record(window);
        let [mut merged, other] = shards;
        merged.merge(&other);
        assert_eq!(merged, all);
        assert_eq!((all.parts[0], all.parts[1], all.parts[512], all.parts[WINDOW_PARTS - 1]), (2, 1, 1, 1));
        assert_eq!(Completions::unpack(window, &all.pack()).unwrap(), all);
        assert!(Completions::unpack(window, &[0; WINDOW_PARTS + 1]).is_err());
    }
}
